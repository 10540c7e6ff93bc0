"""A tool starts a run of its own: from our loop and from others, in both twins, over one store. SPEC section 11."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import safepoint
from safepoint.adapters.memory.model_provider import PlannedModel, Stall, calls, says
from safepoint.application.child_runs import Ended
from safepoint.application.reconciliation import Left, LeftAlone
from safepoint.domain.events.run import RunStatus

from .loops import opened

DELEGATES = (calls(("delegate", {"task": "help"})), says("I had help."))
PROMISE = safepoint.contract("delegate", recovery="reattach", child_run=True)
THEIRS = safepoint.NamedModel("openai", "gpt")


def children(folder: Path) -> list[tuple[str, str]]:
    """Session and run of all child runs, as they are stored."""
    with closing(sqlite3.connect(f"file:{folder / 'store.sqlite'}?mode=ro", uri=True)) as database:
        return database.execute(
            "SELECT json_extract(state, '$.session_id'), json_extract(state, '$.run_id') FROM stored_events"
            " WHERE topic = 'run.opened.v1' AND json_extract(state, '$.parent_operation_id') IS NOT NULL"
        ).fetchall()


def delegating(clerk: safepoint.Runtime) -> Callable[..., Any]:
    """The tool of a lead whose clerk is another agent."""

    @safepoint.tool(recovery="reattach", child_run=True)
    async def delegate(context: safepoint.ToolContext, task: str) -> str:
        """Let the clerk do it."""
        result = await clerk.session(context.child_run).run(task, parent=context)
        return result.outcome.text

    return delegate


def test_a_tool_of_our_loop_starts_another_agent_over_the_same_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, PlannedModel([says("I helped.")]), tools=[]) as clerk:
            lead = opened(tmp_path, PlannedModel(list(DELEGATES)), tools=[delegating(clerk)])
            async with lead:
                session = lead.session("lead")
                result = await session.run("Go.")
                assert result.outcome.text == "I had help."
                ((child, run_id),) = children(tmp_path)
                assert child == run_id  # the session is named after the child
                summary = await clerk.session(child).summary()
                assert summary is not None
                assert summary.state.value == "completed"

    anyio.run(main)


async def asks_to_delegate(run: safepoint.RecordedRun) -> None:
    """A step of a loop's own model that wants help."""
    await run.model_step(safepoint.step("My clerk.", safepoint.tool_call("c1", "delegate", {"task": "help"})))


def test_a_function_of_another_loop_starts_a_child_run_by_the_call_that_it_finds(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            opened(tmp_path, PlannedModel([says("I helped.")]), tools=[]) as clerk,
            opened(tmp_path, THEIRS, tools=[PROMISE]) as lead,
            lead.session("lead").record("Go.") as run,
        ):

            async def delegate(task: str) -> str:
                call = safepoint.current_call()
                assert call is not None
                return (await clerk.session(call.child_run).run(task, parent=call)).outcome.text

            await asks_to_delegate(run)
            answer = await run.call("c1", delegate)
            assert (answer.result, answer.is_error) == ("I helped.", False)
            assert safepoint.current_call() is None

    anyio.run(main)
    assert len(children(tmp_path)) == 1


def test_the_block_of_a_call_starts_a_child_run_that_is_recorded_itself(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, THEIRS, tools=[PROMISE]) as runtime, runtime.session("lead").record("Go.") as run:
            await asks_to_delegate(run)
            async with run.tool_call("c1") as operation:
                session = runtime.session(operation.context.child_run)
                async with session.record(operation.arguments["task"], parent=operation) as child:
                    assert child.run_id == operation.context.child_run
                    await child.model_step(safepoint.step("I helped."))
                with pytest.raises(safepoint.ChildRunExists) as exists:
                    async with session.record("help", parent=operation):
                        raise AssertionError("it was begun twice")
                found = exists.value.found
                assert isinstance(found, Ended)
                assert (exists.value.same, found.outcome.text) == (True, "I helped.")
                operation.result(found.outcome.text)
            await run.model_step(safepoint.step("Done."))

    anyio.run(main)
    assert len(children(tmp_path)) == 1


def test_the_synchronous_twin_starts_child_runs_from_its_threads(tmp_path: Path) -> None:
    model = PlannedModel([says("I helped.")])
    with (
        safepoint.open_sync(tmp_path / "store.sqlite", model=model, tools=[PROMISE]) as runtime,
        runtime.session("lead").record("Go.") as run,
    ):

        def delegate(task: str) -> str:
            call = safepoint.current_call()
            assert call is not None
            return runtime.session(call.child_run).run(task, parent=call).outcome.text

        run.model_step(safepoint.step("My clerk.", safepoint.tool_call("c1", "delegate", {"task": "help"})))
        assert run.call("c1", delegate).result == "I helped."
        run.model_step(safepoint.step("Again.", safepoint.tool_call("c2", "delegate", {"task": "help"})))
        with run.tool_call("c2") as operation:
            with runtime.session(operation.context.child_run).record("help", parent=operation) as child:
                child.model_step(safepoint.step("I helped again."))
            operation.result("helped")
        run.model_step(safepoint.step("Done."))
    assert len(children(tmp_path)) == 2


@pytest.mark.parametrize("blocking", [False, True], ids=["async", "thread"])
def test_the_body_of_a_tool_finds_its_call_also_in_our_loop(tmp_path: Path, *, blocking: bool) -> None:
    found: list[safepoint.ToolContext | None] = []

    @safepoint.tool(recovery="replay_safe")
    async def ask() -> str:
        """Ask."""
        found.append(safepoint.current_call())
        return "asked"

    @safepoint.tool(recovery="replay_safe", name="ask")
    def ask_in_a_thread() -> str:
        """Ask."""
        found.append(safepoint.current_call())
        return "asked"

    async def main() -> None:
        model = PlannedModel([calls(("ask", {})), says("Done.")])
        async with opened(tmp_path, model, tools=[ask_in_a_thread if blocking else ask]) as runtime:
            result = await runtime.session("s").run("Go.")
            (call,) = found
            assert call is not None
            assert call.identity.run_id == result.run_id
            assert safepoint.current_call() is None

    anyio.run(main)


def test_a_call_without_a_reserved_id_starts_nothing_and_says_what_to_declare(tmp_path: Path) -> None:
    async def main() -> None:
        tools = [safepoint.contract("delegate", recovery="reattach")]
        async with opened(tmp_path, THEIRS, tools=tools) as runtime, runtime.session("lead").record("Go.") as run:
            await asks_to_delegate(run)
            async with run.tool_call("c1") as operation:
                with pytest.raises(ValueError, match="child_run=True"):
                    await runtime.session("clerk").record("help", parent=operation).__aenter__()
                operation.refused("nothing was begun")
            await run.model_step(safepoint.step("Done."))

    anyio.run(main)
    assert children(tmp_path) == []


def test_a_child_that_somebody_goes_on_with_now_is_left_to_them(tmp_path: Path) -> None:
    """The parent's process is gone, and another one has resumed the child: it runs, and is no second time begun."""

    async def main() -> None:
        model = PlannedModel([Stall("Half")])

        async def begin(lead: safepoint.Runtime, clerk: safepoint.Runtime) -> None:
            async with lead.session("lead").record("Go.") as run:
                await asks_to_delegate(run)

                async def delegate(task: str) -> None:
                    call = safepoint.current_call()
                    assert call is not None
                    await clerk.session(call.child_run).run(task, parent=call)

                await run.call("c1", delegate)

        async with (
            opened(tmp_path, model, tools=[]) as clerk,
            opened(tmp_path, THEIRS, tools=[PROMISE]) as lead,
            anyio.create_task_group() as group,
        ):
            group.start_soon(begin, lead, clerk)
            while not model.asked:  # noqa: ASYNC110 (what is waited for knows no event)
                await anyio.sleep(0.002)
            group.cancel_scope.cancel()
        ((child, _),) = children(tmp_path)
        model = PlannedModel([Stall("Half")])
        async with (
            opened(tmp_path, model, tools=[]) as clerk,
            opened(tmp_path, THEIRS, tools=[PROMISE]) as lead,
        ):
            session = lead.session("lead")
            looked = await session.reconcile()
            assert looked is not None
            (one,) = looked.operations
            assert isinstance(one.became, LeftAlone)
            assert (one.became.why, one.became.child) == (Left.CHILD_INTERRUPTED, child)
            async with anyio.create_task_group() as group:
                group.start_soon(clerk.session(child).resume)
                while not model.asked:  # noqa: ASYNC110 (what is waited for knows no event)
                    await anyio.sleep(0.002)
                looked = await session.reconcile()
                assert looked is not None
                (one,) = looked.operations
                assert isinstance(one.became, LeftAlone)
                assert (one.became.why, "has not ended" in one.became.detail) == (Left.HANDLE_RUNNING, True)
                stopped = await clerk.session(child).cancel(by="ada")
                assert stopped.run_id is not None
            looked = await session.reconcile()
            assert looked is not None
            (one,) = looked.operations
            assert not isinstance(one.became, LeftAlone)
        assert len(children(tmp_path)) == 1

    anyio.run(main)


def test_a_person_who_stops_the_lead_stops_the_clerk(tmp_path: Path) -> None:
    async def main() -> None:
        model = PlannedModel([Stall("Half")])
        async with opened(tmp_path, model, tools=[]) as clerk:
            lead = opened(tmp_path, PlannedModel(list(DELEGATES)), tools=[delegating(clerk)])
            async with lead, anyio.create_task_group() as group:
                session = lead.session("lead")
                group.start_soon(partial(session.run, "Go."))
                while not model.asked:  # noqa: ASYNC110 (what is waited for knows no event)
                    await anyio.sleep(0.002)
                await session.cancel(by="ada")
            ((child, _),) = children(tmp_path)
            summary = await clerk.session(child).summary()
            assert summary is not None
            assert summary.state.value == RunStatus.CANCELLED.value

    anyio.run(main)
