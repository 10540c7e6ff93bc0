"""Commands that wait are committed together; one that fails does not fail its neighbours. SPEC section 7."""

from __future__ import annotations

import threading

from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import RunId

from ..domain.facts import Facts
from .ledger_world import Caller, World, together, wait_until


def test_a_lone_caller_waits_for_nobody(world: World) -> None:
    world.opened()
    assert world.events.groups == [1]


def test_callers_that_meet_are_committed_in_one_transaction(world: World) -> None:
    sessions = [world.opened(f"r{n}", session=f"s{n}") for n in range(5)]
    before = len(world.events.groups)
    callers = together(world, *(r.append(r.cancelled()) for r in sessions))
    assert world.events.groups[before:] == [1, 5]
    assert all(caller.receipt is not None and caller.receipt.first for caller in callers)
    assert world.consistent()


def test_two_parallel_calls_of_one_run_go_into_one_group_in_order(world: World) -> None:
    r = world.opened("r", "a", "b")
    callers = together(world, r.prepare(r.dispatch("a")), r.prepare(r.dispatch("b")))
    assert world.events.groups[-1] == 2
    receipts = [caller.receipt for caller in callers]
    assert [one.events[0].sequence for one in receipts if one is not None] == [6, 7]
    assert world.topics()[-2:] == ["tool.dispatched.v1", "tool.dispatched.v1"]
    assert world.consistent()


def test_a_command_is_decided_on_the_earlier_ones_of_its_group(world: World) -> None:
    r = world.opened("r", "a")
    callers = together(
        world,
        r.prepare(r.dispatch("a")),
        r.prepare(r.dispatch("a", operation_id="twice")),
        r.commit(r.outcome("a")),
        r.end(RunStatus.COMPLETED),
        r.append(r.cancelled()),
    )
    assert [caller.code for caller in callers] == [None, "transition_shape_conflict", None, None, "run_sealed"]
    assert world.topics()[-3:] == ["tool.dispatched.v1", "tool.responded.v1", "run.ended.v1"]
    assert world.consistent()


def test_a_rolled_back_neighbour_takes_nobody_with_it_and_its_successors_are_decided_anew(world: World) -> None:
    """The operation id of the first is used in another run, which only the store can know."""
    used, r, other = (
        world.opened("u", "a", session="u"),
        world.opened("r", "a", "b", "c"),
        world.opened("o", session="o"),
    )
    world.ledger.execute(used.prepare(used.dispatch("a", operation_id="used")))
    callers = together(
        world,
        other.append(other.cancelled()),
        r.prepare(r.dispatch("a", operation_id="used")),
        r.prepare(r.dispatch("b")),
        r.commit(r.outcome("b")),
        r.prepare(r.dispatch("c")),
    )
    assert [caller.code for caller in callers] == [None, "transition_shape_conflict", None, None, None]
    assert world.topics()[5:] == [
        "model.step_completed.v1",
        "tool.dispatched.v1",
        "tool.responded.v1",
        "tool.dispatched.v1",
    ]
    assert world.consistent()


def test_what_was_refused_only_because_of_a_neighbour_that_rolled_back_is_accepted(world: World) -> None:
    """The end of the run cannot be stored, so what came after it did not come too late."""
    used, r = world.opened("u", session="u"), world.opened("r", "a")
    taken = used.cancelled()
    world.ledger.execute(used.append(taken))
    callers = together(world, r.end(event_id=taken.event_id), r.prepare(r.dispatch("a")))
    assert [caller.code for caller in callers] == ["duplicate_event_id", None]
    assert world.topics()[-1] == "tool.dispatched.v1"
    assert world.consistent()


def test_nothing_is_stored_that_hangs_on_a_neighbour_which_rolled_back(world: World) -> None:
    """A new turn writes nothing into the run before it, so the store could not tell that this one did not end."""
    used, r = world.opened("u", session="u"), world.opened("r")
    taken = used.cancelled()
    world.ledger.execute(used.append(taken))
    turn = world.facts("r2")
    callers = together(world, r.end(event_id=taken.event_id), turn.open_run())
    assert [caller.code for caller in callers] == ["duplicate_event_id", "session_busy"]
    assert world.topics("session:s") == ["session.opened.v1", "session.run_admitted.v1"]
    assert world.topics("run:r2") == []


def test_what_hangs_on_a_neighbour_that_was_stored_follows_at_once(world: World) -> None:
    r, turn = world.opened("r", "a"), world.facts("r2")
    callers = together(world, r.end(), turn.open_run())
    assert [caller.error for caller in callers] == [None, None]
    assert world.events.groups[-2:] == [1, 1]
    assert world.topics("run:r2") == ["run.opened.v1", "message.user.v1"]


def test_an_outcome_of_a_dispatch_that_rolled_back_is_refused(world: World) -> None:
    used, r = world.opened("u", "a", session="u"), world.opened("r", "a")
    world.ledger.execute(used.prepare(used.dispatch("a", operation_id="used")))
    dispatch = r.prepare(r.dispatch("a", operation_id="used"))
    outcome = r.commit(r.outcome("a", operation_id="used"))
    callers = together(world, dispatch, outcome)
    assert [caller.code for caller in callers] == ["transition_shape_conflict"] * 2
    assert world.topics()[-1] == "model.step_completed.v1"


def test_a_defect_in_one_decision_is_told_to_its_caller_alone(world: World) -> None:
    r, other = world.opened(), world.opened("o", session="o")
    broken = r.append(r.cancelled())
    object.__setattr__(broken, "facts", (object(),))
    callers = together(world, broken, other.append(other.cancelled()))
    assert isinstance(callers[0].error, AttributeError)
    assert callers[1].receipt is not None
    world.ledger.execute(r.append(r.cancelled()))


def test_numbers_are_given_inside_the_transaction_so_a_reader_never_skips_one(world: World) -> None:
    """Field report r3-087: a writer takes the next number and pauses before commit; another appends and commits."""
    r = world.opened()
    seen: list[int] = []

    def look() -> None:
        seen.extend(one.sequence for one in world.stream("run:r")[len(seen) :])

    for _ in range(100):
        with world.events.holding():
            paused = Caller(world.ledger, r.append(r.user("a", steering=True)))
            world.events.wait_until_held()
            following = Caller(world.ledger, r.append(r.user("b", steering=True)))
            wait_until(lambda: len(world.ledger._waiting) == 1)
            look()
        paused.done()
        following.done()
        look()
    assert seen == list(range(1, 203))


def test_r3_087_a_reader_sees_a_rising_list_without_a_gap_over_a_hundred_runs(world: World) -> None:
    for number in range(100):
        r = world.opened(f"r{number}", session=f"s{number}")
        callers = together(world, r.append(r.cancelled("a")), r.append(r.user("b", steering=True)))
        assert all(caller.error is None for caller in callers)
        assert [one.sequence for one in world.stream(f"run:r{number}")] == [1, 2, 3, 4]


def test_thirty_two_threads_on_eight_runs_keep_contiguous_chains_that_verify(world: World) -> None:
    runs = [world.opened(f"r{n}", session=f"s{n}") for n in range(8)]
    errors: list[Exception] = []

    def work(number: int) -> None:
        r = Facts(f"r{number % 8}", session=f"s{number % 8}", maker=f"-{number}-")
        r.epoch = runs[number % 8].epoch
        for n in range(20):
            try:
                world.ledger.execute(r.append(r.user(str(n), steering=True)))
            except Exception as error:  # noqa: BLE001 (looked at below)
                errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    for n in range(8):
        assert len(world.stream(f"run:r{n}")) == 2 + 4 * 20
        assert world.ledger.run(RunId(f"r{n}")).sequence == 82
    assert sum(world.events.groups) == 8 + 32 * 20
    assert world.consistent()
