"""A first commit takes all pending notices and grants over, exactly once. SPEC sections 5 and 13, F18."""

from __future__ import annotations

import pytest

from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.session import GrantsTaken, NoticesTaken
from safepoint.domain.session.decisions import take_inbox, unsayable
from safepoint.domain.session.state import Session

from ..facts import Facts, refused, session_of

R1, R2 = Facts("r1"), Facts("r2")


def given() -> Session:
    R1.step("c")
    asked = R1.requested("c")
    inbox = [R1.notice("one", "n1"), R1.notice("two", "n2"), R1.grant(asked, "g1"), R1.grant(asked, "g2")]
    return session_of([R1.session_opened(), R1.admitted(), *inbox])


def test_an_empty_inbox_adds_nothing() -> None:
    assert take_inbox(Session(), R2.opened()) == ((), ())


def test_notices_become_host_messages_and_all_is_marked_as_taken() -> None:
    first = R2.opened()
    taken, messages = take_inbox(given(), first)
    notices, grants = taken
    assert isinstance(notices, NoticesTaken)
    assert isinstance(grants, GrantsTaken)
    assert (notices.run_id, notices.notice_ids) == ("r2", ("n1", "n2"))
    assert (grants.run_id, grants.grant_ids) == ("r2", ("g1", "g2"))
    assert [message.text for message in messages] == ["Note from the host: one", "Note from the host: two"]
    assert {message.identity for message in messages} == {first.identity}


def test_what_was_taken_is_not_taken_again() -> None:
    taken, _ = take_inbox(given(), R2.opened())
    R1.step("c")
    after = session_of(
        [
            R1.notice("one", "n1"),
            R1.notice("two", "n2"),
            *(R1.grant(R1.requested("c"), g) for g in ("g1", "g2")),
            *taken,
        ]
    )
    assert take_inbox(after, Facts("r3").opened()) == ((), ())


def test_the_ids_of_what_is_derived_are_the_same_on_every_retry_and_differ_from_each_other() -> None:
    first = R2.opened()
    once, again = take_inbox(given(), first), take_inbox(given(), first)
    assert [event.event_id for part in once for event in part] == [event.event_id for part in again for event in part]
    ids = [event.event_id for part in once for event in part]
    assert len(set(ids)) == len(ids) == 4
    other = take_inbox(given(), R2.opened())
    assert not set(ids) & {event.event_id for part in other for event in part}


@pytest.mark.parametrize(
    ("sentence_id", "parameters"), [("no_such_sentence", {}), ("host_note", {}), ("late_settlement", {"tool": "x"})]
)
def test_a_notice_that_could_not_be_told_is_refused_when_it_is_posted(
    sentence_id: str, parameters: dict[str, str]
) -> None:
    """Once posted it would stand in the way of every later run."""
    notice = R1.notice(sentence_id=sentence_id, parameters=parameters)
    refusal = unsayable(notice)
    assert refusal is not None
    assert refused(refusal) == "transition_shape_conflict"
    assert unsayable(None) is None
    assert unsayable(R1.notice()) is None


def test_the_text_is_made_of_the_sentence_and_kept() -> None:
    _, (message,) = take_inbox(session_of([R1.notice("mind {braces}")]), R2.opened())
    assert isinstance(message, HostMessage)
    assert (message.sentence_id, message.parameters) == ("host_note", {"text": "mind {braces}"})
    assert message.text == "Note from the host: mind {braces}"
