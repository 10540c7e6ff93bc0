"""What an agent's tools, answers and runs come to with Safepoint, in one process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import (
    Agent,
    AgentHooks,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    OutputGuardrail,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    ToolOutputImage,
    WebSearchTool,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

import safepoint
from safepoint.adapters.openai_agents import AgentUnsupported, NotRecordable, current_call, promised, recorded
from safepoint.domain.events.run import RunStatus
from safepoint.domain.reasons import FailureClass

set_tracing_disabled(True)

PAID = [assistant_message("Paid.")]


def asks(*calls: tuple[str, str, dict[str, Any]]) -> list[Any]:
    """A step of the model that calls tools: id, name, arguments."""
    return [function_call(name, args, call_id=id_) for id_, name, args in calls]


class Left:
    """What was left of a recorded run."""

    output: Any = None
    error: Exception | None = None
    items: Sequence[Any] = ()
    outcome: Any = None

    def results(self) -> list[tuple[Any, bool]]:
        return [(item.result, item.is_error) for item in self.items if item.kind == "result"]


def told(model: ScriptedModel) -> list[Any]:
    """The answers to calls that the model was shown at last."""
    assert model.last_call is not None
    items: Any = model.last_call.input
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


def run_of(
    folder: Path, made: Agent[Any], *promises: Any, drive: Callable[..., Any] | None = None, **more: Any
) -> Left:
    """Run an agent in a recorded run; what it raises is kept."""
    left = Left()

    async def plainly(ready: Agent[Any], run: safepoint.RecordedRun) -> Any:
        return await Runner.run(ready, run.history("openai-responses"), **more)

    async def main() -> None:
        named = safepoint.NamedModel("openai", "scripted")
        async with safepoint.open(folder / "store.sqlite", model=named, tools=promises) as runtime:
            try:
                async with runtime.session("bill").record("Pay the bill.") as run:
                    try:
                        left.output = (await (drive or plainly)(recorded(made, run), run)).final_output
                    finally:
                        left.items = run.history()
            except Exception as error:  # noqa: BLE001 (looked at by the test)
                left.error = error
            left.outcome = run.outcome

    anyio.run(main)
    return left


def banking() -> tuple[list[Any], Any, Any]:
    """Tools, and what was done by them."""
    done: list[Any] = []

    @function_tool
    async def pay(amount: int) -> str:
        """Pay."""
        done.append(amount)
        return f"paid {amount}"

    @function_tool
    def look(account: str) -> dict[str, str]:
        """Look."""
        done.append(account)
        return {"account": account}

    return done, pay, look


def test_calls_of_one_step_are_carried_out_in_parallel_and_each_is_recorded(tmp_path: Path) -> None:
    both, inside = asyncio.Event(), list[int]()

    @function_tool
    async def pay(amount: int) -> str:
        inside.append(amount)
        if len(inside) == 2:
            both.set()
        with anyio.fail_after(30):
            await both.wait()
        return f"paid {amount}"

    _, _, look = banking()
    model = ScriptedModel(
        [asks(("a", "pay", {"amount": 1}), ("b", "pay", {"amount": 2}), ("c", "look", {"account": "x"})), PAID]
    )
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay, look]), promised(pay), promised(look))
    assert left.error is None
    assert left.results() == [("paid 1", False), ("paid 2", False), ({"account": "x"}, False)]
    assert left.outcome.status is RunStatus.COMPLETED


def test_a_tool_knows_its_call_and_its_context(tmp_path: Path) -> None:
    keys: list[Any] = []

    @function_tool
    async def pay(context: RunContextWrapper[str], amount: int) -> str:
        call = current_call()
        keys.append((call and call.idempotency_key, context.context))
        return "paid"

    model = ScriptedModel([asks(("a", "pay", {"amount": 1})), PAID])
    run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay), context="theirs")
    ((key, theirs),) = keys
    assert key
    assert theirs == "theirs"
    assert current_call() is None


def test_what_a_tool_raises_is_told_as_not_certain(tmp_path: Path) -> None:
    @function_tool
    async def pay(amount: int) -> str:
        raise OSError("gone")

    model = ScriptedModel([asks(("a", "pay", {"amount": 1})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay))
    ((said, is_error),) = left.results()
    assert is_error
    assert told(model) == [said], "what the model is shown is what is recorded"
    assert left.outcome.status is RunStatus.COMPLETED


def test_where_the_tool_says_that_errors_are_raised_they_end_the_run(tmp_path: Path) -> None:
    @function_tool(failure_error_function=None)
    async def pay(amount: int) -> str:
        raise OSError("gone")

    left = run_of(
        tmp_path, Agent("payer", model=ScriptedModel([asks(("a", "pay", {"amount": 1}))]), tools=[pay]), promised(pay)
    )
    assert left.error is not None
    ((_, is_error),) = left.results()
    assert is_error
    assert left.outcome.failure is FailureClass.APP_RESTARTED


def test_calls_beside_one_that_raises_are_torn_and_stay_in_doubt(tmp_path: Path) -> None:
    inside = asyncio.Event()

    @function_tool(failure_error_function=None)
    async def bad(amount: int) -> str:
        await inside.wait()
        raise OSError("gone")

    @function_tool
    async def slow(amount: int) -> str:
        inside.set()
        await anyio.sleep_forever()
        return "never"

    model = ScriptedModel([asks(("a", "bad", {"amount": 1}), ("b", "slow", {"amount": 2}))])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[bad, slow]), promised(bad), promised(slow))
    assert left.error is not None
    assert left.outcome.failure is FailureClass.TOOL_NOT_OVER


@pytest.mark.parametrize("sibling", ["asynchronous", "in a thread"])
def test_a_call_that_was_cancelled_beside_one_that_raised_runs_on_only_where_it_is_in_a_thread(
    tmp_path: Path, sibling: str
) -> None:
    inside, let_go = threading.Event(), threading.Event()
    plans: list[safepoint.Park | safepoint.Continue] = []

    @function_tool(failure_error_function=None)
    async def bad(amount: int) -> str:
        assert await anyio.to_thread.run_sync(inside.wait, 30)
        raise OSError("gone")

    @function_tool
    async def slow(amount: int) -> str:
        inside.set()
        await anyio.sleep_forever()
        return "never"

    @function_tool
    def stuck(amount: int) -> str:
        inside.set()
        assert let_go.wait(30)
        return "late"

    beside = slow if sibling == "asynchronous" else stuck
    name = "slow" if sibling == "asynchronous" else "stuck"

    async def main() -> None:
        named = safepoint.NamedModel("openai", "scripted")
        promises = [promised(bad), promised(beside)]
        async with safepoint.open(tmp_path / "store.sqlite", model=named, tools=promises) as runtime:
            session = runtime.session("bill")
            with contextlib.suppress(Exception):
                async with session.record("Pay the bill.") as run:
                    model = ScriptedModel([asks(("a", "bad", {"amount": 1}), ("b", name, {"amount": 2}))])
                    made = recorded(Agent("payer", model=model, tools=[bad, beside]), run)
                    await Runner.run(made, run.history("openai-responses"))
            plans.append(await session.plan())
            if sibling == "asynchronous":
                (one,) = [one for one in await session.unsettled() if one.tool_name == "slow"]
                await session.settle(one.operation_id, "not_executed", by="ada", note="it was cancelled")
            let_go.set()

    anyio.run(main)
    (plan,) = plans
    assert isinstance(plan, safepoint.Park)
    running = safepoint.ParkReason.EFFECT_MAY_BE_RUNNING in plan.codes
    assert running is (sibling == "in a thread")
    assert safepoint.ParkReason.DANGLING_TOOL_STATE in plan.codes


def test_a_tool_that_takes_too_long_is_ended_and_its_effect_is_not_certain(tmp_path: Path) -> None:
    ended: list[str] = []

    @function_tool(timeout=0.05)
    async def pay(amount: int) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("pay")
        return "never"

    model = ScriptedModel([asks(("a", "pay", {"amount": 1})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay))
    assert ended == ["pay"]
    ((said, is_error),) = left.results()
    assert is_error
    assert told(model) == [said]
    assert left.outcome.status is RunStatus.COMPLETED


def test_an_agent_with_a_tool_that_was_not_promised_is_refused(tmp_path: Path) -> None:
    done, pay, look = banking()
    model = ScriptedModel([asks(("a", "pay", {"amount": 1})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[look, pay]), promised(look))
    assert isinstance(left.error, AgentUnsupported)
    assert "the tool 'pay'" in str(left.error)
    assert (done, model.last_call) == ([], None)


class Receipt(BaseModel):
    amount: int


def test_results_are_recorded_as_json_and_files_are_none(tmp_path: Path) -> None:
    @function_tool
    async def pay(amount: int) -> Receipt:
        return Receipt(amount=amount)

    @function_tool
    async def draw(text: str) -> ToolOutputImage:
        return ToolOutputImage(image_url="https://example.org/a.png")

    model = ScriptedModel([asks(("a", "pay", {"amount": 5}), ("b", "draw", {"text": "x"})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay, draw]), promised(pay), promised(draw))
    paid, (said, is_error) = left.results()
    assert paid == ({"amount": 5}, False)
    assert is_error
    assert told(model)[1] == said


@pytest.mark.parametrize(("approved", "paid"), [(True, [5]), (False, [])])
def test_a_call_waits_for_an_approval_before_it_is_dispatched(tmp_path: Path, approved: bool, paid: list[int]) -> None:
    done: list[int] = []

    @function_tool(needs_approval=True)
    async def pay(amount: int) -> str:
        done.append(amount)
        return f"paid {amount}"

    async def drive(ready: Agent[Any], run: safepoint.RecordedRun) -> Any:
        result = await Runner.run(ready, run.history("openai-responses"))
        (asked,) = result.interruptions
        assert run.answer("a") is None
        state = result.to_state()
        state.approve(asked) if approved else state.reject(asked)
        return await Runner.run(ready, state)

    model = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay), drive=drive)
    assert left.error is None
    assert done == paid
    assert left.results() == [(told(model)[0], not approved)]
    assert left.outcome.status is RunStatus.COMPLETED


def test_a_guardrail_that_keeps_a_tool_from_running_is_recorded(tmp_path: Path) -> None:
    done, pay, _ = banking()
    pay.tool_input_guardrails = [
        ToolInputGuardrail(lambda data: ToolGuardrailFunctionOutput.reject_content("not today"))
    ]
    model = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay))
    assert done == []
    assert left.results() == [("not today", True)]


def test_a_guardrail_that_ends_a_run_leaves_it_failed(tmp_path: Path) -> None:
    def trip(context: Any, agent: Any, shown: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered=True)

    made: Agent[Any] = Agent("payer", model=ScriptedModel([PAID]), input_guardrails=[InputGuardrail(trip)])
    left = run_of(tmp_path, made)
    assert isinstance(left.error, InputGuardrailTripwireTriggered)
    assert left.outcome.status is RunStatus.FAILED


def test_structured_output_is_an_answer_and_a_guardrail_of_it_ends_the_run_after_it_was_recorded(
    tmp_path: Path,
) -> None:
    def trip(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered=output.amount > 5)

    for amount in (5, 6):
        model = ScriptedModel([[assistant_message(f'{{"amount":{amount}}}')]])
        made: Agent[Any] = Agent("payer", model=model, output_type=Receipt, output_guardrails=[OutputGuardrail(trip)])
        left = run_of(tmp_path, made)
        assert left.items[-1].text == f'{{"amount":{amount}}}'
        if amount == 5:
            assert left.output == Receipt(amount=5)
        else:
            assert isinstance(left.error, OutputGuardrailTripwireTriggered)
            assert left.outcome.status is RunStatus.FAILED


def test_an_agent_as_a_tool_is_one_call(tmp_path: Path) -> None:
    inner: Agent[Any] = Agent("inner", model=ScriptedModel([[assistant_message("I say so.")]]))
    tool = inner.as_tool("ask_inner", "Ask.")
    model = ScriptedModel([asks(("a", "ask_inner", {"input": "well?"})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[tool]), promised(tool))
    assert left.error is None
    assert left.results() == [("I say so.", False)]


def test_what_runs_elsewhere_is_refused_before_the_model_is_asked(tmp_path: Path) -> None:
    _, pay, _ = banking()
    other: Agent[Any] = Agent("other")
    pay.tool_output_guardrails = [ToolOutputGuardrail(lambda data: ToolGuardrailFunctionOutput.allow())]
    anything: Any = object()
    refused: list[Agent[Any]] = [
        Agent("hosted", tools=[WebSearchTool()]),
        Agent("handing over", handoffs=[other]),
        Agent("serving", mcp_servers=[anything]),
        Agent("changing results", tools=[pay]),
    ]
    for place, made in enumerate(refused):
        made.model = model = ScriptedModel([PAID])
        folder = tmp_path / str(place)
        folder.mkdir()
        assert isinstance(run_of(folder, made).error, AgentUnsupported)
        assert model.calls == ()


def test_a_tool_that_is_added_behind_the_record_is_refused(tmp_path: Path) -> None:
    done, pay, _ = banking()
    model = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])

    async def drive(ready: Agent[Any], run: safepoint.RecordedRun) -> Any:
        ready.tools.append(pay)
        return await Runner.run(ready, run.history("openai-responses"))

    left = run_of(tmp_path, Agent("payer", model=model), promised(pay), drive=drive)
    assert isinstance(left.error, AgentUnsupported)
    assert done == []
    assert model.calls == ()


def test_an_answer_of_another_model_is_refused_before_anything_of_it_is_carried_out(tmp_path: Path) -> None:
    done, pay, _ = banking()
    other = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])
    made: Agent[Any] = Agent("payer", model=ScriptedModel([PAID]), tools=[pay])
    left = run_of(tmp_path, made, promised(pay), run_config=RunConfig(model=other))
    assert isinstance(left.error, AgentUnsupported)
    assert done == []


def test_the_agents_own_hooks_are_called(tmp_path: Path) -> None:
    seen: list[str] = []

    class Hooks(AgentHooks[Any]):
        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            seen.append("answered")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            seen.append("done")

    _, pay, _ = banking()
    model = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])
    run_of(tmp_path, Agent("payer", model=model, tools=[pay], hooks=Hooks()), promised(pay))
    assert seen == ["answered", "done", "answered"]


def test_an_input_beside_the_recorded_message_is_refused(tmp_path: Path) -> None:
    model = ScriptedModel([PAID])

    async def drive(ready: Agent[Any], run: safepoint.RecordedRun) -> Any:
        return await Runner.run(ready, "Something else.")

    left = run_of(tmp_path, Agent("payer", model=model), drive=drive)
    assert isinstance(left.error, NotRecordable)
    assert model.calls == ()


def test_streamed_runs_are_recorded_whole(tmp_path: Path) -> None:
    done, pay, _ = banking()

    async def drive(ready: Agent[Any], run: safepoint.RecordedRun) -> Any:
        result = Runner.run_streamed(ready, run.history("openai-responses"))
        assert [event.type async for event in result.stream_events()]
        return result

    model = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay), drive=drive)
    assert left.error is None
    assert done == [5]
    assert [item.kind for item in left.items] == ["user", "call", "result", "text"]
    assert left.outcome.status is RunStatus.COMPLETED


def test_too_many_turns_leave_a_run_whose_calls_are_answered(tmp_path: Path) -> None:
    _, pay, _ = banking()
    model = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])
    left = run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay), max_turns=1)
    assert isinstance(left.error, MaxTurnsExceeded)
    assert left.results() == [("paid 5", False)]
    assert left.outcome.status is RunStatus.FAILED


def test_a_tool_that_nobody_has_ends_the_run_and_has_no_effect(tmp_path: Path) -> None:
    left = run_of(tmp_path, Agent("payer", model=ScriptedModel([asks(("a", "nothing", {})), PAID])))
    assert left.error is not None
    assert left.outcome.status is RunStatus.FAILED


def test_the_second_turn_goes_on_from_the_first(tmp_path: Path) -> None:
    _, pay, _ = banking()
    for _ in range(2):
        model = ScriptedModel([asks(("a", "pay", {"amount": 5})), PAID])
        left = run_of(tmp_path, Agent("payer", model=model, tools=[pay]), promised(pay))
        assert left.error is None
    kinds = ["user", "call", "result", "text"]
    assert [item.kind for item in left.items] == kinds * 2


def test_what_is_promised_of_a_tool_is_what_the_model_is_offered() -> None:
    _, pay, _ = banking()
    spec = promised(pay, recovery="never_auto_retry").spec
    assert (spec.name, spec.description) == ("pay", "Pay.")
    assert spec.input_schema["required"] == ["amount"]
