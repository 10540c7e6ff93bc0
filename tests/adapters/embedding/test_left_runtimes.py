"""A runtime that is left while turns of other tasks run: they are interrupted and awaited, then the store is closed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

import safepoint
from safepoint.adapters.memory.model_provider import Planned, PlannedModel, Stall, calls, says
from safepoint.domain.events.run import RunStatus

from .loops import PAYS, opened, payments

DEADLOCK_SECONDS = 30.0


@safepoint.tool(recovery="outcome_unknown")
async def waits(context: safepoint.ToolContext) -> str:
    """Wait."""
    (context.workspace / "began").touch()
    await anyio.sleep_forever()
    return "never"


class Which(PlannedModel):
    """Stalls, calls what waits, or calls what a person is asked about, by the user's text."""

    def stream(self, request: Any, proof: Any) -> Any:
        answers: dict[str, Planned] = {"stalls": Stall(), "waits": calls(("waits", {})), "asks": PAYS[0]}
        return PlannedModel([answers[request.history[-1].text]]).stream(request, proof)


@pytest.mark.parametrize("cancelled", [False, True])
def test_turns_of_other_tasks_are_interrupted_before_the_store_is_closed(tmp_path: Path, *, cancelled: bool) -> None:
    async def turn(runtime: safepoint.Runtime, how: str) -> None:
        with pytest.raises(safepoint.HostClosedMeanwhile):
            await runtime.session(how).run(how)

    async def main() -> None:
        turns: list[asyncio.Task[None]] = []

        async def program() -> None:
            allows = ("stalls", "waits")
            async with (
                opened(tmp_path, Which([]), tools=[waits]) as runtime,
                opened(tmp_path, Which([]), permission="ask") as asking,
            ):
                turns.extend(asyncio.ensure_future(turn(runtime, how)) for how in allows)
                turns.append(asyncio.ensure_future(turn(asking, "asks")))
                while not (tmp_path / "began").exists() or not await asking.session("asks").waiting():  # noqa: ASYNC110
                    await anyio.sleep(0.01)
                if cancelled:
                    task = asyncio.current_task()
                    assert task is not None
                    asyncio.get_running_loop().call_later(0.001, task.cancel)
                    task.cancel()

        leaving = asyncio.ensure_future(program())
        await asyncio.wait([leaving])
        assert leaving.cancelled() is cancelled
        await asyncio.gather(*turns)
        async with opened(tmp_path, PlannedModel([says("went on"), says("ok")])) as again:
            resumed = await again.session("stalls").resume()
            assert isinstance(resumed, safepoint.Continued)
            assert resumed.outcome.text == "went on"
            (one,) = await again.session("waits").unsettled()
            assert one.effect is None, "it was ended with its runtime: nobody knows"
            result = await again.session("asks").run("Again.")
            assert result.outcome.status is RunStatus.COMPLETED

    asyncio.run(asyncio.wait_for(main(), DEADLOCK_SECONDS))
    assert payments(tmp_path) == []


def test_a_provider_that_cannot_be_closed_keeps_no_store_open(tmp_path: Path) -> None:
    class Breaks(PlannedModel):
        async def aclose(self) -> None:
            raise OSError("the connection was reset")

    closed: list[str] = []

    async def main() -> None:
        runtime = opened(tmp_path, Breaks(list(PAYS)))
        close = runtime._opened.close

        def closes() -> None:
            close()
            closed.append("closed")

        runtime._opened.close = closes  # type: ignore[method-assign]
        with pytest.raises(OSError, match="reset"):
            async with runtime:
                await runtime.session("s").run("Pay.")

    asyncio.run(main())
    assert closed == ["closed"]
