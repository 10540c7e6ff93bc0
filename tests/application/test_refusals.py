"""Every refusal before T1 leaves call and answer, no dispatch, and a run that reaches its end. SPEC F2, r3-154."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.tools.decorator import tool
from safepoint.application.preflight import LoopLimits
from safepoint.application.run_agent import RunLimits
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Effect
from safepoint.domain.reasons import ResponseCode
from safepoint.domain.recovery.verdict import SettlementOrigin, VerdictStatus
from safepoint.domain.replay.items import ResultItem
from safepoint.domain.tool_arguments import ARGUMENTS_BYTES_MAX
from safepoint.ports.cancel_signal import CancelSignal
from safepoint.ports.model_step import CallBlock, StepFinished
from safepoint.ports.permission_gate import Denied, PermissionAnswer, PermissionGate, PermissionRequest, Undecided

from .counted_tools import Counted
from .wiring import ALLOW_ALL, Process, check_sound, go


class BrokenGate(PermissionGate):
    """Cannot be asked, now or ever."""

    def policy_id(self) -> str:
        return "broken"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        return None

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        raise OSError("no terminal")


class BrokenPolicy(BrokenGate):
    """Its very policy cannot be evaluated."""

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        raise KeyError("policy")


def text(arguments: str) -> StepFinished:
    return calls(CallBlock("call_1", "act", arguments))


def evidence(error: Exception) -> Callable[[Any, Path], None]:
    def compute(typed: Any, workspace: Path) -> None:
        raise error

    return compute


@dataclass(frozen=True)
class Refusal:
    code: ResponseCode
    step: StepFinished
    says: str
    gate: PermissionGate = ALLOW_ALL
    declared: dict[str, Any] = field(default_factory=dict)
    loops: LoopLimits = field(default_factory=LoopLimits)


ACT = calls(("act", {"n": 1}))
REFUSALS = {
    "unknown tool": Refusal(ResponseCode.UNKNOWN_TOOL, calls(("nope", {})), "no tool named nope"),
    "no JSON": Refusal(ResponseCode.ARGS_NOT_STRICT_JSON, text("{"), "not strict JSON"),
    "empty text": Refusal(ResponseCode.ARGS_NOT_STRICT_JSON, text(""), "not strict JSON"),
    "twice the same key": Refusal(ResponseCode.ARGS_NOT_STRICT_JSON, text('{"n":1,"n":2}'), "not strict JSON"),
    "NaN": Refusal(ResponseCode.ARGS_NOT_STRICT_JSON, text('{"n":NaN}'), "not strict JSON"),
    "an integer that is no double": Refusal(
        ResponseCode.ARGS_NOT_STRICT_JSON, text('{"n":9007199254740993}'), "not strict JSON"
    ),
    "a lone surrogate": Refusal(ResponseCode.ARGS_NOT_STRICT_JSON, text('{"n":"\\ud800"}'), "not strict JSON"),
    "wrong type": Refusal(ResponseCode.ARGS_SCHEMA_MISMATCH, calls(("act", {"n": "x"})), "do not fit"),
    "not an object": Refusal(ResponseCode.ARGS_SCHEMA_MISMATCH, text("[1]"), "do not fit"),
    "one argument too many": Refusal(ResponseCode.ARGS_SCHEMA_MISMATCH, calls(("act", {"n": 1, "m": 2})), "do not fit"),
    "too large": Refusal(
        ResponseCode.ARGS_TOO_LARGE,
        text('{"n":"' + "x" * ARGUMENTS_BYTES_MAX + '"}'),
        f"at most {ARGUMENTS_BYTES_MAX}",
    ),
    "too large only when stored": Refusal(
        ResponseCode.ARGS_TOO_LARGE,
        text('{"n":[' + ",".join(["1e20"] * 20_000) + "]}"),
        f"at most {ARGUMENTS_BYTES_MAX}",
    ),
    "loop limit of all calls": Refusal(
        ResponseCode.LOOP_LIMIT, ACT, "limit of 0 calls in one run", loops=LoopLimits(calls_max=0)
    ),
    "loop limit of equal calls": Refusal(
        ResponseCode.LOOP_LIMIT, ACT, "limit of 0 identical calls", loops=LoopLimits(identical_calls_max=0)
    ),
    "denied by policy": Refusal(ResponseCode.PERMISSION_DENIED, ACT, "the policy does not permit act", gate=DenyGate()),
    "denied by a person": Refusal(
        ResponseCode.PERMISSION_DENIED,
        ACT,
        "ada did not permit this call: not on Fridays",
        gate=ScriptedGate({"act": Denied("ada", "not on Fridays")}),
    ),
    "undecided": Refusal(
        ResponseCode.PERMISSION_DENIED, ACT, "nobody has answered", gate=ScriptedGate({"act": Undecided("asleep")})
    ),
    "nobody can be asked": Refusal(ResponseCode.PERMISSION_DENIED, ACT, "nobody has answered", gate=BrokenGate()),
    "a policy that fails": Refusal(ResponseCode.PERMISSION_DENIED, ACT, "did not permit this", gate=BrokenPolicy()),
    "evidence refuses": Refusal(
        ResponseCode.REFUSED_WITHOUT_EFFECT,
        ACT,
        "outside the workspace",
        declared={"evidence": evidence(RefusedWithoutEffect("outside the workspace"))},
    ),
    "evidence fails": Refusal(
        ResponseCode.REFUSED_WITHOUT_EFFECT, ACT, "OSError", declared={"evidence": evidence(OSError("disk"))}
    ),
    "evidence is no JSON": Refusal(
        ResponseCode.REFUSED_WITHOUT_EFFECT, ACT, "not strict JSON", declared={"evidence": lambda typed, ws: {1, 2}}
    ),
    "evidence has no canonical form": Refusal(
        ResponseCode.REFUSED_WITHOUT_EFFECT, ACT, "refused before", declared={"evidence": lambda typed, ws: "\ud800"}
    ),
    "evidence does not fit into an event": Refusal(
        ResponseCode.REFUSED_WITHOUT_EFFECT, ACT, "the bound is", declared={"evidence": lambda typed, ws: "x" * 2**20}
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_leaves_call_and_answer_no_dispatch_and_a_run_that_goes_on_to_its_end_r3_154(name: str) -> None:
    refusal = REFUSALS[name]
    process = Process(limits=RunLimits(loops=refusal.loops))
    act = Counted(**refusal.declared)
    model = PlannedModel([refusal.step, says("I see")])
    result = go(lambda: process.turn("go", model, [act.function], gate=refusal.gate))
    assert result.outcome.status is RunStatus.COMPLETED
    assert act.calls == []
    (response,) = process.responses(result.run_id)
    assert response.code == refusal.code
    assert (response.operation_id, response.effect, response.is_error) == (None, Effect.NONE, True)
    assert refusal.says in str(response.result)
    assert process.dispatches(result.run_id) == []
    (verdict,) = process.verdicts(result.run_id)
    assert (verdict.status, verdict.origin) == (VerdictStatus.COMPLETED, SettlementOrigin.PRE_T1_SYNTHETIC)
    check_sound(process, result.run_id)
    last = model.asked[-1].request.history[-1]
    assert isinstance(last, ResultItem)
    assert (last.is_error, last.result) == (True, response.result)
    assert not process.live.of(result.session_id)


def test_refused_and_good_calls_of_one_step_are_answered_each_for_itself() -> None:
    process, act = Process(), Counted(resource_key="door")
    step = calls(("act", {"n": 1}), ("nope", {}), ("act", {"n": "x"}), ("act", {"n": 2}))
    result = go(lambda: process.turn("go", PlannedModel([step, says("done")]), [act.function]))
    assert act.calls == [1, 2]
    assert len(process.responses(result.run_id)) == 4
    assert len(process.dispatches(result.run_id)) == 2
    check_sound(process, result.run_id)


def test_arguments_that_are_too_large_are_kept_only_as_far_as_they_can_be_stored() -> None:
    process, act = Process(), Counted()
    model = PlannedModel([text("\x01" * (3 * ARGUMENTS_BYTES_MAX)), says("done")])
    result = go(lambda: process.turn("go", model, [act.function]))
    assert process.response(result.run_id, "act").code == ResponseCode.ARGS_TOO_LARGE
    assert max(len(row) for row in process.stored_bytes(result.run_id)) < ARGUMENTS_BYTES_MAX + 2_000
    check_sound(process, result.run_id)


def test_equal_calls_are_counted_over_the_steps_of_a_run() -> None:
    process, act = Process(limits=RunLimits(loops=LoopLimits(identical_calls_max=3))), Counted()
    model = PlannedModel([*[calls(("act", {"n": 1}))] * 5, says("done")])
    result = go(lambda: process.turn("go", model, [act.function]))
    assert act.calls == [1, 1, 1]
    codes = [response.code for response in process.responses(result.run_id)]
    assert codes == [None, None, None, ResponseCode.LOOP_LIMIT, ResponseCode.LOOP_LIMIT]
    check_sound(process, result.run_id)


def test_a_contract_that_cannot_be_told_for_the_arguments_refuses_the_call() -> None:
    def contract(typed: Any) -> str:
        raise KeyError("no such mode")

    @tool(recovery=contract)
    def act(n: int) -> str:
        """Act."""
        raise AssertionError("never called")

    process = Process()
    result = go(lambda: process.turn("go", PlannedModel([ACT, says("done")]), [act]))
    assert process.response(result.run_id, "act").code == ResponseCode.ARGS_SCHEMA_MISMATCH
    check_sound(process, result.run_id)
