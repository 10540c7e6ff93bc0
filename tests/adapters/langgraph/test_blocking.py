"""Graphs that are run by `invoke`: the same rules, from a script without an event loop."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from langchain_core.messages import HumanMessage

from safepoint.adapters.langgraph import NoOpenTurn, SafeCheckpointer, SyncThreads, ThreadNotSafe, Threads, promised

from .graphs import ASKS, PAID, THREAD, agent, opened, opened_sync, paying, saver, sync_saver
from .test_kill import killed, payments


def test_killed_after_the_effect_it_waits_for_a_person_and_pays_once(tmp_path: Path) -> None:
    killed("blocking", tmp_path, "after the effect")
    pay = paying(tmp_path)
    with opened_sync(tmp_path, [promised(pay)]) as runtime, sync_saver(tmp_path) as checkpoints:
        threads = SyncThreads(runtime)
        safe = SafeCheckpointer(checkpoints, threads)
        graph = agent([PAID], threads.tool_node([pay]), safe)
        assert not safe.verdict("bill").safe
        with pytest.raises(ThreadNotSafe) as refused, threads.resume(graph, "bill"):
            pytest.fail("it went on")
        with pytest.raises(ThreadNotSafe):
            graph.invoke(None, THREAD)
        (operation,) = refused.value.verdict.unsettled
        said = {"by": "alice", "note": "the bank says so"}
        runtime.session("bill").settle(operation.operation_id, "completed", result="paid 5", **said)
        with threads.resume(graph, "bill") as turn:
            state = graph.invoke(turn.input, turn.config)
        assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
        assert turn.waits_at == ()
        assert turn.run.outcome is not None
        assert turn.run.outcome.text == "Paid."
    assert len(payments(tmp_path)) == 1


def test_a_turn_is_taken_and_its_tool_knows_its_key(tmp_path: Path) -> None:
    pay = paying(tmp_path)
    with opened_sync(tmp_path, [promised(pay)]) as runtime, sync_saver(tmp_path) as checkpoints:
        threads = SyncThreads(runtime)
        graph = agent([ASKS, PAID], threads.tool_node([pay]), SafeCheckpointer(checkpoints, threads))
        with pytest.raises(NoOpenTurn):
            graph.invoke({"messages": [HumanMessage("Pay.")]}, {"configurable": {"thread_id": "other"}})
        graph = agent([ASKS.model_copy(), PAID], threads.tool_node([pay]), SafeCheckpointer(checkpoints, threads))
        with threads.turn(graph, "bill", "Pay.") as turn:
            nodes = [next(iter(part)) for part in graph.stream(turn.input, turn.config)]
        assert nodes == ["agent", "tools", "agent"]
        assert threads.verdict("bill").explained() == "thread 'bill' is safe to go on: take a new turn."
    (paid,) = payments(tmp_path)
    assert not paid.endswith("-")


def test_threads_say_how_their_graphs_are_run(tmp_path: Path) -> None:
    async def asynchronous() -> None:
        async with opened(tmp_path, []) as runtime, saver(tmp_path) as checkpoints:
            safe = SafeCheckpointer(checkpoints, Threads(runtime))
            with pytest.raises(RuntimeError, match="ainvoke"):
                safe.verdict("bill")

    anyio.run(asynchronous)
    with opened_sync(tmp_path, []) as runtime, sync_saver(tmp_path) as checkpoints:
        safe = SafeCheckpointer(checkpoints, SyncThreads(runtime))
        with pytest.raises(RuntimeError, match="`invoke`"):
            anyio.run(safe.averdict, "bill")
