"""Commands are decided, sealed and written by one writer; what they give is durable and verifies. SPEC section 7."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.domain.commands import AbandonRun
from safepoint.domain.errors import StoreDamaged
from safepoint.domain.events.run import Context, RunStatus
from safepoint.domain.events.session import RunAbandoned
from safepoint.domain.events.tool import Effect
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST
from safepoint.ports.event_store import Commit, OwnerGuard

from ..domain.facts import Facts, prefix, sealed
from .ledger_world import World, events_of, refusal


def test_candidates_are_sealed_in_one_writer_and_stored_as_the_receipt_says(world: World) -> None:
    r = world.facts()
    receipt = world.ledger.execute(r.open_run())
    assert receipt.first
    assert [(one.stream, one.sequence) for one in receipt.events] == [
        ("session:s", 1),
        ("session:s", 2),
        ("run:r", 1),
        ("run:r", 2),
    ]
    assert [*world.stream("session:s"), *world.stream("run:r")] == list(receipt.events)
    assert receipt.events[0].previous_digest == FIRST_PREVIOUS_DIGEST


def test_a_whole_turn_that_is_continued(world: World) -> None:
    r, following = world.opened("r", "a", "b"), Facts("r2")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    world.ledger.execute(r.commit(r.outcome("a")))
    world.ledger.execute(r.refuse(r.refusal("b")))
    world.ledger.execute(r.record(r.step(text="half an answ")))
    world.ledger.execute(r.append(r.cancelled()))
    world.ledger.execute(r.end(RunStatus.CANCELLED, stopped_by="Ada"))
    boundary = prefix(r, [one.event for one in world.stream("run:r")])
    claim = r.claim(following, [boundary])
    assert world.ledger.execute(claim).first
    world.own(following)
    world.ledger.execute(following.start(claim.claimed))
    world.ledger.execute(following.record(following.step(text="an answer")))
    world.ledger.execute(following.end(RunStatus.COMPLETED))
    assert world.topics("run:r")[-2:] == ["run.ended.v1", "run.claimed.v1"]
    assert world.topics("run:r2") == [
        "continuation.started.v1",
        "model.text.v1",
        "model.step_completed.v1",
        "run.ended.v1",
    ]
    assert world.topics("session:s") == ["session.opened.v1", *["session.run_admitted.v1"] * 2]
    assert world.consistent()


def test_states_are_those_of_the_stored_events(world: World) -> None:
    r = world.opened("r", "a")
    fresh = world.another_ledger()
    for ledger in (world.ledger, fresh):
        assert ledger.run(RunId("r")).sequence == len(world.stream("run:r"))
        assert ledger.session(SessionId("s")).head == world.stream("session:s")[-1].event
    assert world.ledger.run(RunId("unknown")).opening is None
    assert world.ledger.session(SessionId("unknown")).head is None
    world.ledger.execute(r.prepare(r.dispatch("a")))
    assert world.ledger.run(RunId("r")).sequence == len(world.stream("run:r"))


def test_a_known_state_is_told_without_looking_and_a_forgotten_one_is_read_again(world: World) -> None:
    world.opened()
    world.ledger.session(SessionId("s"))
    before = world.events.snapshots
    world.ledger.session(SessionId("s"))
    world.ledger.run(RunId("r"))
    assert world.events.snapshots == before
    world.ledger.forget(SessionId("s"))
    world.ledger.run(RunId("r"))
    world.ledger.session(SessionId("s"))
    assert world.events.snapshots == before + 2


def test_a_command_whose_candidates_belong_elsewhere_is_a_producers_bug(world: World) -> None:
    r, other = world.opened("r", "a"), world.opened("q", "a", session="t")
    for command in (
        r.append(other.fact(type(other.user()), text="x", steering=True)),
        r.append(r.fact(type(r.user()), text="x", steering=True, run_id="r9")),
        r.append(r.fact(type(r.user()), text="x", steering=True, turn_id="t9")),
        r.append(r.fact(type(r.user()), text="x", steering=True, invocation_id="i9")),
        r.prepare(r.dispatch("a", incarnation_id="i9")),
        r.end(incarnation_id="i9"),
        r.end(epoch=9),
    ):
        assert refusal(world.ledger, command).code == "transition_shape_conflict"
    assert world.topics("run:r")[-1] == "model.step_completed.v1"


def test_what_would_make_the_ledger_unsound_is_refused_whatever_the_decision_says(world: World) -> None:
    r = world.opened("r", "a")
    assert refusal(world.ledger, r.refuse(r.refusal("a", tool_name="rm"))).code == "transition_shape_conflict"
    assert not world.ledger.run(RunId("r")).tools.issues
    assert world.ledger.execute(r.refuse(r.refusal("a"))).first


@pytest.mark.parametrize("lost", ["nothing", "its claim", "its end", "all of it"])
def test_a_claim_looks_at_what_stands_at_the_boundary_of_every_ancestor(memory: World, lost: str) -> None:
    r, second, third = memory.opened(), Facts("r2"), Facts("r3")
    memory.ledger.execute(r.end())
    first_boundary = prefix(r, [one.event for one in memory.stream("run:r")])
    claim = r.claim(second, [first_boundary])
    memory.ledger.execute(claim)
    memory.own(second)
    memory.ledger.execute(second.start(claim.claimed))
    memory.ledger.execute(second.end())
    boundary = prefix(second, [one.event for one in memory.stream("run:r2")])
    assert isinstance(memory.store, MemoryStore)
    rows = memory.store._tables.streams["run:r"]
    del rows[{"nothing": 9, "its claim": 3, "its end": 2, "all of it": 0}[lost] :]
    command = second.claim(third, [first_boundary, boundary])
    if lost == "nothing":
        assert memory.ledger.execute(command).first
    else:
        assert refusal(memory.ledger, command).code == "transition_shape_conflict"


def test_what_a_command_puts_into_the_inbox_belongs_to_its_own_session(world: World) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.append(r.requested("a")))
    world.ledger.execute(r.end())
    decided, grant = r.decided("ask-a", grant_id="g1"), r.grant(r.requested("a"))
    for command in (
        r.late(decided, grant=grant, notice=r.notice(session_id="t")),
        r.late(decided, grant=grant.model_copy(update={"session_id": "t"})),
        r.late(decided.model_copy(update={"session_id": "t"}), grant=grant),
    ):
        assert refusal(world.ledger, command).code == "transition_shape_conflict"


def test_a_candidate_that_cannot_be_stored_leaves_a_run_that_can_still_end(world: World) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    large = r.outcome("a", result="x" * 1_100_000)
    odd = r.outcome("a", result={"n": 2**53 + 1})
    for response in (large, odd):
        assert refusal(world.ledger, r.commit(response)).code == "transition_shape_conflict"
    world.ledger.execute(r.end())
    assert world.topics()[-1] == "run.ended.v1"
    assert world.consistent()


def test_the_dispatch_names_the_stored_arguments_and_an_operation_id_is_used_once_in_a_store(world: World) -> None:
    r, q = world.opened("r", "a", "b"), world.opened("q", "a", session="t")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    for command in (
        r.prepare(r.dispatch("b", operation_id=r.operation("a"))),
        q.prepare(q.dispatch("a", operation_id=r.operation("a"))),
    ):
        assert refusal(world.ledger, command).code == "transition_shape_conflict"
    world.ledger.execute(q.prepare(q.dispatch("a")))


def test_a_target_id_is_admitted_once(world: World) -> None:
    r = world.opened()
    world.ledger.execute(r.end())
    boundary = prefix(r, [one.event for one in world.stream("run:r")])
    taken = world.opened("q", session="t")
    assert refusal(world.ledger, r.claim(Facts("q", maker="'"), [boundary])).code == "transition_shape_conflict"
    assert taken.run_id == "q"
    assert world.ledger.execute(r.claim(Facts("r2"), [boundary])).first


def test_a_turn_beside_a_claim_and_a_claim_beside_a_turn_exclude_each_other(world: World) -> None:
    r = world.opened()
    world.ledger.execute(r.end())
    boundary = prefix(r, [one.event for one in world.stream("run:r")])
    turn = world.facts("r2")
    claim = r.claim(Facts("r3"), [boundary])
    world.ledger.execute(claim)
    assert refusal(world.ledger, turn.open_run()).code == "session_busy"
    s = world.opened("p", session="t")
    world.ledger.execute(s.end())
    late = s.claim(Facts("p3", session="t"), [prefix(s, [one.event for one in world.stream("run:p")])])
    world.ledger.execute(world.facts("p2", session="t").open_run())
    assert refusal(world.ledger, late).code == "transition_shape_conflict"


def test_r3_077_two_resumers_of_one_boundary_leave_one_child(world: World) -> None:
    """R1 and R2 both plan a continuation from the head; R1 commits; R2 commits."""
    r = world.opened()
    world.ledger.execute(r.end())
    boundary = prefix(r, [one.event for one in world.stream("run:r")])
    first, second = r.claim(Facts("r2"), [boundary]), r.claim(Facts("r3"), [boundary])
    one, two = world.ledger, world.another_ledger()
    two.run(RunId("r"))  # it has planned on what it read
    assert one.execute(first).first
    assert refusal(two, second).code == "run_claimed"
    admitted = [one.event for one in world.stream("session:s") if one.event.topic == "session.run_admitted.v1"]
    assert [event.model_dump()["run_id"] for event in admitted] == ["r", "r2"]


def test_r3_039_who_lost_the_claim_does_nothing_with_an_old_list(world: World) -> None:
    """R1 claims and finishes; R2 then acts on its old list."""
    r, following = world.opened(), Facts("r2")
    world.ledger.execute(r.end())
    boundary = prefix(r, [one.event for one in world.stream("run:r")])
    old_list = r.claim(Facts("r3"), [boundary])
    claim = r.claim(following, [boundary])
    world.ledger.execute(claim)
    world.own(following)
    world.ledger.execute(following.start(claim.claimed))
    world.ledger.execute(following.end(RunStatus.COMPLETED))
    before = {name: world.topics(name) for name in world.store.streams()}
    assert refusal(world.another_ledger(), old_list).code == "run_claimed"
    assert {name: world.topics(name) for name in world.store.streams()} == before


def test_r3_029_what_is_settled_in_any_way_is_not_dispatched_again(world: World) -> None:
    r = world.opened("r", "outcome", "error", "refused", "recovered")
    for call in ("outcome", "error", "recovered"):
        world.ledger.execute(r.prepare(dispatch := r.dispatch(call)))
    world.ledger.execute(r.commit(r.outcome("outcome")))
    world.ledger.execute(r.commit(r.outcome("error", is_error=True, effect=Effect.UNKNOWN)))
    world.ledger.execute(r.refuse(r.refusal("refused")))
    for call in ("outcome", "error", "refused"):
        again = r.dispatch(call, operation_id=f"again-{call}")
        assert refusal(world.ledger, r.prepare(again)).code == "transition_shape_conflict"
    world.ledger.execute(r.end())
    sequence = len(world.stream("run:r"))
    world.ledger.execute(r.recovery(dispatch, sequence, outcome=r.outcome("recovered")))
    assert not world.ledger.run(RunId("r")).tools.unanswered()
    again = r.dispatch("recovered", operation_id="again")
    assert refusal(world.ledger, r.prepare(again)).code == "run_sealed"
    more = r.recovery(dispatch, sequence + 3, outcome=r.outcome("recovered"))
    assert refusal(world.ledger, more).code == "bundle_invalid"


def test_the_history_of_a_turn_is_that_of_the_present_head(world: World) -> None:
    r, late = world.opened("r", "a"), world.facts("r2")
    world.ledger.execute(r.append(r.requested("a")))
    world.ledger.execute(r.end())
    boundary = prefix(r, [one.event for one in world.stream("run:r")])
    decided = r.late(r.decided("ask-a", grant_id="g1"), grant=r.grant(r.requested("a")))
    world.ledger.execute(decided)
    stale = late.open_run(opened=late.opened(context=Context(previous=boundary)))
    assert refusal(world.ledger, stale).code == "transition_shape_conflict"
    fresh = prefix(r, [one.event for one in world.stream("run:r")])
    receipt = world.ledger.execute(late.open_run(opened=late.opened(context=Context(previous=fresh))))
    assert "session.grants_taken.v1" in [event.topic for event in events_of(receipt)]


def damaged(world: World, *calls: str) -> Facts:
    """A run whose second event answers a call that was never made, written by somebody who went past the ledger."""
    r = world.facts()
    command = r.open_run()
    session = sealed([command.session_opened, command.admitted])
    r.step(*calls)
    run = sealed([command.opened, command.message])
    forged = sealed([command.opened, r.refusal(calls[0])])[1]
    guard = OwnerGuard(*r.guard)
    world.events.append([Commit(guard, (*session, run[0], forged))])
    return r


def test_a_run_whose_facts_contradict_each_other_takes_no_more_and_can_be_given_up(world: World) -> None:
    r = damaged(world, "a")
    for command in (r.append(r.cancelled()), r.end(), r.record(r.step("b"))):
        with pytest.raises(StoreDamaged, match="orphan_response"):
            world.ledger.execute(command)
    assert refusal(world.ledger, world.facts("r2").open_run()).code == "session_busy"
    fact = r.fact(RunAbandoned, run_id="r", by="Ada", note="", last_good_sequence=2)
    world.ledger.execute(AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact))
    assert world.ledger.execute(world.facts("r2").open_run()).first
    assert world.topics("run:r") == ["run.opened.v1", "tool.responded.v1"]


def test_a_sound_run_cannot_be_given_up(world: World) -> None:
    r = world.opened()
    fact = r.fact(RunAbandoned, run_id="r", by="Ada", note="", last_good_sequence=2)
    command = AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact)
    assert refusal(world.ledger, command).code == "transition_shape_conflict"
