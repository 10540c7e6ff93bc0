"""Losing a version to another writer is decided again, and never reported as a failed T1 or T2. SPEC section 7."""

from __future__ import annotations

import pytest

from safepoint.application.commit_round import ROUNDS_MAX
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import RunId, SessionId

from .ledger_world import World, refusal, together


def test_a_version_lost_between_decision_and_commit_is_decided_again(world: World) -> None:
    r = world.opened("r", "a", "b")
    other = world.another_ledger()
    world.events.before_append(lambda: other.execute(r.prepare(r.dispatch("b"))))
    receipt = world.ledger.execute(r.prepare(r.dispatch("a")))
    assert receipt.first
    assert [one.event.model_dump().get("call_id") for one in world.stream("run:r")[-2:]] == ["b", "a"]
    assert world.consistent()


def test_a_cached_state_that_was_overtaken_is_brought_up_by_what_is_new(world: World) -> None:
    r = world.opened("r", "a", "b")
    other = world.another_ledger()
    other.execute(r.prepare(r.dispatch("a")))
    other.execute(r.commit(r.outcome("a")))
    assert world.ledger.execute(r.prepare(r.dispatch("b"))).events[0].sequence == 8
    assert world.ledger.run(RunId("r")).sequence == 8
    assert world.consistent()


def test_a_refusal_on_an_overtaken_state_is_decided_again(world: World) -> None:
    """The other ledger recorded the step whose call is dispatched here."""
    r = world.opened()
    other = world.another_ledger()
    other.execute(r.record(r.step("a")))
    assert world.ledger.execute(r.prepare(r.dispatch("a"))).first


def test_a_new_turn_sees_that_the_head_has_ended_elsewhere(world: World) -> None:
    """Nothing was written into the session's own stream meanwhile."""
    r, turn = world.opened(), world.facts("r2")
    world.ledger.run(RunId("r"))
    world.another_ledger().execute(r.end(RunStatus.COMPLETED))
    assert world.ledger.execute(turn.open_run()).first


def test_a_new_decision_may_refuse(world: World) -> None:
    r = world.opened("r", "a")
    other = world.another_ledger()
    world.events.before_append(lambda: other.execute(r.append(r.cancelled())))
    assert refusal(world.ledger, r.prepare(r.dispatch("a"))).code == "run_sealed"
    world.events.before_append(lambda: other.execute(r.end()))
    assert refusal(world.ledger, r.record(r.step("b"))).code == "run_sealed"
    assert world.topics()[-3:] == ["run.cancel_requested.v1", "tool.responded.v1", "run.ended.v1"]


def test_a_group_that_loses_its_first_version_never_links_to_what_was_not_stored(world: World) -> None:
    """The second of the group fits by its version once the other writer has taken the place of the first."""
    r = world.opened("r", "a", "b", "c")
    other = world.another_ledger()
    world.events.before_append(lambda: other.execute(r.prepare(r.dispatch("c"))), after=1)
    callers = together(world, r.prepare(r.dispatch("a")), r.prepare(r.dispatch("b")))
    assert [caller.error for caller in callers] == [None, None]
    calls = [one.event.model_dump()["call_id"] for one in world.stream("run:r")[-3:]]
    assert calls == ["c", "a", "b"]
    assert world.consistent()


def test_a_writer_that_loses_every_round_is_told_so_and_nothing_is_written(world: World) -> None:
    r = world.opened()
    other = world.another_ledger()
    for number in range(ROUNDS_MAX):
        world.events.before_append(lambda: other.execute(r.append(r.user("first", steering=True))), after=number)
    with pytest.raises(StoreUnavailable, match="every round"):
        world.ledger.execute(r.append(r.user("late", steering=True)))
    assert world.topics()[2:] == ["message.user.v1"] * ROUNDS_MAX


def test_a_small_cache_changes_nothing(world: World) -> None:
    ledger = world.another_ledger(cached_streams_max=1)
    for number in range(3):
        r = world.facts(f"r{number}", session=f"s{number}")
        ledger.execute(r.open_run())
    for number in range(3):
        r = world.facts(f"r{number}", session=f"s{number}", maker="'")
        ledger.execute(r.record(r.step("a", "b")))
        ledger.execute(r.prepare(r.dispatch("a")))
        ledger.execute(r.append(r.requested("b")))
        ledger.execute(r.end())
        ledger.execute(r.late(r.decided("ask-b", grant_id="g"), grant=r.grant(r.requested("b"), "g")))
    assert world.consistent()


def test_a_session_that_was_owned_by_somebody_else_meanwhile_is_read_anew(world: World) -> None:
    r = world.opened()
    world.ledger.execute(r.end())
    assert world.ledger.session(SessionId("s")).head is not None
    elsewhere = world.facts("r2", incarnation="i2")
    world.another_ledger().execute(elsewhere.open_run())
    world.ledger.forget(SessionId("s"))
    head = world.ledger.session(SessionId("s")).head
    assert head is not None
    assert head.run_id == "r2"
