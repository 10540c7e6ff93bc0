"""An event that is assembled of valid parts is the one that validating makes of them. SPEC section 21."""

from __future__ import annotations

import pytest

from safepoint.domain.events.assembling import assembled
from safepoint.domain.events.event import Event
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST, seal
from safepoint.domain.unsealing import unseal

from ..stored_events.examples import EXAMPLES


def are_one(made: Event, validated: Event) -> None:
    """Alike in all that anybody can ask of them, and in what is stored."""
    assert made == validated
    assert made.model_dump(mode="json") == validated.model_dump(mode="json")
    assert {name: type(value) for name, value in made} == {name: type(value) for name, value in validated}
    sealed = seal(made, 1, FIRST_PREVIOUS_DIGEST)
    assert sealed.state == seal(validated, 1, FIRST_PREVIOUS_DIGEST).state
    assert unseal(sealed.record, 1, FIRST_PREVIOUS_DIGEST).event == made


@pytest.mark.parametrize("topic", EXAMPLES)
def test_every_type_of_event_can_be_assembled_of_its_members(topic: str) -> None:
    for event in EXAMPLES[topic]:
        made = assembled(type(event), {name: getattr(event, name) for name in type(event).model_fields})
        are_one(made, event)
        assert made.model_copy(update={"event_id": "another"}) == event.model_copy(update={"event_id": "another"})


@pytest.mark.parametrize("topic", EXAMPLES)
def test_an_event_lacks_no_member_and_has_no_other(topic: str) -> None:
    event = EXAMPLES[topic].full
    members = {name: getattr(event, name) for name in type(event).model_fields}
    without = [{other: members[other] for other in members if other != name} for name in members]
    for wrong in ({**members, "other": 1}, *without, *({**one, "other": 1} for one in without)):
        with pytest.raises(TypeError):
            assembled(type(event), wrong)
