"""The program as the field reports meet it: runs that were killed, and what is said of them afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..adapters.cli.program import Program, Ran

SESSION = "s1"
DONE: dict[str, Any] = {"text": "All done."}


def interrupted(program: Program, point: str, *calls: dict[str, Any], session: str = SESSION) -> None:
    """A run that asked for calls, and was killed at a failpoint."""
    program.script({"text": "I do it.", "calls": list(calls)}, DONE)
    program.killed_at(point, *program.run("--session", session))


def resume(program: Program, *more: str | Path, session: str = SESSION) -> tuple[str | Path, ...]:
    """Arguments that continue a session with the script."""
    return ("resume", session, "--script", program.folder / "script.json", *more)


def codes_in(ran: Ran) -> list[str]:
    """Why a run was parked."""
    return [one["code"] for one in ran.document["reasons"]]


def offered(ran: Ran) -> list[str]:
    """The commands that a person is offered."""
    return [one["command"] for one in ran.document["commands"]]
