"""Field reports: an effect happened twice, or could have. SPEC R9, R12, F6, F9."""

from __future__ import annotations

import threading

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.tools.decorator import tool
from safepoint.application.ownership import SessionBusy
from safepoint.domain.errors import WriteRefused
from safepoint.domain.events.outside import PermissionDecided
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import WatchStatus
from safepoint.domain.events.tool import Effect, Observation, RecoveryMode, Statement, ToolDispatched
from safepoint.domain.reasons import ParkReason, ResponseCode, WriteRefusal
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.replay.items import CallItem, ResultItem
from safepoint.ports.permission_gate import Denied

from ..application.counted_tools import Counted
from ..application.wiring import SESSION, check_sound
from ..domain.facts import Facts
from .resuming import ResumingProcess, SharedWorld
from .stores import Writing

ACT = calls(("act", {"n": 1}))
P = ParkReason


# ---- r3-029 ---------------------------------------------------------------------------------------------------------


def test_r3_029_an_unknown_operation_is_not_run_again_and_is_settled_by_one_fact() -> None:
    """U; step{A}; D(A); X; a decision about A is recorded; then "run again" is pressed."""
    world, act = SharedWorld(), Counted()
    first = ResumingProcess(world)
    run_id = first.is_interrupted("go", [ACT], [act.function])
    assert act.calls == [1]
    second = ResumingProcess(world)
    assert second.parks([], [act.function]) == (P.DANGLING_TOOL_STATE,)
    owned = second.ownership.own(SESSION)
    facts = second.facts_about(run_id, owned)
    (dispatch,) = second.dispatches(run_id)
    high_water = len(second.events(run_id))
    parked = facts.recovery(
        dispatch, high_water, observation=Observation.UNREADABLE, reason="contract_forbids_recovery"
    )
    second.ledger.execute(parked)
    second.ownership.release(owned)
    for _ in range(3):
        assert second.parks([], [act.function]) == (P.TOOL_RECOVERY_PARKED,)
    result = second.runs("run again", [ACT, says("no")], [act.function])
    assert second.response(result.run_id, "act").code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT
    assert act.calls == [1]
    assert len(second.dispatches(run_id)) == 1
    assert second.topics(run_id).count("tool.recovery_decided") == 1


SETTLING = (
    "outcome",
    "error",
    "refused",
    "without effect",
    "recovered",
    "parked",
    "attested done",
    "attested not done",
)


@pytest.mark.parametrize("how", ["nothing", *SETTLING])
def test_r3_029_every_list_of_unsettled_calls_treats_each_settling_fact_alike(writing: Writing, how: str) -> None:
    """The resolver, the planner, the rows and the watch list agree on what is open, whatever settled it."""
    run = writing.own(Facts("r", session="s"))
    writing.do(run.open_run(), run.record(run.step("A")))
    dispatch = run.dispatch("A", RecoveryMode.OUTCOME_UNKNOWN)
    if how == "refused":
        writing.do(run.refuse(run.refusal("A")), run.end())
    else:
        writing.do(run.prepare(dispatch))
        outcomes = {
            "outcome": run.outcome("A"),
            "error": run.outcome("A", is_error=True, result="boom"),
            "without effect": run.outcome("A", is_error=True, result="no", effect=Effect.NONE),
        }
        if how in outcomes:
            writing.do(run.commit(outcomes[how]))
        writing.do(run.end())
        late = len(writing.events(run))
        match how:
            case "recovered":
                writing.do(run.recovery(dispatch, late, outcome=run.outcome("A")))
            case "parked":
                unreadable = Observation.UNREADABLE
                writing.do(run.recovery(dispatch, late, observation=unreadable, reason="contract_forbids_recovery"))
            case "attested done":
                writing.do(run.attestation("A", late, response=run.outcome("A")))
            case "attested not done":
                said = run.outcome("A", is_error=True, effect=Effect.NONE, result="it was not executed")
                writing.do(run.attestation("A", late, Statement.NOT_EXECUTED, response=said))
            case _:
                pass
    open_ = how in ("nothing", "parked")
    assert writing.verdict(run, "A").is_settled is not open_
    assert bool(writing.unsettled(run)) is open_
    watched = writing.ledger.session(run.session_id).watched.values()
    uncertain = [one for one in watched if one.status not in (WatchStatus.RECOVERED, WatchStatus.ATTESTED)]
    assert bool(uncertain) is open_
    session = writing.store.views.session(run.session_id)
    assert session is not None
    assert bool(session.unsettled) is open_


# ---- r3-034 ---------------------------------------------------------------------------------------------------------


def test_r3_034_a_finished_sibling_does_not_run_again_when_the_other_call_was_approved() -> None:
    """step{A, B needs approval}; O(A); B pending; X; approve B; resume."""
    appended: list[str] = []

    @tool(resource_key="a")
    def append() -> str:
        """Append."""
        appended.append("x")
        return "appended"

    world, guarded = SharedWorld(), Counted(resource_key="b")
    nobody = AllowListGate(["append"], ScriptedGate({}))
    tools = [append, guarded.function]
    first = ResumingProcess(world)
    both = calls(("append", {}), ("act", {"n": 1}))
    run_id = first.runs("go", [both], tools, gate=nobody).run_id
    first.die()
    second = ResumingProcess(world)
    assert second.parks([], tools, gate=nobody) == (P.PENDING_PERMISSION,)
    second.decides(run_id, approved=True)
    model = PlannedModel([ACT, says("done")])
    resumed = second.continues(model, tools, gate=nobody)
    assert resumed.outcome.status is RunStatus.COMPLETED
    assert (appended, guarded.calls) == (["x"], [1])
    dispatched = [one.tool_name for run in (run_id, resumed.run_id) for one in second.dispatches(run)]
    assert dispatched == ["append", "act"]
    shown = [item for item in model.asked[0].request.history if isinstance(item, CallItem | ResultItem)]
    assert [item.call_id for item in shown] == ["call_1", "call_2"] * 2
    check_sound(second, resumed.run_id)


# ---- r3-036 ---------------------------------------------------------------------------------------------------------


def test_r3_036_a_denied_call_of_a_closed_run_cannot_be_approved_afterwards() -> None:
    """step{A}; denied(A); M; closed. Then: resume with an approval of A."""
    world, act = SharedWorld(), Counted()
    process = ResumingProcess(world)
    gate = ScriptedGate({"act": Denied("ada", "no")})
    run_id = process.runs("go", [ACT, says("then not")], [act.function], gate=gate).run_id
    before = process.stored_bytes(run_id)
    with pytest.raises(WriteRefused) as refused:
        process.decides(run_id, approved=True)
    assert refused.value.code is WriteRefusal.TRANSITION_SHAPE_CONFLICT
    assert process.parks([], [act.function], gate=gate) == (P.RESUME_CANDIDATE_MISSING,)
    assert act.calls == []
    assert process.dispatches(run_id) == []
    assert [one.approved for one in process.of(run_id, PermissionDecided)] == [False]
    assert process.stored_bytes(run_id) == before
    assert not process.ledger.session(SESSION).grants


# ---- r3-038 ---------------------------------------------------------------------------------------------------------


def test_r3_038_a_run_that_the_same_process_still_works_on_is_not_adopted_by_its_recovery() -> None:
    """A run in one thread, its tool at work; resume and new turn of the same session in the same process."""
    process, started, go_on = ResumingProcess(), threading.Event(), threading.Event()
    bodies: list[str] = []

    @tool(resource_key="slow")
    def slow() -> str:
        """Work for a while."""
        bodies.append("ran")
        started.set()
        assert go_on.wait(30)
        return "done"

    ended: list[RunStatus] = []

    def runs() -> None:
        ended.append(process.runs("go", [calls(("slow", {})), says("done")], [slow]).outcome.status)

    thread = threading.Thread(target=runs)
    thread.start()
    try:
        assert started.wait(30)
        assert process.parks([], [slow])[0] is P.SESSION_BUSY
        with pytest.raises(SessionBusy) as busy:
            process.runs("me too", [says("never")], [slow])
        assert busy.value.owner == process.ownership.incarnation
        assert "run.ended" not in process.topics(process.head())
    finally:
        go_on.set()
        thread.join(30)
    assert (bodies, ended) == (["ran"], [RunStatus.COMPLETED])
    (dispatch,) = process.dispatches(process.head())
    assert dispatch.incarnation_id == process.ownership.incarnation.incarnation_id


# ---- r3-047 ---------------------------------------------------------------------------------------------------------


def test_r3_047_a_destination_that_knows_the_payment_settles_it_with_where_that_was_learned(writing: Writing) -> None:
    """D(A); X; the reconciler finds the effect settled."""
    run, dispatch = _paid_and_lost(writing)
    settled = Observation.HANDLE_SETTLED
    late = len(writing.events(run))
    writing.do(run.recovery(dispatch, late, observation=settled, reason="handle_settled", outcome=run.outcome("A")))
    verdict = writing.verdict(run, "A")
    assert (verdict.status, verdict.reason) == (VerdictStatus.COMPLETED, "recovery_bundle_completed")
    (observed,) = [event for event in writing.events(run) if event.topic == "tool.reconciled.v1"]
    assert observed.reconciler_id == "test"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("mode", "observation", "reason"),
    [
        (RecoveryMode.REATTACH, Observation.HANDLE_UNKNOWN, "handle_unknown"),
        (RecoveryMode.RECONCILE, Observation.UNREADABLE, "reconcile_unreadable"),
    ],
    ids=["not found", "unreachable"],
)
def test_r3_047_not_found_and_unreachable_settle_nothing(
    writing: Writing, mode: RecoveryMode, observation: Observation, reason: str
) -> None:
    run, dispatch = _paid_and_lost(writing, mode)
    late = len(writing.events(run))
    completed = run.recovery(dispatch, late, observation=observation, reason=reason, outcome=run.outcome("A"))
    assert writing.refuses(completed) is WriteRefusal.BUNDLE_INVALID
    assert writing.verdict(run, "A").status is VerdictStatus.INDETERMINATE
    writing.do(run.recovery(dispatch, late, observation=observation, reason=reason))
    assert (writing.verdict(run, "A").status, writing.verdict(run, "A").reason) == (VerdictStatus.PARKED, reason)


def _paid_and_lost(writing: Writing, mode: RecoveryMode = RecoveryMode.REATTACH) -> tuple[Facts, ToolDispatched]:
    run = writing.own(Facts("r", session="s"))
    writing.do(run.open_run(), run.record(run.step("A")))
    dispatch = run.dispatch("A", mode)
    writing.do(run.prepare(dispatch), run.end())
    return run, dispatch
