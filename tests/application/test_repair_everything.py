"""Repair at start: everything that the dead left, in order and in bounded batches, once. SPEC section 11."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.adapters.memory.incarnations import MemoryHost
from safepoint.application import repair_everything, repair_order, repair_report
from safepoint.application.auto_resume import is_tried
from safepoint.application.repair_report import RepairReport, RepairStep
from safepoint.application.repair_session import Repaired, RepairKind
from safepoint.domain.commands import AbandonRun
from safepoint.domain.errors import StoreDamaged, StoreError, StoreNotAdopted, StoreUnavailable
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import RunAbandoned, RunKind
from safepoint.domain.identifiers import IncarnationId, OperationId, SessionId
from safepoint.domain.reasons import ParkReason
from safepoint.ports.event_store import Commit, CommitAnswer, OwnerGuard
from safepoint.ports.incarnations import Liveness
from safepoint.ports.session_owners import Ownership
from safepoint.ports.store_keeping import Trust

from ..adapters.cli.test_deleted_ends import delete_newest
from ..domain.facts import prefix, sealed
from .ledger_world import World
from .repair_world import Life, all_bytes, endings

RESTARTED = ["app_restarted"]
ABANDONED = ["continuation_abandoned_before_provider_dispatch"]


@pytest.fixture
def host() -> MemoryHost:
    return MemoryHost()


@pytest.fixture
def dead(world: World, host: MemoryHost) -> Life:
    """A process that is going to die."""
    return Life(world, host)


@pytest.fixture
def next_(world: World, host: MemoryHost) -> Life:
    """Whoever starts afterwards."""
    return Life(world, host)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    """Few sessions in one transaction."""
    monkeypatch.setattr(repair_order, "BATCH_MAX", 4)
    return 4


def owner(world: World, session: str) -> Ownership:
    row = world.owners.owner(SessionId(session))
    assert row is not None
    return row


# ---- what is repaired ------------------------------------------------------------------------------------------------


def test_whatever_the_dead_left_open_has_an_end_and_nobody_owns_it_any_more(
    world: World, dead: Life, next_: Life
) -> None:
    dead.opens("a", "x", "y")
    dead.opens("b")
    dead.claims("c")
    ended = dead.opens("d")
    dead.ledger.execute(ended.end())
    dead.dies()
    report = next_()
    assert report == RepairReport(runs_closed=2, claims_repaired=1, nothing_open=1)
    assert report.looked_at == 4
    assert endings(world) == {
        "run:r-a": RESTARTED,
        "run:r-b": RESTARTED,
        "run:r-c": ["itself"],
        "run:r-d": ["itself"],
        "run:t-c": ABANDONED,
    }
    assert world.topics("run:r-a")[-3:] == ["tool.responded.v1", "tool.responded.v1", "run.ended.v1"]
    assert [owner(world, session).incarnation_id for session in "abcd"] == [None] * 4
    assert world.consistent()


def test_what_has_a_living_owner_or_one_that_could_not_be_looked_at_is_left_alone(
    world: World, host: MemoryHost, dead: Life, next_: Life
) -> None:
    living, unseen = Life(world, host), Life(world, host)
    dead.opens("a")
    living.opens("b")
    unseen.opens("c")
    dead.dies()
    unseen.dies()
    next_.incarnations.tell(unseen.ownership.incarnation, Liveness.COULD_NOT_LOOK)
    report = next_()
    assert (report.runs_closed, report.alive, report.not_seen) == (1, 1, 1)
    assert endings(world) == {"run:r-a": RESTARTED, "run:r-b": [], "run:r-c": []}
    assert owner(world, "b").incarnation_id == living.ownership.incarnation.incarnation_id


def test_a_run_of_this_very_process_is_closed_when_its_task_has_ended_and_not_before(world: World, next_: Life) -> None:
    next_.opens("a")
    next_.opens("b")
    driven = next_.ownership.own(SessionId("b"))
    report = next_()
    assert (report.runs_closed, report.alive) == (1, 1)
    assert endings(world) == {"run:r-a": RESTARTED, "run:r-b": []}
    next_.ownership.keep(driven)
    assert next_().runs_closed == 1


def test_a_session_of_which_something_still_lives_in_this_process_stays_owned_until_that_is_over(
    world: World, next_: Life
) -> None:
    next_.opens("a")
    next_.live.began(OperationId("o"), SessionId("a"))
    assert next_().runs_closed == 1
    assert owner(world, "a").incarnation_id == next_.ownership.incarnation.incarnation_id
    next_.live.ended(OperationId("o"))
    assert owner(world, "a").incarnation_id is None
    assert next_() == RepairReport()


# ---- in which order --------------------------------------------------------------------------------------------------


def test_unstarted_claims_come_first_then_children_before_their_parents_then_the_rest(dead: Life, next_: Life) -> None:
    parent = dead.opens("a", "call")
    child = dead.opens("b", "call", child_of=parent)
    dead.opens("c", child_of=child)
    dead.opens("d", child_of=parent)
    dead.claims("e")
    dead.dies()
    steps: list[list[SessionId]] = []
    next_(lambda step: steps.append([one.session_id for one in step.repaired]))
    assert next_.repaired[0] == "t-e"
    assert next_.repaired[1] == "r-c"
    assert set(next_.repaired[2:4]) == {"r-b", "r-d"}
    assert next_.repaired[4] == "r-a"
    assert [len(step) for step in steps] == [1, 3, 1]


def test_a_continuation_of_a_child_still_comes_before_the_parent(world: World, dead: Life, next_: Life) -> None:
    parent = dead.opens("a", "call")
    child = dead.opens("b", child_of=parent)
    dead.ledger.execute(child.end())
    target = dead.facts("b", "t-b")
    events = [one.event for one in world.stream(f"run:{child.run_id}")]
    claim = child.claim(target, [prefix(child, events)])
    dead.ledger.execute(claim)
    dead.ledger.execute(target.start(claim.claimed))
    dead.dies()
    next_()
    assert next_.repaired == ["t-b", "r-a"]


def test_parents_that_name_each_other_are_repaired_all_the_same(dead: Life, next_: Life) -> None:
    a, b = dead.facts("a", "r-a"), dead.facts("b", "r-b")
    dead.opens("a", child_of=b)
    dead.opens("b", child_of=a)
    dead.dies()
    assert next_().runs_closed == 2


# ---- damage ----------------------------------------------------------------------------------------------------------


def damage(life: Life, session: str) -> None:
    """A run whose second event answers a call that was never made, written by somebody who went past the ledger."""
    r = life.facts(session, f"r-{session}")
    r.step("x")
    session_events = sealed([r.session_opened(), r.admitted()])
    run = sealed([r.opened(), r.refusal("x")])
    life.world.events.append([Commit(OwnerGuard(*r.guard), (*session_events, *run))])


def test_a_damaged_session_is_named_and_left_untouched_while_the_others_come_up(
    world: World, dead: Life, next_: Life
) -> None:
    for session in "ac":
        dead.opens(session)
    damage(dead, "b")
    dead.dies()
    before, owned = all_bytes(world)["run:r-b"], owner(world, "b")
    report = next_()
    assert (report.runs_closed, report.quarantined_count) == (2, 1)
    (quarantined,) = report.quarantined
    assert (quarantined.session_id, quarantined.kind) == ("b", RepairKind.QUARANTINED)
    assert quarantined.code is ParkReason.RUNTIME_LEDGER_UNREADABLE
    assert quarantined.detail
    assert (all_bytes(world)["run:r-b"], owner(world, "b")) == (before, owned)
    assert next_() == RepairReport(quarantined=[quarantined], quarantined_count=1)


def test_a_claim_whose_source_is_damaged_is_left_untouched(memory: World, host: MemoryHost) -> None:
    dead, next_ = Life(memory, host), Life(memory, host)
    dead.claims("a")
    dead.dies()
    assert isinstance(memory.store, MemoryStore)
    tables = memory.store._tables
    row = tables.streams["run:r-a"][0]
    tables.records[row] = tables.records[row]._replace(state=tables.records[row].state.replace(b"2026", b"2027"))
    owned = owner(memory, "a")
    for _ in range(2):
        assert [one.session_id for one in next_().quarantined] == ["a"]
    assert (owner(memory, "a"), memory.topics("run:t-a")) == (owned, [])


def test_a_run_that_was_admitted_and_that_no_claim_names_is_named_at_each_start(
    world: World, dead: Life, next_: Life
) -> None:
    """Written by somebody who went past the ledger, which admits and opens in one commit."""
    r = dead.facts("a", "r-a")
    events = sealed([r.session_opened(), r.admitted(RunKind.CONTINUATION, claim_id="claim")])
    world.events.append([Commit(OwnerGuard(*r.guard), tuple(events))])
    dead.dies()
    for _ in range(2):
        (quarantined,) = next_().quarantined
        assert (quarantined.session_id, quarantined.code) == ("a", ParkReason.SOURCE_RUN_UNREADABLE)


def test_a_damaged_run_that_a_person_gave_up_is_not_open(world: World, dead: Life, next_: Life) -> None:
    damage(dead, "a")
    r = dead.facts("a", "r-a")
    fact = r.fact(RunAbandoned, run_id=r.run_id, by="Ada", note="", last_good_sequence=2)
    dead.ledger.execute(AbandonRun(*r.guard, run_id=r.run_id, abandoned=fact))
    dead.dies()
    assert next_() == RepairReport(nothing_open=1)
    assert owner(world, "a").incarnation_id is None


def test_damage_that_is_met_while_writing_quarantines_that_session_alone(world: World, dead: Life, next_: Life) -> None:
    for session in "abc":
        dead.opens(session)
    dead.dies()
    world.events.damage_next()
    report = next_()
    assert (report.runs_closed, report.quarantined_count) == (2, 1)
    assert sorted(len(found) for found in endings(world).values()) == [0, 1, 1]
    (quarantined,) = report.quarantined
    dead_owner = dead.ownership.incarnation.incarnation_id
    assert owner(world, quarantined.session_id).incarnation_id == dead_owner  # so the next start looks at it, too
    assert next_().runs_closed == 1


def test_a_run_behind_which_an_event_is_missing_is_named_at_each_start_and_left_untouched(
    tmp_path: Path, host: MemoryHost
) -> None:
    with closing(World("sqlite", tmp_path)) as world:
        dead = Life(world, host)
        r = dead.opens("a", "x")
        dead.ledger.execute(r.prepare(r.dispatch("x")))
        dead.opens("b")
        dead.dies()
        delete_newest(tmp_path / "store.sqlite", "tool.dispatched.v1", "a")
        owned = owner(world, "a")
        for runs_closed in (1, 0):
            life = Life(world, host)
            report = life()
            assert (report.runs_closed, [one.session_id for one in report.quarantined]) == (runs_closed, ["a"])
            assert owner(world, "a") == owned
            life.dies()


def test_what_is_damaged_while_this_process_owns_it_is_not_kept_by_it(world: World, next_: Life) -> None:
    damage(next_, "a")
    assert next_().quarantined_count == 1
    assert owner(world, "a").incarnation_id is None


@pytest.mark.parametrize("failing", [1, 2])
def test_where_giving_up_fails_nothing_stays_in_use_and_what_was_closed_is_told_once(
    world: World, dead: Life, next_: Life, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """What waits for its automatic try would be busy for as long as the host lives."""
    for session in "ab":
        dead.opens(session)
    dead.claims("c")
    dead.dies()
    release_all, failures = world.owners.release_all, iter(range(failing))

    def fails_at_first(rows: Sequence[Ownership]) -> Sequence[bool]:
        if next(failures, None) is not None:
            raise StoreUnavailable("it is locked")
        return release_all(rows)

    monkeypatch.setattr(next_.ownership._owners, "release_all", fails_at_first)
    report = RepairReport()

    def awaited(one: Repaired) -> bool:
        return one.session_id == "a" and is_tried(one)

    steps = list(next_.everything.steps(report, awaited))
    if report.failed:
        steps += list(next_.everything.again(report, awaited))
    assert [one.session_id for step in steps for one in step.repaired if awaited(one)] == ["a"]
    assert report == RepairReport(runs_closed=2, claims_repaired=1)
    assert not any(next_.ownership.in_use(SessionId(name)) for name in "abc")
    me = next_.ownership.incarnation.incarnation_id
    assert [owner(world, name).incarnation_id for name in "abc"] == [me, None, None]


def test_of_very_many_damaged_sessions_all_are_counted_and_some_are_named(
    dead: Life, next_: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair_report, "NAMED_MAX", 2)
    for session in "abc":
        damage(dead, session)
    dead.dies()
    report = next_()
    assert (report.quarantined_count, [one.session_id for one in report.quarantined]) == (3, ["a", "b"])


FAILURES: dict[str, Callable[[World], None]] = {
    "its commit is lost": lambda world: world.fail_commit(stored=False),
    "its commit is kept and nobody knows": lambda world: world.fail_commit(stored=True),
    "there is no room": lambda world: world.fill_up(),
}


def check_all_repaired(world: World, sessions: int) -> None:
    assert set(map(tuple, endings(world).values())) == {("app_restarted",)}
    assert {owner(world, f"s{number:02}").incarnation_id for number in range(sessions)} == {None}
    assert world.consistent()


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("batches_before", [0, 1])
def test_a_batch_that_fails_once_is_repaired_session_by_session(
    world: World, dead: Life, next_: Life, small_batches: int, fail: Callable[[World], None], batches_before: int
) -> None:
    for number in range(3 * small_batches):
        dead.opens(f"s{number:02}", "x")
    dead.dies()
    world.events.before_append(lambda: fail(world), after=batches_before)
    report = next_()
    assert (report.failed, report.looked_at, report.taken_by_others) == ([], 3 * small_batches, 0)
    check_all_repaired(world, 3 * small_batches)


@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_a_session_that_fails_again_is_named_the_others_come_up_and_the_next_repair_tries_it_again(
    world: World, dead: Life, next_: Life, small_batches: int, fail: Callable[[World], None]
) -> None:
    for number in range(small_batches):
        dead.opens(f"s{number:02}", "x")
    dead.dies()
    world.events.before_append(lambda: world.fail_commit(stored=False))
    world.events.before_append(lambda: fail(world), after=2)  # the batch, the first session, the second
    report = next_()
    (failed,) = report.failed
    assert failed.session_id == "s01"
    assert failed.error.code in {"store_unavailable", "store_full"}
    assert report.runs_closed == small_batches - 1
    assert next_().looked_at == 1
    check_all_repaired(world, small_batches)


@pytest.mark.parametrize("name", ["its commit is lost", "there is no room"])
def test_when_one_after_another_fails_it_is_the_store_and_doing_it_again_finishes(
    world: World, dead: Life, next_: Life, small_batches: int, name: str
) -> None:
    for number in range(3 * small_batches):
        dead.opens(f"s{number:02}", "x")
    dead.dies()
    for place in range(1 + repair_everything.FAILURES_MAX):  # the second batch, and then its sessions
        world.events.before_append(lambda: FAILURES[name](world), after=1 + place)
    with pytest.raises(StoreError):
        next_()
    next_()
    check_all_repaired(world, 3 * small_batches)


def test_sessions_that_fail_with_others_between_them_are_each_named(
    world: World, dead: Life, next_: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2 * repair_everything.FAILURES_MAX):
        dead.opens(f"s{number}")
    dead.dies()
    append = world.events.append

    def every_second_one(commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        if any(int(commit.guard.session_id[1:]) % 2 for commit in commits):
            raise StoreUnavailable("database is locked")
        return append(commits)

    monkeypatch.setattr(world.events, "append", every_second_one)
    report = next_()
    assert report.runs_closed == repair_everything.FAILURES_MAX
    assert [one.session_id for one in report.failed] == ["s1", "s3", "s5"]


def test_a_session_whose_owner_cannot_be_read_is_quarantined_alone(world: World, dead: Life, next_: Life) -> None:
    for session in "abc":
        dead.opens(session)
    dead.dies()
    take_all = world.owners.take_all

    def damaged(incarnation_id: IncarnationId, seen: Sequence[Ownership]) -> Sequence[Ownership | None]:
        if any(row.session_id == "b" for row in seen):
            raise StoreDamaged("a control row is not what was written")
        return take_all(incarnation_id, seen)

    world.owners.take_all = damaged  # type: ignore[method-assign]
    report = next_()
    assert (report.runs_closed, [one.session_id for one in report.quarantined]) == (2, ["b"])


def test_a_store_that_may_not_be_written_is_told_as_such(memory: World, host: MemoryHost) -> None:
    dead, next_ = Life(memory, host), Life(memory, host)
    dead.opens("a")
    dead.dies()
    _ = next_.ownership.incarnation
    assert isinstance(memory.store, MemoryStore)
    memory.store.distrust(Trust.COPIED)
    with pytest.raises(StoreNotAdopted):
        next_()
    assert endings(memory) == {"run:r-a": []}


# ---- in bounded batches, once ----------------------------------------------------------------------------------------


def test_no_transaction_closes_more_than_a_batch_and_each_is_reported(
    world: World, dead: Life, next_: Life, small_batches: int
) -> None:
    """However many are interrupted, each batch costs three transactions (field report r3-153)."""
    for number in range(2 * small_batches + 1):
        dead.opens(f"s{number}")
    dead.dies()
    world.events.groups.clear()
    seen: list[tuple[int, int]] = []

    def progress(step: RepairStep) -> None:
        seen.append((len(step.repaired), step.report.looked_at))

    next_(progress)
    assert world.events.groups == [4, 4, 1]
    assert seen == [(4, 4), (4, 8), (1, 9)]


def test_repairing_twice_is_repairing_once(world: World, dead: Life, next_: Life) -> None:
    dead.opens("a", "x")
    dead.claims("b")
    dead.dies()
    next_()
    before = all_bytes(world)
    assert next_() == RepairReport()
    assert all_bytes(world) == before


def test_repair_that_died_half_way_is_finished_by_the_next(
    world: World, host: MemoryHost, dead: Life, small_batches: int
) -> None:
    for number in range(3 * small_batches):
        dead.opens(f"s{number:02}", "x")
    dead.dies()
    second = Life(world, host)
    steps = second.everything.steps(RepairReport())
    next(steps)
    second.dies()
    assert Life(world, host)().runs_closed == 2 * small_batches
    assert set(map(tuple, endings(world).values())) == {("app_restarted",)}


@pytest.mark.parametrize("at", ["taken", "written"])
def test_repair_that_died_within_a_batch_is_finished_by_the_next(
    world: World, host: MemoryHost, dead: Life, at: str
) -> None:
    class Killed(BaseException):
        """As a kill, nothing is cleaned up after."""

    def kill(*_: object) -> None:
        raise Killed

    for session in "abc":
        dead.opens(session, "x")
    dead.dies()
    second = Life(world, host)
    if at == "taken":
        second.ledger.execute_all = kill  # type: ignore[method-assign, assignment]
    else:
        second.ownership.release_all = kill  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        second()
    second.dies()
    report = Life(world, host)()
    assert (report.runs_closed, report.nothing_open) == ((3, 0) if at == "taken" else (0, 3))
    assert set(map(tuple, endings(world).values())) == {("app_restarted",)}


def test_two_that_start_together_repair_each_session_once(
    world: World, host: MemoryHost, dead: Life, small_batches: int
) -> None:
    for number in range(6 * small_batches):
        dead.opens(f"s{number:02}", "x")
    dead.dies()
    two = [Life(world, host, world.store.events) for _ in range(2)]
    reports: list[RepairReport] = []
    start = threading.Barrier(2)

    def run(life: Life) -> None:
        start.wait()
        reports.append(life())

    threads = [threading.Thread(target=run, args=(life,)) for life in two]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sum(report.runs_closed for report in reports) == 6 * small_batches
    assert set(map(tuple, endings(world).values())) == {("app_restarted",)}
    assert world.consistent()


def test_whoever_comes_in_between_takes_what_is_not_taken_yet(world: World, host: MemoryHost, dead: Life) -> None:
    for session in "abc":
        dead.opens(session, "x")
    dead.dies()
    one, two = Life(world, host), Life(world, host, world.store.events)
    read_anew = one.ledger.read_anew

    def interposed(sessions: Iterator[SessionId]) -> object:
        damaged = read_anew(sessions)
        two.ownership.release(two.ownership.own(SessionId("b")))
        return damaged

    one.ledger.read_anew = interposed  # type: ignore[method-assign, assignment]
    report = one()
    assert (report.runs_closed, report.taken_by_others) == (2, 1)
    assert endings(world)["run:r-b"] == []


def test_whoever_takes_a_session_over_at_the_last_moment_has_it(world: World, host: MemoryHost, dead: Life) -> None:
    for session in "abc":
        dead.opens(session, "x")
    dead.dies()
    one, two = Life(world, host), Life(world, host)

    def take_over() -> None:
        row = owner(world, "b")
        assert world.owners.take(row.session_id, two.ownership.incarnation.incarnation_id, row) is not None

    world.events.before_append(take_over)
    report = one()
    assert (report.runs_closed, report.taken_by_others, report.failed) == (2, 1, [])
    assert endings(world)["run:r-b"] == []
    assert owner(world, "b").incarnation_id == two.ownership.incarnation.incarnation_id


def test_what_others_wrote_since_this_process_last_looked_is_read_anew(
    world: World, host: MemoryHost, dead: Life, next_: Life
) -> None:
    first = next_.opens("a", "x")
    next_.ownership.release(next_.ownership.own(SessionId("a")))
    taken = dead.facts("a", "r-a")
    first.incarnation_id, first.epoch = taken.incarnation_id, taken.epoch
    dead.ledger.execute(first.refuse(first.refusal("x")))
    dead.dies()
    assert next_().runs_closed == 1
    assert world.topics("run:r-a").count("tool.responded.v1") == 1
    assert world.consistent()


def test_a_run_that_others_began_since_this_process_last_looked_is_found(world: World, dead: Life, next_: Life) -> None:
    first = next_.opens("a")
    next_.ledger.execute(first.end(RunStatus.COMPLETED))
    next_.ownership.release(next_.ownership.own(SessionId("a")))
    dead.ledger.execute(dead.facts("a", "later").open_run())
    dead.dies()
    assert next_().runs_closed == 1
    assert endings(world)["run:later"] == RESTARTED
