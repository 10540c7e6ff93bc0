"""Field reports: a store that is damaged, newer, half written, or beside its own lists. SPEC sections 6 and 7, R2."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from safepoint.adapters.sqlite.schema import SCHEMA_VERSION
from safepoint.domain.canonical import encode
from safepoint.domain.events.catalogue import EVENTS
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, StoredRecord
from safepoint.domain.unsealing import unseal

from ..adapters.cli.program import PAY, READ, WRITE, Program
from ..crash.harness.record import read_record
from ..domain.replay.story import Story, call
from .programs import DONE, codes_in, interrupted, resume


def test_r3_030_the_head_is_made_of_facts_and_never_of_the_row_beside_it(program: Program) -> None:
    """A crash between the call and its pointer: a stale pointer is never trusted over the facts."""
    interrupted(program, "P6", PAY)
    with closing(sqlite3.connect(program.store)) as rows:
        rows.execute("UPDATE sessions SET head_run_id = 'another'")
        rows.commit()
    assert program("verify").code == 4
    planned = program("plan", "s1", "--json").document
    assert planned["decision"] == "continue"
    (run_id,) = read_record(program.store).run_ids("s1")
    ran = program(*resume(program), "--json")
    assert (ran.code, ran.document["source_run_id"], ran.document["text"]) == (0, run_id, "All done.")
    assert program.effects == ["paid"]


@pytest.mark.parametrize("topic", ["zz.happened.v1", "tool.dispatched.v2"])
def test_r3_095_a_fact_of_an_unknown_kind_is_named_and_never_read_as_nothing(topic: str) -> None:
    """A kind that is gone, or newer: a typed error that names it."""
    (first, *_) = Story("r1").user("U").sealed()
    fields = {**json.loads(first.record.state), "type": topic}
    record = StoredRecord(first.record.stream, 1, topic, encode(fields))
    with pytest.raises(DamagedEvent) as damage:
        unseal(record, 1, FIRST_PREVIOUS_DIGEST)
    assert topic in damage.value.detail
    assert topic not in EVENTS


def test_r3_095_a_value_of_an_unknown_shape_is_damage_and_never_null() -> None:
    run = Story("r1").user("U").step(call("A")).dispatch("A")
    last = run.sealed()[-1]
    for changed in ({"zz": 1}, {"contract": {"mode": "zz"}}, {"life": None}):
        fields = {**json.loads(last.record.state), **changed}
        record = StoredRecord(last.record.stream, last.sequence, last.record.topic, encode(fields))
        with pytest.raises(DamagedEvent):
            unseal(record, last.sequence, fields["previous_digest"])


def test_r3_095_the_program_names_the_kind_that_it_does_not_know(program: Program) -> None:
    """A fact of a kind that this program has never heard of stands in the store."""
    program.script({"text": "Hello."})
    assert program.process(*program.run("--session", "s1")).code == 0
    program.script({"text": "I look.", "calls": [READ] * 25}, {"text": "Seen."})
    assert program.process(*program.run("--session", "s0")).code == 0  # the anchor vouches for the newest facts itself
    content = program.store.read_bytes()
    program.store.write_bytes(content.replace(b"message.user.v1", b"message.zzzz.v1"))
    ran = program("show", "s1", "--json")
    assert ran.code == 4
    assert "message.zzzz.v1" in ran.document["run"]["damage"]["detail"]
    assert codes_in(program("plan", "s1", "--json")) == ["runtime_ledger_unreadable"]
    assert program("list", "--json").document["sessions"][1]["state"] == "unreadable"


COMMANDS = ("list", "status", "show s1", "plan s1", "resume s1", "cancel s1", "verify")


@pytest.mark.parametrize("command", [*COMMANDS, "run"])
def test_r3_093_a_newer_store_is_left_alone_by_every_command(program: Program, command: str) -> None:
    """user_version is one more than this program knows: no backup, no rebuild, no byte changed."""
    program.script({"text": "Hello."})
    assert program(*program.run("--session", "s1")).code == 0
    with closing(sqlite3.connect(program.store)) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before, files = program.bytes_of_store(), sorted(path.name for path in program.store.parent.iterdir())
    ran = program(*(program.run() if command == "run" else command.split()), "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_version_newer")
    assert f"version {SCHEMA_VERSION + 1}; this program knows {SCHEMA_VERSION}" in ran.document["message"]
    assert program.bytes_of_store() == before
    assert sorted(path.name for path in program.store.parent.iterdir()) == files


@pytest.mark.parametrize("point", ["store.statement:2:3", "store.before_commit:4"])
def test_r3_071_a_crash_while_a_record_is_written_leaves_the_whole_record_or_none(program: Program, point: str) -> None:
    """In this store, half a record cannot be: every row that is there is whole, and its chain verifies."""
    program.script({"text": "I do it.", "calls": [WRITE]}, DONE)
    ran = program.process(*program.run("--session", "s1"), SAFEPOINT_TEST_HOOKS="1", SAFEPOINT_FAILPOINT=point)
    assert ran.code == -9
    for facts in read_record(program.store).streams.values():
        assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
        assert all(encode(fact.fields) == fact.state for fact in facts)
    assert program("verify").code == 0
