"""Stored bytes of every event type decode for ever: each has a golden file, which is added once and never changed.

SPEC sections 5 and 6.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from safepoint.domain import canonical
from safepoint.domain.events.catalogue import EVENTS, MalformedEvent, UnknownEventType
from safepoint.domain.events.event import Event
from safepoint.domain.reasons import LedgerIssue
from safepoint.domain.sealing import DamagedEvent, SealedEvent, StoredRecord, seal
from safepoint.domain.unsealing import unseal

from .examples import EXAMPLES

HERE = Path(__file__).parent
SEQUENCE = 5
PREVIOUS = "f" * 64
FORMS = ("full", "bare")

CATALOGUE = [
    "session.opened.v1",
    "session.run_admitted.v1",
    "session.notice_posted.v1",
    "session.notices_taken.v1",
    "session.grant_posted.v1",
    "session.grants_taken.v1",
    "session.effect_watched.v1",
    "session.effect_cleared.v1",
    "session.operation_attested.v1",
    "session.run_abandoned.v1",
    "run.opened.v1",
    "run.budget_set.v1",
    "continuation.started.v1",
    "message.user.v1",
    "message.host.v1",
    "model.text.v1",
    "model.thinking.v1",
    "tool.called.v1",
    "model.step_completed.v1",
    "tool.dispatched.v1",
    "tool.responded.v1",
    "tool.redelivery_started.v1",
    "tool.reconciled.v1",
    "tool.recovery_decided.v1",
    "tool.attested.v1",
    "permission.requested.v1",
    "permission.decided.v1",
    "permission.closed.v1",
    "background.started.v1",
    "background.settled.v1",
    "workspace.checkpoint_accepted.v1",
    "workspace.transitioned.v1",
    "workspace.rebaselined.v1",
    "workspace.renewed.v1",
    "run.cancel_requested.v1",
    "run.error.v1",
    "run.ended.v1",
    "run.claimed.v1",
    "provider.attempted.v1",
]
"""The event types of SPEC section 5."""

VISIBLE = [
    "message.user.v1",
    "message.host.v1",
    "model.text.v1",
    "model.thinking.v1",
    "tool.called.v1",
    "tool.responded.v1",
]
"""Those that section 5 calls model-visible."""


def golden(topic: str, form: str) -> tuple[bytes, str]:
    stored = json.loads((HERE / f"{topic}.json").read_text("utf-8"))[form]
    return stored["state"].encode(), stored["digest"]


def record(topic: str, state: bytes) -> StoredRecord:
    return StoredRecord(EXAMPLES[topic].full.stream, SEQUENCE, topic, state)


def read(topic: str, state: bytes) -> SealedEvent:
    return unseal(record(topic, state), SEQUENCE, PREVIOUS)


def altered(topic: str, **fields: Any) -> bytes:
    value = canonical.decode_canonical(golden(topic, "full")[0])
    assert isinstance(value, dict)
    return canonical.encode({**value, **fields})


def test_the_catalogue_is_that_of_the_specification() -> None:
    assert sorted(EVENTS) == sorted(CATALOGUE)
    assert sorted(topic for topic, cls in EVENTS.items() if cls.model_visible) == sorted(VISIBLE)


def test_every_event_type_has_its_golden_bytes() -> None:
    assert sorted(path.stem for path in HERE.glob("*.json")) == sorted(EVENTS)
    assert sorted(EXAMPLES) == sorted(EVENTS)


def test_no_two_event_classes_share_a_topic() -> None:
    def descendants(cls: type[Event]) -> set[type[Event]]:
        return {cls, *(below for one in cls.__subclasses__() for below in descendants(one))}

    named = {cls for cls in descendants(Event) if cls.topic and cls.__module__.startswith("safepoint.")}
    assert named == set(EVENTS.values())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_an_event_is_sealed_into_exactly_its_golden_bytes(topic: str, form: str) -> None:
    event = getattr(EXAMPLES[topic], form)
    sealed = seal(event, SEQUENCE, PREVIOUS)
    assert (sealed.state, sealed.digest) == golden(topic, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_golden_bytes_decode_to_the_event_that_they_were_made_of(topic: str, form: str) -> None:
    state, digest = golden(topic, form)
    sealed = read(topic, state)
    assert sealed.event == getattr(EXAMPLES[topic], form)
    assert sealed.digest == digest
    assert seal(sealed.event, SEQUENCE, PREVIOUS).state == state


@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_the_full_example_sets_what_the_bare_one_leaves_out(topic: str) -> None:
    full, bare = EXAMPLES[topic]
    absent = {"tool.called.v1": {"args_text"}}.get(topic, set())  # a call has arguments or their text, never both
    for name, info in EVENTS[topic].model_fields.items():
        if info.is_required():
            continue
        assert getattr(bare, name) == info.get_default(call_default_factory=True), name
        assert name in absent or getattr(full, name) != getattr(bare, name), name
    assert {name for name in optional_parts(full) if name.split(".")[-1] not in absent} == set()


def optional_parts(value: BaseModel, path: str = "") -> set[str]:
    """The optional fields inside a value that are at their default."""
    found = set()
    for name, info in type(value).model_fields.items():
        member = getattr(value, name)
        if not info.is_required() and member == info.get_default(call_default_factory=True):
            found.add(f"{path}{name}")
        for part in member if isinstance(member, tuple) else (member,):
            if isinstance(part, BaseModel):
                found |= optional_parts(part, f"{path}{name}.")
    return found


def test_a_call_whose_arguments_were_no_strict_json_keeps_their_text() -> None:
    state = altered("tool.called.v1", args=None, args_text='{"a": NaN}')
    assert read("tool.called.v1", state).event.model_dump()["args_text"] == '{"a": NaN}'


def test_a_call_never_has_both_arguments_and_their_text() -> None:
    with pytest.raises(DamagedEvent, match="never both") as caught:
        read("tool.called.v1", altered("tool.called.v1", args_text="{}"))
    assert isinstance(caught.value.__cause__, MalformedEvent)


@pytest.mark.parametrize("topic", ["tool.dispatched.v2", "tool.teleported.v1"])
def test_an_unknown_type_or_a_newer_version_fails_closed_and_is_named(topic: str) -> None:
    state = altered("tool.dispatched.v1", type=topic)
    stored = record("tool.dispatched.v1", state)._replace(topic=topic)
    with pytest.raises(DamagedEvent, match=re.escape(topic)) as caught:
        unseal(stored, SEQUENCE, PREVIOUS)
    assert isinstance(caught.value.__cause__, UnknownEventType)
    assert caught.value.__cause__.topic == topic
    assert (caught.value.stream, caught.value.sequence) == ("run:run-1", SEQUENCE)


@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_a_field_too_many_or_too_few_is_malformed(topic: str) -> None:
    with pytest.raises(DamagedEvent, match="surprise") as caught:
        read(topic, altered(topic, surprise=1))
    assert isinstance(caught.value.__cause__, MalformedEvent)
    value = canonical.decode_canonical(golden(topic, "full")[0])
    assert isinstance(value, dict)
    del value["event_id"]
    with pytest.raises(DamagedEvent, match="event_id"):
        read(topic, canonical.encode(value))


@pytest.mark.parametrize("topic", sorted(EVENTS))
def test_every_byte_that_is_changed_is_noticed_by_the_next_event(topic: str) -> None:
    """A byte that still decodes gives another digest, so the chain breaks right behind it."""
    state, digest = golden(topic, "full")
    for position in range(0, len(state), 7):
        changed = state[:position] + bytes([state[position] ^ 0x01]) + state[position + 1 :]
        try:
            found: str | LedgerIssue = read(topic, changed).digest
        except DamagedEvent as damage:
            found = damage.kind
        assert found not in {digest, LedgerIssue.SEQUENCE_GAP}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (b"", "not canonical JSON"),
        (b"\x00" * 40, "not canonical JSON"),
        (b'{"type":"run.error.v1"', "not canonical JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "do not match"),
        (golden("run.error.v1", "full")[0] + b" ", "not canonical JSON"),
        (golden("run.error.v1", "full")[0].replace(b":", b": ", 1), "not canonical JSON"),
    ],
    ids=["empty", "zeroed", "cut", "an array", "no seal", "a byte more", "a blank"],
)
def test_bytes_that_cannot_be_what_was_written_are_damage(state: bytes, said: str) -> None:
    with pytest.raises(DamagedEvent, match=said) as caught:
        read("run.error.v1", state)
    assert caught.value.kind is LedgerIssue.CHAIN_BROKEN


@pytest.mark.parametrize(
    ("stored", "sequence", "previous", "kind"),
    [
        (record("run.error.v1", b"")._replace(version=6), SEQUENCE, PREVIOUS, LedgerIssue.SEQUENCE_GAP),
        (record("run.error.v1", golden("run.error.v1", "full")[0]), SEQUENCE, "0" * 64, LedgerIssue.CHAIN_BROKEN),
        (
            record("run.error.v1", golden("run.error.v1", "full")[0])._replace(topic="run.ended.v1"),
            SEQUENCE,
            PREVIOUS,
            LedgerIssue.CHAIN_BROKEN,
        ),
        (
            record("run.error.v1", golden("run.error.v1", "full")[0])._replace(stream="run:run-9"),
            SEQUENCE,
            PREVIOUS,
            LedgerIssue.CHAIN_BROKEN,
        ),
        (
            record("run.error.v1", golden("run.error.v1", "full")[0])._replace(version=6),
            6,
            PREVIOUS,
            LedgerIssue.CHAIN_BROKEN,
        ),
    ],
    ids=["a version is missing", "another past", "another topic", "another stream", "another place"],
)
def test_an_event_is_read_only_at_its_own_place(
    stored: StoredRecord, sequence: int, previous: str, kind: LedgerIssue
) -> None:
    with pytest.raises(DamagedEvent) as caught:
        unseal(stored, sequence, previous)
    assert caught.value.kind is kind


def test_optional_fields_are_stored_as_null_and_not_left_out() -> None:
    for topic, cls in EVENTS.items():
        stored = canonical.decode_canonical(golden(topic, "bare")[0])
        assert isinstance(stored, dict)
        assert set(cls.model_fields) < set(stored)
