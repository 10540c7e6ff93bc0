"""The quick way to an event's bytes gives what the slow way gives, or leaves it to the slow way. SPEC section 21."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical, sealing
from safepoint.domain.events.event import Event
from safepoint.domain.events.session import NoticePosted
from safepoint.domain.events.tool import RecoveryMode, ToolCalled
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, seal

from ..stored_events.examples import EXAMPLES
from .facts import Facts, contract

awkward_keys = st.sampled_from(["", "a", "ä", "\ufb01", "\U0001d4b3", "\ud800", "type", "sequence"])
awkward_scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 2**53 - 1, 2**53, 10**16, 10**21, 10**22, 1.0, -0.0, 1e21, 1e-7, 1.5, 123456789.125])
    | st.floats(width=32)
    | st.text()
    | st.sampled_from(["\ud800", "\ufffd", "\u2028", "\x00", "\U0001d4b3"])
)
awkward_values = st.recursive(
    awkward_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(awkward_keys, inner, max_size=3),
    max_leaves=8,
)


def slowly(event: Event) -> SealedEvent:
    with patch.object(sealing, "_quickly", lambda *_: None):
        return seal(event, 2, "a" * 64)


def outcome(of: Any, event: Event) -> object:
    """The sealed event, or what is wrong with it."""
    try:
        return of(event)
    except ValueError as error:
        return type(error), str(error)


def quickly(event: Event) -> SealedEvent:
    return seal(event, 2, "a" * 64)


@pytest.mark.parametrize("topic", EXAMPLES)
def test_every_type_of_event_has_the_same_bytes_both_ways(topic: str) -> None:
    for event in EXAMPLES[topic]:
        assert quickly(event) == slowly(event)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("topic", EXAMPLES)
def test_what_an_event_that_was_never_validated_holds_has_the_same_bytes_both_ways(topic: str) -> None:
    """A copy with changes is not validated: the quick way must not spell what the slow way would not."""
    event = EXAMPLES[topic].bare
    for name in type(event).model_fields:
        for value in ("\U0001d4b3", 7, 2**60, 1.0, 1e21, None, ["a", 2.0], {"ä": 1}):
            changed = event.model_copy(update={name: value})
            if changed.stream == event.stream:
                assert outcome(quickly, changed) == outcome(slowly, changed), (name, value)


@given(awkward_values)
def test_whatever_json_an_event_carries_has_the_same_bytes_both_ways(value: Any) -> None:
    r = Facts()
    call = r.fact(ToolCalled, step_id="s", call_id="c", tool_name="t", args={"v": 1}).model_copy(update={"args": value})
    assert outcome(quickly, call) == outcome(slowly, call)


@given(st.dictionaries(awkward_keys, awkward_values, max_size=3))
def test_whatever_json_a_part_of_an_event_carries_has_the_same_bytes_both_ways(value: dict[str, Any]) -> None:
    r = Facts()
    r.step("a")
    parameters = contract(RecoveryMode.REATTACH).model_copy(update={"parameters": value})
    dispatch = r.dispatch("a").model_copy(update={"contract": parameters})
    assert outcome(quickly, dispatch) == outcome(slowly, dispatch)
    notice = r.notice().model_copy(update={"parameters": value})
    assert outcome(quickly, notice) == outcome(slowly, notice)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("value", [math.nan, math.inf, b"bytes", {1: 2}, ("a",), {"a"}, 2**60, "\ud800"])
def test_what_is_no_json_is_refused_either_way(value: Any) -> None:
    notice = Facts().fact(NoticePosted, notice_id="n", sentence_id="s", parameters={})
    changed = notice.model_copy(update={"parameters": {"v": value}})
    assert outcome(quickly, changed) == outcome(slowly, changed)


def test_an_ordinary_event_takes_the_quick_way() -> None:
    with patch.object(canonical, "encode", side_effect=AssertionError):
        for one in Facts().step("a", args={"path": "päth", "depth": [1, {"ratio": 0.5}]}):
            assert seal(one, 1, FIRST_PREVIOUS_DIGEST).state


def test_a_part_that_was_written_before_is_written_as_it_is_now() -> None:
    r = Facts()
    r.step("a")
    dispatch = r.dispatch("a")
    held: dict[str, Any] = {}
    mine = dispatch.contract.model_copy(update={"parameters": held})
    bare = dispatch.model_copy(update={"contract": mine})
    assert quickly(bare) == quickly(bare) == slowly(bare)
    held["deep"] = {"ratio": 1.0}
    assert quickly(bare) == slowly(bare)
    held.clear()
    assert quickly(bare) == slowly(bare)
    other = bare.model_copy(update={"contract": mine.model_copy(update={"version": mine.version + 1})})
    assert quickly(other) == slowly(other) != quickly(bare)


def test_any_number_of_parts_may_be_written() -> None:
    r = Facts()
    r.step("a")
    dispatch = r.dispatch("a")
    for version in range(1, 600):
        one = dispatch.model_copy(update={"contract": dispatch.contract.model_copy(update={"version": version})})
        assert quickly(one) == quickly(one) == slowly(one)
    assert len(sealing._PARTS) <= sealing._PARTS_MAX
