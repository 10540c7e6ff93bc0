"""Whoever is cancelled while it takes a session has it, and gives it up, or never gets it. ADR 0090.

Each use of a session is cut at each of its awaits, one after the other: by asyncio, which knows nothing of shields, as
the task begins to wait and as it is woken; by asyncio at that await and at the next ones; and by a scope of anyio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import safepoint
from safepoint.adapters.memory.model_provider import PlannedModel, says
from safepoint.application.open_ends import End, end_of

from .loops import asks_to_pay

AWAITS_MAX = 500
THREAD_SECONDS = 30.0
Use = Callable[[safepoint.Session], Awaitable[Any]]
Cut = Callable[["Counted", Any], None]


class Counted:
    """Runs something, and cuts its task when it waits for the nth time.

    Attributes:
        waited: how often it has waited.
    """

    def __init__(self, work: Awaitable[Any], nth: int, cut: Cut) -> None:
        self.waited = 0
        self.nth = nth
        self.scope = anyio.CancelScope()
        self.task = asyncio.current_task()
        self._work = work
        self._cut = cut

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._work.__await__()
        error: BaseException | None = None
        while True:
            try:
                future = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            self.waited += 1
            if self.waited >= self.nth:
                self._cut(self, future)
            error = None
            try:
                yield future
            except BaseException as raised:  # noqa: BLE001 (it is the work's)
                error = raised

    def cancel(self, future: object = None) -> None:
        """As `asyncio.wait_for` does, when its time is up."""
        assert self.task is not None
        self.task.cancel()


def as_it_waits(work: Counted, future: Any) -> None:
    if work.waited == work.nth:
        asyncio.get_running_loop().call_soon(work.cancel)


def as_it_is_woken(work: Counted, future: Any) -> None:
    """What it waits for is done, and it is cancelled before it has seen that."""
    if work.waited == work.nth:
        if future is None:  # it only lets others run
            work.cancel()
        else:
            future.add_done_callback(work.cancel)


def again_and_again(work: Counted, future: Any) -> None:
    if work.waited < work.nth + 4:
        asyncio.get_running_loop().call_soon(work.cancel)


def by_a_scope(work: Counted, future: Any) -> None:
    if work.waited == work.nth:
        asyncio.get_running_loop().call_soon(work.scope.cancel)


async def cut(use: Awaitable[Any], nth: int, by: Cut) -> bool:
    """Whether it waited that often."""

    async def work() -> bool:
        counted = Counted(use, nth, by)
        with counted.scope:
            await counted
        return counted.waited >= nth

    task = asyncio.create_task(work())
    await asyncio.wait([task])
    return task.cancelled() or task.result()


async def record(session: safepoint.Session) -> None:
    async with session.record("Pay.") as run:
        await run.model_step(safepoint.step("Done."))


async def record_resume(session: safepoint.Session) -> None:
    async with session.record_resume() as run:
        await run.model_step(safepoint.step("Done."))


async def interrupted(session: safepoint.Session, *, in_the_call: bool = False) -> None:
    """What a cancelled turn leaves, here before a call or in it."""
    with anyio.CancelScope() as scope:
        async with session.record("Pay.") as run:
            (call,) = (await run.model_step(asks_to_pay())).calls
            if in_the_call:
                async with run.tool_call(call):
                    scope.cancel()
                    await anyio.lowlevel.checkpoint()
            scope.cancel()
            await anyio.lowlevel.checkpoint()


async def nothing(session: safepoint.Session) -> None:
    """A session that never was."""


async def in_a_call(session: safepoint.Session) -> None:
    await interrupted(session, in_the_call=True)


USES: dict[str, tuple[Use, Use]] = {
    "run": (nothing, lambda session: session.run("Pay.")),
    "record": (nothing, record),
    "resume": (interrupted, lambda session: session.resume()),
    "resume, reconciling": (in_a_call, lambda session: session.resume(reconcile=True)),
    "record_resume": (interrupted, record_resume),
    "reconcile": (in_a_call, lambda session: session.reconcile()),
    "repair": (interrupted, lambda session: session.repair()),
    "cancel": (interrupted, lambda session: session.cancel(by="ada")),
}


@pytest.mark.parametrize("by", [as_it_waits, as_it_is_woken, again_and_again, by_a_scope])
@pytest.mark.parametrize("use", USES)
def test_wherever_a_use_of_a_session_is_cut_nobody_holds_it_any_more(tmp_path: Path, use: str, by: Cut) -> None:
    before, used = USES[use]
    model = PlannedModel([says("Done.")] * AWAITS_MAX)
    tools = [safepoint.contract("pay", recovery="never_auto_retry")]

    async def main() -> int:
        async with safepoint.open(tmp_path / "store.sqlite", model=model, tools=tools) as runtime:
            for nth in range(1, AWAITS_MAX):
                session = runtime.session(f"s{nth}")
                await before(session)
                was_cut = await cut(used(session), nth, by)
                await left(runtime, session, at_once=use != "cancel")
                await session.repair()
                if not was_cut:
                    return nth
        raise AssertionError("it waits too often")

    assert asyncio.run(main()) > 1


async def left(runtime: safepoint.Runtime, session: safepoint.Session, *, at_once: bool) -> None:
    """Nobody in this process holds it; and where something in it is open, it is owned, so that repair finds it."""
    ownership = runtime.parts.ownership()
    if not at_once:  # a person's command goes on in its thread, and gives up what it has
        with anyio.fail_after(THREAD_SECONDS):
            while ownership.in_use(session.session_id):  # noqa: ASYNC110 (a thread, which has no event of this loop)
                await anyio.sleep(0.001)
    assert not ownership.in_use(session.session_id)
    if end_of(runtime.parts.ledger(), session.session_id) is End.OPEN:
        row, _, _ = ownership.owner_of(session.session_id)
        assert row is not None
        assert row.incarnation_id == ownership.incarnation.incarnation_id
