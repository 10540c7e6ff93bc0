"""What a strict checker sees of the face. Nothing here is run: each line is checked with the tests, and each ignored
error must be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

import safepoint
from safepoint.application.intake import Step
from safepoint.application.run_turn import TurnResult
from safepoint.domain.replay.items import Item
from safepoint.ports.views import OperationRow


@safepoint.tool(recovery="replay_safe")
def look(path: str) -> int:
    """A declared function stays what it was."""
    return len(path)


@safepoint.tool
async def fetch(url: str) -> str:
    """So does one of which nothing is said."""
    return url


async def our_loop() -> None:
    assert_type(look("a"), int)
    assert_type(await fetch("a"), str)
    async with safepoint.open("agent.db", tools=[look, fetch, safepoint.contract("pay")]) as runtime:
        assert_type(runtime, safepoint.Runtime)
        session = runtime.session("s")
        assert_type(session, safepoint.Session)
        assert_type(await session.run("Hello?"), TurnResult)
        assert_type(await session.resume(), safepoint.Parked | safepoint.Continued)
        assert_type(await session.unsettled(), Sequence[OperationRow])
        plan = await session.plan(accept_drift=["tools"])
        if isinstance(plan, safepoint.Park):
            assert_type(plan.codes, tuple[safepoint.ParkReason, ...])
        else:
            assert_type(plan, safepoint.Continue)
        async for happening in session.events():
            assert_type(happening, safepoint.events.Happening)


async def their_loop(session: safepoint.Session) -> None:
    async with session.record("Hello?") as run:
        assert_type(run, safepoint.RecordedRun)
        assert_type(run.history(), tuple[Item, ...])
        assert_type(run.history("anthropic"), list[Any])
        step = await run.model_step(safepoint.step("Hello."))
        assert_type(step, Step)
        for call in step.calls:
            async with run.tool_call(call) as operation:
                assert_type(operation, safepoint.OpenCall)
                operation.result(look(**operation.arguments))
            assert_type(operation.answer, safepoint.Answer)
            assert_type(await run.call(call, look), safepoint.Answer)


def script() -> None:
    with safepoint.open_sync("agent.db") as runtime:
        assert_type(runtime, safepoint.SyncRuntime)
        assert_type(runtime.session().run("Hello?"), TurnResult)
        with runtime.session().record_resume(reconcile=True) as run:
            assert_type(run, safepoint.SyncRecordedRun)
            with run.tool_call("c1") as operation:
                assert_type(operation, safepoint.OpenCall)


def configured() -> None:
    assert_type(safepoint.Configuration().open(), safepoint.Runtime)
    assert_type(safepoint.Configuration(store="agent.db").open_sync(), safepoint.SyncRuntime)  # type: ignore[arg-type]


def mistakes(run: safepoint.RecordedRun) -> None:
    safepoint.open("agent.db", permission="perhaps")  # type: ignore[arg-type]
    safepoint.open("agent.db", tools=5)  # type: ignore[arg-type]
    safepoint.tool(recovers="always")  # type: ignore[call-overload]
    safepoint.no_such_name  # type: ignore[attr-defined]  # noqa: B018
    run.history("smoke-signals")  # type: ignore[call-overload]
