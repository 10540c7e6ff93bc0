"""A candidate gets its place and a digest that names all before it, and comes back as it was. SPEC section 6."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical
from safepoint.domain.events.event import Event
from safepoint.domain.events.model import ModelText
from safepoint.domain.sealing import (
    EVENT_BYTES_MAX,
    FIRST_PREVIOUS_DIGEST,
    DamagedEvent,
    OversizedEvent,
    SealedEvent,
    StoredRecord,
    digest_of,
    seal,
)
from safepoint.domain.unsealing import unseal

from .facts import Facts, sealed

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def history() -> list[SealedEvent]:
    r = Facts()
    events: list[Event] = [r.opened(), r.user(), *r.step("a"), r.dispatch("a"), r.outcome("a"), r.ended()]
    return sealed(events)


def unsealed(records: list[StoredRecord]) -> list[SealedEvent]:
    done: list[SealedEvent] = []
    for sequence, record in enumerate(records, 1):
        done.append(unseal(record, sequence, done[-1].digest if done else FIRST_PREVIOUS_DIGEST))
    return done


def test_a_stream_reads_back_as_it_was_sealed() -> None:
    stream = history()
    assert unsealed([one.record for one in stream]) == stream
    assert [one.sequence for one in stream] == list(range(1, len(stream) + 1))
    assert {one.stream for one in stream} == {"run:r"}


def test_the_stored_bytes_are_the_fields_with_type_place_and_the_digest_before() -> None:
    first, second, *_ = history()
    fields = canonical.decode_canonical(second.state)
    assert isinstance(fields, dict)
    assert (fields["type"], fields["sequence"], fields["previous_digest"]) == ("message.user.v1", 2, first.digest)
    assert canonical.decode_canonical(first.state)["previous_digest"] == "0" * 64  # type: ignore[index, call-overload]
    assert canonical.decode_canonical(second.state)


def test_a_digest_is_over_the_length_prefixed_domain_and_the_bytes() -> None:
    domain = b"safepoint.event.v1"
    one = history()[0]
    assert one.digest == hashlib.sha256(len(domain).to_bytes(8, "big") + domain + one.state).hexdigest()
    assert digest_of(one.state) == one.digest


def test_the_digest_of_an_event_names_the_whole_prefix() -> None:
    stream = history()
    changed = [stream[0].event.model_copy(update={"cwd": "/elsewhere"}), *(one.event for one in stream[1:])]
    assert not {one.digest for one in stream} & {one.digest for one in sealed(changed)}


@pytest.mark.parametrize("position", range(7))
def test_any_change_of_an_earlier_event_is_found_in_one_pass(position: int) -> None:
    records = [one.record for one in history()]
    other = seal(history()[position].event.model_copy(update={"event_id": "changed"}), position + 1, "0" * 64)
    records[position] = other.record
    with pytest.raises(DamagedEvent) as caught:
        unsealed(records)
    assert caught.value.sequence in {position + 1, position + 2}


@pytest.mark.parametrize("position", range(6))
def test_events_that_are_swapped_left_out_or_repeated_are_found(position: int) -> None:
    records = [one.record for one in history()]
    swapped = [*records[:position], records[position + 1], records[position], *records[position + 2 :]]
    for wrong in (swapped, records[:position] + records[position + 1 :], records[: position + 1] + records[position:]):
        with pytest.raises(DamagedEvent):
            unsealed(wrong)


@given(json_values)
def test_whatever_json_an_event_carries_comes_back_byte_for_byte(value: Any) -> None:
    event = Facts().fact(ModelText, step_id="s", text="", provider_options=value)
    one = seal(event, 1, FIRST_PREVIOUS_DIGEST)
    back = unseal(one.record, 1, FIRST_PREVIOUS_DIGEST)
    assert back.event == event
    assert seal(back.event, 1, FIRST_PREVIOUS_DIGEST).state == one.state


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53 + 1, "\ud800", {"\ud800": 1}, {"a": [{"b\udfff": {}}]}], ids=repr
)
def test_what_has_no_canonical_form_is_refused_when_it_is_sealed(value: Any) -> None:
    event = Facts().fact(ModelText, step_id="s", text="")
    with pytest.raises(ValueError, match=r".+"):
        seal(event.model_copy(update={"provider_options": value}), 1, FIRST_PREVIOUS_DIGEST)


def test_an_event_that_is_too_large_is_refused_with_its_size() -> None:
    event = Facts().fact(ModelText, step_id="s", text="x" * EVENT_BYTES_MAX)
    with pytest.raises(OversizedEvent) as caught:
        seal(event, 1, FIRST_PREVIOUS_DIGEST)
    assert caught.value.topic == "model.text.v1"
    assert caught.value.size > EVENT_BYTES_MAX
    rest = EVENT_BYTES_MAX - (caught.value.size - EVENT_BYTES_MAX)
    fitting = seal(event.model_copy(update={"text": "x" * rest}), 1, FIRST_PREVIOUS_DIGEST)
    assert len(fitting.state) == EVENT_BYTES_MAX
