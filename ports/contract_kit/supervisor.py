"""The contract of `Supervisor` and its slots."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

import pytest

from ...domain.errors import RefusedWithoutEffect
from ...domain.identifiers import OperationId
from ..supervised import Command, FunctionCall, FunctionFailed, FunctionFailure, FunctionReturned, Overness, Progress
from ..supervisor import Supervisor, SupervisorUnavailable, WorkNotStarted

OPERATION = OperationId("operation/../1 ünd")  # ids are no file names
WAIT_SECONDS_MAX = 60.0  # a bound for what never comes, not a measure


class Commands(Protocol):
    """What an implementation's environment can run."""

    @abstractmethod
    def print_and_exit(self, text: str, code: int) -> Command:
        """A program that writes `text` to standard output and ends with `code`."""

    @abstractmethod
    def run_until_ended(self) -> Command:
        """A program that runs until a signal ends it."""

    @abstractmethod
    def leave_a_process(self) -> Command:
        """A program that ends with code 0 and leaves a process running that has detached itself."""

    @abstractmethod
    def let_it_end(self) -> None:
        """Let the process that was left running end."""


def add(first: int, second: int) -> int:
    """Return a sum."""
    return first + second


def refuse(reason: str) -> None:
    """Refuse before any effect."""
    raise RefusedWithoutEffect(reason)


def fail_badly() -> None:
    """Raise what every dictionary raises."""
    raise KeyError("a missing name")


def return_a_set() -> object:
    """Return what JSON does not have."""
    return {"members": {1, 2}}


def tell_context(word: str, context: object) -> list[str]:
    """Return what the context says."""
    return [word, str(getattr(context, "operation_id", None)), str(getattr(context, "idempotency_key", None))]


def eventually(what: Callable[[], bool], seconds_max: float = 30.0) -> bool:
    """Look again until it is so; False when it has not become so in `seconds_max`."""
    deadline = time.monotonic() + seconds_max
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def call(function: str, context_parameter: str | None = None, **arguments: str | int) -> FunctionCall:
    """A call of a function of this module."""
    context: dict[str, str] = {"operation_id": OPERATION, "idempotency_key": "key-1"}
    return FunctionCall(__name__, function, arguments, context if context_parameter else {}, context_parameter)


class SupervisorContract:
    """Subclass it, override the fixtures, and pytest checks an implementation of the port."""

    @pytest.fixture
    def supervisor(self) -> Supervisor:
        """The implementation, as the owner uses it."""
        pytest.fail("override the fixture `supervisor`")

    @pytest.fixture
    def observer(self) -> Supervisor:
        """The same operations, as another process sees them."""
        pytest.fail("override the fixture `observer`")

    @pytest.fixture
    def commands(self) -> Commands:
        """What can be run."""
        pytest.fail("override the fixture `commands`")

    def test_an_operation_that_was_never_prepared_cannot_be_looked_at(self, observer: Supervisor) -> None:
        assert observer.probe_over(OPERATION) is Overness.COULD_NOT_LOOK
        assert observer.status(OPERATION) is None
        assert observer.who_holds(OPERATION) == ()
        assert observer.forget(OPERATION)

    def test_the_lock_is_held_before_anything_is_started(self, supervisor: Supervisor, observer: Supervisor) -> None:
        slot = supervisor.prepare(OPERATION)
        assert observer.probe_over(OPERATION) is Overness.RUNNING
        assert supervisor.probe_over(OPERATION) is Overness.RUNNING
        assert slot.living() == ()
        assert len(observer.who_holds(OPERATION)) == 1
        slot.release()

    def test_a_released_slot_leaves_nothing(self, supervisor: Supervisor, observer: Supervisor) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.release()
        slot.release()
        assert observer.probe_over(OPERATION) is Overness.COULD_NOT_LOOK
        assert observer.status(OPERATION) is None
        supervisor.prepare(OPERATION).release()

    def test_an_operation_is_prepared_once_at_a_time(self, supervisor: Supervisor, observer: Supervisor) -> None:
        slot = supervisor.prepare(OPERATION)
        with pytest.raises(SupervisorUnavailable):
            observer.prepare(OPERATION)
        slot.release()

    def test_two_operations_do_not_disturb_each_other(self, supervisor: Supervisor, commands: Commands) -> None:
        first, second = supervisor.prepare(OperationId("a")), supervisor.prepare(OperationId("A"))
        first.start(commands.print_and_exit("one", 0))
        assert first.wait(WAIT_SECONDS_MAX) is not None
        assert eventually(lambda: supervisor.probe_over(OperationId("a")) is Overness.OVER)
        assert supervisor.probe_over(OperationId("A")) is Overness.RUNNING
        second.release()

    @pytest.mark.parametrize("code", [0, 3])
    def test_a_program_ends_with_its_code_and_output(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands, code: int
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.print_and_exit("hello", code))
        ended = slot.wait(WAIT_SECONDS_MAX)
        assert ended is not None
        assert (ended.exit_code, ended.signal, ended.left_running) == (code, None, False)
        assert (ended.stdout.data, ended.stdout.total_bytes, ended.stdout.truncated) == (b"hello", 5, False)
        assert slot.wait(0.0) == ended
        assert eventually(lambda: observer.probe_over(OPERATION) is Overness.OVER)

    def test_the_status_says_how_it_ended_and_not_what_was_asked(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.print_and_exit("hello", 3))
        slot.wait(WAIT_SECONDS_MAX)
        slot.end()
        status = observer.status(OPERATION)
        assert status is not None
        assert (status.operation_id, status.progress, status.exit_code) == (OPERATION, Progress.EXITED, 3)
        assert status.pid is not None
        assert len(status.argv_digest or "") == 64
        assert "hello" not in repr(status)

    def test_forgetting_removes_what_is_over_and_nothing_else(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.run_until_ended())
        assert not observer.forget(OPERATION)
        assert observer.probe_over(OPERATION) is Overness.RUNNING
        slot.end()
        assert observer.forget(OPERATION)
        assert observer.forget(OPERATION)
        assert observer.probe_over(OPERATION) is Overness.COULD_NOT_LOOK
        assert observer.status(OPERATION) is None

    def test_a_program_that_runs_is_ended_on_request(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.run_until_ended())
        assert slot.wait(0.0) is None
        assert len(slot.living()) >= 1
        assert len(observer.who_holds(OPERATION)) >= 2
        assert slot.end() is Overness.OVER
        assert slot.living() == ()
        ended = slot.wait(WAIT_SECONDS_MAX)
        assert ended is not None
        assert (ended.exit_code, ended.ended_on_request, ended.left_running) == (None, True, False)
        assert ended.signal is not None
        assert observer.probe_over(OPERATION) is Overness.OVER

    def test_an_operation_is_not_over_while_what_it_left_runs(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.leave_a_process())
        ended = slot.wait(WAIT_SECONDS_MAX)
        assert ended is not None
        assert (ended.exit_code, ended.left_running, len(ended.living)) == (0, True, 1)
        assert slot.living() == ended.living
        assert observer.probe_over(OPERATION) is Overness.RUNNING
        assert set(ended.living) < set(observer.who_holds(OPERATION))
        commands.let_it_end()
        assert eventually(lambda: observer.probe_over(OPERATION) is Overness.OVER)

    def test_ending_an_operation_ends_what_it_left(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.leave_a_process())
        slot.wait(WAIT_SECONDS_MAX)
        assert slot.end() is Overness.OVER
        assert observer.probe_over(OPERATION) is Overness.OVER
        assert observer.who_holds(OPERATION) == ()

    def test_an_operation_that_is_over_can_be_delivered_again(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands
    ) -> None:
        for text in ("first", "second"):
            slot = supervisor.prepare(OPERATION)
            assert observer.probe_over(OPERATION) is Overness.RUNNING
            slot.start(commands.print_and_exit(text, 0))
            ended = slot.wait(WAIT_SECONDS_MAX)
            assert ended is not None
            assert ended.stdout.data == text.encode()
            assert slot.end() is Overness.OVER

    def test_a_program_that_is_not_there_is_not_started_and_over(
        self, supervisor: Supervisor, observer: Supervisor
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        with pytest.raises(WorkNotStarted, match="no-such-program"):
            slot.start(Command(("no-such-program", "--secret")))
        assert slot.end() is Overness.OVER
        status = observer.status(OPERATION)
        assert status is not None
        assert status.progress is Progress.NEVER_STARTED

    def test_after_the_end_nothing_is_started_any_more(
        self, supervisor: Supervisor, observer: Supervisor, commands: Commands
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        assert slot.end() is Overness.OVER
        with pytest.raises(WorkNotStarted):
            slot.start(commands.print_and_exit("too late", 0))
        assert observer.probe_over(OPERATION) is Overness.OVER

    def test_a_slot_is_used_once(self, supervisor: Supervisor, commands: Commands) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.print_and_exit("once", 0))
        with pytest.raises(ValueError, match="started"):
            slot.start(commands.print_and_exit("twice", 0))
        with pytest.raises(ValueError, match="started"):
            slot.release()
        slot.wait(WAIT_SECONDS_MAX)

    def test_a_function_returns_its_value(self, supervisor: Supervisor) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(call("add", first=2, second=40))
        ended = slot.wait(WAIT_SECONDS_MAX)
        assert ended is not None
        assert (ended.exit_code, ended.outcome) == (0, FunctionReturned(42))

    def test_a_function_is_given_its_context(self, supervisor: Supervisor) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(call("tell_context", "context", word="hi"))
        ended = slot.wait(WAIT_SECONDS_MAX)
        assert ended is not None
        assert ended.outcome == FunctionReturned(["hi", OPERATION, "key-1"])

    @pytest.mark.parametrize(
        ("work", "failure", "error_class", "refused"),
        [
            (
                call("refuse", reason="no"),
                FunctionFailure.RAISED,
                f"{RefusedWithoutEffect.__module__}:RefusedWithoutEffect",
                True,
            ),
            (call("fail_badly"), FunctionFailure.RAISED, "builtins:KeyError", False),
            (call("add", first=1), FunctionFailure.RAISED, "builtins:TypeError", False),
            (call("return_a_set"), FunctionFailure.RESULT_NOT_STRICT_JSON, None, False),
            (call("not_here"), FunctionFailure.NOT_IMPORTABLE, "builtins:AttributeError", False),
            (FunctionCall("no.such.module", "f", {}), FunctionFailure.NOT_IMPORTABLE, "builtins:ImportError", False),
        ],
    )
    def test_a_function_that_fails_says_how(
        self,
        supervisor: Supervisor,
        work: FunctionCall,
        failure: FunctionFailure,
        error_class: str | None,
        refused: bool,
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(work)
        ended = slot.wait(WAIT_SECONDS_MAX)
        assert ended is not None
        assert isinstance(ended.outcome, FunctionFailed)
        assert (ended.outcome.failure, ended.outcome.refused_without_effect) == (failure, refused)
        assert error_class is None or error_class in ended.outcome.error_classes
