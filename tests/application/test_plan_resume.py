"""Planning: what every gate is told of the world, and that looking tells what resuming does. SPEC section 13."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from safepoint.adapters.memory.model_provider import PlannedModel, Stall, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.memory.tables import Failure
from safepoint.application.plan_resume import PlanRequest, PlanResume
from safepoint.application.repair_preview import RepairPreview
from safepoint.domain.events.model import ModelStepCompleted
from safepoint.domain.events.run import RunOpened, Trigger
from safepoint.domain.events.tool import ToolDispatched
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.planning.facts import Drift
from safepoint.domain.planning.outcome import NoteCode, Park
from safepoint.domain.reasons import ParkReason
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.incarnations import Incarnation, Liveness
from safepoint.ports.model_provider import ProviderProfile
from safepoint.ports.store_keeping import Trust

from .counted_tools import Counted
from .ledger_world import STORES
from .resuming import (
    ACT,
    END,
    T2,
    Resuming,
    WatchedStore,
    admitted,
    codes,
    continuing,
    failed,
    killed,
    requests,
    shown,
    spoken,
    written,
)
from .wiring import SESSION, WORKSPACE, Process, World, beside, go, until

P = ParkReason


@pytest.fixture(params=STORES)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    store = WatchedStore(request.param, tmp_path)
    yield store.world()
    store.close()


def left_running(world: World) -> Process:
    """A process whose run is open; it lives until the test says otherwise."""
    process = Process(world)
    process.events_store.fail_at(END, Failure.UNAVAILABLE)
    with pytest.raises(Exception, match="not"):
        go(partial(process.turn, "go", [says("half")]))
    return process


def incarnation_of(process: Process) -> Incarnation:
    return process.ownership.incarnation


# What is left behind, and what both looking and resuming say of it.


def ended_badly(world: World, act: Counted) -> None:
    failed(world, [act.function])


def before_any_step(world: World, act: Counted) -> None:
    killed(world, [act.function], ModelStepCompleted.topic)


def before_t1(world: World, act: Counted) -> None:
    killed(world, [act.function], ToolDispatched.topic, ToolDispatched.topic, T2)


def before_t2(world: World, act: Counted) -> None:
    killed(world, [act.function], T2)


def before_its_end(world: World, act: Counted) -> None:
    killed(world, [act.function])


def claimed_only(world: World, act: Counted) -> None:
    failed(world, [act.function])
    process = Resuming(world)
    process.is_killed(process.agent([], [act.function]), at=Failpoint.CLAIM_COMMITTED)


def started_only(world: World, act: Counted) -> None:
    failed(world, [act.function])
    process = Resuming(world)
    process.is_killed(process.agent([], [act.function]), at=Failpoint.START_COMMITTED)


def completed(world: World, act: Counted) -> None:
    go(partial(Process(world).turn, "go", [says("done")], [act.function]))


def nothing(world: World, act: Counted) -> None:
    """No session at all."""


def owner_not_looked_at(world: World, act: Counted) -> None:
    owner = left_running(world)
    owner.incarnations.tell(incarnation_of(owner), Liveness.COULD_NOT_LOOK)


def owner_lives(world: World, act: Counted) -> None:
    left_running(world)


def starter_not_looked_at(world: World, act: Counted) -> None:
    claimed_only(world, act)
    owner = world.store.owners.owner(SESSION)
    assert owner is not None
    assert owner.incarnation_id is not None
    world.host.told[owner.incarnation_id] = Liveness.COULD_NOT_LOOK


LEFT: list[tuple[Callable[[World, Counted], None], tuple[ParkReason, ...]]] = [
    (ended_badly, ()),
    (before_any_step, ()),
    (before_t1, ()),
    (before_t2, (P.DANGLING_TOOL_STATE,)),
    (before_its_end, ()),
    (claimed_only, ()),
    (started_only, ()),
    (completed, (P.RESUME_CANDIDATE_MISSING,)),
    (nothing, (P.RESUME_CANDIDATE_MISSING,)),
    (owner_lives, (P.SESSION_BUSY,)),
    (owner_not_looked_at, (P.CONTINUATION_AUTHORITY_UNAVAILABLE,)),
    (starter_not_looked_at, (P.CONTINUATION_AUTHORITY_UNAVAILABLE,)),
]


@pytest.mark.parametrize(("leave", "expected"), LEFT, ids=[leave.__name__ for leave, _ in LEFT])
def test_what_is_planned_before_repair_is_what_a_resume_then_does(
    shared: World, leave: Callable[[World, Counted], None], expected: tuple[ParkReason, ...]
) -> None:
    act = Counted()
    leave(shared, act)
    before, effects = written(shared), list(act.calls)
    process = Resuming(shared)
    agent = process.agent([says("done")], [act.function])
    first, second = process.plans(agent), process.plans(agent)
    assert first == second
    assert codes(first.plan) == expected
    assert (written(shared), process.ownership.begun) == (before, False)
    if expected:
        parked = process.parks(agent)
        assert parked.codes == expected
        assert isinstance(first.plan, Park)
        assert first.repair_pending is (leave is before_t2), "only what may be repaired is waited for"
        if not first.repair_pending:
            assert parked.reasons == first.plan.reasons
            assert (written(shared), process.ownership.begun) == (before, False)
    else:
        plan = continuing(first.plan)
        assert first.repair_pending is (leave is not ended_badly)
        done = process.continues(agent)
        assert done.source_run_id == plan.source.run_id
        claimed = process.segment(done.source_run_id).claimed
        assert claimed is not None
        assert [(one.run_id, one.high_water) for one in claimed.segments] == [
            (one.run_id, one.high_water) for one in plan.segments
        ]
        assert shown(agent) == spoken(plan.replay.items)
        assert done.notes == plan.notes
    assert act.calls == effects


def test_what_a_plan_calls_the_continuation_is_the_same_for_the_same_boundary_and_taken_by_nobody() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    agent = process.agent([says("done")], [act.function])
    planned = continuing(process.plans(agent).plan)
    done = process.continues(agent)
    assert planned.target.run_id != done.run_id
    assert planned.target.run_id not in admitted(process)


def test_a_session_that_this_very_process_works_on_is_busy() -> None:
    world, act = World(), Counted()
    process = Resuming(world)
    seen: list[tuple[ParkReason, ...]] = []

    def look(point: str) -> None:
        if point == Failpoint.STEP_RECORDED:
            planned = process.plans(process.agent([], [act.function]))
            seen.append(codes(planned.plan))
            assert not planned.repair_pending

    process.failpoints.at_hit = look
    go(partial(process.turn, "go", [ACT, says("done")], [act.function]))
    assert set(seen) == {(P.SESSION_BUSY,)}


def test_a_run_of_this_process_whose_task_has_ended_is_planned_as_repair_would_leave_it() -> None:
    world = World()
    process = Resuming(world)
    process.events_store.fail_at(END, Failure.UNAVAILABLE)
    with pytest.raises(Exception, match="not"):
        go(partial(process.turn, "go", [says("half")]))
    planned = process.plans(process.agent([]))
    assert planned.repair_pending
    continuing(planned.plan)


# Gates, one by one.


def test_the_feature_can_be_switched_off_and_deletes_nothing() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process, on = Resuming(world), [False]
    plan = PlanResume(
        process.events_store,
        process.ownership,
        process.over,
        world.workspaces,
        RepairPreview(world.jobs),
        feature_enabled=lambda: on[0],
    )
    process.resume_run._plan = plan
    agent, before = process.agent([says("done")], [act.function]), written(world)
    assert codes(plan(SESSION, agent, PlanRequest()).plan) == (P.RESUME_FEATURE_DISABLED,)
    assert process.parks(agent).codes == (P.RESUME_FEATURE_DISABLED,)
    assert written(world) == before
    on[0] = True
    process.continues(agent)


def test_a_run_behind_the_head_is_superseded_and_the_answer_names_its_descendant() -> None:
    world, act = World(), Counted()
    first = failed(world, [act.function])
    later = failed(world, [act.function])
    process = Resuming(world)
    plan = process.plans(process.agent([], [act.function]), PlanRequest(run_id=first)).plan
    assert isinstance(plan, Park)
    assert plan.codes == (P.SOURCE_SUPERSEDED,)
    assert plan.reasons[0].detail == {"run": first, "descendant": later}
    assert process.parks(process.agent([], [act.function]), PlanRequest(run_id=first)).reasons == plan.reasons


@pytest.mark.parametrize(
    ("at", "dead", "expected"),
    [
        (Failpoint.CLAIM_COMMITTED, True, P.CONTINUATION_CLAIM_REPAIR_REQUIRED),
        (Failpoint.START_COMMITTED, False, P.CONTINUATION_STARTED_INDETERMINATE),
        (Failpoint.START_COMMITTED, True, P.CONTINUATION_ALREADY_EXISTS),
    ],
)
def test_a_source_that_was_claimed_says_how_far_its_continuation_came(
    at: Failpoint, expected: ParkReason, *, dead: bool
) -> None:
    world, act = World(), Counted()
    source = failed(world, [act.function])
    starter = Resuming(world)
    starter.is_killed(starter.agent([], [act.function]), at=at)
    if not dead:
        starter.incarnations.tell(incarnation_of(starter), Liveness.COULD_NOT_LOOK)
    process = Resuming(world)
    plan = process.plans(process.agent([], [act.function]), PlanRequest(run_id=source)).plan
    assert expected in codes(plan)
    assert P.SOURCE_SUPERSEDED in codes(plan)
    assert process.parks(process.agent([], [act.function]), PlanRequest(run_id=source)).codes == codes(plan)


@pytest.mark.parametrize(
    ("off", "expected"), [(0, ()), (1, (P.RUNTIME_OFFSET_MISMATCH,)), (-1, (P.RUNTIME_OFFSET_MISMATCH,))]
)
def test_a_caller_that_saw_another_high_water_is_told(off: int, expected: tuple[ParkReason, ...]) -> None:
    world, act = World(), Counted()
    killed(world, [act.function])
    process = Resuming(world)
    agent = process.agent([says("done")], [act.function])
    found = continuing(process.plans(agent).plan).source.high_water
    request = PlanRequest(expected_high_water=found + off)
    plan = process.plans(agent, request).plan
    assert codes(plan) == expected
    if isinstance(plan, Park):
        assert plan.reasons[0].detail == {"run": process.head(), "expected": found + off, "found": found}
        assert process.parks(agent, request).reasons == plan.reasons
    else:
        process.continues(agent, request)


@pytest.mark.parametrize("leave", [ended_badly, before_its_end, claimed_only])
@pytest.mark.parametrize("trust", [Trust.BEHIND_ANCHOR, Trust.ANCHOR_MISSING, Trust.ANCHOR_MISMATCH])
def test_a_store_behind_its_anchor_parks_even_for_one_who_adopts(
    trust: Trust, leave: Callable[[World, Counted], None]
) -> None:
    world, act = World(), Counted()
    leave(world, act)
    world.store.distrust(trust)
    process = Resuming(world)
    agent = process.agent([], [act.function])
    for request in (PlanRequest(), PlanRequest(adopt=True)):
        assert codes(process.plans(agent, request).plan)[0] is P.LEDGER_BEHIND_ANCHOR
    assert process.parks(agent, PlanRequest(adopt=True)).codes[0] is P.LEDGER_BEHIND_ANCHOR


def test_a_foreign_run_is_continued_by_whoever_adopts_it_alone() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    world.store.distrust(Trust.BEHIND_ANCHOR)
    world.store.adopt(by="ada", note="restored", at="2026-01-01T00:00:00.000000Z")
    process = Resuming(world)
    agent = process.agent([says("done")], [act.function])
    assert process.parks(agent).codes == codes(process.plans(agent).plan) == (P.FOREIGN_RUN_NOT_ADOPTED,)
    done = process.continues(agent, PlanRequest(adopt=True))
    assert NoteCode.FOREIGN_ADOPTED in [note.code for note in done.notes]


def test_a_foreign_run_without_an_end_is_closed_by_repair_and_parks() -> None:
    """In it, a call without a dispatch may have been dispatched."""
    world, act = World(), Counted()
    killed(world, [act.function], ToolDispatched.topic, ToolDispatched.topic, T2)
    world.store.distrust(Trust.BEHIND_ANCHOR)
    world.store.adopt(by="ada", note="restored", at="2026-01-01T00:00:00.000000Z")
    process = Resuming(world)
    agent, request = process.agent([], [act.function]), PlanRequest(adopt=True)
    assert codes(process.plans(agent, request).plan) == (P.DANGLING_TOOL_STATE,)
    assert process.parks(agent, request).codes == (P.DANGLING_TOOL_STATE,)


def damage(world: World, stream: str, row: int = 1) -> None:
    tables = world.store._tables
    at = tables.streams[stream][row]
    kept = tables.records[at]
    tables.records[at] = kept._replace(state=kept.state.replace(b'"', b"'", 1))


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("session", P.SOURCE_RUN_UNREADABLE),
        ("source", P.RUNTIME_LEDGER_UNREADABLE),
        ("ancestor", P.RUNTIME_LEDGER_UNREADABLE),
    ],
)
def test_a_damaged_session_source_or_ancestor_parks_and_nothing_is_written(what: str, expected: ParkReason) -> None:
    world, act = World(), Counted()
    ancestor = failed(world, [act.function])
    first = Resuming(world)
    first.continues(first.agent([ACT], [act.function]))
    streams = {"session": f"session:{SESSION}", "source": f"run:{first.head()}", "ancestor": f"run:{ancestor}"}
    damage(world, streams[what])
    process = Resuming(world)
    agent = process.agent([], [act.function])
    before = written(world)
    plan = process.plans(agent).plan
    assert codes(plan)[0] is expected
    assert process.parks(agent).codes == codes(plan)
    assert written(world) == before


def test_a_damaged_earlier_turn_parks_with_the_run_that_is_damaged() -> None:
    world, act = World(), Counted()
    earlier = failed(world, [act.function])
    failed(world, [act.function])
    damage(world, f"run:{earlier}")
    process = Resuming(world)
    plan = process.plans(process.agent([], [act.function])).plan
    assert isinstance(plan, Park)
    assert plan.reasons[0].code is P.RUNTIME_LEDGER_UNREADABLE
    assert plan.reasons[0].detail["run"] == earlier
    assert process.parks(process.agent([], [act.function])).codes == plan.codes


def test_a_damaged_session_hides_no_other() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    other = Process(world)
    go(partial(other.turn, "go", [ACT], [act.function], session_id=SessionId("s2")))
    damage(world, f"session:{SESSION}")
    process = Resuming(world)
    continuing(process.plan(SessionId("s2"), process.agent([], [act.function]), PlanRequest()).plan)


def test_could_not_look_is_not_that_nothing_is_there() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    agent = process.agent([], [act.function])
    world.store.close()
    plan = process.plans(agent).plan
    assert codes(plan) == (P.STORE_UNAVAILABLE,)
    assert process.parks(agent).codes == (P.STORE_UNAVAILABLE,)


def missing(world: World) -> None:
    world.workspaces.move_folder(WORKSPACE, "/elsewhere")


def replaced(world: World) -> None:
    missing(world)
    world.workspaces.make_folder(WORKSPACE)
    world.workspaces.ensure(WORKSPACE)


def unreadable(world: World) -> None:
    world.workspaces.make_unreadable(WORKSPACE)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (missing, P.WORKSPACE_IDENTITY_MISSING),
        (replaced, P.WORKSPACE_IDENTITY_MISMATCH),
        (unreadable, P.SAFETY_OBSERVATION_UNAVAILABLE),
    ],
)
def test_another_workspace_parks(change: Callable[[World], None], expected: ParkReason) -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    agent = process.agent([], [act.function])
    change(world)
    assert process.parks(agent).codes == codes(process.plans(agent).plan) == (expected,)


def other_model(steps: list[Any], **profile: Any) -> PlannedModel:
    return PlannedModel(steps, ProviderProfile(**{"provider": "planned", "model": "planned", **profile}))


@pytest.mark.parametrize(
    ("profile", "drift"),
    [({"provider": "x"}, Drift.PROVIDER), ({"model": "x"}, Drift.MODEL), ({"account": "x"}, Drift.ACCOUNT)],
)
def test_a_profile_that_differs_parks_and_names_what_does(profile: dict[str, str], drift: Drift) -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    plan = process.plans(process.agent(other_model([], **profile), [act.function])).plan
    assert isinstance(plan, Park)
    assert plan.codes == (P.EXECUTION_PROFILE_MISMATCH,)
    assert plan.reasons[0].detail["changed"] == [drift.value]


def test_another_permission_policy_is_never_accepted() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    agent = process.agent([], [act.function], ScriptedGate({}, policy="wider"))
    request = PlanRequest(accepted_drift=frozenset(Drift))
    assert process.parks(agent, request).codes == (P.EXECUTION_PROFILE_MISMATCH,)


def test_a_history_larger_than_the_window_parks_with_both_numbers() -> None:
    world, act = World(), Counted()
    failed(world, [act.function])
    process = Resuming(world)
    plan = process.plans(process.agent(other_model([], window_tokens=3), [act.function])).plan
    assert isinstance(plan, Park)
    assert plan.codes == (P.HISTORY_TOO_LARGE,)
    assert plan.reasons[0].detail["limit"] == 3


# Automatic continuations.

AUTO = PlanRequest(trigger=Trigger.AUTO)


@pytest.mark.parametrize("at", [None, Failpoint.CLAIM_COMMITTED, Failpoint.START_COMMITTED])
def test_an_interruption_is_continued_automatically_once(at: Failpoint | None) -> None:
    """A repaired claim counts."""
    world, act = World(), Counted()
    failed(world, [act.function])
    first = Resuming(world)
    if at is None:
        first.continues(first.agent([], [act.function]), AUTO)
    else:
        first.is_killed(first.agent([], [act.function]), AUTO, at=at)
    process = Resuming(world)
    agent = process.agent([says("done")], [act.function])
    assert process.parks(agent, AUTO).codes == codes(process.plans(agent, AUTO).plan) == (P.AUTO_RESUME_SPENT,)
    process.continues(agent)


def stopped(world: World) -> RunId:
    """A turn that a person stopped."""
    process, model = Process(world), PlannedModel([Stall()])

    async def stop() -> None:
        await until(lambda: model.asked)
        await to_thread.run_sync(process.cancel, SESSION, "ada")

    return go(lambda: beside(stop, process.turn("go", model))).run_id


def test_a_run_that_a_person_stopped_is_continued_by_a_person_alone() -> None:
    world = World()
    stopped(world)
    process = Resuming(world)
    agent = process.agent([says("done")])
    plan = process.plans(agent, AUTO).plan
    assert isinstance(plan, Park)
    assert plan.codes == (P.RESUME_CANDIDATE_MISSING,)
    assert plan.reasons[0].detail["why"] == "cancelled_by_a_person"
    assert process.parks(agent, AUTO).codes == plan.codes
    process.continues(agent)


# Open questions.


def test_an_open_question_parks_until_a_person_drops_it() -> None:
    world, act = World(), Counted()
    gate = ScriptedGate({})
    killed_asking(world, act, gate)
    process = Resuming(world)
    agent = process.agent([], [act.function], gate)
    assert process.parks(agent).codes == codes(process.plans(agent).plan) == (P.PENDING_PERMISSION,)
    plan = continuing(process.plans(agent, PlanRequest(drop_permissions=True)).plan)
    assert NoteCode.PERMISSIONS_DROPPED in [note.code for note in plan.notes]
    assert [told.sentence_id for told in plan.told] != []


def killed_asking(world: World, act: Counted, gate: ScriptedGate) -> RunId:
    """A turn that is killed while its question is open."""
    process = Process(world)
    process.events_store.fail_at(END, Failure.UNAVAILABLE)
    process.events_store.fail_at(T2, Failure.UNAVAILABLE)
    with pytest.raises(Exception, match="not"):
        go(partial(process.turn, "go", [calls(("act", {"n": 1}))], [act.function], gate=gate))
    process.die()
    assert act.calls == []
    assert isinstance(process.events(process.head())[0], RunOpened)
    return process.head()


def test_a_plan_is_made_of_the_run_that_was_asked_for() -> None:
    world, act = World(), Counted()
    run_id = failed(world, [act.function])
    process = Resuming(world)
    agent = process.agent([says("done")], [act.function])
    assert process.plans(agent, PlanRequest(run_id=run_id)) == process.plans(agent)
    plan = process.plans(agent, PlanRequest(run_id=RunId("nobody"))).plan
    assert isinstance(plan, Park)
    assert P.SOURCE_SUPERSEDED in plan.codes
    assert requests(agent) == 0
