"""One ear and one voice for the commands of people: who is asked, and what each answer means. SPEC section 7."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from pydantic import JsonValue

from safepoint.adapters.memory.handover import MemoryHandover
from safepoint.application.commands_from_elsewhere import (
    EAR_SECONDS,
    AtOwner,
    CommandsFromElsewhere,
    FailedAtOwner,
    NotARequest,
    OwnerSilent,
    text_of,
)
from safepoint.application.ownership import SessionBusy
from safepoint.domain.errors import SafepointError, StoreFull, WriteRefused
from safepoint.domain.identifiers import SessionId
from safepoint.domain.reasons import WriteRefusal
from safepoint.ports.handover import Message, NoAnswer, Reply, WhyNoAnswer
from safepoint.ports.incarnations import Incarnation, Liveness

from .wiring import SESSION, Process, World


def ask(process: Process, announce: Callable[[Incarnation, float], None] = lambda owner, seconds: None) -> str:
    """Have `act` done, wherever the session's owner is."""
    return process.at_owner(
        SESSION, "act", {"by": "ada"}, here=lambda: "here", read=lambda told: str(told["did"]), announce=announce
    )


def owner_that(world: World, handled: Callable[[SessionId, Message], Message]) -> Process:
    """A living owner of the session, which carries `act` out in this way."""
    owner = Process(world)
    owner.ownership.keep(owner.ownership.own(SESSION))
    owner.handover.serve(owner.ownership.incarnation, CommandsFromElsewhere({"act": handled}).answer)
    return owner


def refusing(error: SafepointError) -> Callable[[SessionId, Message], Message]:
    def handled(session_id: SessionId, message: Message) -> Message:
        raise error

    return handled


def test_a_session_that_nobody_owns_that_i_own_or_whose_owner_is_dead_is_worked_on_here() -> None:
    world = World()
    assert ask(Process(world)) == "here"
    owner = owner_that(world, lambda session_id, message: {"did": "never"})
    assert ask(owner) == "here"
    owner.die()
    assert ask(Process(world)) == "here"


def test_a_living_owner_is_asked_with_the_session_and_what_the_command_needs_and_the_person_is_told_first() -> None:
    world = World()
    told: list[tuple[int, float]] = []
    owner = owner_that(world, lambda session_id, message: {"did": f"{session_id} for {text_of(message, 'by')}"})
    assert ask(Process(world), lambda who, seconds: told.append((who.pid, seconds))) == "s1 for ada"
    assert told == [(owner.ownership.incarnation.pid, 30.0)]


def test_an_owner_that_could_not_be_looked_at_is_not_asked_and_what_is_tried_here_finds_it_busy() -> None:
    world = World()
    owner = owner_that(world, lambda session_id, message: {"did": "never"})
    owner.incarnations.tell(owner.ownership.incarnation, Liveness.COULD_NOT_LOOK)
    assert ask(Process(world)) == "here"


def test_an_owner_that_does_not_listen_is_named_after_a_while_and_nothing_was_done() -> None:
    world, pauses = World(), list[float]()
    owner, other = Process(world), Process(world)
    owner.ownership.keep(owner.ownership.own(SESSION))
    other.at_owner = AtOwner(other.ownership, other.handover, pause=pauses.append)
    with pytest.raises(OwnerSilent, match=r"process \d+ .* listens to no command; nothing was done") as caught:
        ask(other)
    assert sum(pauses) == pytest.approx(EAR_SECONDS)
    assert (caught.value.why, caught.value.may_be_done) == (WhyNoAnswer.NOT_LISTENING, False)
    assert caught.value.owner == owner.ownership.incarnation


def test_another_persons_command_that_has_the_session_and_listens_to_none_is_waited_for() -> None:
    """Who decides at the same moment owns the session for as long as that takes, and has no ear."""
    world = World()
    owner, other = Process(world), Process(world)
    owned = owner.ownership.own(SESSION)
    other.at_owner = AtOwner(other.ownership, other.handover, pause=lambda seconds: owner.ownership.release(owned))
    assert ask(other) == "here"


def test_an_owner_that_does_not_answer_in_time_may_still_carry_it_out() -> None:
    world, let_go = World(), threading.Event()

    def waits(session_id: SessionId, message: Message) -> Message:
        let_go.wait(60)
        return {"did": "late"}

    owner_that(world, waits)
    other = Process(world)
    other.at_owner = AtOwner(other.ownership, other.handover, answer_seconds=0.05)
    with pytest.raises(OwnerSilent, match=r"within 0\.05 seconds; the request may still be carried out") as caught:
        ask(other)
    assert caught.value.may_be_done
    let_go.set()


def test_a_session_that_is_given_up_while_its_owner_is_asked_is_worked_on_here() -> None:
    world = World()
    owner = Process(world)
    owned = owner.ownership.own(SESSION)
    assert ask(Process(world), lambda who, seconds: owner.ownership.release(owned)) == "here"


class LeftWhileAsked(MemoryHandover):
    """An owner dies while it is asked."""

    def __init__(self, owner: Process) -> None:
        super().__init__()
        self._owner = owner

    def ask(self, incarnation: Incarnation, request: Message, timeout_seconds: float) -> Reply | NoAnswer:
        self._owner.die()
        return NoAnswer(WhyNoAnswer.BROKEN_OFF, may_have_been_handled=True)


def test_a_command_that_an_owner_breaks_off_as_it_leaves_is_done_where_the_session_then_is() -> None:
    world = World()
    owner, other = owner_that(world, lambda session_id, message: {"did": "never"}), Process(world)
    other.at_owner = AtOwner(other.ownership, LeftWhileAsked(owner), pause=lambda seconds: None)
    assert ask(other) == "here"


def test_what_the_owners_ledger_refuses_is_refused_here_with_the_same_code() -> None:
    world = World()
    owner_that(world, refusing(WriteRefused(WriteRefusal.OPERATION_NOT_OVER, "it may still be running")))
    with pytest.raises(WriteRefused) as caught:
        ask(Process(world))
    assert (caught.value.code, caught.value.detail) == (WriteRefusal.OPERATION_NOT_OVER, "it may still be running")


def test_an_owner_that_is_just_beginning_a_run_is_asked_again_as_long_as_an_answer_is_waited_for() -> None:
    world, pauses = World(), list[float]()
    owner_that(world, refusing(SessionBusy(SESSION, None, Liveness.ALIVE)))
    other, told = Process(world), list[float]()
    other.at_owner = AtOwner(other.ownership, other.handover, answer_seconds=1, pause=pauses.append)
    with pytest.raises(SessionBusy) as caught:
        ask(other, lambda who, seconds: told.append(seconds))
    assert caught.value.owner is not None
    assert sum(pauses) == pytest.approx(1)
    assert told == [1], "the person is told once"


def test_another_command_that_has_the_session_and_is_soon_done_is_waited_for() -> None:
    world = World()
    owner = owner_that(world, refusing(SessionBusy(SESSION, None, Liveness.ALIVE)))
    owned = owner.ownership.own(SESSION)
    other = Process(world)
    other.at_owner = AtOwner(other.ownership, other.handover, pause=lambda seconds: owner.ownership.release(owned))
    assert ask(other) == "here"


def test_an_owner_without_room_says_so_by_code() -> None:
    world = World()
    owner_that(world, refusing(StoreFull("no room")))
    with pytest.raises(FailedAtOwner, match="could not do it: no room") as caught:
        ask(Process(world))
    assert caught.value.code == WriteRefusal.STORE_FULL


def test_an_answer_that_is_not_understood_is_no_result() -> None:
    world = World()
    owner_that(world, lambda session_id, message: {"other": 1})
    with pytest.raises(FailedAtOwner, match="look before asking again"):
        ask(Process(world))


def test_a_command_that_the_owner_does_not_know_is_refused_by_name() -> None:
    world = World()
    owner_that(world, lambda session_id, message: {"did": "never"})
    with pytest.raises(FailedAtOwner, match="knows no command 'explode'"):
        Process(world).at_owner(SESSION, "explode", {}, here=lambda: "", read=str)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({}, "unknown_command"),
        ({"command": ["cancel"]}, "unknown_command"),
        ({"command": "explode", "session_id": "s1", "by": "bob"}, "unknown_command"),
        ({"command": "cancel"}, "unknown_request"),
        ({"command": "cancel", "session_id": 7, "by": "bob"}, "unknown_request"),
        ({"command": "cancel", "session_id": "s1"}, "unknown_request"),
        ({"command": "cancel", "session_id": "s1", "by": None}, "unknown_request"),
        ({"command": "cancel", "session_id": "s1", "by": ""}, "unknown_request"),
    ],
)
def test_a_message_that_is_no_request_is_answered_and_does_nothing(message: dict[str, JsonValue], error: str) -> None:
    process = Process()
    assert process.commands.answer(message)["error"] == error
    assert process.session_events() == []
    assert process.owner() is None


def test_whatever_a_request_lacks_is_named() -> None:
    with pytest.raises(NotARequest, match="'by'"):
        text_of({}, "by")
