"""Every kind of damage to a small store is noticed and named, hides no sound session, and nobody repairs it. Issue 3.

`docs/damage.md` holds the table that `TABLE` makes.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.cli.main import call
from safepoint.adapters.sqlite.place import Place
from safepoint.adapters.sqlite.store import open_store
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

from .log_bytes import used
from .store_in_memory import StoreInMemory, is_noticed

DOCUMENTED = Path(__file__).parents[3] / "docs" / "damage.md"
PAGE_BYTES = 4096
FLIPS = 300
CHUNKS = 10
SEED = 20_260_301
PARTS = 40
HEADER_BYTES = 100
PROGRAM_EVERY = 199
"""Which flips of the soak are looked at by the program as well."""
DAMAGE, NOT_NOW, USAGE = 4, 3, 2
REFUSED = {"store_damaged", "store_version_newer", "store_version_older", "ledger_behind_anchor"}
"""What all commands say of a store that they do not read."""


@dataclass
class Victim:
    """A store of two finished sessions, and of a third whose events stand in the WAL alone; damaged in place, so that
    its database stays the file that was recorded.
    """

    path: Path
    capture: pytest.CaptureFixture[str]
    yesterday: dict[str, bytes]
    today: dict[str, bytes]
    hot: dict[str, bytes]
    sessions: tuple[str, ...] = ()

    def put(self, files: dict[str, bytes]) -> None:
        """Write files in place and remove what else stands beside the database."""
        for suffix in ("-journal", "-wal", "-shm", ".anchor"):
            if suffix not in files:
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        for suffix, content in files.items():
            Path(f"{self.path}{suffix}").write_bytes(content)

    def files(self) -> dict[str, bytes]:
        """What holds facts; an empty WAL holds none."""
        found = {suffix: Path(f"{self.path}{suffix}") for suffix in ("", "-wal", ".anchor")}
        return {suffix: path.read_bytes() for suffix, path in found.items() if path.exists() and path.stat().st_size}

    def ask(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Ask the program; it never ends in a traceback or a defect, and looking changes no byte."""
        before = self.files()
        self.capture.readouterr()
        code = call([*arguments, "--json", "--store", str(self.path)])
        said = self.capture.readouterr()
        assert "Traceback" not in said.err
        document: dict[str, Any] = json.loads(said.out)
        assert document.get("code") != "internal_error", document
        assert self.files() == before
        return code, document

    def content(self) -> object:
        """All that SQLite can read of the database file."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True)) as raw:
            tables = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
            raw.text_factory = bytes  # a text that is none any more is content, too
            rows = [raw.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables]
            return rows, raw.execute("PRAGMA integrity_check").fetchall()


@pytest.fixture
def victim(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Victim:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    path, workspace, script = tmp_path / "store.sqlite", tmp_path / "workspace", tmp_path / "script.json"
    workspace.mkdir()
    write = {"tool": "write_file", "args": {"path": "a.txt", "content": "x"}}
    script.write_text(json.dumps({"steps": [{"text": "I do it.", "calls": [write]}, {"text": "Done."}]}))
    made = Victim(path, capsys, {}, {}, {})
    turn = ("run", "Do it.", "--script", str(script), "--workspace", str(workspace), "--store", str(path))
    assert call(turn) == 0
    made.yesterday = made.files()
    assert call(turn) == 0
    made.today = made.files()
    capsys.readouterr()
    made.sessions = tuple(one["session_id"] for one in made.ask("list")[1]["sessions"])
    writer = open_store(path)
    third = RecordedSession("third")
    third.own(writer.owners)
    third.keep(writer.events, *third.opened(), third.text("said"), third.ended())
    made.hot = made.files()
    writer.close()
    assert "-wal" in made.hot
    made.put(made.today)
    return made


def noticed_by(code: int, document: dict[str, Any]) -> set[str]:
    """Who noticed, by what `verify` says; what it says names what and where."""
    if "code" in document:
        assert document["code"] in REFUSED, document
        assert document["message"]
        assert document["next_step"]
        return {"the anchor" if document["code"] == "ledger_behind_anchor" else "SQLite and the schema"}
    found = set()
    for damage in document["damages"]:
        assert damage["stream"] is not None
        assert damage["code"]
        assert damage["detail"]
        found.add("the chain")
    trust = document["condition"]["trust"]
    if trust != "ok":
        found |= {"the recorded place"} if "copied" in trust else set()
        found |= {"the anchor"} if trust != "copied" else set()
    if document["faults"] or document["unread"]:
        found.add("SQLite and the schema")
    if document["owners"]:
        found.add("the events")
    if document["projection_differences"]:
        found.add("the comparison of the views")
    assert bool(found) == (code != 0), document
    return found


def examine(victim: Victim) -> set[str]:
    """Look at a damaged store with every command that looks; answers who noticed."""
    code, found = victim.ask("verify")
    noticed = noticed_by(code, found)
    listed_code, listed = victim.ask("list")
    shown = {session: victim.ask("show", session) for session in victim.sessions}
    if "code" in found:
        assert {code, listed_code, *(shown_code for shown_code, _ in shown.values())} <= {DAMAGE, USAGE}
        return noticed
    assert code in {0, DAMAGE, NOT_NOW}
    if not (found["faults"] or found["unread"] or found["projection_differences"]):
        damaged = {damage["session_id"] for damage in found["damages"]} | {
            run_session(victim, damage["run_id"]) for damage in found["damages"] if damage["run_id"]
        }
        there = {one["session_id"]: one["code"] for one in listed["sessions"]}
        for session in victim.sessions:
            if session in there and session not in damaged:
                assert (shown[session][0], there[session]) == (0, None)
    return noticed


def run_session(victim: Victim, run_id: str) -> str | None:
    """The session of a run, by the undamaged store."""
    damaged = victim.files()
    victim.put(victim.today)
    try:
        sessions = (one for one in victim.sessions if run_id in json.dumps(victim.ask("show", one)[1]))
        return next(sessions, None)
    finally:
        victim.put(damaged)


# Damage that SQL can do.


def by_sql(*statements: str) -> Callable[[Victim], None]:
    """Run SQL with the rules taken away, and put the rules back."""

    def damage(victim: Victim) -> None:
        with closing(sqlite3.connect(victim.path, isolation_level=None)) as raw:
            rules = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in rules:
                raw.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                raw.execute(statement)
            for _, sql in rules:
                raw.execute(sql)
            raw.execute("PRAGMA journal_mode = DELETE")
            raw.execute("PRAGMA journal_mode = WAL")

    return damage


def call_a_view_something_else(victim: Victim) -> None:
    content = victim.path.read_bytes()
    assert content.count(b"tablesessionssessions") == 1
    victim.path.write_bytes(content.replace(b"tablesessionssessions", b"uablesessionssessions"))


def drop_a_rule(victim: Victim) -> None:
    with closing(sqlite3.connect(victim.path, isolation_level=None)) as raw:
        raw.execute("DROP TRIGGER stored_events_delete")


# Damage to files.


def truncated(pages: float, victim: Victim) -> None:
    os.truncate(victim.path, int(pages * len(victim.today[""]) / PAGE_BYTES) * PAGE_BYTES)


def cut_beside_wal(size: int, victim: Victim) -> None:
    """SQLite itself takes the WAL of an empty database away, also to read it."""
    victim.put(victim.hot)
    os.truncate(victim.path, size)


def cut_inside(victim: Victim) -> None:
    os.truncate(victim.path, len(victim.today[""]) // 2 // PAGE_BYTES * PAGE_BYTES + 1234)


def wal_is(change: Callable[[bytes], bytes | None]) -> Callable[[Victim], None]:
    """A WAL whose writer was killed, changed."""

    def damage(victim: Victim) -> None:
        changed = change(victim.hot["-wal"])
        victim.put({**victim.hot, "-wal": b"" if changed is None else changed})
        if changed is None:
            Path(f"{victim.path}-wal").unlink()

    return damage


def flipped(content: bytes, at: int, bits: int = 0xFF) -> bytes:
    return content[:at] + bytes([content[at] ^ bits]) + content[at + 1 :]


def yesterday(anchor: str) -> Callable[[Victim], None]:
    """Yesterday's database in place of today's."""

    def damage(victim: Victim) -> None:
        anchors = {"none": {}, "today's": {".anchor": victim.today[".anchor"]}, "its own": victim.yesterday}
        victim.put({**anchors[anchor], "": victim.yesterday[""]})

    return damage


def yesterday_moved_over(victim: Victim) -> None:
    """As `mv` and most restore tools do it: today's anchor stays."""
    moved = Path(f"{victim.path}.yesterday")
    moved.write_bytes(victim.yesterday[""])
    moved.replace(victim.path)


def copied_without_wal(victim: Victim) -> None:
    """The store of a killed writer, copied to another file without what its WAL holds."""
    victim.path.unlink()
    victim.put({"": victim.hot[""], ".anchor": victim.hot[".anchor"]})


def yesterdays_files(victim: Victim) -> None:
    """As `rm` and `cp` do it: the new file often gets the number of the removed one."""
    victim.path.unlink()
    victim.path.write_bytes(victim.yesterday[""])
    Path(f"{victim.path}.anchor").write_bytes(victim.yesterday[".anchor"])


def anchor_is(content: Callable[[bytes], bytes] | None) -> Callable[[Victim], None]:
    def damage(victim: Victim) -> None:
        anchor = Path(f"{victim.path}.anchor")
        if content is None:
            anchor.unlink()
        else:
            anchor.write_bytes(content(anchor.read_bytes()))

    return damage


_OTHER = "(SELECT state FROM pair WHERE r = 13 - stored_events.rowid)"
SWAP = (
    "CREATE TEMP TABLE pair AS SELECT rowid AS r, state FROM stored_events WHERE rowid IN (6, 7)",
    f"UPDATE stored_events SET state = {_OTHER} WHERE rowid IN (6, 7)",
)
SQLITE, CHAIN, ANCHOR, PLACE = "SQLite and the schema", "the chain", "the anchor", "the recorded place"
VIEWS = "the comparison of the views"

TABLE: dict[str, tuple[Callable[[Victim], None], set[str]]] = {
    "the file is cut to nothing": (partial(truncated, 0), {SQLITE}),
    "the file is cut to nothing beside the WAL of a killed writer": (partial(cut_beside_wal, 0), {SQLITE}),
    "the file is cut inside its header beside the WAL of a killed writer": (partial(cut_beside_wal, 60), {SQLITE}),
    "the file is cut after its first page": (lambda victim: os.truncate(victim.path, PAGE_BYTES), {SQLITE}),
    "the file is cut to a quarter, at the border of a page": (partial(truncated, 0.25), {SQLITE}),
    "the file is cut to a half, at the border of a page": (partial(truncated, 0.5), {SQLITE}),
    "the file loses its last page": (lambda v: os.truncate(v.path, len(v.today[""]) - PAGE_BYTES), {SQLITE}),
    "the file is cut inside a page": (cut_inside, {SQLITE}),
    "two events of a run are swapped": (by_sql(*SWAP), {CHAIN, SQLITE}),
    "an event is another one of the same size": (
        by_sql("UPDATE stored_events SET state = CAST(replace(state, 'I do it.', 'I do us.') AS BLOB)"),
        {CHAIN, SQLITE},
    ),
    "an event in the middle is deleted": (by_sql("DELETE FROM stored_events WHERE rowid = 6"), {CHAIN, SQLITE}),
    "the last event is deleted": (
        by_sql("DELETE FROM stored_events WHERE rowid = (SELECT MAX(rowid) FROM stored_events)"),
        {ANCHOR, SQLITE},
    ),
    "a used id is another one": (
        by_sql("UPDATE unique_ids SET id = replace(id, '-', '+') WHERE kind = 'operation'"),
        {SQLITE},
    ),
    "a used id is taken out": (by_sql("DELETE FROM unique_ids WHERE kind = 'operation'"), {SQLITE}),
    "the seal of an ended run is taken off": (by_sql("DELETE FROM sealed_streams"), {SQLITE}),
    "a seal is put on an open stream": (
        by_sql("INSERT INTO sealed_streams VALUES ('run:x', 'run.ended.v1')"),
        {SQLITE},
    ),
    "a run is admitted to another session": (by_sql("UPDATE admissions SET session_id = 'x'"), {SQLITE}),
    "a run is of a generation that never was": (by_sql("UPDATE admissions SET generation = 2"), {SQLITE}),
    "a run is marked as imported": (by_sql("UPDATE admissions SET generation = 0"), {SQLITE}),
    "the store's generation is another one": (by_sql("UPDATE store_control SET generation = 3"), {SQLITE}),
    "the facts of a process are other ones": (by_sql("UPDATE incarnations SET boot_id = 'another'"), {SQLITE}),
    "the owner of a session is another one": (
        by_sql("UPDATE session_owners SET session_id = session_id || 'x'"),
        {SQLITE},
    ),
    "the row of an owner is gone": (by_sql("DELETE FROM session_owners"), {"the events"}),
    "an event stands in a stream without a name": (
        by_sql("INSERT INTO stored_events VALUES ('', 1, 'x', CAST('{}' AS BLOB))"),
        {CHAIN, SQLITE},
    ),
    "a row of a view is changed": (by_sql("UPDATE runs SET status = 'failed'"), {VIEWS}),
    "a row of a view is deleted": (by_sql("DELETE FROM runs"), {VIEWS}),
    "a view is dropped": (by_sql("DROP TABLE turns"), {VIEWS}),
    "the view of operations is dropped": (by_sql("DROP VIEW operations"), {VIEWS}),
    "the journal of operations is dropped": (by_sql("DROP VIEW operation_journal"), {VIEWS}),
    "the view of operations is another one": (
        by_sql("DROP VIEW operations", "CREATE VIEW operations AS SELECT * FROM operation_outcomes"),
        {VIEWS},
    ),
    "the journal of operations shows nothing": (
        by_sql(
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET sql = sql || ' AND 0' WHERE name = 'operation_journal'",
            "PRAGMA writable_schema = RESET",
        ),
        {VIEWS},
    ),
    "a foreign rule stands on a view": (
        by_sql("CREATE TRIGGER other AFTER INSERT ON sessions BEGIN DELETE FROM sessions; END"),
        {VIEWS},
    ),
    "a kept position is none any more": (by_sql("UPDATE commits SET digest = x'00' WHERE counter = 0"), {SQLITE}),
    "the schema calls a view something else": (call_a_view_something_else, {SQLITE}),
    "a rule is taken away": (drop_a_rule, {SQLITE}),
    "the WAL of a killed writer is removed": (wal_is(lambda wal: None), {ANCHOR}),
    "the WAL of a killed writer is emptied": (wal_is(lambda wal: b""), {ANCHOR}),
    "the WAL of a killed writer is cut": (wal_is(lambda wal: wal[: used(wal) * 2 // 3]), {ANCHOR}),
    "a byte in the WAL of a killed writer is flipped": (wal_is(lambda wal: flipped(wal, used(wal) * 2 // 3)), {ANCHOR}),
    "yesterday's database is put back under today's anchor": (yesterday("today's"), {ANCHOR}),
    "yesterday's database is put back without an anchor": (yesterday("none"), {ANCHOR}),
    "yesterday's database is moved over today's, whose anchor stays": (yesterday_moved_over, {ANCHOR, PLACE}),
    "the store of a killed writer is copied without its WAL": (copied_without_wal, {ANCHOR, PLACE}),
    "yesterday's database and anchor are put back as other files": (yesterdays_files, {PLACE}),
    "yesterday's database and anchor are written into today's files": (yesterday("its own"), set()),
    "the anchor is removed": (anchor_is(None), {ANCHOR}),
    "the anchor is emptied": (anchor_is(lambda anchor: b""), {ANCHOR}),
    "a byte in the anchor is flipped": (anchor_is(lambda anchor: flipped(anchor, 40)), {ANCHOR}),
}


def test_the_undamaged_store_is_sound(victim: Victim) -> None:
    assert examine(victim) == set()
    victim.put(victim.hot)
    assert examine(victim) == set()


@pytest.mark.parametrize("damage", TABLE)
def test_damage_is_noticed_and_named(victim: Victim, damage: str) -> None:
    do, expected = TABLE[damage]
    do(victim)
    before = victim.files()
    noticed = examine(victim)
    assert expected <= noticed, (damage, noticed)
    assert bool(expected) == bool(noticed)
    assert victim.files() == before


def bytes_to_flip(size: int) -> list[int]:
    """A sample: the header and the borders of pages more often than their share."""
    chosen = random.Random(SEED)
    return [
        chosen.randrange(100)
        if place % 10 == 0
        else chosen.randrange(size // PAGE_BYTES) * PAGE_BYTES + chosen.randrange(16)
        if place % 10 == 1
        else chosen.randrange(size)
        for place in range(FLIPS)
    ]


def flip_each(victim: Victim, places: Iterator[int], bits: int = 0xFF) -> None:
    """Flip one byte after the other: each is noticed, or SQLite reads the same as before of the whole database."""
    whole = victim.today[""]
    expected = victim.content()
    unnoticed = []
    for at in places:
        victim.put({**victim.today, "": flipped(whole, at, bits)})
        code, found = victim.ask("verify")
        if noticed_by(code, found):
            assert code in {DAMAGE, USAGE}, (at, found)
            victim.ask("list")
        elif victim.content() != expected:
            unnoticed.append(at)
    victim.put(victim.today)
    assert [(at, whole[at - 40 : at + 40]) for at in unnoticed] == []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_flipped_byte_is_noticed_or_is_one_that_no_command_reads(victim: Victim, chunk: int) -> None:
    places = bytes_to_flip(len(victim.today[""]))
    flip_each(victim, iter(places[chunk::CHUNKS]), bits=1 if chunk % 2 else 0xFF)


@pytest.mark.soak
@pytest.mark.parametrize("bits", [0xFF, 1], ids=["all bits", "one bit"])
@pytest.mark.parametrize("part", range(PARTS))
def test_every_flipped_byte_is_noticed_or_is_one_that_no_command_reads(victim: Victim, part: int, bits: int) -> None:
    """In memory, where a look takes a millisecond; the header and every 199th byte by files and the program, too."""
    whole, by_program = victim.today[""], []
    looking = StoreInMemory(Place(victim.path))
    expected, unnoticed = looking.content(whole), []
    assert not is_noticed(looking.verify(whole))
    for at in range(part, len(whole), PARTS):
        changed = flipped(whole, at, bits)
        if at < HEADER_BYTES:
            by_program.append(at)
            continue
        same = looking.content(changed) == expected
        noticed = not same and is_noticed(looking.verify(changed))
        if not same and not noticed:
            unnoticed.append(at)
        if at % PROGRAM_EVERY == 0:
            by_program.append(at)
            if not same:
                victim.put({**victim.today, "": changed})
                assert bool(noticed_by(*victim.ask("verify"))) == noticed, at
    looking.close()
    victim.put(victim.today)
    assert [(at, whole[at - 40 : at + 40]) for at in unnoticed] == []
    flip_each(victim, iter(by_program), bits)


def test_a_page_of_zeros_is_noticed_or_is_one_that_no_command_reads(victim: Victim) -> None:
    whole, expected = victim.today[""], victim.content()
    for start in range(0, len(whole), PAGE_BYTES):
        victim.put({**victim.today, "": whole[:start] + bytes(PAGE_BYTES) + whole[start + PAGE_BYTES :]})
        if not examine(victim):
            assert victim.content() == expected, start


def table() -> str:
    """The matrix as `docs/damage.md` shows it."""
    lines = ["| what happens to the store | what notices |", "|---|---|"]
    for damage, (_, expected) in TABLE.items():
        lines.append(f"| {damage} | {', '.join(sorted(expected)) or 'nothing can: it is the store of yesterday'} |")
    return "\n".join(lines)


def test_the_table_of_the_documentation_is_the_one_that_is_tried() -> None:
    assert table() in DOCUMENTED.read_text()
