"""Asking the person at the terminal, at a real pseudo-terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from safepoint.adapters.permission.terminal import TerminalGate
from safepoint.domain.identifiers import OperationId, RequestId
from safepoint.ports.contract_kit.permission_gate import QUESTION, NeverSet
from safepoint.ports.permission_gate import Allowed, AskReason, Denied, PermissionAnswer, PermissionRequest, Undecided

REPEAT = replace(QUESTION, reason=AskReason.REPEAT_OF_UNSETTLED_EFFECT, repeats=OperationId("operation-0"))


class Screen(io.StringIO):
    """What was written so far, for whoever waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._news = threading.Condition()

    def write(self, text: str) -> int:
        with self._news:
            self._news.notify_all()
            return super().write(text)

    def wait_for(self, count: int, text: str = "Allow it?") -> None:
        with self._news:
            assert self._news.wait_for(lambda: self.getvalue().count(text) >= count, timeout=30)


class Person:
    """Sits at the other end of the pseudo-terminal."""

    def __init__(self) -> None:
        self.keyboard, self.terminal = pty.openpty()
        self.screen = Screen()
        self.gate = TerminalGate("ann", self.terminal, self.screen)
        self._pool = ThreadPoolExecutor(4)
        self._asked = 0

    def is_asked(self, request: PermissionRequest = QUESTION) -> Future[PermissionAnswer]:
        return self._pool.submit(self.gate.decide, request, NeverSet())

    def types(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def answers(self, *lines: str, request: PermissionRequest = QUESTION) -> PermissionAnswer:
        answer = self.is_asked(request)
        for line in lines:
            self._asked += 1
            self.screen.wait_for(self._asked)
            self.types(line)
        return answer.result(30)

    def leaves(self) -> None:
        self._pool.shutdown()
        os.close(self.keyboard)
        os.close(self.terminal)


@pytest.fixture
def person() -> Iterator[Person]:
    person = Person()
    yield person
    person.leaves()


@pytest.mark.parametrize("line", ["y\n", "yes\n", " Y \n", "YES\n"])
def test_yes_allows_this_call(person: Person, line: str) -> None:
    assert person.answers(line) == Allowed("ann")


@pytest.mark.parametrize("line", ["n\n", "No\n"])
def test_no_denies_it(person: Person, line: str) -> None:
    assert person.answers(line) == Denied("ann", "the user said no")


def test_yes_holds_for_one_call_only(person: Person) -> None:
    person.answers("y\n")
    assert person.gate.by_policy(QUESTION) is None
    assert isinstance(person.answers("n\n"), Denied)


def test_always_holds_for_this_tool_under_this_contract_only(person: Person) -> None:
    assert person.answers("a\n") == Allowed("ann")
    assert person.gate.by_policy(replace(QUESTION, args_hash="b" * 64)) == Allowed("ann")
    assert person.gate.by_policy(replace(QUESTION, contract_digest="d" * 64)) is None
    assert person.gate.by_policy(replace(QUESTION, tool_name="pay_more")) is None
    assert person.gate.by_policy(REPEAT) is None


def test_always_is_no_answer_to_a_repeat(person: Person) -> None:
    assert person.answers("a\n", "y\n", request=REPEAT) == Allowed("ann")
    assert "[a]lways" not in person.screen.getvalue()
    assert "operation-0" in person.screen.getvalue()
    assert person.gate.by_policy(QUESTION) is None


def test_nothing_that_cannot_be_understood_allows_anything(person: Person) -> None:
    assert isinstance(person.answers("\n", "yy\n", "allow\n"), Undecided)


def test_the_end_of_input_leaves_the_question_open(person: Person) -> None:
    assert isinstance(person.answers("\x04"), Undecided)


def test_what_was_typed_before_the_question_is_no_answer(person: Person) -> None:
    person.types("y\n")
    assert select.select([person.terminal], [], [], 30)[0]
    assert isinstance(person.answers("n\n"), Denied)


def test_questions_are_asked_one_after_another_and_answers_do_not_cross(person: Person) -> None:
    """Field report r3-173: the answer meant for one call was given to another."""
    requests = {name: replace(QUESTION, request_id=RequestId(name), tool_name=name) for name in ("first", "second")}
    answers = {name: person.is_asked(request) for name, request in requests.items()}
    person.screen.wait_for(1)
    shown = "first" if "first" in person.screen.getvalue() else "second"
    other = "second" if shown == "first" else "first"
    assert other not in person.screen.getvalue()
    person.types("n\n")
    person.screen.wait_for(2)
    person.types("y\n")
    assert answers[shown].result(30) == Denied("ann", "the user said no")
    assert answers[other].result(30) == Allowed("ann")


@pytest.mark.parametrize("waiting_for", ["the answer", "another question"])
def test_whoever_is_cancelled_while_waiting_gives_up(person: Person, waiting_for: str) -> None:
    cancel = threading.Event()
    other = person.is_asked() if waiting_for == "another question" else None
    if other is not None:
        person.screen.wait_for(1)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(person.gate.decide, QUESTION, cancel)
        if other is None:
            person.screen.wait_for(1)
        else:
            time.sleep(0.05)
        cancel.set()
        assert isinstance(answer.result(30), Undecided)
    if other is not None:
        person.types("y\n")
        assert other.result(30) == Allowed("ann")


def test_a_terminal_that_fails_leaves_the_question_open(person: Person) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    gate = TerminalGate("ann", person.terminal, Broken())
    assert isinstance(gate.decide(QUESTION, NeverSet()), Undecided)


SHOWN: list[tuple[Callable[[PermissionRequest], PermissionRequest], str]] = [
    (lambda request: replace(request, arguments={"path": "a\x1b[2J\r\u202eb"}), r'path: "a\u001b[2J\r\u202eb"'),
    (lambda request: replace(request, tool_name="p\x07ay"), r"p\x07ay"),
    (lambda request: replace(request, arguments={"a\nb": 1}), r"a\nb: 1"),
    (lambda request: replace(request, arguments=[1, 2]), "arguments: [1,2]"),
    (lambda request: replace(request, arguments={"text": "x" * 5_000}), "(4002 more characters are not shown)"),
    (lambda request: replace(request, arguments={f"a{n}": n for n in range(50)}), "20 more arguments"),
    (lambda request: request, "recovery: outcome_unknown"),
]


@pytest.mark.parametrize(("change", "expected"), SHOWN)
def test_the_question_shows_all_that_matters_and_nothing_that_could_deceive(
    person: Person, change: Callable[[PermissionRequest], PermissionRequest], expected: str
) -> None:
    person.answers("n\n", request=change(QUESTION))
    shown = person.screen.getvalue()
    assert expected in shown
    assert len(shown) < 6_000
    assert all(char.isprintable() or char == "\n" for char in shown)
