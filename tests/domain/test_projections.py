"""Rows are a pure function of one sealed event, so online, reopened and rebuilt views are equal. SPEC section 7."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from safepoint.domain.events.catalogue import EVENTS
from safepoint.domain.events.event import Event
from safepoint.domain.events.outside import PermissionClosed
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import ClearedBy, EffectCleared, RunAbandoned, RunKind
from safepoint.domain.events.tool import Observation, Statement
from safepoint.domain.operation.state import operations_of
from safepoint.domain.operation.watch_list import uncertain
from safepoint.domain.projections import TABLES, Row, rows_of
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, seal

from .facts import AT, Facts, prefix, run_of, session_of

Views = dict[str, dict[tuple[object, ...], dict[str, object]]]


def sealed_streams(events: list[Event]) -> dict[str, list[SealedEvent]]:
    streams: dict[str, list[SealedEvent]] = {}
    for event in events:
        stream = streams.setdefault(event.stream, [])
        stream.append(seal(event, len(stream) + 1, stream[-1].digest if stream else FIRST_PREVIOUS_DIGEST))
    return streams


def projected(rows: list[Row]) -> Views:
    """What an upsert of each row, in order, amounts to."""
    views: Views = {table: {} for table in TABLES}
    for row in rows:
        key = tuple(row.values[column] for column in TABLES[row.table].key)
        views[row.table].setdefault(key, dict.fromkeys(TABLES[row.table].columns)).update(row.values)
    return views


def story() -> list[Event]:
    """A session with a claimed run that knew everything, its continuation, and a run that was given up."""
    r, following, lost = Facts("r1"), Facts("r2"), Facts("r3")
    opened = r.opened(workspace_identity="workspace:v1:w", parent_run_id="p", parent_operation_id="o")
    events: list[Event] = [r.session_opened(), r.admitted(), opened, r.user("hello"), r.user("faster", steering=True)]
    events += [*r.step("a", "b", "c"), r.requested("a"), r.decided("ask-a"), r.requested("b")]
    dispatch = r.dispatch("a")
    events += [dispatch, r.dispatch("b"), r.outcome("b"), r.refusal("c"), r.cancelled(), r.redelivery("a").started]
    closed = r.fact(PermissionClosed, request_id="ask-b", reason="run_stopped")
    events += [closed, r.ended(RunStatus.CANCELLED)]
    events += uncertain(session_of([]), operations_of(run_of(events)), events[-1])
    sequence = sum(1 for event in events if event.stream == "run:r1")
    parked = r.recovery(dispatch, sequence, observation=Observation.UNREADABLE, reason="contract_forbids_recovery")
    events += [parked.reconciled, parked.decided]
    attested = r.attestation("a", sequence + 2, response=r.outcome("a"), supersedes=parked.decided.event_id)
    assert attested.response is not None
    events += [attested.attested, attested.response]
    events += [r.fact(EffectCleared, operation_id="op-r1-a", by=ClearedBy.ATTESTED)]
    claim = r.claim(following, [prefix(r, [event for event in events if event.stream == "run:r1"])])
    events += [claim.claimed, claim.admitted, following.started(claim.claimed), following.ended(RunStatus.COMPLETED)]
    events += [lost.admitted(), lost.opened(), lost.user()]
    return [*events, lost.fact(RunAbandoned, run_id="r3", by="Ada", note="", last_good_sequence=2)]


def views_of(order: list[list[SealedEvent]]) -> Views:
    return projected([row for stream in order for one in stream for row in rows_of(one)])


def test_streams_may_be_rebuilt_in_any_order_and_give_equal_rows() -> None:
    events = story()
    streams = sealed_streams(events)
    online: list[Row] = []
    placed = {one.event.event_id: one for stream in streams.values() for one in stream}
    for event in events:
        online.extend(rows_of(placed[event.event_id]))
    assert len(streams) == 4
    for order in permutations(streams.values()):
        assert views_of([*order]) == projected(online)


def test_every_row_names_its_key_and_only_columns_that_there_are() -> None:
    for stream in sealed_streams(story()).values():
        for one in stream:
            for row in rows_of(one):
                assert set(TABLES[row.table].key) <= set(row.values) <= set(TABLES[row.table].columns)
                kinds = {column: TABLES[row.table].columns[column] for column in row.values}
                for column, value in row.values.items():
                    assert value is None or type(value) is {"TEXT": str, "INTEGER": int}[kinds[column]], column


WANTED: dict[tuple[str, tuple[object, ...]], dict[str, Any]] = {
    ("sessions", ("s",)): {"opened_at": AT, "head_run_id": "r3", "head_kind": "turn", "head_sequence": 6},
    ("runs", ("r1",)): {
        "kind": RunKind.TURN.value,
        "admitted_sequence": 2,
        "status": "cancelled",
        "recovered": 0,
        "cancel_requested_by": "Ada",
        "parent_run_id": "p",
        "parent_operation_id": "o",
        "claimed_by_run_id": "r2",
        "claimed_by_claim_id": "claim-r2",
        "epoch": 1,
        "provider": "p",
        "model": "m",
        "workspace_identity": "workspace:v1:w",
        "abandoned_by": None,
    },
    ("runs", ("r2",)): {"kind": "continuation", "claim_id": "claim-r2", "status": "completed", "failure_class": None},
    ("runs", ("r3",)): {"abandoned_by": "Ada", "status": None, "ended_at": None},
    ("turns", ("turn-r1", "r1")): {"user_text_length": 5},
    ("operations", ("op-r1-a",)): {
        "call_id": "a",
        "mode": "outcome_unknown",
        "life": "task",
        "observation": "unreadable",
        "decision": "parked",
        "reason": "contract_forbids_recovery",
        "attestation": Statement.COMPLETED.value,
        "effect": "done",
        "outcome_is_error": 0,
        "cleared_by": "attested",
    },
    ("operations", ("op-r1-b",)): {"effect": "done", "decision": None, "watched": None, "cleared_by": None},
    ("permissions", ("ask-a",)): {"approved": 1, "decided_by": "Ada", "closed_event_id": None},
    ("permissions", ("ask-b",)): {"approved": None, "decided_event_id": None},
    ("continuations", ("claim-r2",)): {
        "source_run_id": "r1",
        "target_run_id": "r2",
        "trigger": "person",
        "started_kind": "runtime_admission",
    },
}


@pytest.mark.parametrize(("table", "key"), WANTED)
def test_a_view_shows_what_the_events_say(table: str, key: tuple[object, ...]) -> None:
    row = views_of([*sealed_streams(story()).values()])[table][key]
    assert {column: row[column] for column in WANTED[table, key]} == WANTED[table, key]


def test_the_journal_lists_every_fact_of_an_operation_in_order() -> None:
    journal = views_of([*sealed_streams(story()).values()])["operation_journal"]
    entries = [row["entry"] for row in journal.values() if row["operation_id"] == "op-r1-a"]
    assert entries == ["dispatched", "redelivery_started", "reconciled", "recovery_decided", "attested", "responded"]
    assert [row["sequence"] for row in journal.values()] == sorted(key[1] for key in journal)  # type: ignore[type-var]


def test_an_answer_before_t1_and_a_steering_message_make_no_row() -> None:
    r = Facts()
    r.step("a")
    for event in (r.refusal("a"), r.user(steering=True)):
        assert rows_of(seal(event, 2, "0" * 64)) == ()


def test_every_column_is_written_by_some_event() -> None:
    written: dict[str, set[str]] = {table: set() for table in TABLES}
    topics = set()
    for stream in sealed_streams(story()).values():
        for one in stream:
            for row in rows_of(one):
                written[row.table] |= set(row.values)
                topics.add(one.event.topic)
    unwritten = {table: set(TABLES[table].columns) - columns for table, columns in written.items()}
    assert {table: columns for table, columns in unwritten.items() if columns} == {}
    assert topics < set(EVENTS)
