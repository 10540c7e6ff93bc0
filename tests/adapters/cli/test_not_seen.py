"""A store that could not be looked at is not a store that is not there. F1."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli.failures import failure_of
from safepoint.ports.incarnations import OwnershipUnavailable

from .program import Program

LOOKS = (("list",), ("status", "--fail-if-unsettled"), ("plan", "s1"), ("resume", "s1"), ("cancel", "s1"), ("verify",))


@pytest.fixture
def closed(program: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A store in a folder that may not be entered; patched, because permissions do not bind a superuser."""
    program.script({"text": "Done."})
    assert program(*program.run("--session", "s1")).code == 0
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, _refusing(getattr(os, name), program.store))
    return program


def _refusing(look: Any, store: Path) -> Any:
    def refused(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(str(store)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        found: os.stat_result = look(path, *args, **options)
        return found

    return refused


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_a_store_that_may_not_be_looked_at_is_unavailable(closed: Program, look: tuple[str, ...]) -> None:
    ran = closed(*look, "--json")
    assert (ran.code, ran.document["code"]) == (5, "store_unavailable")
    assert "Permission denied" in ran.document["message"]


def test_the_doctor_says_what_it_could_not_look_at(closed: Program) -> None:
    ran = closed("doctor", "--json")
    assert (ran.code, ran.document["exists"]) == (5, True)
    levels = {one["name"]: (one["level"], one["said"]) for one in ran.document["checks"]}
    assert levels["store"][0] == "fault"
    assert "store_unavailable" in levels["store"][1]
    assert "Permission denied" in levels["files"][1]
    assert levels["locks"][0] == "fault"


def test_a_store_file_that_may_not_be_read_is_no_error_of_usage(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.script({"text": "Done."})
    assert program(*program.run("--session", "s1")).code == 0
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: str(path) != str(program.store) and allowed(path, mode)
    )
    assert program("list", "--json").code == 0, "opening it says what may not be, the parser does not ask"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_may_not_be_written_is_not_called_a_remote_one(number: int) -> None:
    error = OwnershipUnavailable("a")
    error.__cause__ = OSError(number, os.strerror(number))
    assert "right to write" in failure_of(error).next_step
    assert "local file system" in failure_of(OwnershipUnavailable("a")).next_step
