"""What whoever comes next must find: a session that ended soundly, lasting verdicts, projections that agree."""

from __future__ import annotations

from safepoint.application.lineage import read_segment
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.verify_store import VerifyStore
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.session import RunAdmitted
from safepoint.domain.identifiers import run_stream, session_stream
from safepoint.domain.planning.outcome import Park
from safepoint.domain.reasons import ParkReason

from .process import Process, repair
from .world import SESSION, World

EXPECTED = frozenset(
    {
        ParkReason.RESUME_CANDIDATE_MISSING,
        ParkReason.DANGLING_TOOL_STATE,
    }
)
"""Why a session may park in the end: nothing is interrupted, or an outcome is unknown. All else were a loss."""


def check_aftermath(world: World, parks: frozenset[ParkReason]) -> None:
    """Repair once more, look twice, verify everything."""
    last = Process(world, "last")
    fiber = world.threads.start("last", last.does(repair))
    while world.threads.standing() or not fiber.ended:
        world.threads.settle()
        for standing in world.threads.standing()[:1]:
            world.threads.go_on(standing)
    if last.seen.told != ["run_closed"] and last.seen.told[-1] not in {"nothing_open", "claim_repaired"}:
        world.breaks("11", f"repair says {last.seen.told}")
    assert world.rules is not None
    admitted = [one for one in world.rules.of(session_stream(SESSION)) if isinstance(one, RunAdmitted)]
    for one in admitted:
        if sum(isinstance(event, RunEnded) for event in world.rules.of(run_stream(one.run_id))) != 1:
            world.breaks("R10", f"run {one.run_id} has not one terminal event in the end")
    plans = [last.parts.plan_resume()(SESSION, last.agent(), PlanRequest()).plan for _ in range(2)]
    codes = [plan.codes if isinstance(plan, Park) else () for plan in plans]
    if codes[0] != codes[1]:
        world.breaks("R11", f"the same session is parked for {codes}")
    if not set(codes[0]) <= EXPECTED | parks:
        world.breaks("lost", f"the session parks for {codes[0]}")
    store = world.store
    verified = VerifyStore(store.events, store, store.owners, store.projections)()
    if not verified.sound:
        world.breaks("R11", f"the store does not verify: {verified}")
    if differences := list(store.projections.differences()):
        world.breaks("R11", f"projections do not agree: {differences[:1]}")
    with store.events.snapshot() as reader:
        for one in admitted:
            segment = read_segment(reader, one.run_id)
            if segment is None or segment.resolution.has_corruption or segment.resolution.issues:
                world.breaks("R11", f"run {one.run_id} is corrupt")
