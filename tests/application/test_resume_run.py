"""Resuming: plan, revalidate, claim, start, and only then the provider; once for every boundary. SPEC section 14."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Continued, Parked
from safepoint.application.run_agent import Screen
from safepoint.domain.commands import AppendLate
from safepoint.domain.errors import StoreError, StoreFull, StoreUnavailable, WriteRefused
from safepoint.domain.events.model import HostMessage, ModelStepCompleted
from safepoint.domain.events.outside import PermissionDecided, PermissionRequested, WorkspaceRenewed
from safepoint.domain.events.run import ContinuationStarted, RunClaimed, RunEnded, RunOpened, RunStatus, StartKind
from safepoint.domain.events.session import GrantPosted, GrantsTaken, NoticePosted, NoticesTaken, RunAdmitted
from safepoint.domain.events.tool import ToolDispatched
from safepoint.domain.identifiers import GrantId, NoticeId, RunId, SessionId
from safepoint.domain.planning.facts import Drift
from safepoint.domain.reasons import FailureClass, ParkReason, RevalidationCode, WriteRefusal
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.incarnations import Liveness
from safepoint.ports.lifecycle_sink import LifecycleKind
from safepoint.ports.model_provider import ProviderProfile
from safepoint.ports.store_keeping import Trust
from safepoint.ports.tool_catalog import ToolSpec

from .counted_tools import Counted
from .ledger_world import STORES
from .resuming import (
    ACT,
    END,
    T2,
    Killed,
    Resuming,
    WatchedStore,
    admitted,
    aside,
    claims,
    effects_of,
    failed,
    killed,
    killing,
    requests,
    shown,
    written,
)
from .wiring import SESSION, WORKSPACE, Process, World, check_sound, go

P = ParkReason
C = RevalidationCode


@pytest.fixture(params=STORES)
def watched(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WatchedStore]:
    store = WatchedStore(request.param, tmp_path)
    yield store
    store.close()


# The order.


def test_it_plans_looks_again_claims_starts_and_only_then_asks_the_provider(watched: WatchedStore) -> None:
    world, act = watched.world(), Counted()
    source = failed(world, [act.function])
    process = Resuming(world)
    agent = process.agent([says("done")], [act.function])
    order: list[tuple[str, int]] = []
    process.failpoints.at_hit = lambda point: order.append((point, requests(agent)))
    done = process.continues(agent)
    assert order[:2] == [(Failpoint.CLAIM_COMMITTED, 0), (Failpoint.START_COMMITTED, 0)]
    assert [event.kind for event in process.sink.events] == [
        LifecycleKind.PLAN_APPROVED,
        LifecycleKind.EXECUTION_STARTED,
        LifecycleKind.EXECUTION_COMPLETED,
    ]
    wrote = [[event.event.topic for event in commit.events] for commit in process.events_store.commits]
    assert wrote[0] == [RunClaimed.topic, RunAdmitted.topic]
    assert wrote[1][0] == ContinuationStarted.topic
    assert (done.source_run_id, done.outcome.status) == (source, RunStatus.COMPLETED)
    assert requests(agent) == 1
    assert process.owner() is None
    check_sound(process, done.run_id)


@pytest.mark.parametrize("topic", [RunClaimed.topic, ContinuationStarted.topic])
@pytest.mark.parametrize("failure", [Failure.UNAVAILABLE, Failure.FULL, None])
def test_a_step_that_fails_means_that_the_provider_is_not_asked(topic: str, failure: Failure | None) -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    for _ in range(2):  # once more where the attempt finds out what was kept
        process.events_store.fail_at(topic, failure)
    agent = process.agent([], [act.function])
    with pytest.raises((StoreUnavailable, StoreFull, WriteRefused)):
        process.resumes(agent)
    assert requests(agent) == 0
    process.die()
    later = Resuming(world)
    again = later.agent([says("done")], [act.function])
    later.continues(again)
    assert (requests(again), act.calls) == (1, [1])


def test_a_repair_that_fails_means_that_nothing_is_claimed() -> None:
    world = World()
    killed(world, [])
    process = Resuming(world)
    process.events_store.fail_at(END, Failure.FULL)
    agent = process.agent([])
    with pytest.raises(StoreError):
        process.resumes(agent)
    assert (requests(agent), claims(process)) == (0, [])


# The second look.


class Changing:
    """A world with a failed run, and what may happen between the two looks."""

    def __init__(self) -> None:
        self.ids = KnownIds()
        self.world = World(ids=self.ids)
        self.act = Counted()
        self.model = ChangingModel([])
        self.catalog = ChangingCatalog([self.act.function])
        self.gate = ScriptedGate({})
        self.source = RunId("")
        self.process = Resuming(self.world)

    def nothing(self) -> None:
        """The control: nothing changes."""

    def workspace_gone(self) -> None:
        self.world.workspaces.move_folder(WORKSPACE, "/elsewhere")

    def workspace_replaced(self) -> None:
        self.workspace_gone()
        self.world.workspaces.make_folder(WORKSPACE)
        self.world.workspaces.ensure(WORKSPACE)

    def workspace_unreadable(self) -> None:
        self.world.workspaces.make_unreadable(WORKSPACE)

    def used_tool_gone(self) -> None:
        self.catalog.now = FunctionCatalog([])

    def tool_added(self) -> None:
        def more() -> str:
            """More."""
            return ""

        self.catalog.now = FunctionCatalog([self.act.function, more])

    def model_changed(self) -> None:
        self.model._profile = ProviderProfile("planned", "another")

    def source_damaged(self) -> None:
        tables = self.world.store._tables
        row = tables.streams[f"run:{self.source}"][1]
        tables.records[row] = tables.records[row]._replace(state=b"{}")

    def tail_lost(self) -> None:
        self.world.store.distrust(Trust.BEHIND_ANCHOR)

    def target_id_taken(self) -> None:
        self.ids.again = [self.ids.given[-1]]
        other = Process(self.world)
        go(partial(other.turn, "go", [says("done")], session_id=SessionId("s2")))

    def claimed_by_another(self) -> None:
        self.process.die()
        another = Resuming(self.world)
        another.is_killed(another.agent([], [self.act.function]), at=Failpoint.CLAIM_COMMITTED)

    def started_by_another(self) -> None:
        self.process.die()
        another = Resuming(self.world)
        another.is_killed(another.agent([], [self.act.function]), at=Failpoint.START_COMMITTED)

    def continued_by_another(self) -> None:
        self.process.die()
        another = Resuming(self.world)
        another.continues(another.agent([says("done")], [self.act.function]))

    def new_turn_by_another(self) -> None:
        self.process.die()
        go(partial(Process(self.world).turn, "and now?", [says("done")], [self.act.function]))


class KnownIds(Uuid7Ids):
    """Remembers the run ids that it gave, and can give some again."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []
        self.again: list[str] = []

    def fresh(self, kind: Any) -> Any:
        made = kind(self.again.pop()) if kind is RunId and self.again else super().fresh(kind)
        if kind is RunId:
            self.given.append(made)
        return made


class ChangingModel(PlannedModel):
    """A model whose profile a test changes."""


class ChangingCatalog(FunctionCatalog):
    """A catalog that a test changes."""

    def __init__(self, functions: list[Callable[..., Any]]) -> None:
        super().__init__(functions)
        self.now: FunctionCatalog | None = None

    def tools(self) -> tuple[ToolSpec, ...]:
        return tuple(super().tools() if self.now is None else self.now.tools())


CHANGES: list[tuple[Callable[[Changing], None], tuple[RevalidationCode, ...], ParkReason | None]] = [
    (Changing.workspace_gone, (C.WORKSPACE_IDENTITY_CHANGED,), P.WORKSPACE_IDENTITY_MISSING),
    (Changing.workspace_replaced, (C.WORKSPACE_IDENTITY_CHANGED,), P.WORKSPACE_IDENTITY_MISMATCH),
    (Changing.workspace_unreadable, (C.WORKSPACE_IDENTITY_CHANGED,), P.SAFETY_OBSERVATION_UNAVAILABLE),
    (Changing.used_tool_gone, (C.TOOL_CATALOG_CHANGED,), P.TOOL_CATALOG_MISMATCH),
    (Changing.tool_added, (C.TOOL_CATALOG_CHANGED,), None),
    (Changing.model_changed, (C.EXECUTION_PROFILE_CHANGED,), P.EXECUTION_PROFILE_MISMATCH),
    (Changing.source_damaged, (C.SOURCE_LEDGER_IDENTITY_CHANGED,), P.RUNTIME_LEDGER_UNREADABLE),
    (Changing.tail_lost, (C.SOURCE_LEDGER_IDENTITY_CHANGED,), P.LEDGER_BEHIND_ANCHOR),
    (Changing.target_id_taken, (C.TARGET_RUN_CONFLICT,), P.CONTINUATION_IDENTITY_REUSED),
    (Changing.claimed_by_another, (C.CONTINUATION_CLAIM_CONFLICT,), P.CONTINUATION_CLAIM_REPAIR_REQUIRED),
    (Changing.started_by_another, (C.CONTINUATION_CLAIM_CONFLICT,), P.CONTINUATION_ALREADY_EXISTS),
    (Changing.continued_by_another, (C.CONTINUATION_CLAIM_CONFLICT,), P.CONTINUATION_ALREADY_EXISTS),
    (Changing.new_turn_by_another, (C.CONTINUATION_CLAIM_CONFLICT,), P.SOURCE_SUPERSEDED),
]


@pytest.mark.parametrize(("change", "changed", "reason"), CHANGES, ids=[one[0].__name__ for one in CHANGES])
def test_what_changes_between_the_two_looks_is_a_code_and_no_retry(
    change: Callable[[Changing], None], changed: tuple[RevalidationCode, ...], reason: ParkReason | None
) -> None:
    there = Changing()
    there.source = failed(there.world, [there.act.function])
    process = there.process = Resuming(there.world, between_looks=lambda: aside(partial(change, there)))
    agent = process.agent(there.model, there.catalog)
    parked = process.parks(agent)
    assert parked.changed == changed
    assert reason in parked.codes if reason is not None else parked.codes == ()
    assert process.events_store.commits == [], "nothing was claimed"


def test_a_world_that_does_not_change_between_the_two_looks_lets_it_go_on() -> None:
    there = Changing()
    failed(there.world, [there.act.function])
    process = Resuming(there.world, between_looks=there.nothing)
    process.continues(process.agent([says("done")], there.catalog))


def test_a_question_that_is_decided_between_the_two_looks_changes_the_source() -> None:
    world, act, gate = World(), Counted(), ScriptedGate({})
    source = asking(world, act, gate)
    decider: list[Resuming] = []
    process = Resuming(world, between_looks=lambda: aside(lambda: decide(decider[0], source)))
    decider.append(process)
    agent = process.agent([], [act.function], gate)
    parked = process.parks(agent, PlanRequest(drop_permissions=True))
    assert C.SOURCE_HIGH_WATER_CHANGED in parked.changed
    assert claims(process) == []


def test_a_switch_that_is_turned_off_between_the_two_looks_is_heard() -> None:
    there, on = Changing(), [True]
    failed(there.world, [there.act.function])
    process = Resuming(there.world, between_looks=on.clear)
    process.plan._feature_enabled = lambda: bool(on)
    parked = process.parks(process.agent([], there.catalog))
    assert (parked.changed, parked.codes) == ((C.EXECUTION_PROFILE_CHANGED,), (P.RESUME_FEATURE_DISABLED,))


# Killed on the way.


def test_killed_between_claim_and_start_the_target_is_closed_without_a_request_and_is_what_goes_on(
    watched: WatchedStore,
) -> None:
    world, act = watched.world(), Counted()
    source = failed(world, [act.function])
    first = Resuming(world)
    agent = first.agent([], [act.function])
    first.is_killed(agent, at=Failpoint.CLAIM_COMMITTED)
    target = first.head()
    second = Resuming(world)
    going_on = second.agent([says("done")], [act.function])
    done = second.continues(going_on)
    (started,) = second.of(target, ContinuationStarted)
    (ended,) = second.of(target, RunEnded)
    assert started.kind is StartKind.CLAIM_REPAIR
    assert ended.failure_class == FailureClass.CONTINUATION_ABANDONED_BEFORE_PROVIDER_DISPATCH
    assert second.topics(target) == ["continuation.started", "run.ended", "run.claimed"]
    assert (requests(agent), requests(going_on)) == (0, 1)
    assert admitted(second) == [source, target, done.run_id]
    assert [claim.run_id for claim in claims(second)] == [source, target]
    assert (done.source_run_id, act.calls) == (target, [1])
    assert [kind for kind, _ in shown(going_on)] == ["user", "call", "result"]
    late = Resuming(world)
    parked = late.parks(late.agent([], [act.function]), PlanRequest(run_id=source))
    assert {P.SOURCE_SUPERSEDED, P.CONTINUATION_ALREADY_EXISTS} <= set(parked.codes)


def test_a_process_that_fails_between_claim_and_start_keeps_the_session_and_repairs_its_own_claim() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    process.failpoints.at_hit = killing(Failpoint.CLAIM_COMMITTED)
    agent = process.agent([], [act.function])
    with pytest.raises(Killed):
        process.resumes(agent)
    assert process.owner() == process.ownership.incarnation.incarnation_id, "an unstarted claim is not given up"
    other = Resuming(world)
    assert other.parks(other.agent([], [act.function])).codes == (P.SESSION_BUSY,)
    process.failpoints.at_hit = lambda point: None
    process.continues(process.agent([says("done")], [act.function]))
    assert (requests(agent), process.owner()) == (0, None)


@pytest.mark.parametrize("liveness", [Liveness.DEAD, Liveness.ALIVE, Liveness.COULD_NOT_LOOK])
def test_a_started_continuation_is_taken_over_from_the_dead_alone(watched: WatchedStore, liveness: Liveness) -> None:
    world, act = watched.world(), Counted()
    source = failed(world, [act.function])
    first = Resuming(world)
    first.is_killed(first.agent([], [act.function]), at=Failpoint.START_COMMITTED)
    target = first.head()
    if liveness is not Liveness.DEAD:
        first.incarnations.tell(first.ownership.incarnation, liveness)
    second = Resuming(world)
    agent = second.agent([says("done")], [act.function])
    if liveness is Liveness.DEAD:
        done = second.continues(agent)
        (ended,) = second.of(target, RunEnded)
        assert (ended.failure_class, ended.recovered) == (FailureClass.APP_RESTARTED, True)
        assert (done.source_run_id, requests(agent)) == (target, 1)
        return
    before = written(world)
    expected = P.SESSION_BUSY if liveness is Liveness.ALIVE else P.CONTINUATION_AUTHORITY_UNAVAILABLE
    assert second.parks(agent).codes == (expected,)
    assert P.CONTINUATION_STARTED_INDETERMINATE in second.parks(agent, PlanRequest(run_id=source)).codes
    assert written(world) == before


# A COMMIT in doubt.


@pytest.mark.parametrize("topic", [RunClaimed.topic, ContinuationStarted.topic])
@pytest.mark.parametrize("failures", [1, 2, 3])
@pytest.mark.parametrize("failure", [Failure.COMMIT_LOST, Failure.COMMIT_STORED])
def test_a_commit_in_doubt_is_gone_on_from_exactly_once_or_not_at_all(
    watched: WatchedStore, topic: str, failure: Failure, failures: int
) -> None:
    world, act = watched.world(), Counted()
    source = failed(world, [act.function])
    process = Resuming(world)
    for _ in range(failures):
        process.events_store.fail_at(topic, failure)
    agent = process.agent([says("done")], [act.function])
    # What was kept the first time is found by reading, and asks for no second commit.
    goes_on = failures == 1 or failure is Failure.COMMIT_STORED
    if goes_on:
        process.continues(agent)
    else:
        with pytest.raises(StoreUnavailable):
            process.resumes(agent)
        assert requests(agent) == 0
        process.events_store._failing.clear()
        process.continues(agent)
    assert (requests(agent), act.calls) == (1, [1])
    assert claims(process)[0].run_id == source
    assert len(process.of(process.head(), ContinuationStarted)) == 1
    check_sound(process, process.head())


# Two at once.

ALLOWED = {
    P.SESSION_BUSY,
    P.SOURCE_SUPERSEDED,
    P.CONTINUATION_ALREADY_EXISTS,
    P.RESUME_CANDIDATE_MISSING,
    P.CONTINUATION_CLAIM_REPAIR_REQUIRED,
}


@pytest.mark.parametrize("dead", [False, True])
def test_of_two_that_resume_at_every_instant_of_one_another_one_goes_on(*, tmp_path: Path, dead: bool) -> None:
    """At each access of the first to the store, the second resumes from its start to its end.

    With `dead` the first is then a ghost that everybody believes dead: the second takes over, and the ghost goes on.
    """
    instants = 0
    while interleaved(WatchedStore("memory", tmp_path), instants, dead=dead):
        instants += 1
    assert instants > 20


def interleaved(store: WatchedStore, instant: int, *, dead: bool) -> bool:
    """Answers whether the first made that many accesses."""
    world, act = store.world(), Counted()
    source = failed(world, [act.function])
    first, second = Resuming(world), Resuming(world)
    agents = [process.agent([says("done")], [act.function]) for process in (first, second)]
    outcomes: dict[int, Parked | Continued | WriteRefused] = {}

    def other() -> None:
        if dead:
            first.die()
        outcomes[1] = second.resumes(agents[1])

    store.at_access(instant, other)
    try:
        outcomes[0] = first.resumes(agents[0])
    except WriteRefused as refused:
        outcomes[0] = refused
    if store.waits:
        return False
    if isinstance(outcomes[0], WriteRefused):
        assert (outcomes[0].code, dead) == (WriteRefusal.OWNER_FENCED, True), instant
    ends = [one for one in outcomes.values() if isinstance(one, Continued) and one.outcome.failure is None]
    assert len(ends) == 1, (instant, outcomes)
    for outcome in outcomes.values():
        if isinstance(outcome, Parked):
            assert outcome.codes, (instant, outcome)
            assert set(outcome.codes) <= ALLOWED, (instant, outcome)
    asked = [one.run_id for agent in agents for one in agent.provider.asked]  # type: ignore[attr-defined]
    assert len(set(asked)) == len(asked), "no run asks for the same step twice"
    if not dead:
        assert len(asked) == 1, (instant, asked)
        assert admitted(first) == [source, ends[0].run_id]
    chain = claims(first)
    assert len({claim.boundary_digest for claim in chain}) == len(chain)
    steps = {run: len(first.of(run, ModelStepCompleted)) for run in admitted(first)[1:]}
    assert steps[ends[0].run_id] == 1, (instant, steps)
    assert max(steps.values()) == 1, (instant, steps)
    assert admitted(first)[-1] == ends[0].run_id
    assert act.calls == [1]
    for run_id in admitted(first):
        check_sound(first, run_id)
    return True


@pytest.mark.parametrize("point", [Failpoint.CLAIM_COMMITTED, Failpoint.START_COMMITTED, Failpoint.FIRST_STEP])
def test_at_each_point_of_one_that_lives_another_is_told(watched: WatchedStore, point: Failpoint) -> None:
    world, act = watched.world(), Counted()
    source = failed(world, [act.function])
    second, told = Resuming(world), []
    idle = second.agent([], [act.function])

    def other() -> None:
        told.append(second.parks(idle).codes)
        told.append(second.parks(idle, PlanRequest(run_id=source)).codes)

    first = Resuming(world, at_failpoint=lambda hit: aside(other) if hit == point else None)
    agent = first.agent([says("done")], [act.function])
    first.continues(agent)
    assert told[0] == (P.SESSION_BUSY,)
    assert {P.SOURCE_SUPERSEDED, P.SESSION_BUSY} < set(told[1])
    assert (requests(agent), requests(idle)) == (1, 0)


# Chains.


def test_three_continuations_of_each_of_two_turns_each_killed_end_with_every_effect_once(
    watched: WatchedStore,
) -> None:
    world, act = watched.world(), Counted()

    def agent_of(process: Resuming, *steps: Any) -> Any:
        return process.agent(list(steps), [act.function])

    def acts(n: int) -> Any:
        return calls(("act", {"n": n}))

    for turn in (1, 2):
        begins = Resuming(world)
        begins.is_killed_after_its_effect(
            lambda begins=begins, turn=turn: go(  # type: ignore[misc]
                partial(begins.turn, f"turn {turn}", [acts(10 * turn), says("lost")], [act.function])
            )
        )
        for generation in (1, 2):
            goes = Resuming(world)
            agent = agent_of(goes, acts(10 * turn + generation), says("lost"))
            goes.is_killed_after_its_effect(partial(goes.resumes, agent))
        unstarted = Resuming(world)
        unstarted.is_killed(agent_of(unstarted), at=Failpoint.CLAIM_COMMITTED)
        ends = Resuming(world)
        agent = agent_of(ends, acts(10 * turn + 3), says(f"done {turn}"))
        assert ends.continues(agent).outcome.status is RunStatus.COMPLETED
    assert act.calls == [10, 11, 12, 13, 20, 21, 22, 23]
    after = Resuming(world)
    asks = PlannedModel([says("bye")])
    go(partial(after.turn, "and?", asks, [act.function]))
    history = asks.asked[0].request.history
    said = [str(i.args["n"]) if i.kind == "call" else i.text if i.kind != "result" else i.result for i in history]  # type: ignore[index,call-overload]
    assert said == [
        *["turn 1", *_told(10), *_told(11), *_told(12), *_told(13), "done 1"],
        *["turn 2", *_told(20), *_told(21), *_told(22), *_told(23), "done 2"],
        "and?",
    ]
    assert len(effects_of(after)) == 8
    assert [len(claim.segments) for claim in claims(after)] == [1, 2, 3, 4] * 2
    for run_id in admitted(after):
        check_sound(after, run_id)


def _told(n: int) -> tuple[str, str]:
    return str(n), f"acted {n}"


# What the start takes over, and what the model is told.


def asking(world: World, act: Counted, gate: ScriptedGate) -> RunId:
    """A turn that was killed while its question was open, and repaired."""
    process = Process(world)
    for topic in (END, T2):
        process.events_store.fail_at(topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        go(partial(process.turn, "go", [ACT], [act.function], gate=gate))
    process.die()
    repairing = Resuming(world)
    owned = repairing.ownership.own(SESSION)
    repairing.repair(owned)
    repairing.ownership.release(owned)
    assert act.calls == []
    return process.head()


def decide(process: Resuming, run_id: RunId, *, owned: Any = None) -> GrantId:
    """Let a person decide the open question of an ended run."""
    (asked,) = process.of(run_id, PermissionRequested)
    row = process.world.store.owners.owner(SESSION)
    assert row is not None
    grant_id = process.world.ids.fresh(GrantId)
    said: dict[str, Any] = {"approved": True, "decided_by": "ada", "grant_id": grant_id}
    fact = PermissionDecided(**process.spines.run(asked.identity), request_id=asked.request_id, **said)
    grant = GrantPosted(
        **process.spines.session(SESSION),
        **{name: getattr(asked, name) for name in ("request_id", "tool_name", "call_id", "args_hash")},
        **said,
        contract_digest=asked.contract_digest,
        repeats=asked.repeats,
    )
    incarnation, epoch = (owned.incarnation_id, owned.epoch) if owned else (row.incarnation_id, row.epoch)
    assert incarnation is not None
    process.ledger.execute(AppendLate(SESSION, incarnation, epoch, run_id, fact, grant))
    return grant_id


def test_a_grant_is_taken_over_once_by_the_start_and_used() -> None:
    world, act, gate = World(), Counted(), ScriptedGate({})
    source = asking(world, act, gate)
    decider = Resuming(world)
    owned = decider.ownership.own(SESSION)
    grant_id = decide(decider, source, owned=owned)
    decider.ownership.release(owned)
    process = Resuming(world)
    agent = process.agent([ACT, says("done")], [act.function], gate)
    before = len(gate.asked)
    done = process.continues(agent)
    taken = [event for event in process.session_events() if isinstance(event, GrantsTaken)]
    assert [(one.run_id, tuple(one.grant_ids)) for one in taken] == [(done.run_id, (grant_id,))]
    assert [one.grant_id for one in process.of(done.run_id, ToolDispatched)] == [grant_id]
    assert (act.calls, len(gate.asked)) == ([1], before)


def test_dropped_questions_are_told_to_the_model() -> None:
    world, act, gate = World(), Counted(), ScriptedGate({})
    asking(world, act, gate)
    process = Resuming(world)
    agent = process.agent([says("done")], [act.function], gate)
    done = process.continues(agent, PlanRequest(drop_permissions=True))
    assert [told.sentence_id for told in process.of(done.run_id, HostMessage)] == ["permission_dropped"]
    assert shown(agent)[-1][0] == "host"


def test_accepted_drift_is_recorded_in_the_claim_and_told_to_the_model() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])

    def renamed(n: int) -> str:
        """Act."""
        return str(n)

    process = Resuming(world)
    agent = process.agent([says("done")], [renamed])
    assert process.parks(agent).codes == (P.TOOL_CATALOG_MISMATCH,)
    done = process.continues(agent, PlanRequest(accepted_drift=frozenset({Drift.TOOLS})))
    assert [tuple(claim.accepted_drift) for claim in claims(process)] == [("tools",)]
    (told,) = process.of(done.run_id, HostMessage)
    assert told.sentence_id == "drift_accepted"
    assert "act" in told.text
    assert shown(agent)[-1] == ("host", told.text)


def test_a_drift_that_is_not_there_is_not_recorded() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    done = process.continues(
        process.agent([says("done")], [act.function]), PlanRequest(accepted_drift=frozenset(Drift))
    )
    assert claims(process)[0].accepted_drift == ()
    assert process.of(done.run_id, HostMessage) == []


def test_notices_are_taken_over_once_by_the_first_start() -> None:
    """A repaired claim takes none: no model would hear it."""
    world, act = World(), Counted()
    post_notice(world, act)
    first = Resuming(world)
    first.is_killed(first.agent([], [act.function]), at=Failpoint.CLAIM_COMMITTED)
    second = Resuming(world)
    agent = second.agent([], [act.function])
    told = second.continues(agent)
    third = Resuming(world)
    again = third.agent([says("done")], [act.function])
    done = third.continues(again)
    taken = [event for event in third.session_events() if isinstance(event, NoticesTaken)]
    assert [one.run_id for one in taken] == [told.run_id]
    assert [len(third.of(run, HostMessage)) for run in (told.run_id, done.run_id)] == [1, 0]
    assert [kind for kind, _ in shown(agent)].count("host") == 1
    assert [kind for kind, _ in shown(again)].count("host") == 1, "it is in the history, and not said again"


def post_notice(world: World, act: Counted) -> None:
    """A failed turn, after which a person gave the workspace an identity: the next run must be told."""
    process = Resuming(world)
    run_id = failed(world, [act.function])
    owned = process.ownership.own(SESSION)
    (opened,) = process.of(run_id, RunOpened)
    identity = opened.identity
    here = world.workspaces.observe(WORKSPACE).identity  # type: ignore[union-attr]
    fact = WorkspaceRenewed(**process.spines.run(identity), from_identity=here, to_identity=here)
    notice = NoticePosted(
        **process.spines.session(SESSION),
        notice_id=world.ids.fresh(NoticeId),
        sentence_id="host_note",
        parameters={"text": "look again"},
    )
    process.ledger.execute(AppendLate(SESSION, owned.incarnation_id, owned.epoch, run_id, fact, None, notice))
    process.ownership.release(owned)


# Cancelled on the way.


def test_a_caller_who_gives_up_before_the_claim_leaves_nothing_behind() -> None:
    world, act = World(), Counted()
    source = failed(world, [act.function])
    scopes: list[anyio.CancelScope] = []
    process = Resuming(world, between_looks=lambda: scopes.pop().cancel())
    agent = process.agent([], [act.function])

    async def work() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await process.resume_run(SESSION, agent, Screen())

    go(work)
    assert (requests(agent), claims(process), process.owner()) == (0, [], None)
    assert process.topics(source)[-1] == "run.ended"


def test_a_caller_who_gives_up_after_the_claim_leaves_a_run_that_ends(watched: WatchedStore) -> None:
    world, act = watched.world(), Counted()
    failed(world, [act.function])
    scopes: list[anyio.CancelScope] = []
    process = Resuming(
        world, at_failpoint=lambda point: scopes[0].cancel() if point == Failpoint.CLAIM_COMMITTED else None
    )
    agent = process.agent([], [act.function])

    async def work() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await process.resume_run(SESSION, agent, Screen())

    go(work)
    process.die()
    later = Resuming(world)
    later.continues(later.agent([says("done")], [act.function]))
    for run_id in admitted(later):
        check_sound(later, run_id)
    assert act.calls == [1]
