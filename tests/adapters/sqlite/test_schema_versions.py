"""Stores of every published version are read and written on; newer ones are left alone. SPEC section 7 and issue 3."""

from __future__ import annotations

import gzip
import hashlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli.main import COMMANDS, call
from safepoint.adapters.sqlite import schema
from safepoint.adapters.sqlite.store import open_store
from safepoint.ports.contract_kit.recorded_runs import RecordedSession
from safepoint.ports.store_keeping import Trust

from . import later_versions

GOLDEN = Path(__file__).with_name("golden")
VERSIONS = range(1, schema.SCHEMA_VERSION + 1)
Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def ask(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Calls the program with the store."""
    monkeypatch.setenv("XDG_STATE_HOME", str(path.parent / "xdg"))

    def ask(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = call([*arguments, "--json", "--store", str(path)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        document: dict[str, Any] = json.loads(said.out)
        return code, document

    return ask


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest, path: Path) -> Path:
    """A store as a published version left it."""
    path.write_bytes(gzip.decompress((GOLDEN / f"store-v{request.param}.sqlite.gz").read_bytes()))
    return path


def events_of(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT * FROM stored_events ORDER BY rowid").fetchall()


@pytest.mark.parametrize("golden", [schema.SCHEMA_VERSION], indirect=True)
def test_a_store_of_the_present_version_is_read_as_it_stands(golden: Path, ask: Ask) -> None:
    code, found = ask("verify")
    assert (code, found["sound"], found["condition"]["trust"]) == (3, True, "copied")
    assert found["events"] == len(events_of(golden)) > 0
    listed = ask("list")[1]["sessions"]
    assert sorted(one["state"] for one in listed) == ["completed", "completed", "owner_not_seen"]
    assert sorted(one["unsettled"] for one in listed) == [0, 0, 2]


def test_a_published_store_is_adopted_and_written_on(golden: Path, ask: Ask) -> None:
    before = events_of(golden)
    assert ask("adopt", "--note", "a published store")[0] == 0
    store = open_store(golden)
    later = RecordedSession("later")
    later.own(store.owners)
    later.keep(store.events, *later.opened(), later.ended())
    assert store.condition().trust is Trust.OK
    store.close()
    assert events_of(golden)[: len(before)] == before
    assert ask("verify")[0] == 0


READING: dict[str, tuple[str, ...]] = {
    "list": (),
    "status": (),
    "show": ("s1",),
    "plan": ("s1",),
    "verify": (),
    "export": ("s1", "--out", "nowhere.jsonl"),
}


@pytest.mark.parametrize("command", READING)
def test_whoever_only_looks_at_an_older_store_is_told_how_it_is_brought_forward(
    path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    open_store(path).close()
    before = digests(path)
    with monkeypatch.context() as patched:
        later_versions.install(patched.setattr)
        code, told = ask(command, *READING[command])
        assert (code, told["code"]) == (2, "store_version_older")
        assert str(later_versions.PRESENT) in told["message"]
        assert str(later_versions.LAST) in told["message"]
        assert "safepoint rebuild" in told["next_step"]
        assert digests(path) == before
        assert ask("rebuild")[0] == 0  # what it was told to do helps
        assert ask("verify")[0] == 0
    later_versions.forget()


def test_an_older_copy_is_brought_forward_as_its_user_is_told(
    path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(path).close()
    content = path.read_bytes()
    path.rename(path.with_name("original"))
    path.write_bytes(content)
    before = digests(path)
    with monkeypatch.context() as patched:
        later_versions.install(patched.setattr)
        for command in (("list",), ("rebuild",)):
            code, told = ask(*command)
            assert (code, told["code"]) == (2, "store_version_older")
            assert "a copy" in told["message"]
            assert "safepoint adopt" in told["next_step"]
        assert digests(path) == before
        assert ask("adopt", "--note", "mine")[0] == 0
        assert ask("verify")[0] == 0
    later_versions.forget()


def test_a_store_that_calls_itself_older_than_its_tables_are_is_not_brought_forward(path: Path, ask: Ask) -> None:
    """A flipped bit in the number of the version: whoever looks is told, and whoever would write finds it out."""
    open_store(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION - 1}")
    before = path.read_bytes()
    assert ask("list")[1]["code"] == "store_version_older"
    code, told = ask("rebuild")
    assert (code, told["code"]) == (4, "store_damaged")
    assert path.read_bytes() == before


def test_the_views_of_a_published_store_are_those_that_this_version_makes(golden: Path, ask: Ask) -> None:
    assert ask("adopt", "--note", "a published store")[0] == 0
    with closing(sqlite3.connect(golden)) as raw:
        before = raw.execute("SELECT * FROM runs ORDER BY run_id").fetchall()
    assert ask("rebuild")[0] == 0
    with closing(sqlite3.connect(golden)) as raw:
        assert raw.execute("SELECT * FROM runs ORDER BY run_id").fetchall() == before


ON_STORES: dict[str, tuple[str, ...]] = {
    "run": ("Do it.", "--script", "SCRIPT"),
    "list": (),
    "status": (),
    "show": ("s1",),
    "plan": ("s1",),
    "resume": ("s1",),
    "cancel": ("s1",),
    "approve": ("r1", "--session", "s1"),
    "deny": ("r1", "--session", "s1"),
    "takeover": ("s1",),
    "settle": ("op1", "--not-executed", "--note", "x"),
    "abandon": ("s1", "--note", "x"),
    "doctor": (),
    "verify": (),
    "rebuild": (),
    "adopt": ("--note", "x"),
    "backup": ("FOLDER/copy.sqlite",),
    "restore": ("OTHER",),
    "export": ("s1", "--out", "FOLDER/copy.sqlite"),
    "import": ("HISTORY",),
    "reconcile": ("s1",),
    "gc": (),
    "forget": ("s1", "--yes"),
    "workspace": ("show",),
}
WITHOUT_STORE = {"judge", "demo", "checkpoint"}
"""`checkpoint` looks at a workspace, and needs only to know where the store stands."""


def test_every_command_that_works_on_a_store_is_tried_on_a_newer_one() -> None:
    assert set(ON_STORES) | WITHOUT_STORE == set(COMMANDS)


@pytest.mark.parametrize("in_wal", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("command", ON_STORES)
def test_a_newer_store_is_refused_by_every_command_and_left_untouched(
    path: Path, tmp_path: Path, ask: Ask, command: str, in_wal: bool
) -> None:
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "script.json").write_text('{"steps": [{"text": "Hello."}]}')
    (aside / "history.jsonl").write_text('{"role": "user", "content": "hello"}\n')
    (aside / "other.sqlite").write_bytes(gzip.decompress((GOLDEN / "store-v1.sqlite.gz").read_bytes()))
    open_store(path).close()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA wal_autocheckpoint = 0")
    raw.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    if not in_wal:
        raw.close()
    names = {"SCRIPT": "script.json", "HISTORY": "history.jsonl", "OTHER": "other.sqlite", "FOLDER/copy.sqlite": "copy"}
    arguments = [str(aside / names[one]) if one in names else one for one in ON_STORES[command]]
    before = digests(path)
    code, document = ask(command, *arguments)
    said = document["checks"][0]["said"] if command == "doctor" else document["code"]
    assert (code, "store_version_newer" in said) == (2, True)
    assert digests(path) == before
    assert not (aside / "copy").exists()
    raw.close()


def digests(path: Path) -> dict[str, str]:
    """The store's files, but for the index that SQLite shares in memory and a WAL without bytes."""
    found = {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*") if file.is_file()}
    return {
        name: hashlib.sha256(content).hexdigest()
        for name, content in found.items()
        if not name.endswith("-shm") and (content or not name.endswith("-wal"))
    }


KILLED_MAKER = """
import os, signal, sys
from safepoint.adapters.sqlite.store import open_store
open_store(sys.argv[1], on_point=lambda point: os.kill(os.getpid(), signal.SIGKILL) if point == sys.argv[2] else None)
"""


@pytest.mark.parametrize("instant", ["store.anchor_made", "store.filled", "store.made"])
def test_a_store_whose_maker_was_killed_is_made_by_the_next_with_the_same_content(
    path: Path, tmp_path: Path, instant: str
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_MAKER, str(path), instant], check=False)
    assert killed.returncode == -signal.SIGKILL
    anchor = Path(f"{path}.anchor").read_bytes()
    store = open_store(path)
    assert store.condition().trust is Trust.OK
    store.close()
    assert Path(f"{path}.anchor").read_bytes() == anchor
    assert not list(path.parent.glob("*unfinished*"))
    whole = tmp_path / "whole"
    whole.mkdir()
    open_store(whole / "store.sqlite").close()
    with closing(sqlite3.connect(path)) as made, closing(sqlite3.connect(whole / "store.sqlite")) as expected:
        dumps = [[line for line in raw.iterdump() if "store_control" not in line] for raw in (made, expected)]
    assert dumps[0] == dumps[1]
