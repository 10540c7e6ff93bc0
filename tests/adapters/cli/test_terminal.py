"""What a person sees and answers at a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from .program import PAY, Program

PATIENCE_SECONDS = 60.0


class Terminal:
    """A terminal with the program in it."""

    def __init__(self, program: Program, *arguments: str) -> None:
        self._keyboard, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "safepoint", *program.arguments(*program.run(*arguments))],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            env={**os.environ, **program.environment},
        )
        os.close(terminal)
        self.shown = ""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._keyboard, 4096)
            except OSError:  # the last one who held the terminal has gone
                return
            if not chunk:
                return
            self.shown += chunk.decode("utf-8", "replace").replace("\r\n", "\n")

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            assert self._reading.is_alive() or text in self.shown, self.shown
            time.sleep(0.02)

    def type(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def ended(self) -> int:
        code = self.process.wait(PATIENCE_SECONDS)
        self._reading.join(PATIENCE_SECONDS)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reading.join(PATIENCE_SECONDS)
        os.close(self._keyboard)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for one in opened:
        one.close()


@pytest.mark.parametrize(("answer", "effects"), [("y\n", ["paid"]), ("n\n", [])])
def test_a_person_is_asked_and_the_answer_counts(
    program: Program, terminals: list[Terminal], answer: str, effects: list[str]
) -> None:
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})
    terminal = Terminal(program, "--ask", "--session", "s1")
    terminals.append(terminal)
    terminal.wait_for("Allow it?")
    assert "The model wants to call record_effect" in terminal.shown
    terminal.type(answer)
    assert terminal.ended() == 0
    assert program.effects == effects


def test_ctrl_c_while_a_question_is_open_closes_it(program: Program, terminals: list[Terminal]) -> None:
    """F4: the question is closed as cancelled, once; nothing runs."""
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})
    terminal = Terminal(program, "--ask", "--session", "s1")
    terminals.append(terminal)
    terminal.wait_for("Allow it?")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ended() == 130
    run = program("show", "s1", "--json").document["run"]
    assert (run["status"], run["open_permissions"], program.effects) == ("cancelled", [], [])
    assert [fact["type"] for fact in run["facts"]].count("permission.closed.v1") == 1


def test_the_final_text_that_was_streamed_is_not_shown_twice(program: Program, terminals: list[Terminal]) -> None:
    program.script({"text": "The answer is 42."})
    terminal = Terminal(program)
    terminals.append(terminal)
    assert terminal.ended() == 0
    assert terminal.shown.count("The answer is 42.") == 1


@pytest.mark.parametrize(("verb", "effects"), [("approve", ["paid"]), ("deny", [])])
def test_a_question_at_one_terminal_is_answered_from_another(
    program: Program, terminals: list[Terminal], verb: str, effects: list[str]
) -> None:
    program.script({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})
    terminal = Terminal(program, "--ask", "--session", "s1")
    terminals.append(terminal)
    terminal.wait_for("Allow it?")
    (asked,) = program("status", "--json").document["permissions"]
    assert program(verb, asked["request_id"], "--json").document["result"] == "answered"
    assert terminal.ended() == 0
    assert program.effects == effects
