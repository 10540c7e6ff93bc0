"""Standard output that cannot be written: a reader that went ends a command quietly, a lost result is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from safepoint.adapters.cli.standard_output import OutputLost, lost_in

from .program import TIMEOUT_SECONDS, Program

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "judge": ("judge", "FILE"),
    "judge-json": ("judge", "FILE", "--json"),
    "cases": ("judge", "--cases", "CASES"),
    "export": ("export", "one", "--store", "STORE"),
    "list": ("list", "--store", "STORE"),
    "show-json": ("show", "one", "--json", "--store", "STORE"),
    "verify": ("verify", "--store", "STORE"),
    "help": ("judge", "--help"),
    "version": ("--version",),
    "missing": ("judge", "no-such-file"),
    "misused": ("judge", "--no-such-option"),
}


@pytest.fixture
def filled(program: Program) -> Program:
    program.script({"text": "Hello."})
    assert program(*program.run("--session", "one")).code == 0
    (program.folder / "history.jsonl").write_text('{"role": "user", "content": "go"}\n' * 2)
    (program.folder / "cases.jsonl").write_text(
        "".join(f"{json.dumps({'id': n, 'events': []})}\n" for n in range(2000))
    )
    return program


def called(program: Program, name: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """The program with its standard output as a shell redirects it."""
    places = {"FILE": "history.jsonl", "CASES": "cases.jsonl", "STORE": str(program.store)}
    arguments = [places.get(one, one) for one in COMMANDS[name]]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "safepoint", *arguments],
        cwd=program.folder,
        env={**os.environ, **program.environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {"missing", "misused"}])
def test_a_result_that_finds_no_room_is_said_to_be_lost(filled: Program, name: str) -> None:
    ran = called(filled, name, "> /dev/full")
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran
    assert "Standard output cannot be written: No space left on device." in ran.stderr


@pytest.mark.parametrize("name", ["judge", "judge-json", "cases", "export", "version"])
def test_a_closed_standard_output_is_said_and_no_defect(filled: Program, name: str) -> None:
    ran = called(filled, name, ">&-")
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran
    assert "Standard output cannot be written: Bad file descriptor." in ran.stderr


def test_without_any_standard_descriptor_a_command_still_works(filled: Program) -> None:
    assert called(filled, "verify", "<&- >&- 2>&-").returncode == 1
    assert filled("verify").code == 0


def test_a_command_that_says_nothing_there_needs_no_standard_output(filled: Program) -> None:
    ran = called(filled, "missing", ">&-")
    assert (ran.returncode, ran.stderr.splitlines()[0]) == (
        2,
        "safepoint: no-such-file cannot be read: No such file or directory.",
    )


@pytest.mark.parametrize("redirection", ["2> /dev/full", "2>&-"])
@pytest.mark.parametrize("name", ["missing", "misused"])
def test_a_status_does_not_depend_on_standard_error(filled: Program, name: str, redirection: str) -> None:
    ran = called(filled, name, redirection)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "")


@pytest.mark.parametrize("name", ["cases", "export", "show-json", "help"])
def test_a_reader_that_has_gone_ends_a_command_quietly(filled: Program, name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        places = {"CASES": "cases.jsonl", "STORE": str(filled.store)}
        arguments = [places.get(one, one) for one in COMMANDS[name]]
        ran = subprocess.run(
            [sys.executable, "-m", "safepoint", *arguments],
            cwd=filled.folder,
            env={**os.environ, **filled.environment},
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_a_loss_is_known_also_where_tasks_wrapped_it() -> None:
    lost = OutputLost(OSError(28, "No space left on device"))
    assert lost_in(ExceptionGroup("tasks", [lost])) is lost
    assert lost_in(OSError(28, "of a file")) is None
    assert lost_in(ExceptionGroup("tasks", [lost, ValueError()])) is None
