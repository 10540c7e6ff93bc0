"""An effect whose outcome is not certain is not repeated under a new call id unasked. SPEC F9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.tools.decorator import tool
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.outside import PermissionDecided, PermissionRequested
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import EffectCleared, EffectWatched
from safepoint.domain.events.tool import Effect
from safepoint.domain.identifiers import OperationId, RunId
from safepoint.domain.reasons import ResponseCode
from safepoint.ports.cancel_signal import CancelSignal
from safepoint.ports.permission_gate import (
    Allowed,
    AskReason,
    Denied,
    PermissionAnswer,
    PermissionGate,
    PermissionRequest,
    Undecided,
)
from safepoint.ports.tool_catalog import ToolContext

from .wiring import ALLOW_ALL, Process, check_sound, go


class Unsure:
    """A tool whose outcome is not certain the first `failures` times, and certain afterwards."""

    def __init__(self, name: str = "pay", failures: int = 1, **declared: Any) -> None:
        self.keys: list[str] = []

        def pay(context: ToolContext, amount: int = 0) -> str:
            """Pay."""
            self.keys.append(context.idempotency_key)
            if len(self.keys) <= failures:
                raise TimeoutError("no answer from the bank")
            return "paid"

        self.function: Callable[..., Any] = tool(name=name, **declared)(pay)


def pays(amount: int = 3, name: str = "pay") -> PlannedModel:
    return PlannedModel([calls((name, {"amount": amount})), says("done")])


def one_unsure_payment(process: Process, pay: Unsure, name: str = "pay") -> OperationId:
    """A turn after which the session watches an effect."""
    result = go(lambda: process.turn("pay", pays(name=name), [pay.function]))
    (dispatch,) = process.dispatches(result.run_id)
    assert list(process.ledger.session(result.session_id).watched) == [dispatch.operation_id]
    return dispatch.operation_id


def repeated(
    process: Process, pay: Unsure, gate: PermissionGate = ALLOW_ALL, model: PlannedModel | None = None
) -> RunId:
    """A later turn in which the model makes the same call again."""
    result = go(lambda: process.turn("pay again", model or pays(), [pay.function], gate=gate))
    assert result.outcome.status is RunStatus.COMPLETED
    check_sound(process, result.run_id)
    return result.run_id


def test_a_call_that_may_repeat_an_effect_is_refused_where_nobody_can_be_asked_even_if_all_is_allowed() -> None:
    process, pay = Process(), Unsure()
    one_unsure_payment(process, pay)
    run_id = repeated(process, pay)
    assert len(pay.keys) == 1
    assert process.response(run_id, "pay").code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT
    assert process.dispatches(run_id) == []


def test_a_policy_that_allows_a_repeat_by_mistake_is_not_believed() -> None:
    class TooKind(ScriptedGate):
        def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
            return Allowed("policy")

    process, pay, gate = Process(), Unsure(), TooKind({})
    one_unsure_payment(process, pay)
    run_id = repeated(process, pay, gate)
    assert len(pay.keys) == 1
    assert [request.reason for request in gate.asked] == [AskReason.REPEAT_OF_UNSETTLED_EFFECT]
    assert process.response(run_id, "pay").code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Denied("ada", "it went through"), ResponseCode.PERMISSION_DENIED),
        (Undecided("asleep"), ResponseCode.REPEAT_OF_UNSETTLED_EFFECT),
    ],
)
def test_a_repeat_that_a_person_does_not_allow_is_not_dispatched_and_stays_watched(
    answer: PermissionAnswer, code: ResponseCode
) -> None:
    process, pay = Process(), Unsure()
    operation_id = one_unsure_payment(process, pay)
    run_id = repeated(process, pay, AllowListGate([], ScriptedGate({"pay": answer}), allow_all=True))
    assert len(pay.keys) == 1
    assert process.response(run_id, "pay").code == code
    assert list(process.ledger.session(process.session_events()[0].session_id).watched) == [operation_id]


def test_a_repeat_that_a_person_allows_names_what_it_repeats_and_takes_it_off_the_watch_list() -> None:
    process, pay = Process(), Unsure()
    operation_id = one_unsure_payment(process, pay)
    gate = ScriptedGate({"pay": Allowed("ada")})
    run_id = repeated(process, pay, AllowListGate([], gate, allow_all=True))
    assert len(pay.keys) == 2
    (dispatch,) = process.dispatches(run_id)
    assert dispatch.repeats == operation_id
    (asked,) = process.of(run_id, PermissionRequested)
    assert (asked.repeats, asked.reason) == (operation_id, AskReason.REPEAT_OF_UNSETTLED_EFFECT)
    assert len(process.of(run_id, PermissionDecided)) == 1
    cleared = [event for event in process.session_events() if isinstance(event, EffectCleared)]
    assert [event.operation_id for event in cleared] == [operation_id]
    assert not process.ledger.session(dispatch.session_id).watched
    repeated(process, pay)
    assert len(pay.keys) == 3, "the repeat was certain, so nothing is watched any more"


def test_a_repeat_whose_own_outcome_is_uncertain_is_watched_in_its_turn() -> None:
    process, pay = Process(), Unsure(failures=2)
    one_unsure_payment(process, pay)
    gate = AllowListGate([], ScriptedGate({"pay": Allowed("ada")}), allow_all=True)
    run_id = repeated(process, pay, gate)
    (dispatch,) = process.dispatches(run_id)
    assert list(process.ledger.session(dispatch.session_id).watched) == [dispatch.operation_id]


def test_other_arguments_are_no_repeat() -> None:
    process, pay = Process(), Unsure()
    one_unsure_payment(process, pay)
    run_id = repeated(process, pay, model=pays(4))
    assert process.response(run_id, "pay").effect is Effect.DONE


def test_an_equal_call_within_the_same_run_is_the_models_own_decision() -> None:
    process, pay = Process(), Unsure()
    model = PlannedModel([calls(("pay", {"amount": 3})), calls(("pay", {"amount": 3})), says("done")])
    result = go(lambda: process.turn("pay", model, [pay.function]))
    assert [one.effect for one in process.responses(result.run_id)] == [Effect.UNKNOWN, Effect.DONE]
    assert len(process.ledger.session(result.session_id).watched) == 1, "the first one is not certain by that"


def test_an_equal_idempotent_call_within_the_same_run_is_delivered_with_the_recorded_key() -> None:
    process, pay = Process(), Unsure(recovery="idempotent", key_valid_seconds=3600)
    pays_thrice = [calls(("pay", {"amount": 3}))] * 3
    result = go(lambda: process.turn("pay", PlannedModel([*pays_thrice, says("done")]), [pay.function]))
    assert [one.effect for one in process.responses(result.run_id)] == [Effect.UNKNOWN, Effect.DONE, Effect.DONE]
    assert pay.keys[0] == pay.keys[1] != pay.keys[2]
    assert process.ledger.session(result.session_id).watched == {}, "the later outcome of the key counts"


def test_one_more_delivery_that_did_nothing_leaves_the_effect_of_its_key_unknown() -> None:
    errors: list[Exception] = [OSError("reset"), RefusedWithoutEffect("no network")]
    told = list[bool]()

    @tool(recovery="idempotent", key_valid_seconds=3600)
    def pay(context: ToolContext, amount: int) -> str:
        """Pay."""
        told.append(context.redelivery)
        if errors:
            raise errors.pop(0)
        return "paid"

    process, call = Process(), calls(("pay", {"amount": 3}))
    result = go(lambda: process.turn("pay", PlannedModel([call, call, says("done")]), [pay]))
    assert [one.effect for one in process.responses(result.run_id)] == [Effect.UNKNOWN, Effect.UNKNOWN]
    assert "no network" in str(process.responses(result.run_id)[1].result)
    assert len(process.ledger.session(result.session_id).watched) == 1
    assert told == [False, True]


def test_an_idempotent_call_is_delivered_with_the_recorded_key_unasked() -> None:
    process, pay = Process(), Unsure(recovery="idempotent", key_valid_seconds=3600)
    operation_id = one_unsure_payment(process, pay)
    run_id = repeated(process, pay)
    assert len(pay.keys) == 2
    assert len(set(pay.keys)) == 1
    (dispatch,) = process.dispatches(run_id)
    assert (dispatch.idempotency_key, dispatch.repeats) == (pay.keys[0], operation_id)


def test_an_idempotent_call_whose_recorded_key_has_expired_is_a_repeat_like_any_other() -> None:
    clock = ManualClock()
    process, pay = Process(clock=clock), Unsure(recovery="idempotent", key_valid_seconds=60)
    operation_id = one_unsure_payment(process, pay)
    clock.advance(61)
    run_id = repeated(process, pay)
    assert len(pay.keys) == 1
    assert process.response(run_id, "pay").code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT
    gate = AllowListGate([], ScriptedGate({"pay": Allowed("ada")}), allow_all=True)
    run_id = repeated(process, pay, gate)
    (dispatch,) = process.dispatches(run_id)
    assert dispatch.repeats == operation_id
    assert len(set(pay.keys)) == 2


def test_once_a_delivery_with_the_recorded_key_is_certain_the_next_equal_call_is_a_new_effect() -> None:
    process, pay = Process(), Unsure(recovery="idempotent", key_valid_seconds=3600)
    one_unsure_payment(process, pay)
    repeated(process, pay)
    repeated(process, pay)
    assert len(pay.keys) == 3
    assert pay.keys[0] == pay.keys[1] != pay.keys[2]


@pytest.mark.parametrize(
    "declared",
    [{"recovery": "replay_safe"}, {"repeat_free": True}, {"recovery": "never_auto_retry", "repeat_free": True}],
)
def test_what_may_be_repeated_freely_is_not_asked_about_r3_029(declared: dict[str, Any]) -> None:
    process, pay = Process(), Unsure(**declared)
    gate = ScriptedGate({})
    go(lambda: process.turn("pay", pays(), [pay.function]))
    run_id = repeated(process, pay, AllowListGate([], gate, allow_all=True))
    assert len(pay.keys) == 2
    assert gate.asked == []
    assert process.response(run_id, "pay").is_error is False


def test_a_call_of_another_name_with_the_arguments_of_a_tool_that_is_gone_may_be_its_repeat() -> None:
    process, pay = Process(), Unsure()
    operation_id = one_unsure_payment(process, pay)
    renamed = Unsure("transfer", failures=0)
    run_id = repeated(process, renamed, model=pays(name="transfer"))
    assert renamed.keys == []
    assert process.response(run_id, "transfer").code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT
    gate = AllowListGate([], ScriptedGate({"transfer": Allowed("ada")}), allow_all=True)
    run_id = repeated(process, renamed, gate, pays(name="transfer"))
    (dispatch,) = process.dispatches(run_id)
    assert dispatch.repeats == operation_id
    assert not process.ledger.session(dispatch.session_id).watched


@pytest.mark.parametrize(
    ("declared", "arguments", "old_tool_too"),
    [
        ({}, {}, False),  # no arguments tell nothing
        ({"recovery": "replay_safe"}, {"amount": 3}, False),
        ({"repeat_free": True}, {"amount": 3}, False),
        ({}, {"amount": 3}, True),  # the tool is still there, so it was not renamed
    ],
)
def test_equal_arguments_alone_count_only_where_a_tool_may_have_been_renamed(
    declared: dict[str, Any], arguments: dict[str, Any], old_tool_too: bool
) -> None:
    process, pay = Process(), Unsure()
    go(lambda: process.turn("pay", PlannedModel([calls(("pay", arguments)), says("done")]), [pay.function]))
    renamed = Unsure("transfer", failures=0, **declared)
    tools = [renamed.function, pay.function] if old_tool_too else [renamed.function]
    model = PlannedModel([calls(("transfer", arguments)), says("done")])
    go(lambda: process.turn("transfer", model, tools))
    assert len(renamed.keys) == 1


def test_a_refusal_without_effect_is_not_watched() -> None:
    def pay(amount: int) -> str:
        """Pay."""
        raise RefusedWithoutEffect("no funds")

    process = Process()
    go(lambda: process.turn("pay", pays(), [pay]))
    assert [event for event in process.session_events() if isinstance(event, EffectWatched)] == []


def test_a_permission_for_a_plain_call_is_none_for_a_repeat() -> None:
    from .test_permissions import decide

    process, pay = Process(), Unsure()
    asks = ScriptedGate({})
    result = go(lambda: process.turn("pay", PlannedModel([calls(("pay", {"amount": 3}))]), [pay.function], gate=asks))
    model = PlannedModel([calls(("pay", {"amount": 3}))])
    unsure = go(lambda: process.turn("pay", model, [pay.function]))
    assert unsure.outcome.status is RunStatus.FAILED
    assert len(process.ledger.session(result.session_id).watched) == 1
    decide(process, result.run_id, approved=True)
    run_id = repeated(process, pay, ScriptedGate({}))
    assert len(pay.keys) == 1
    assert process.response(run_id, "pay").code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT


def test_a_permission_for_exactly_this_repeat_lets_it_through() -> None:
    from .test_permissions import decide

    process, pay = Process(), Unsure()
    operation_id = one_unsure_payment(process, pay)
    model = PlannedModel([calls(("pay", {"amount": 3}))])
    result = go(lambda: process.turn("again", model, [pay.function], gate=ScriptedGate({})))
    grant_id = decide(process, result.run_id, approved=True, repeats=operation_id)
    run_id = repeated(process, pay, ScriptedGate({}))
    (dispatch,) = process.dispatches(run_id)
    assert (dispatch.grant_id, dispatch.repeats) == (grant_id, operation_id)
    assert not process.ledger.session(result.session_id).watched


def test_two_equal_calls_of_one_step_are_asked_each_for_itself() -> None:
    class OneYes(ScriptedGate):
        def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
            answer = super().decide(request, cancel)
            return answer if len(self.asked) == 1 else Denied("ada", "once is enough")

    process, pay = Process(), Unsure()
    one_unsure_payment(process, pay)
    gate = OneYes({"pay": Allowed("ada")})
    model = PlannedModel([calls(("pay", {"amount": 3}), ("pay", {"amount": 3})), says("done")])
    run_id = repeated(process, pay, gate, model)
    assert len(pay.keys) == 2
    assert [one.code for one in process.responses(run_id)] == [None, ResponseCode.PERMISSION_DENIED]


def test_a_key_that_is_delivered_again_and_again_gets_no_younger_by_that() -> None:
    clock = ManualClock()
    process, pay = Process(clock=clock), Unsure(failures=9, recovery="idempotent", key_valid_seconds=60)
    one_unsure_payment(process, pay)
    for _ in range(2):
        clock.advance(25)
        repeated(process, pay)
    assert len(set(pay.keys)) == 1
    assert len(pay.keys) == 3
    clock.advance(25)
    run_id = repeated(process, pay)
    assert len(pay.keys) == 3
    assert process.response(run_id, "pay").code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT


def test_a_key_that_expires_while_a_person_thinks_is_not_delivered_again() -> None:
    clock = ManualClock()

    class Slow(ScriptedGate):
        def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
            clock.advance(120)
            return super().decide(request, cancel)

    process, pay = Process(clock=clock), Unsure(recovery="idempotent", key_valid_seconds=60)
    one_unsure_payment(process, pay)
    run_id = repeated(process, pay, Slow({"pay": Allowed("ada")}))
    assert len(pay.keys) == 1
    assert process.response(run_id, "pay").code == ResponseCode.REFUSED_WITHOUT_EFFECT
    assert process.dispatches(run_id) == []
