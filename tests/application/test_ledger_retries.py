"""An exact retry is idempotent and gives the first result; all else under a used id is refused. SPEC section 7."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from safepoint.domain.commands import AbandonRun, AnyCommand
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.outside import BackgroundSettled
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import RunAbandoned
from safepoint.domain.events.tool import Observation, RecoveryMode, Statement

from ..domain.facts import Facts, contract, prefix
from .ledger_world import World, events_of, refusal, together
from .test_ledger import damaged

Play = Callable[[World], AnyCommand]


def opened(world: World) -> AnyCommand:
    """A later turn that takes notices, grants and an effect of its predecessor's turn over."""
    r = world.opened("r", "a", "b", "c")
    world.ledger.execute(r.append(r.requested("a"), r.requested("b")))
    world.ledger.execute(r.prepare(dispatch := r.dispatch("c")))
    world.ledger.execute(r.end())
    for call, grant in (("a", "g1"), ("b", "g2")):
        late = r.late(r.decided(f"ask-{call}", grant_id=grant), grant=r.grant(r.requested(call), grant))
        world.ledger.execute(late)
    sequence = len(world.stream("run:r"))
    bundle = r.recovery(dispatch, sequence, outcome=r.outcome("c"), notice=r.notice())
    world.ledger.execute(bundle)
    return world.facts("r2").open_run()


def first(world: World) -> AnyCommand:
    return world.facts().open_run()


def appended(world: World) -> AnyCommand:
    r = world.opened("r", "a")
    return r.append(r.user("hurry", steering=True), r.requested("a"), r.cancelled())


def recorded(world: World) -> AnyCommand:
    r = world.opened()
    return r.record(r.step("a", "b", text="now"))


def refused(world: World) -> AnyCommand:
    r = world.opened("r", "a")
    return r.refuse(r.refusal("a"))


def dispatched(world: World) -> AnyCommand:
    """An approved repeat of two equal effects."""
    r = world.facts()
    world.ledger.execute(r.open_run())
    world.ledger.execute(r.record(r.step("a", "b", args={"x": 1})))
    world.ledger.execute(r.prepare(r.dispatch("a")))
    world.ledger.execute(r.prepare(r.dispatch("b")))
    world.ledger.execute(r.end())
    q = world.facts("r2")
    world.ledger.execute(q.open_run())
    world.ledger.execute(q.record(q.step("c", args={"x": 1})))
    world.ledger.execute(q.append(q.requested("c", repeats="op-r-b")))
    world.ledger.execute(q.append(q.decided("ask-c")))
    return q.prepare(q.dispatch("c", repeats="op-r-b"))


def settled(world: World) -> AnyCommand:
    r = world.opened("r", "a")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    return r.commit(r.outcome("a"), r.left_running("a"))


def ended(world: World) -> AnyCommand:
    """A stopped run with calls to close, questions to close and effects to watch."""
    r = world.opened("r", "a", "b", "c", "d", "e")
    for call in ("a", "b"):
        world.ledger.execute(r.prepare(r.dispatch(call)))
    world.ledger.execute(r.append(r.requested("c"), r.requested("d")))
    return r.end(RunStatus.CANCELLED, stopped_by="Ada")


def late(world: World) -> AnyCommand:
    r = world.opened("r", "a")
    world.ledger.execute(r.append(r.requested("a")))
    world.ledger.execute(r.end())
    return r.late(r.decided("ask-a", grant_id="g1"), grant=r.grant(r.requested("a")), notice=r.notice())


def late_job(world: World) -> AnyCommand:
    r = world.opened("r", "a")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    world.ledger.execute(r.commit(r.outcome("a"), r.left_running("a")))
    world.ledger.execute(r.end())
    return r.late(r.fact(BackgroundSettled, handle_id="job-a", status="ended"))


def redelivered(world: World) -> AnyCommand:
    r = world.opened("r", "a")
    promised = contract(RecoveryMode.IDEMPOTENT)
    world.ledger.execute(r.prepare(r.dispatch("a", contract=promised, idempotency_key="key")))
    world.ledger.execute(r.end())
    return r.redelivery("a")


def interrupted(world: World) -> tuple[Facts, AnyCommand]:
    r = world.opened("r", "a")
    dispatch = r.dispatch("a")
    world.ledger.execute(r.prepare(dispatch))
    world.ledger.execute(r.end())
    outcome = r.outcome("a")
    return r, r.recovery(dispatch, len(world.stream("run:r")), outcome=outcome, notice=r.notice())


def recovered(world: World) -> AnyCommand:
    return interrupted(world)[1]


def parked(world: World) -> AnyCommand:
    r = world.opened("r", "a")
    dispatch = r.dispatch("a")
    world.ledger.execute(r.prepare(dispatch))
    world.ledger.execute(r.end())
    sequence = len(world.stream("run:r"))
    return r.recovery(dispatch, sequence, observation=Observation.UNREADABLE, reason="contract_forbids_recovery")


def attested(world: World) -> AnyCommand:
    r, _ = interrupted(world)
    none = r.refusal("a", operation_id=r.operation("a"), code=None)
    return r.attestation("a", len(world.stream("run:r")), Statement.NOT_EXECUTED, response=none)


def claimed(world: World) -> AnyCommand:
    r = world.opened()
    world.ledger.execute(r.end())
    return r.claim(Facts("r2"), [prefix(r, [one.event for one in world.stream("run:r")])])


def started(world: World) -> AnyCommand:
    """A continuation that takes notices and a grant over."""
    r = world.opened("r", "a")
    world.ledger.execute(r.append(r.requested("a")))
    world.ledger.execute(r.end())
    grant = r.grant(r.requested("a"))
    world.ledger.execute(r.late(r.decided("ask-a", grant_id="g1"), grant=grant, notice=r.notice()))
    claim = r.claim(Facts("r2"), [prefix(r, [one.event for one in world.stream("run:r")])])
    world.ledger.execute(claim)
    return world.facts("r2", maker="'").start(claim.claimed)


def repaired(world: World) -> AnyCommand:
    claim = claimed(world)
    world.ledger.execute(claim)
    return world.facts("r2", maker="'").repair(claim.claimed)  # type: ignore[union-attr]


PLAYS: dict[str, Play] = {
    "open_run": first,
    "open_run with an inbox": opened,
    "append": appended,
    "record_step": recorded,
    "refuse_call": refused,
    "prepare_tool": dispatched,
    "commit_outcome": settled,
    "end_run": ended,
    "append_late with a grant": late,
    "append_late of a job": late_job,
    "start_redelivery": redelivered,
    "commit_recovery": recovered,
    "commit_recovery parked": parked,
    "commit_attestation": attested,
    "claim_continuation": claimed,
    "start_continuation": started,
    "repair_continuation": repaired,
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_every_command_can_be_retried_and_gives_its_whole_first_result(world: World, play: Play) -> None:
    command = play(world)
    once = world.ledger.execute(command)
    before = {name: world.topics(name) for name in world.store.streams()}
    for ledger in (world.ledger, world.another_ledger()):
        again = ledger.execute(command)
        assert (again.first, again.events) == (False, once.events)
    assert {name: world.topics(name) for name in world.store.streams()} == before
    assert world.consistent()


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "lost"])
@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_after_a_commit_whose_outcome_is_unknown_the_exact_retry_converges(
    world: World, play: Play, stored: bool
) -> None:
    command = play(world)
    world.fail_commit(stored=stored)
    with pytest.raises(StoreUnavailable, match="not known"):
        world.ledger.execute(command)
    receipt = world.ledger.execute(command)
    assert receipt.first is not stored
    assert world.ledger.execute(command).events == receipt.events
    assert world.consistent()


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_a_retry_that_meets_its_first_in_one_group_converges_on_it(world: World, play: Play) -> None:
    command = play(world)
    one, two = together(world, command, command)
    assert one.receipt is not None
    assert two.receipt is not None
    assert (one.receipt.first, two.receipt.first) == (True, False)
    assert one.receipt.events == two.receipt.events


def test_a_retry_converges_whatever_has_happened_since(world: World) -> None:
    r = world.opened("r", "a")
    t1, t2 = r.prepare(r.dispatch("a")), r.commit(r.outcome("a"))
    first_t1, first_t2 = world.ledger.execute(t1), world.ledger.execute(t2)
    world.ledger.execute(r.end(RunStatus.COMPLETED))
    world.ledger.execute(world.facts("r2").open_run())
    assert world.ledger.execute(t1).events == first_t1.events
    assert world.ledger.execute(t2).events == first_t2.events


def test_the_same_id_with_other_content_is_a_conflict(world: World) -> None:
    r = world.opened("r", "a")
    said = r.user("yes", steering=True)
    world.ledger.execute(r.append(said))
    for fields in ({"text": "no"}, {"occurred_at": "2026-11-29T12:00:09.000000Z"}, {"text": "\ud800"}):
        changed = said.model_copy(update=fields)
        assert refusal(world.ledger, r.append(changed)).code == "retry_conflict"
    assert world.topics()[-1] == "message.user.v1"


def test_what_python_calls_equal_is_compared_as_json(world: World) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.prepare(r.dispatch("a")))
    outcome = r.outcome("a", result={"n": 1, "on": True})
    world.ledger.execute(r.commit(outcome))
    same = outcome.model_copy(update={"result": {"on": True, "n": 1.0}})
    assert not world.ledger.execute(r.commit(same)).first
    other = outcome.model_copy(update={"result": {"n": True, "on": 1}})
    assert other == outcome
    assert refusal(world.ledger, r.commit(other)).code == "retry_conflict"


def test_a_part_of_a_commit_or_parts_of_two_are_no_retry(world: World) -> None:
    r = world.opened()
    one, two, three = (r.user(text, steering=True) for text in "abc")
    world.ledger.execute(r.append(one, two))
    world.ledger.execute(r.append(r.user("between", steering=True)))
    world.ledger.execute(r.append(three))
    for facts in ((one, r.user("new", steering=True)), (two, three), (two, one)):
        assert refusal(world.ledger, r.append(*facts)).code == "retry_conflict"


def test_a_used_id_in_another_place_is_a_duplicate(world: World) -> None:
    r, q = world.opened("r"), world.opened("q", session="t")
    used = q.cancelled()
    world.ledger.execute(q.append(used))
    assert refusal(world.ledger, r.append(r.fact(type(used), by="x", event_id=used.event_id))).code == (
        "duplicate_event_id"
    )
    session_event = world.stream("session:t")[0].event.event_id
    assert refusal(world.ledger, r.append(r.fact(type(used), by="x", event_id=session_event))).code == (
        "duplicate_event_id"
    )


def test_one_id_twice_in_one_command_is_a_duplicate(world: World) -> None:
    r = world.opened()
    one = r.user("a", steering=True)
    two = one.model_copy(update={"text": "b"})
    assert refusal(world.ledger, r.append(one, two)).code == "duplicate_event_id"
    assert world.ledger.execute(r.append(one)).first


def test_a_retry_by_whoever_owns_the_session_now_converges_as_well(world: World) -> None:
    """Exact retry is asked before the epoch."""
    r = world.opened("r", "a")
    command = r.prepare(r.dispatch("a"))
    once = world.ledger.execute(command)
    world.facts("r", incarnation="i2")
    again = world.ledger.execute(command)
    assert (again.first, again.events) == (False, once.events)
    assert refusal(world.ledger, r.commit(r.outcome("a"))).code == "owner_fenced"


def test_giving_up_a_damaged_run_is_retried_like_anything_else(world: World) -> None:
    r = damaged(world, "a")
    fact = r.fact(RunAbandoned, run_id="r", by="Ada", note="", last_good_sequence=2)
    command = AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact)
    once = world.ledger.execute(command)
    assert events_of(once) == (fact,)
    assert world.ledger.execute(command).events == once.events
