"""What an agent's tools, answers and runs come to with Safepoint, in one process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    Tool,
    ToolApproved,
    ToolDenied,
    ToolOutput,
    ToolReturn,
    WebSearchTool,
)
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.exceptions import ApprovalRequired, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset, WrapperToolset

import safepoint
from safepoint.adapters.pydantic_ai import AgentUnsupported, NotRecordable, Recording, current_call, history, promised
from safepoint.domain.events.run import RunStatus
from safepoint.domain.reasons import FailureClass

from ...changing import change_all
from .agents import agent, opened, paying

PAID = ModelResponse([TextPart("Paid.")])


def asks(*calls: tuple[str, str, dict[str, Any]]) -> ModelResponse:
    """A step of the model that calls tools: id, name, arguments."""
    return ModelResponse([ToolCallPart(name, args, tool_call_id=id_) for id_, name, args in calls])


def says(*responses: ModelResponse, seen: list[list[ModelMessage]] | None = None) -> FunctionModel:
    """A model with a script."""
    left = list(responses)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if seen is not None:
            seen.append(list(messages))
        return left.pop(0)

    return FunctionModel(answer)


class Recorded:
    """What was left of a recorded run."""

    output: Any = None
    error: Exception | None = None
    items: Sequence[Any] = ()
    outcome: Any = None

    def results(self) -> list[tuple[Any, bool]]:
        return [(item.result, item.is_error) for item in self.items if item.kind == "result"]


def recorded(folder: Path, made: Agent[Any, Any], *tools: Any, then: Callable[..., Any] | None = None) -> Recorded:
    """Run an agent in a recorded run; what it raises is kept."""
    left = Recorded()
    folder.mkdir(exist_ok=True)

    async def main() -> None:
        named = safepoint.NamedModel("function", "script")
        async with safepoint.open(folder / "store.sqlite", model=named, tools=tools) as runtime:
            try:
                async with runtime.session("bill").record("Pay the bill.") as run:
                    try:
                        recording = Recording(run)
                        done = await made.run(message_history=history(run), capabilities=[recording])
                        if then is not None:
                            done = await then(made, done, recording)
                        left.output = done.output
                    finally:
                        left.items = run.history()
            except Exception as error:  # noqa: BLE001 (looked at by the test)
                left.error = error
            left.outcome = run.outcome

    anyio.run(main)
    return left


class Bank:
    """Tools that keep what was done."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    async def pay(self, amount: int) -> str:
        """Pay."""
        self.done.append(amount)
        return f"paid {amount}"

    def look(self, account: str) -> dict[str, str]:
        """Look."""
        self.done.append(account)
        return {"account": account}


def test_calls_of_one_step_are_carried_out_in_parallel_and_each_is_recorded(tmp_path: Path) -> None:
    bank, both = Bank(), anyio.Event()
    inside: list[int] = []

    async def pay(amount: int) -> str:
        inside.append(amount)
        if len(inside) == 2:
            both.set()
        with anyio.fail_after(30):
            await both.wait()
        return await bank.pay(amount)

    step = asks(("a", "pay", {"amount": 1}), ("b", "pay", {"amount": 2}), ("c", "look", {"account": "x"}))
    made = Agent(says(step, PAID), tools=[pay, bank.look])
    left = recorded(tmp_path, made, promised(pay), promised(bank.look, recovery="replay_safe"))
    assert left.error is None
    assert left.results() == [("paid 1", False), ("paid 2", False), ({"account": "x"}, False)]
    assert left.outcome.status is RunStatus.COMPLETED


def test_a_tool_knows_its_call(tmp_path: Path) -> None:
    keys: list[Any] = []

    def pay(amount: int) -> str:
        call = current_call()
        keys.append(call and call.idempotency_key)
        return "paid"

    recorded(tmp_path, Agent(says(asks(("a", "pay", {"amount": 1})), PAID), tools=[pay]), promised(pay))
    assert keys[0]
    assert current_call() is None


def test_arguments_that_do_not_fit_are_answered_and_asked_for_again(tmp_path: Path) -> None:
    bank, seen = Bank(), list[list[ModelMessage]]()
    steps = asks(("a", "pay", {"amount": "much"})), asks(("b", "pay", {"amount": 5})), PAID
    left = recorded(tmp_path, Agent(says(*steps, seen=seen), tools=[bank.pay]), promised(bank.pay))
    (refused, is_error), paid = left.results()
    assert is_error
    assert paid == ("paid 5", False)
    assert bank.done == [5]
    (told,) = [part for part in seen[1][-1].parts if isinstance(part, ToolReturnPart)]
    assert refused == told.model_response_str(), "what the model is shown is what is recorded"
    assert left.outcome.status is RunStatus.COMPLETED


def test_a_tool_that_nobody_has_is_answered(tmp_path: Path) -> None:
    left = recorded(tmp_path, Agent(says(asks(("a", "nothing", {})), PAID)))
    ((_, is_error),) = left.results()
    assert is_error
    assert left.output == "Paid."


def test_an_agent_with_a_tool_that_was_not_promised_is_refused_before_its_model_is_asked(tmp_path: Path) -> None:
    bank, seen = Bank(), list[list[ModelMessage]]()
    made = Agent(says(asks(("a", "pay", {"amount": 5})), PAID, seen=seen), tools=[bank.look, bank.pay])
    left = recorded(tmp_path, made, promised(bank.look))
    assert isinstance(left.error, AgentUnsupported)
    assert "the tool 'pay'" in str(left.error)
    assert "tools=[promised(...)]" in str(left.error)
    assert (bank.done, seen) == ([], [])


def test_a_retry_that_a_tool_asks_for_is_recorded_as_not_certain_unless_it_says_otherwise(tmp_path: Path) -> None:
    tried: list[int] = []

    def pay(amount: int) -> str:
        tried.append(amount)
        if amount > 5:
            raise ModelRetry("too much")
        return "paid"

    steps = asks(("a", "pay", {"amount": 9})), asks(("b", "pay", {"amount": 5})), PAID
    made = Agent(says(*steps), tools=[pay])
    (retried, error), paid = recorded(tmp_path / "one", made, promised(pay)).results()
    assert error
    assert "too much" in str(retried)
    assert paid == ("paid", False)
    assert tried == [9, 5]


@pytest.mark.parametrize(("promise", "done"), [({}, [9]), ({"no_effect_errors": (ModelRetry,)}, [9, 9])])
def test_the_same_call_in_a_later_turn_needs_a_person_while_its_effect_is_not_certain(
    tmp_path: Path, promise: dict[str, Any], done: list[int]
) -> None:
    tried: list[int] = []

    def pay(amount: int) -> str:
        tried.append(amount)
        raise ModelRetry("try again")

    for _ in range(2):
        made = Agent(says(asks(("a", "pay", {"amount": 9})), PAID), tools=[pay])
        assert recorded(tmp_path, made, promised(pay, **promise)).output == "Paid."
    assert tried == done


def test_what_a_tool_raises_ends_the_run_with_its_call_answered(tmp_path: Path) -> None:
    def pay(amount: int) -> str:
        raise OSError("gone")

    left = recorded(tmp_path, Agent(says(asks(("a", "pay", {"amount": 5}))), tools=[pay]), promised(pay))
    assert isinstance(left.error, OSError)
    ((_, is_error),) = left.results()
    assert is_error
    assert left.outcome.status is RunStatus.FAILED
    assert left.outcome.failure is FailureClass.APP_RESTARTED


def test_calls_beside_one_that_raises_are_torn_and_stay_in_doubt(tmp_path: Path) -> None:
    inside = anyio.Event()

    async def bad(amount: int) -> str:
        await inside.wait()
        raise OSError("gone")

    async def slow(amount: int) -> str:
        inside.set()
        await anyio.sleep_forever()
        return "never"

    step = asks(("a", "bad", {"amount": 1}), ("b", "slow", {"amount": 2}))
    left = recorded(tmp_path, Agent(says(step), tools=[bad, slow]), promised(bad), promised(slow))
    assert isinstance(left.error, OSError)
    assert left.outcome.failure is FailureClass.TOOL_NOT_OVER


@pytest.mark.parametrize("sibling", ["asynchronous", "in a thread"])
def test_a_call_that_was_cancelled_beside_one_that_raised_runs_on_only_where_it_is_in_a_thread(
    tmp_path: Path, sibling: str
) -> None:
    inside, let_go = threading.Event(), threading.Event()
    plans: list[safepoint.Park | safepoint.Continue] = []

    async def bad(amount: int) -> str:
        assert await anyio.to_thread.run_sync(inside.wait, 30)
        raise OSError("gone")

    async def slow(amount: int) -> str:
        inside.set()
        await anyio.sleep_forever()
        return "never"

    def stuck(amount: int) -> str:
        inside.set()
        assert let_go.wait(30)
        return "late"

    beside = slow if sibling == "asynchronous" else stuck
    name = "slow" if sibling == "asynchronous" else "stuck"

    async def main() -> None:
        named = safepoint.NamedModel("function", "script")
        promises = [promised(bad), promised(beside)]
        async with safepoint.open(tmp_path / "store.sqlite", model=named, tools=promises) as runtime:
            session = runtime.session("bill")
            with contextlib.suppress(Exception):
                async with session.record("Pay the bill.") as run:
                    made = Agent(
                        says(asks(("a", "bad", {"amount": 1}), ("b", name, {"amount": 2}))), tools=[bad, beside]
                    )
                    await made.run(message_history=history(run), capabilities=[Recording(run)])
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


def test_a_file_that_a_tool_returns_is_no_result_but_its_effect_is_known(tmp_path: Path) -> None:
    bank, seen = Bank(), list[list[ModelMessage]]()

    def pay(amount: int) -> BinaryContent:
        bank.done.append(amount)
        return BinaryContent(b"receipt", media_type="image/png")

    left = recorded(
        tmp_path, Agent(says(asks(("a", "pay", {"amount": 5})), PAID, seen=seen), tools=[pay]), promised(pay)
    )
    ((said, is_error),) = left.results()
    assert is_error
    (told,) = [part for part in seen[1][-1].parts if isinstance(part, ToolReturnPart)]
    assert told.content == said
    assert bank.done == [5]


class Receipt(BaseModel):
    amount: int


def test_results_are_recorded_as_the_model_is_shown_them(tmp_path: Path) -> None:
    def pay(amount: int) -> Receipt:
        return Receipt(amount=amount)

    def tell(text: str) -> ToolReturn:
        return ToolReturn("told", content="and this", metadata={"kept": "here"})

    step = asks(("a", "pay", {"amount": 5}), ("b", "tell", {"text": "hello"}))
    left = recorded(tmp_path, Agent(says(step, PAID), tools=[pay, tell]), promised(pay), promised(tell))
    assert left.error is None
    assert left.results() == [({"amount": 5}, False), ("told", False)]
    assert [item.text for item in left.items if item.kind == "user"] == ["Pay the bill.", "and this"]


def test_an_output_of_a_tool_is_an_answer_and_no_call(tmp_path: Path) -> None:
    bank = Bank()
    step = asks(("a", "pay", {"amount": 5}))
    output = asks(("b", "final_result", {"amount": "much"})), asks(("c", "final_result", {"amount": 5}))
    made = Agent(says(step, *output), tools=[bank.pay], output_type=ToolOutput(Receipt))
    left = recorded(tmp_path, made, promised(bank.pay))
    assert left.output == Receipt(amount=5)
    assert left.outcome.status is RunStatus.COMPLETED
    assert [item.text for item in left.items if item.kind == "text"] == ['{"amount":"much"}', '{"amount":5}']


def test_calls_beside_an_output_are_answered_too(tmp_path: Path) -> None:
    bank = Bank()
    step = asks(("a", "final_result", {"amount": 5}), ("b", "pay", {"amount": 5}))
    made = Agent(says(step), tools=[bank.pay], output_type=ToolOutput(Receipt), end_strategy="early")
    left = recorded(tmp_path, made, promised(bank.pay))
    assert bank.done == []
    assert left.outcome.status is RunStatus.COMPLETED


def test_an_output_function_is_refused(tmp_path: Path) -> None:
    done: list[int] = []

    def pay(amount: int) -> str:
        done.append(amount)
        return "paid"

    left = recorded(tmp_path, Agent(says(asks(("a", "final_result", {"amount": 5}))), output_type=pay))
    assert isinstance(left.error, AgentUnsupported)
    assert done == []


@pytest.mark.parametrize(("approved", "paid"), [(True, [5]), (False, [])])
@pytest.mark.parametrize("how", ["tool", "toolset"])
def test_a_call_waits_for_an_approval_before_it_is_dispatched(
    tmp_path: Path, how: str, approved: bool, paid: list[int]
) -> None:
    bank = Bank()

    async def then(made: Agent[Any, Any], done: Any, recording: Recording) -> Any:
        assert isinstance(done.output, DeferredToolRequests)
        assert recording.run.answer("a") is None
        decided: Any = ToolApproved() if approved else ToolDenied("no")
        results = DeferredToolResults(approvals={"a": decided})
        return await made.run(
            message_history=done.all_messages(), deferred_tool_results=results, capabilities=[recording]
        )

    more: dict[str, Any] = (
        {"tools": [Tool(bank.pay, requires_approval=True)]}
        if how == "tool"
        else {"toolsets": [FunctionToolset([bank.pay]).approval_required()]}
    )
    made = Agent(says(asks(("a", "pay", {"amount": 5})), PAID), output_type=[str, DeferredToolRequests], **more)
    left = recorded(tmp_path, made, promised(bank.pay), then=then)
    assert left.error is None
    assert left.output == "Paid."
    assert bank.done == paid
    assert left.results() == [("paid 5", False) if approved else ("no", True)]


def test_an_approval_with_other_arguments_is_refused(tmp_path: Path) -> None:
    bank = Bank()

    async def then(made: Agent[Any, Any], done: Any, recording: Recording) -> Any:
        results = DeferredToolResults(approvals={"a": ToolApproved(override_args={"amount": 6})})
        return await made.run(
            message_history=done.all_messages(), deferred_tool_results=results, capabilities=[recording]
        )

    tool = Tool(bank.pay, requires_approval=True)
    made = Agent(says(asks(("a", "pay", {"amount": 5})), PAID), tools=[tool], output_type=[str, DeferredToolRequests])
    left = recorded(tmp_path, made, promised(bank.pay), then=then)
    assert isinstance(left.error, AgentUnsupported)
    assert bank.done == []


@pytest.mark.parametrize("raised", [ApprovalRequired, CallDeferred])
def test_a_tool_that_leaves_its_call_to_others_is_refused(tmp_path: Path, raised: type[Exception]) -> None:
    def pay(amount: int) -> str:
        raise raised

    made = Agent(says(asks(("a", "pay", {"amount": 5}))), tools=[pay], output_type=[str, DeferredToolRequests])
    left = recorded(tmp_path, made, promised(pay))
    assert isinstance(left.error, AgentUnsupported)


class Searching(TestModel):
    """A model whose provider has a tool of its own."""

    @classmethod
    def supported_native_tools(cls) -> frozenset[Any]:
        return frozenset({WebSearchTool})


def test_tools_that_run_elsewhere_are_refused_before_the_model_is_asked(tmp_path: Path) -> None:
    pay = Tool(Bank().pay).tool_def
    outside: Any = Agent(says(), toolsets=[ExternalToolset([pay])], output_type=[str, DeferredToolRequests])
    assert isinstance(recorded(tmp_path / "one", outside).error, AgentUnsupported)
    searching = Agent(Searching(), capabilities=[NativeTool(WebSearchTool())])
    assert isinstance(recorded(tmp_path / "two", searching).error, AgentUnsupported)


class Careless(WrapperToolset[Any]):
    """A toolset of somebody's own that does something beside the tool."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        found = current_call()
        assert found is not None, "it is part of the call"
        return await super().call_tool(name, tool_args, ctx, tool)


def test_a_toolset_of_ones_own_is_recorded_whole(tmp_path: Path) -> None:
    bank = Bank()
    made = Agent(
        says(asks(("a", "my_pay", {"amount": 5})), PAID),
        toolsets=[Careless(FunctionToolset([bank.pay])).prefixed("my")],
    )
    left = recorded(tmp_path, made, safepoint.contract("my_pay"))
    assert left.error is None
    assert left.results() == [("paid 5", False)]


def test_a_prompt_beside_the_recorded_message_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as runtime, runtime.session("bill").record("Pay the bill.") as run:
            with pytest.raises(NotRecordable, match=r"session\.record"):
                await agent(tmp_path).run("Pay the bill.", message_history=history(run), capabilities=[Recording(run)])
            run.needs_no_answer()

    anyio.run(main)


def test_a_call_that_no_step_recorded_is_never_carried_out(tmp_path: Path) -> None:
    class Forgetful(Recording):
        async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> ModelResponse:
            response: ModelResponse = await handler(request_context)
            return response

    async def main() -> None:
        async with opened(tmp_path) as runtime, runtime.session("bill").record("Pay the bill.") as run:
            with pytest.raises(ValueError, match="no step"):
                await agent(tmp_path).run(message_history=history(run), capabilities=[Forgetful(run)])
            run.needs_no_answer()

    anyio.run(main)
    assert not (tmp_path / "payments.txt").exists()


def test_an_agent_that_runs_without_its_recording_leaves_no_success(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as runtime:
            with pytest.raises(safepoint.NoStepRecorded, match="the page of its adapter"):
                async with runtime.session("bill").record("Pay the bill.") as run:
                    await agent(tmp_path).run(message_history=history(run))
            assert run.outcome is not None
            assert run.outcome.status is RunStatus.FAILED

    anyio.run(main)


@pytest.mark.parametrize("how", ["run_stream", "events", "iter"])
def test_streamed_runs_are_recorded_whole(tmp_path: Path, how: str) -> None:
    async def main() -> None:
        async with opened(tmp_path) as runtime:
            async with runtime.session("bill").record("Pay the bill.") as run:
                made: Any = agent(tmp_path)
                more = {"message_history": history(run), "capabilities": [Recording(run)]}
                if how == "run_stream":
                    async with made.run_stream(**more) as streamed:
                        assert [one async for one in streamed.stream_text(delta=True, debounce_by=None)] == [
                            "Pa",
                            "id.",
                        ]
                elif how == "iter":
                    async with made.iter(**more) as running:
                        assert len([node async for node in running]) == 6
                else:
                    async with made.run_stream_events(**more) as events:
                        assert [type(event).__name__ async for event in events]
                kinds = [item.kind for item in run.history()]
            said = ["text"] if how == "iter" else []
            assert kinds == ["user", *said, "call", "result", "text"]
            assert run.outcome is not None
            assert run.outcome.status is RunStatus.COMPLETED

    anyio.run(main)
    assert len((tmp_path / "payments.txt").read_text().splitlines()) == 1


def test_thinking_and_what_only_the_provider_understands_come_back_as_they_were(tmp_path: Path) -> None:
    thought = ThinkingPart("hm", id="t1", signature="s=", provider_name="acme", provider_details={"a": [1]})
    call = ToolCallPart("pay", {"amount": 5}, tool_call_id="a", id="i1", provider_name="acme")
    bank = Bank()
    response = ModelResponse([thought, TextPart("So."), call])
    left = recorded(tmp_path, Agent(says(response, PAID), tools=[bank.pay]), promised(bank.pay))
    messages = history(left.items)
    assert messages[1].parts == response.parts
    assert isinstance(messages[2], ModelRequest)
    before = repr(left.items)
    assert change_all(messages) > 2
    assert repr(left.items) == before  # the messages are the agent's


def test_too_many_retries_leave_a_run_whose_calls_are_answered(tmp_path: Path) -> None:
    steps = [asks((f"c{place}", "pay", {"amount": "much"})) for place in range(3)]
    bank = Bank()
    left = recorded(tmp_path, Agent(says(*steps), tools=[bank.pay]), promised(bank.pay))
    assert isinstance(left.error, UnexpectedModelBehavior)
    assert left.outcome.status is RunStatus.FAILED
    assert bank.done == []


def test_the_second_turn_goes_on_from_the_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as runtime:
            session = runtime.session("bill")
            async with session.record("Pay the bill.") as run:
                await agent(tmp_path).run(message_history=history(run), capabilities=[Recording(run)])
            seen: list[list[ModelMessage]] = []
            async with session.record("Thanks.") as run:
                made = Agent(says(PAID, seen=seen), tools=[paying(tmp_path)])
                await made.run(message_history=history(run), capabilities=[Recording(run)])
            assert [len(message.parts) for message in seen[0]] == [1, 2, 1, 1, 1]

    anyio.run(main)


def test_what_is_promised_of_a_tool_is_what_the_model_is_offered(tmp_path: Path) -> None:
    bank = Bank()
    spec = promised(bank.pay, recovery="never_auto_retry").spec
    assert (spec.name, spec.description) == ("pay", "Pay.")
    assert spec.input_schema["required"] == ["amount"]
