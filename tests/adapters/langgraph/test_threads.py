"""What a graph's tools, turns and states come to with Safepoint, in one process."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from langgraph.graph import MessagesState
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, interrupt

import safepoint
from safepoint.adapters.langgraph import (
    AgentUnsupported,
    InterruptInTool,
    NoOpenTurn,
    NothingToResume,
    SafeCheckpointer,
    StateDiffers,
    ThreadNotSafe,
    Threads,
    ThreadVerdict,
    Turn,
    current_call,
    promised,
)
from safepoint.application.budget import BudgetSpent
from safepoint.domain.events.run import RunStatus
from safepoint.domain.planning.outcome import Reason
from safepoint.domain.reasons import FailureClass
from safepoint.ports.tool_catalog import BoundCall, SchemaMismatch

from .graphs import ASKS, PAID, THREAD, Graph, agent, opened, saver

Calls = Sequence[tuple[str, str, dict[str, Any]]]


def asks(*calls: tuple[str, str, dict[str, Any]]) -> AIMessage:
    """A step of the model that calls tools: id, name, arguments."""
    return AIMessage("", tool_calls=[{"id": id_, "name": name, "args": args} for id_, name, args in calls])


class Bank:
    """Tools that keep what was done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.pay = StructuredTool.from_function(coroutine=self._pay, name="pay", description="Pay.")
        self.look = StructuredTool.from_function(coroutine=self._look, name="look", description="Look.")

    async def _pay(self, amount: int) -> Any:
        if amount == 13:
            raise ValueError("the bank is closed")
        if amount == 14:
            raise ToolException("no such account")
        if amount == 16:
            return Command(goto="agent")
        if amount == 15:
            interrupt("really?")
        self.done.append(f"begin {amount}")
        await anyio.sleep(0.02)
        self.done.append(f"paid {amount}")
        return f"paid {amount}"

    async def _look(self) -> str:
        assert current_call() is not None
        return "100"


@asynccontextmanager
async def graph_of(
    folder: Path, bank: Bank, says: Sequence[AIMessage], **more: Any
) -> AsyncIterator[tuple[safepoint.Runtime, Threads, Graph]]:
    """A graph over a store, with everything that is its."""
    tools = [promised(bank.pay, no_effect_errors=(ToolException,)), promised(bank.look, recovery="replay_safe")]
    async with opened(folder, tools) as runtime, saver(folder) as checkpoints:
        threads = Threads(runtime)
        safe = SafeCheckpointer(checkpoints, threads)
        yield runtime, threads, agent(says, threads.tool_node([bank.pay, bank.look]), safe, **more)


def answers(state: Any) -> list[tuple[str, str]]:
    return [(one.status, one.text) for one in state["messages"] if isinstance(one, ToolMessage)]


def test_a_tool_outside_of_a_turn_is_not_called(tmp_path: Path) -> None:
    bank = Bank()

    async def main() -> None:
        async with graph_of(tmp_path, bank, [ASKS, PAID]) as (_, _, graph):
            with pytest.raises(NoOpenTurn, match=r"threads\.turn"):
                await graph.ainvoke({"messages": [HumanMessage("Pay.")]}, THREAD)

    anyio.run(main)
    assert bank.done == []


@pytest.mark.parametrize(
    ("args", "status", "says"),
    [
        ({"amount": 5}, "success", "paid 5"),
        ({"amount": "much"}, "error", "amount: int_parsing"),
        ({"amount": 5, "to": "me"}, "error", "to: the tool has no such argument"),
        ({"amount": 13}, "error", "ValueError: the bank is closed"),
        ({"amount": 14}, "error", "no such account"),
        ({"amount": 16}, "error", "its effect has happened"),
    ],
)
def test_the_model_is_shown_what_is_committed(tmp_path: Path, args: dict[str, Any], status: str, says: str) -> None:
    bank = Bank()

    async def main() -> None:
        async with graph_of(tmp_path, bank, [asks(("c1", "pay", args)), PAID]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                state = await graph.ainvoke(turn.input, turn.config)
            ((shown, text),) = answers(state)
            assert shown == status
            assert says in text
            assert turn.run.outcome is not None
            assert turn.run.outcome.status is RunStatus.COMPLETED
            answer = turn.run.answer("c1")
            assert answer is not None
            known = {5: "done", 13: "unknown", 16: "done"} if set(args) == {"amount"} else {}
            assert answer.effect == known.get(args["amount"], "none")

    anyio.run(main)


def test_calls_with_effects_run_in_call_order_and_readers_wait_for_nobody(tmp_path: Path) -> None:
    bank = Bank()
    step = asks(("c1", "pay", {"amount": 1}), ("c2", "look", {}), ("c3", "pay", {"amount": 2}))

    async def main() -> None:
        async with graph_of(tmp_path, bank, [step, PAID]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                state = await graph.ainvoke(turn.input, turn.config)
            assert answers(state) == [("success", "paid 1"), ("success", "100"), ("success", "paid 2")]

    anyio.run(main)
    assert bank.done == ["begin 1", "paid 1", "begin 2", "paid 2"]


@pytest.mark.parametrize("body", ["asynchronous", "in a thread"])
def test_a_call_whose_graph_is_cancelled_runs_on_only_where_it_is_in_a_thread(tmp_path: Path, body: str) -> None:
    inside, let_go = threading.Event(), threading.Event()

    async def pay_slowly(amount: int) -> str:
        """Pay an amount."""
        inside.set()
        await anyio.sleep_forever()
        return "never"

    def pay(amount: int) -> str:
        """Pay an amount."""
        inside.set()
        assert let_go.wait(30)
        return "late"

    asynchronous = body == "asynchronous"
    tool = StructuredTool.from_function(None if asynchronous else pay, pay_slowly if asynchronous else None, name="pay")

    async def main() -> safepoint.Park | safepoint.Continue:
        async with opened(tmp_path, [promised(tool)]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            graph = agent([ASKS, PAID], threads.tool_node([tool]), SafeCheckpointer(checkpoints, threads))

            async def run() -> None:
                async with threads.turn(graph, "bill", "Pay the bill.") as turn:
                    await graph.ainvoke(turn.input, turn.config)

            async with anyio.create_task_group() as group:
                group.start_soon(run)
                assert await anyio.to_thread.run_sync(inside.wait, 30)
                group.cancel_scope.cancel()
            session = runtime.session("bill")
            await session.repair()
            plan = await session.plan()
            let_go.set()
            return plan

    plan = anyio.run(main)
    assert isinstance(plan, safepoint.Park)
    running = safepoint.ParkReason.EFFECT_MAY_BE_RUNNING in plan.codes
    assert running is not asynchronous


def test_a_thread_that_somebody_works_on_is_not_safe_to_go_on_for_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with graph_of(tmp_path, Bank(), [ASKS, PAID]) as (runtime, threads, graph):
            assert (await threads.verdict("bill")).safe
            async with threads.turn(graph, "bill", "Pay.") as turn:
                others = Threads(runtime)
                busy = await others.verdict("bill")
                assert (busy.safe, busy.to_resume, busy.codes) == (False, False, ("session_busy",))
                await graph.ainvoke(turn.input, turn.config)
            assert (await threads.verdict("bill")).safe

    anyio.run(main)


def test_a_step_beyond_the_turns_budget_is_not_carried_out(tmp_path: Path) -> None:
    bank = Bank()
    says = [asks(("c1", "pay", {"amount": 1})), asks(("c2", "pay", {"amount": 2})), PAID]
    runs: list[safepoint.RecordedRun] = []

    async def main() -> None:
        async with (
            graph_of(tmp_path, bank, says) as (_, threads, graph),
            threads.turn(graph, "bill", "Pay.", budgets=safepoint.Budgets(steps_max=1)) as turn,
        ):
            runs.append(turn.run)
            await graph.ainvoke(turn.input, turn.config)

    with pytest.raises(BudgetSpent):
        anyio.run(main)
    assert runs[0].outcome is not None
    assert runs[0].outcome.failure is FailureClass.STEP_LIMIT
    assert bank.done == ["begin 1", "paid 1"]


def test_a_tool_that_takes_the_state_of_its_graph_gets_it_and_is_never_run_without_it(tmp_path: Path) -> None:
    def count(word: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Count."""
        return f"{word}: {len(state['messages'])}"

    tool = StructuredTool.from_function(count)

    async def main() -> None:
        promise = promised(tool, recovery="replay_safe")
        schema: Any = promise.spec.input_schema
        assert set(schema["properties"]) == {"word"}
        bound = promise.bind({"word": "messages"})
        assert isinstance(bound, BoundCall)
        assert bound.elsewhere
        async with opened(tmp_path, [promise]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            step = asks(("c1", "count", {"word": "messages"}))
            graph = agent([step, PAID], threads.tool_node([tool]), SafeCheckpointer(checkpoints, threads))
            async with threads.turn(graph, "bill", "Count.") as turn:
                state = await graph.ainvoke(turn.input, turn.config)
            assert answers(state) == [("success", "messages: 2")]

    anyio.run(main)


def test_of_a_tool_whose_schema_is_a_dictionary_the_names_are_checked() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = StructuredTool(name="t", description="T.", args_schema=schema, func=lambda a: a)
    promise = promised(tool)
    assert isinstance(promise.bind({"a": 1}), BoundCall)
    assert isinstance(promise.bind({"b": 1}), SchemaMismatch)
    assert isinstance(promise.bind([]), SchemaMismatch)


def test_a_turn_may_be_streamed(tmp_path: Path) -> None:
    bank = Bank()

    async def main() -> None:
        async with graph_of(tmp_path, bank, [ASKS, PAID]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                nodes = [next(iter(part)) async for part in graph.astream(turn.input, turn.config)]
            assert nodes == ["agent", "tools", "agent"]
            assert turn.run.outcome is not None
            assert turn.run.outcome.text == "Paid."

    anyio.run(main)


def test_a_call_id_may_be_used_again_by_a_later_step(tmp_path: Path) -> None:
    bank = Bank()
    steps = [asks(("c1", "pay", {"amount": amount})) for amount in (1, 2, 3, 4)]
    says = [*steps[:2], AIMessage("Paid."), *steps[2:], AIMessage("Paid.")]

    async def main() -> None:
        async with graph_of(tmp_path, bank, says) as (_, threads, graph):
            for text in ("Pay two bills.", "And again."):
                async with threads.turn(graph, "bill", text) as turn:
                    state = await graph.ainvoke(turn.input, turn.config)
            assert [text for _, text in answers(state)] == ["paid 1", "paid 2", "paid 3", "paid 4"]

    anyio.run(main)


def test_a_call_that_nobody_can_read_is_recorded_and_refused(tmp_path: Path) -> None:
    unread = {"id": "c1", "name": "pay", "args": "{amount", "error": None, "type": "invalid_tool_call"}

    async def main() -> None:
        step = AIMessage("I pay.", invalid_tool_calls=[unread])
        async with graph_of(tmp_path, Bank(), [step]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                await graph.ainvoke(turn.input, turn.config)
            answer = turn.run.answer("c1")
            assert answer is not None
            assert (answer.is_error, answer.effect) == (True, "none")
            assert turn.run.outcome is not None
            assert turn.run.outcome.status is RunStatus.COMPLETED

    anyio.run(main)


def test_an_interrupt_inside_a_tool_is_refused_and_its_effect_is_unknown(tmp_path: Path) -> None:
    async def main() -> None:
        async with graph_of(tmp_path, Bank(), [asks(("c1", "pay", {"amount": 15}))]) as (_, threads, graph):
            with pytest.raises(InterruptInTool, match="interrupt_before"):
                async with threads.turn(graph, "bill", "Pay.") as turn:
                    await graph.ainvoke(turn.input, turn.config)
            answer = turn.run.answer("c1")
            assert answer is not None
            assert answer.effect == "unknown"

    anyio.run(main)


def test_a_graph_that_waits_before_its_tools_is_resumed_and_pays_once(tmp_path: Path) -> None:
    bank = Bank()

    async def main() -> None:
        async with graph_of(tmp_path, bank, [ASKS, PAID], interrupt_before=["tools"]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                await graph.ainvoke(turn.input, turn.config)
            assert turn.waits_at == ("tools",)
            assert turn.run.outcome is None or turn.run.outcome.status is RunStatus.FAILED
            assert (await threads.verdict("bill")).safe
            async with threads.resume(graph, "bill") as turn:
                assert turn.input is None
                state = await graph.ainvoke(None, turn.config)
            assert answers(state) == [("success", "paid 5")]
            assert turn.waits_at == ()

    anyio.run(main)
    assert bank.done == ["begin 5", "paid 5"]


def test_a_graph_may_be_invoked_again_inside_of_one_turn(tmp_path: Path) -> None:
    bank = Bank()

    async def main() -> None:
        async with (
            graph_of(tmp_path, bank, [ASKS, PAID], interrupt_before=["tools"]) as (_, threads, graph),
            threads.turn(graph, "bill", "Pay.") as turn,
        ):
            await graph.ainvoke(turn.input, turn.config)
            before = await graph.aget_state(turn.config)
            await graph.ainvoke(None, turn.config)
            await graph.ainvoke(None, before.config)  # from the earlier checkpoint: the answer is there already

    anyio.run(main)
    assert bank.done == ["begin 5", "paid 5"]


def test_a_new_turn_answers_what_an_interrupted_one_left_open(tmp_path: Path) -> None:
    bank = Bank()
    history: list[AnyMessage] = []

    async def main() -> None:
        async with graph_of(tmp_path, bank, [ASKS, PAID], interrupt_before=["tools"]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                await graph.ainvoke(turn.input, turn.config)
            async with threads.turn(graph, "bill", "Never mind.") as turn:
                state = await graph.ainvoke(turn.input, turn.config)
            history.extend(state["messages"])

    anyio.run(main)
    assert [one.type for one in history] == ["human", "ai", "tool", "human", "ai"]
    assert history[2].text == "Not executed: the turn was interrupted before dispatch."
    assert bank.done == []


def test_a_state_that_tells_another_story_is_not_gone_on_with(tmp_path: Path) -> None:
    async def main() -> None:
        async with graph_of(tmp_path, Bank(), [ASKS, ASKS]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                await graph.ainvoke(turn.input, turn.config, interrupt_after=["tools"])
            state = await graph.aget_state(THREAD)
            said = state.values["messages"][1]
            other = said.model_copy(update={"tool_calls": [{**said.tool_calls[0], "name": "look"}]})
            await graph.aupdate_state(THREAD, {"messages": [other]}, as_node="agent")
            with pytest.raises(StateDiffers, match=r"\['look'\] there, and \['pay'\] here"):
                async with threads.resume(graph, "bill"):
                    pytest.fail("it went on")

    anyio.run(main)


def test_calls_that_were_never_carried_out_leave_the_turn_to_be_resumed(tmp_path: Path) -> None:
    """A graph that ends although its model asked for tools."""

    async def main() -> None:
        async with graph_of(tmp_path, Bank(), [asks(("c1", "no_such_tool", {}))]) as (_, threads, graph):
            async with threads.turn(graph, "bill", "Pay.") as turn:
                await graph.aupdate_state(turn.config, turn.input, as_node="__start__")
                said = {"messages": [asks(("c1", "pay", {"amount": 5}))]}
                await graph.aupdate_state(turn.config, said, as_node="agent")
                await graph.aupdate_state(turn.config, None, as_node="__end__")
            assert turn.run.outcome is not None
            assert turn.run.outcome.failure is FailureClass.STEP_LIMIT

    anyio.run(main)


def test_a_tool_that_was_not_promised_is_refused(tmp_path: Path) -> None:
    bank = Bank()

    async def main() -> None:
        async with opened(tmp_path, [promised(bank.look)]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            safe = SafeCheckpointer(checkpoints, threads)
            with pytest.raises(AgentUnsupported, match="the tool 'pay' cannot be recorded"):
                threads.tool_node([bank.look, bank.pay])
            graph = agent([ASKS, PAID], ToolNode([bank.pay], awrap_tool_call=threads.awrap_tool_call), safe)
            with pytest.raises(AgentUnsupported, match="the tool 'pay' cannot be recorded"):
                async with threads.turn(graph, "bill", "Pay."):
                    pytest.fail("it was begun")
            assert await runtime.session("bill").summary() is None

    anyio.run(main)
    assert bank.done == []


def test_a_node_that_calls_its_tools_by_itself_is_refused(tmp_path: Path) -> None:
    bank = Bank()

    async def main() -> None:
        async with opened(tmp_path, [promised(bank.pay)]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            graph = agent([ASKS, PAID], ToolNode([bank.pay]), SafeCheckpointer(checkpoints, threads))
            with pytest.raises(AgentUnsupported, match=r"node 'tools' cannot be recorded: .*threads.tool_node"):
                async with threads.turn(graph, "bill", "Pay."):
                    pytest.fail("it was begun")
            assert await runtime.session("bill").summary() is None

    anyio.run(main)
    assert bank.done == []


@pytest.mark.parametrize("says", [[ASKS, PAID], [ASKS]])
def test_a_call_that_another_node_answers_is_no_success_and_its_effect_is_not_certain(
    tmp_path: Path, says: list[AIMessage]
) -> None:
    """A node of the graph's own carries the call out; the graph then goes on with its model, or ends."""

    async def pays(state: MessagesState) -> dict[str, list[Any]]:
        return {"messages": [ToolMessage("paid 5", tool_call_id="c1")]}

    async def main() -> None:
        async with opened(tmp_path, [promised(Bank().pay)]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            own: Any = pays
            graph = agent(says, own, SafeCheckpointer(checkpoints, threads), interrupt_after=["tools"])

            async def drive(turn: Turn) -> None:
                await graph.ainvoke(turn.input, turn.config)
                if len(says) > 1:
                    await graph.ainvoke(None, turn.config)
                else:
                    await graph.aupdate_state(turn.config, None, as_node="__end__")

            with pytest.raises(AgentUnsupported, match="a call of pay outside of the node of tools"):
                async with threads.turn(graph, "bill", "Pay.") as turn:
                    await drive(turn)
            assert turn.run.outcome is not None
            assert turn.run.outcome.status is RunStatus.FAILED
            (doubt,) = await runtime.session("bill").unsettled()
            assert doubt.tool_name == "pay"

    anyio.run(main)


@pytest.mark.parametrize("taken", [True, False])
def test_where_no_turn_was_interrupted_verdict_and_resume_say_the_same(tmp_path: Path, taken: bool) -> None:
    """Safe to go on, with nothing to resume: neither says that the thread must not go on, and a new turn is taken."""

    async def main() -> None:
        bank = Bank()
        async with graph_of(tmp_path, bank, [PAID, PAID]) as (_, threads, graph):
            if taken:
                async with threads.turn(graph, "bill", "Hello.") as turn:
                    await graph.ainvoke(turn.input, turn.config)
            verdict = await threads.verdict("bill")
            assert (verdict.safe, verdict.to_resume, verdict.codes) == (True, False, ())
            with pytest.raises(NothingToResume, match=r"take a new one, `threads\.turn") as nothing:
                async with threads.resume(graph, "bill"):
                    raise AssertionError
            assert nothing.value.verdict == verdict
            assert nothing.value.code == safepoint.ParkReason.RESUME_CANDIDATE_MISSING
            assert not isinstance(nothing.value, ThreadNotSafe)
            async with threads.turn(graph, "bill", "Hello.") as turn:
                await graph.ainvoke(turn.input, turn.config)

    anyio.run(main)


def test_who_is_told_to_take_a_new_turn_is_told_how_the_graph_sees_it() -> None:
    parked = ThreadVerdict("bill", True, (Reason(safepoint.ParkReason.TOOL_CATALOG_MISMATCH, {}),))
    assert "Take a new turn of a thread with `threads.turn`" in parked.explained()
    busy = ThreadVerdict("bill", True, (Reason(safepoint.ParkReason.SESSION_BUSY, {}),))
    assert "threads.turn" not in busy.explained()
