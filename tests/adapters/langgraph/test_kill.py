"""An agent in LangGraph is killed in the middle of a tool: what it does then alone, and what with Safepoint."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from langgraph.prebuilt import ToolNode

from safepoint.adapters.langgraph import SafeCheckpointer, ThreadNotSafe, Threads, promised

from ..pages import row_of
from . import graphs
from .graphs import ASKS, PAID, THREAD, agent, opened, paying, saver

PAGE = "frameworks/langgraph.md"
PLACES = ["before the effect", "after the effect", "after it was recorded"]


def killed(kind: str, folder: Path, where: str, durability: str = "sync", *more: str) -> None:
    """Run the agent in a process of its own, which is killed there."""
    command = [sys.executable, graphs.__file__, kind, str(folder), where, durability, *more]
    child = subprocess.run(command, check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL


def payments(folder: Path) -> list[str]:
    file = folder / "payments.txt"
    return file.read_text().splitlines() if file.exists() else []


def gone_on_alone(folder: Path) -> list[str]:
    async def main() -> list[str]:
        async with saver(folder) as checkpoints:
            graph = agent([PAID], ToolNode([paying(folder)]), checkpoints)
            state = await graph.ainvoke(None, THREAD, durability="sync")
            return [message.type for message in state["messages"]]

    return anyio.run(main)


@pytest.mark.parametrize(("where", "paid"), [*zip(PLACES, (1, 2, 1), strict=True)])
def test_alone_it_pays_again_where_the_effect_was_not_recorded(tmp_path: Path, where: str, paid: int) -> None:
    assert row_of(PAGE, where)[0] == str(paid)
    killed("alone", tmp_path, where)
    assert gone_on_alone(tmp_path) == ["human", "ai", "tool", "ai"]
    assert len(payments(tmp_path)) == paid


@pytest.mark.parametrize(
    ("where", "durability", "said", "paid"),
    [
        ("before the effect", "sync", "not_executed", 1),
        ("after the effect", "sync", "completed", 1),
        ("after the effect", "async", "completed", 1),
        ("after the effect", "exit", "completed", 1),
        ("in a step that is half saved", "async", "completed", 1),
        ("after it was recorded", "sync", None, 1),
        ("after it was recorded", "exit", None, 1),
        ("after it ended", "sync", None, 1),
    ],
)
def test_with_safepoint_it_pays_once_and_what_is_unknown_waits_for_a_person(
    tmp_path: Path, where: str, durability: str, said: str | None, paid: int
) -> None:
    killed("guarded", tmp_path, where, durability)
    before = len(payments(tmp_path))
    if where in PLACES:
        _, after_the_kill, safe_to_go_on, at_the_end = row_of(PAGE, where)
        assert (after_the_kill, at_the_end) == (str(before), str(paid))
        assert safe_to_go_on == ("yes" if said is None else f"no: somebody looks, and says `{said}`")

    async def main() -> list[str]:
        pay = paying(tmp_path)
        async with opened(tmp_path, [promised(pay)]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            safe = SafeCheckpointer(checkpoints, threads)
            says = [ASKS.model_copy(update={"id": None}), PAID] if said == "not_executed" else [PAID]
            graph = agent(says, threads.tool_node([pay]), safe)
            verdict = await threads.verdict("bill")
            assert verdict.to_resume
            assert verdict.safe is (said is None)
            if said is not None:
                with pytest.raises(ThreadNotSafe, match=r"dangling_tool_state.*safepoint settle") as refused:
                    async with threads.resume(graph, "bill"):
                        pytest.fail("it went on")
                commands = [text for text in str(refused.value).split("`") if text.startswith("safepoint ")]
                assert commands
                assert all(text.endswith(f" --store {tmp_path / 'store.sqlite'}") for text in commands)
                (operation,) = refused.value.verdict.unsettled
                assert operation.tool_name == "pay"
                with pytest.raises(ThreadNotSafe):
                    await graph.ainvoke(None, THREAD)
                assert len(payments(tmp_path)) == before
                result = "paid 5" if said == "completed" else None
                session = runtime.session("bill")
                await session.settle(operation.operation_id, said, by="alice", note="the bank", result=result)
            async with threads.resume(graph, "bill") as turn:
                state = await graph.ainvoke(turn.input, turn.config, durability="sync")
            assert turn.run.outcome is not None
            assert (turn.run.outcome.status, turn.run.outcome.text) == ("completed", "Paid.")
            assert (await threads.verdict("bill")).to_resume is False
            return [message.type for message in state["messages"]]

    again = ["tool", "ai"] if said == "not_executed" else []
    assert anyio.run(main) == ["human", "ai", *again, "tool", "ai"]
    assert len(payments(tmp_path)) == paid


def test_what_the_first_of_two_calls_came_to_is_kept_while_the_second_waits_for_a_person(tmp_path: Path) -> None:
    killed("guarded", tmp_path, "in the second call")

    async def main() -> list[str]:
        pay = paying(tmp_path)
        async with opened(tmp_path, [promised(pay)]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            graph = agent([PAID], threads.tool_node([pay]), SafeCheckpointer(checkpoints, threads))
            (operation,) = (await threads.verdict("bill")).unsettled
            session = runtime.session("bill")
            await session.repair()
            said = {"by": "alice", "note": "the bank says so"}
            await session.settle(operation.operation_id, "completed", result="paid 6", **said)
            async with threads.resume(graph, "bill") as turn:
                state = await graph.ainvoke(turn.input, turn.config)
            return [message.text for message in state["messages"]]

    said = anyio.run(main)
    assert said[:3] == ["Pay the bill.", "I pay both.", "paid 5"]
    assert "paid 6" in said[3]
    assert said[4:] == ["Paid."]
    assert [line.split()[0] for line in payments(tmp_path)] == ["5", "6"]


@pytest.mark.parametrize("where", ["after the effect", "in a step that is half saved"])
def test_a_new_turn_is_told_that_nobody_knows(tmp_path: Path, where: str) -> None:
    killed("guarded", tmp_path, where, "async")

    async def main() -> list[tuple[str, str]]:
        pay = paying(tmp_path)
        async with opened(tmp_path, [promised(pay)]) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            graph = agent([PAID], threads.tool_node([pay]), SafeCheckpointer(checkpoints, threads))
            async with threads.turn(graph, "bill", "Did you pay?") as turn:
                state = await graph.ainvoke(turn.input, turn.config)
            return [(message.type, message.text) for message in state["messages"]]

    said = anyio.run(main)
    assert [kind for kind, _ in said] == ["human", "ai", "tool", "human", "ai"]
    assert "Outcome unknown" in said[2][1]
    assert len(payments(tmp_path)) == 1


def test_an_idempotent_tool_is_delivered_again_with_its_recorded_key(tmp_path: Path) -> None:
    killed("guarded", tmp_path, "after the effect", "sync", "idempotent")

    async def main() -> list[str]:
        pay = paying(tmp_path)
        tools = [promised(pay, recovery="idempotent", key_valid_seconds=3600)]
        async with opened(tmp_path, tools) as runtime, saver(tmp_path) as checkpoints:
            threads = Threads(runtime)
            graph = agent([PAID], threads.tool_node([pay]), SafeCheckpointer(checkpoints, threads))
            async with threads.resume(graph, "bill", reconcile=True) as turn:
                state = await graph.ainvoke(turn.input, turn.config)
            return [message.text for message in state["messages"]][2:]

    assert anyio.run(main) == ["paid 5", "Paid."]
    first, second = payments(tmp_path)
    assert first == second, "the same key, whoever receives it knows the payment"
    assert "-" not in first
