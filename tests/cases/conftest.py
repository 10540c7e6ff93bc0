"""The program, and a ledger over every store, for the situations that users of comparable systems met."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.sqlite.store import SqliteStore, open_store

from ..adapters.cli.program import Program, program_in
from .stores import Writing

_NOT_OURS = ("SAFEPOINT_STORE", "SAFEPOINT_RESUME", "SAFEPOINT_TEST_HOOKS", "SAFEPOINT_FAILPOINT")
_KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program with a store, a workspace and a script folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    for name in (*_NOT_OURS, *_KEYS):
        monkeypatch.delenv(name, raising=False)
    return program_in(tmp_path, capsys)


@pytest.fixture(params=["memory", "sqlite"])
def writing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Writing]:
    """A ledger over a store in memory, and over one in a file."""
    if request.param == "memory":
        store = MemoryStore()
        yield Writing(store, lambda: store)
        return
    with ExitStack() as opened:

        def reopen() -> SqliteStore:
            made = open_store(tmp_path / "store.sqlite")
            opened.callback(made.close)
            return made

        yield Writing(reopen(), reopen)
