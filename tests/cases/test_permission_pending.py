"""Field reports: a person has not said yes yet, or said so about something else. SPEC F4, F6."""

from __future__ import annotations

import threading

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.tools.decorator import tool
from safepoint.application.plan_resume import PlanRequest
from safepoint.domain.errors import WriteRefused
from safepoint.domain.events.outside import PermissionDecided, PermissionRequested
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import RunId
from safepoint.domain.planning.facts import Drift
from safepoint.domain.reasons import ParkReason, ResponseCode
from safepoint.domain.replay.items import ResultItem
from safepoint.ports.cancel_signal import CancelSignal
from safepoint.ports.permission_gate import Allowed, PermissionAnswer, PermissionRequest

from ..adapters.cli.program import WRITE, Program
from ..application.counted_tools import Counted
from ..application.wiring import ALLOW_ALL, SESSION, check_sound
from .programs import DONE, codes_in, resume
from .resuming import ResumingProcess, SharedWorld, codes_of

P = ParkReason
ACT = calls(("act", {"n": 1}))


def asked_and_died(world: SharedWorld, act: Counted) -> RunId:
    """approval-request(A) is durable; nobody answers; X."""
    process = ResumingProcess(world)
    run_id = process.runs("go", [ACT], [act.function], gate=ScriptedGate({})).run_id
    process.die()
    return run_id


def test_r3_113_an_approval_that_was_given_is_used_once_and_never_asked_for_again() -> None:
    """step{A needs approval}; approved(A); X; resume, whatever else is passed."""
    world, act = SharedWorld(), Counted()
    run_id = asked_and_died(world, act)
    grant_id = ResumingProcess(world).decides(run_id, approved=True)
    gate = ScriptedGate({})
    process = ResumingProcess(world)
    plain = process.plans([act.function], gate=gate).plan
    with_more = process.plans(
        [act.function], gate=gate, request=PlanRequest(run_id=run_id, accepted_drift=frozenset({Drift.MODEL}))
    ).plan
    assert codes_of(plain) == codes_of(with_more) == []
    model = PlannedModel([ACT, ACT, says("done")])
    resumed = process.continues(model, [act.function], gate=gate)
    assert act.calls == [1]
    (dispatch,) = process.dispatches(resumed.run_id)
    assert dispatch.grant_id == grant_id
    (asked,) = process.of(resumed.run_id, PermissionRequested)
    assert asked.call_id != dispatch.call_id, "the second call is another one, and is asked about for itself"
    check_sound(process, resumed.run_id)


def test_r3_115_a_question_survives_a_restart_under_its_own_id_and_can_still_be_answered() -> None:
    """approval-request(A) is durable; X; restart; look; approve."""
    world, act = SharedWorld(), Counted()
    gate = Waiting()
    first = ResumingProcess(world)
    told: list[str] = []

    def runs() -> None:
        with pytest.raises(WriteRefused) as refused:
            first.runs("go", [ACT], [act.function], gate=gate)
        told.append(refused.value.code)

    thread = threading.Thread(target=runs)
    thread.start()
    assert gate.is_asked.wait(30)
    first.die()
    run_id = first.head()
    (asked,) = first.of(run_id, PermissionRequested)

    second = ResumingProcess(world)
    assert [row.request_id for row in world.store.views.open_permissions(SESSION)] == [asked.request_id]
    planned = second.plans([act.function], gate=gate)
    assert planned.repair_pending
    (reason,) = planned.plan.reasons  # type: ignore[union-attr]
    assert (reason.code, reason.detail["request"]) == (P.PENDING_PERMISSION, asked.request_id)
    assert second.parks([], [act.function], gate=gate) == (P.PENDING_PERMISSION,)
    row = world.store.views.session(SESSION)
    assert row is not None
    assert row.head_status == RunStatus.FAILED, "it is parked, not running"
    second.decides(run_id, approved=True)
    assert [row.request_id for row in world.store.views.open_permissions(SESSION)] == []
    resumed = second.continues([ACT, says("done")], [act.function], gate=ScriptedGate({}, gate.policy_id()))
    assert resumed.outcome.status is RunStatus.COMPLETED
    assert act.calls == [1]
    gate.give_up.set()
    thread.join(30)
    assert (told, act.calls) == (["owner_fenced"], [1]), "the answer that the dead process gets is nobody's"


class Waiting(ScriptedGate):
    """A person who is asked and does not answer."""

    def __init__(self) -> None:
        super().__init__({}, "waiting")
        self.is_asked, self.give_up = threading.Event(), threading.Event()

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        self.is_asked.set()
        assert self.give_up.wait(60)
        return Allowed("too late")


def test_r3_117_a_resume_without_options_does_not_widen_the_policy(program: Program) -> None:
    """Run 1 is read-only and its write was refused; the resume names no policy."""
    program.script({"text": "I write.", "calls": [WRITE]}, {"text": "Again.", "calls": [WRITE]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1", "--deny"))
    ran = program(*resume(program))
    assert ran.code == 0
    assert "Permissions: deny (as the run recorded)" in ran.err
    assert not (program.workspace / "config.json").exists()
    shown = program("show", "s1", "--full", "--json").document["run"]
    assert shown["permission_policy"] == "deny"
    answers = [fact["facts"]["code"] for fact in shown["facts"] if fact["type"] == "tool.responded.v1"]
    assert answers == ["permission_denied"]


def test_r3_117_an_option_that_widens_the_policy_parks_a_resume(program: Program) -> None:
    program.script({"text": "I write.", "calls": [WRITE]}, {"text": "Again.", "calls": [WRITE]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1", "--deny"))
    for more in ((), ("--accept-drift", "permission_policy")):
        ran = program(*resume(program, "--allow-all", *more), "--json")
        assert codes_in(ran) == ["execution_profile_mismatch"]
    assert not (program.workspace / "config.json").exists()


@pytest.mark.parametrize("policy_is_there", [True, False], ids=["with the policy", "without it"])
def test_r3_118_a_declined_call_is_not_executed_though_the_policy_that_asked_is_gone(*, policy_is_there: bool) -> None:
    """approval-request(A); X; denied(A); the resuming process has no policy object."""
    world, act = SharedWorld(), Counted()
    run_id = asked_and_died(world, act)
    process = ResumingProcess(world)
    process.decides(run_id, approved=False)
    if not policy_is_there:
        assert process.parks([], [act.function], gate=ALLOW_ALL) == (P.EXECUTION_PROFILE_MISMATCH,)
        result = process.runs("a new turn", [ACT, says("I see")], [act.function], gate=ScriptedGate({}))
        new_run = result.run_id
    else:
        model = PlannedModel([ACT, says("I see")])
        new_run = process.continues(model, [act.function], gate=ScriptedGate({})).run_id
        last = model.asked[-1].request.history[-1]
        assert isinstance(last, ResultItem)
        assert "did not permit" in str(last.result)
    assert process.response(new_run, "act").code == ResponseCode.PERMISSION_DENIED
    assert act.calls == []


def test_r3_120_an_approval_does_not_outlive_the_schema_that_it_was_given_for() -> None:
    """approved(A, args h1, schema s1); X; the catalog has schema s2."""
    world, act = SharedWorld(), Counted()
    run_id = asked_and_died(world, act)
    process = ResumingProcess(world)
    process.decides(run_id, approved=True)
    bodies: list[int] = []

    @tool(name="act")
    def changed(n: int, loudly: bool = True) -> str:
        """Act."""
        bodies.append(n)
        return "acted"

    assert process.parks([], [changed], gate=ScriptedGate({})) == (P.TOOL_CATALOG_MISMATCH,)
    (decided,) = process.of(run_id, PermissionDecided)
    assert decided.approved, "it is kept for whoever looks later"
    assert process.dispatches(run_id) == []
    accepted = PlanRequest(accepted_drift=frozenset({Drift.TOOLS}))
    resumed = process.continues([ACT, says("done")], [changed], gate=ScriptedGate({}), request=accepted)
    assert process.response(resumed.run_id, "act").code == ResponseCode.PERMISSION_DENIED
    assert (bodies, act.calls) == ([], [])
