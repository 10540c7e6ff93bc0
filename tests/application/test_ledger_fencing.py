"""A stale owner gets `owner_fenced` and writes nothing: asked after a retry, before all else. SPEC sections 7, 15."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from safepoint.domain.commands import AnyCommand
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import IncarnationId

from ..domain.facts import Facts
from .ledger_world import World, refusal, together

COMMANDS: dict[str, Callable[[Facts], AnyCommand]] = {
    "what would be accepted": lambda r: r.prepare(r.dispatch("a")),
    "what the state does not allow": lambda r: r.commit(r.outcome("b")),
    "what has no shape": lambda r: r.append(),
    "an ordinary fact": lambda r: r.append(r.cancelled()),
    "an end": lambda r: r.end(),
}


def fenced(world: World) -> Facts:
    """A run of an owner that was taken over from."""
    r = world.opened("r", "a", "b")
    world.facts("r", incarnation="i2")
    return r


@pytest.mark.parametrize("make", COMMANDS.values(), ids=COMMANDS)
def test_a_stale_owner_writes_nothing_whatever_it_asks(world: World, make: Callable[[Facts], AnyCommand]) -> None:
    r = fenced(world)
    before = world.topics()
    assert refusal(world.ledger, make(r)).code == "owner_fenced"
    assert world.topics() == before


@pytest.mark.parametrize("make", COMMANDS.values(), ids=COMMANDS)
def test_that_it_was_fenced_is_said_although_the_run_has_ended_since(
    world: World, make: Callable[[Facts], AnyCommand]
) -> None:
    r = fenced(world)
    successor = world.facts("r", incarnation="i2", maker="'")
    world.another_ledger().execute(successor.end(RunStatus.CANCELLED))
    for _ in range(2):
        assert refusal(world.ledger, make(r)).code == "owner_fenced"


def test_the_same_life_with_an_older_epoch_is_stale_as_well(world: World) -> None:
    r = world.opened("r", "a")
    world.facts("r", incarnation="i2")
    again = world.facts("r", incarnation="i1", maker="'")
    assert again.epoch == r.epoch + 2
    assert refusal(world.ledger, r.append(r.cancelled())).code == "owner_fenced"
    assert world.ledger.execute(again.append(again.cancelled())).first


@pytest.mark.parametrize("make", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("who", ["an older epoch of the same life", "another life with the same epoch"])
def test_whoever_names_another_owner_is_told_so_first(
    world: World, make: Callable[[Facts], AnyCommand], who: str
) -> None:
    r = world.opened("r", "a", "b")
    if who == "an older epoch of the same life":
        world.facts("r", incarnation="i2")
        world.facts("r", incarnation="i1")
    else:
        r.incarnation_id = IncarnationId("i9")
    assert refusal(world.ledger, make(r)).code == "owner_fenced"


def test_a_session_that_nobody_ever_owned_is_not_written(world: World) -> None:
    r = Facts()
    for command in (r.open_run(), r.append(), r.end()):
        assert refusal(world.ledger, command).code == "owner_fenced"
    assert world.topics("session:s") == []


def test_whether_it_is_a_retry_is_asked_before_the_epoch(world: World) -> None:
    r = world.opened("r", "a")
    said = r.user("yes", steering=True)
    world.ledger.execute(r.append(said))
    world.facts("r", incarnation="i2")
    assert not world.ledger.execute(r.append(said)).first
    changed = r.append(said.model_copy(update={"text": "no"}))
    assert refusal(world.ledger, changed).code == "retry_conflict"


def test_what_comes_too_late_after_its_owner_let_go_is_a_normal_end_of_a_race(world: World) -> None:
    r = world.opened("r", "a")
    world.ledger.execute(r.end())
    assert world.owners.release(r.session_id, r.incarnation_id, r.epoch)
    assert refusal(world.ledger, r.append(r.cancelled())).code == "run_sealed"
    assert refusal(world.ledger, following(r).open_run()).code == "owner_fenced"


def following(r: Facts) -> Facts:
    """The next run of the same owner."""
    turn = Facts("r2", session=r.session_id, incarnation=r.incarnation_id)
    turn.epoch = r.epoch
    return turn


def test_a_stale_command_fails_alone_in_its_group(world: World) -> None:
    r, other = fenced(world), world.opened("q", session="t")
    callers = together(world, r.append(r.cancelled()), other.append(other.cancelled()))
    assert [caller.code for caller in callers] == ["owner_fenced", None]


def test_a_takeover_between_decision_and_commit_is_noticed(world: World) -> None:
    r = world.opened("r", "a")
    world.events.before_append(lambda: world.facts("r", incarnation="i2"))
    assert refusal(world.ledger, r.prepare(r.dispatch("a"))).code == "owner_fenced"
    assert world.topics()[-1] == "model.step_completed.v1"
