"""The quick way to read stored bytes gives the event that the slow way gives, or leaves it to the slow way."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical, unsealing
from safepoint.domain.events.tool import ToolCalled
from safepoint.domain.sealing import DamagedEvent, SealedEvent, StoredRecord, seal
from safepoint.domain.unsealing import unseal

from ..stored_events.examples import EXAMPLES
from .facts import Facts
from .test_quick_sealing import awkward_values

PREVIOUS = "a" * 64


def quickly(record: StoredRecord) -> object:
    """The event, or what is wrong with the bytes."""
    try:
        return unseal(record, 2, PREVIOUS)
    except DamagedEvent as damage:
        return str(damage)


def slowly(record: StoredRecord) -> object:
    with patch.object(unsealing, "_quickly", lambda *_: None):
        return quickly(record)


@pytest.mark.parametrize("topic", EXAMPLES)
def test_every_type_of_event_is_read_alike_both_ways(topic: str) -> None:
    for event in EXAMPLES[topic]:
        one = seal(event, 2, PREVIOUS)
        assert quickly(one.record) == slowly(one.record) == one


@pytest.mark.parametrize("topic", EXAMPLES)
def test_the_quick_way_is_taken_for_every_type_of_event(topic: str) -> None:
    record = seal(EXAMPLES[topic].bare, 2, PREVIOUS).record
    with patch.object(canonical, "decode_canonical", side_effect=AssertionError):
        assert isinstance(quickly(record), SealedEvent)


@given(awkward_values)
def test_whatever_json_is_stored_is_read_alike_both_ways(value: Any) -> None:
    call = Facts().fact(ToolCalled, step_id="s", call_id="c", tool_name="t", args=None)
    try:
        record = seal(call.model_copy(update={"args": value}), 2, PREVIOUS).record
    except ValueError:
        return  # it is never stored
    assert quickly(record) == slowly(record)


@given(st.data())
def test_damaged_bytes_are_told_alike_both_ways(data: st.DataObject) -> None:
    event = EXAMPLES[data.draw(st.sampled_from(sorted(EXAMPLES)))].bare
    record = seal(event, 2, PREVIOUS).record
    place = data.draw(st.integers(0, len(record.state) - 1))
    by = data.draw(st.sampled_from([b"", b" ", b"0", b".0", b"e1", b'"', b",", b'"a":1,', b"\\u0061", b"\xff"]))
    cut = data.draw(st.integers(0, 2))
    damaged = record._replace(state=record.state[:place] + by + record.state[place + cut :])
    assert quickly(damaged) == slowly(damaged)


@pytest.mark.parametrize("spelled", ["1.0", "1e0", "01", "+1", "1.50", "1E5", "100000000000000000000000"])
def test_a_number_that_is_not_spelled_canonically_is_damage(spelled: str) -> None:
    call = Facts().fact(ToolCalled, step_id="s", call_id="c", tool_name="t", args={"v": 777})
    record = seal(call, 2, PREVIOUS).record
    damaged = record._replace(state=record.state.replace(b"777", spelled.encode()))
    with pytest.raises(DamagedEvent, match="not canonical"):
        unseal(damaged, 2, PREVIOUS)


@pytest.mark.parametrize(
    ("field", "to"), [(b'"sequence":2', b'"sequence":3'), (b"text.v1", b"texd.v1"), (PREVIOUS.encode(), b"b" * 64)]
)
def test_an_event_with_another_seal_is_damage(field: bytes, to: bytes) -> None:
    record = seal(EXAMPLES["model.text.v1"].bare, 2, PREVIOUS).record
    with pytest.raises(DamagedEvent, match="do not match"):
        unseal(record._replace(state=record.state.replace(field, to)), 2, PREVIOUS)
