"""Waiting for the writer is never torn by a cancellation: whoever waits learns what was written. SPEC section 7."""

from __future__ import annotations

import asyncio

import anyio
import anyio.lowlevel
import pytest

from safepoint.application.async_ledger import AsyncLedger
from safepoint.application.ledger import Receipt
from safepoint.domain.errors import WriteRefused
from safepoint.domain.identifiers import RunId, SessionId

from ..domain.facts import Facts
from .ledger_world import World


def test_a_cancelled_caller_gets_its_receipt_and_is_cancelled_after_it(world: World) -> None:
    r = world.opened("r", "a")
    ledger = AsyncLedger(world.ledger)
    receipts: list[Receipt] = []
    went_on: list[bool] = []

    async def caller() -> None:
        receipts.append(await ledger.execute(r.prepare(r.dispatch("a"))))
        await anyio.lowlevel.checkpoint()
        went_on.append(True)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            with world.events.holding():
                group.start_soon(caller)
                await anyio.to_thread.run_sync(world.events.wait_until_held)
                group.cancel_scope.cancel()

    anyio.run(main)
    assert [receipt.first for receipt in receipts] == [True]
    assert went_on == []
    assert world.topics()[-1] == "tool.dispatched.v1"


def test_cancelled_callers_that_wait_for_the_group_of_another_get_their_receipts_too(world: World) -> None:
    first = world.opened("first", session="first")
    runs = [world.opened(f"r{n}", session=f"s{n}") for n in range(3)]
    ledger = AsyncLedger(world.ledger)
    receipts: list[Receipt] = []
    went_on: list[bool] = []

    async def caller(r: Facts) -> None:
        receipts.append(await ledger.execute(r.append(r.cancelled())))
        await anyio.lowlevel.checkpoint()
        went_on.append(True)

    async def main() -> None:
        async with anyio.create_task_group() as group, anyio.create_task_group() as cancelled:
            with world.events.holding():
                group.start_soon(ledger.execute, first.append(first.cancelled()))
                await anyio.to_thread.run_sync(world.events.wait_until_held)
                for r in runs:
                    cancelled.start_soon(caller, r)
                await anyio.wait_all_tasks_blocked()
                cancelled.cancel_scope.cancel()

    anyio.run(main)
    assert [receipt.first for receipt in receipts] == [True] * 3
    assert went_on == []
    assert world.events.groups[-2:] == [1, 3]


def test_a_scope_that_was_cancelled_before_does_not_tear_it_either(world: World) -> None:
    r = world.opened("r", "a")
    ledger = AsyncLedger(world.ledger)

    async def main() -> Receipt:
        with anyio.CancelScope() as scope:
            scope.cancel()
            return await ledger.execute(r.prepare(r.dispatch("a")))
        raise AssertionError("the receipt was lost")

    assert anyio.run(main).first


def test_a_refusal_is_raised_to_its_caller(world: World) -> None:
    r = world.opened("r", "a")
    ledger = AsyncLedger(world.ledger)

    async def main() -> None:
        with pytest.raises(WriteRefused):
            await ledger.execute(r.commit(r.outcome("a")))

    anyio.run(main)


def test_the_event_loop_goes_on_while_the_writer_waits(world: World) -> None:
    r, _ = world.opened("r", "a"), world.opened("q", session="t")
    ledger = AsyncLedger(world.ledger)
    ticks: list[int] = []

    async def tick() -> None:
        for number in range(3):
            ticks.append(number)
            await anyio.lowlevel.checkpoint()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            with world.events.holding():
                group.start_soon(ledger.execute, r.append(r.cancelled()))
                await anyio.to_thread.run_sync(world.events.wait_until_held)
                assert (await ledger.session(SessionId("s"))).head is not None
                assert (await ledger.run(RunId("q"))).open
                await tick()
                assert len(ticks) == 3
        assert (await ledger.run(RunId("r"))).cancel_requested is not None

    anyio.run(main)


def test_callers_of_one_loop_meet_in_one_group(world: World) -> None:
    runs = [world.opened(f"r{n}", session=f"s{n}") for n in range(5)]
    first = world.opened("first", session="first")
    ledger = AsyncLedger(world.ledger)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            with world.events.holding():
                group.start_soon(ledger.execute, first.append(first.cancelled()))
                await anyio.to_thread.run_sync(world.events.wait_until_held)
                for r in runs:
                    group.start_soon(ledger.execute, r.append(r.cancelled()))
                await anyio.wait_all_tasks_blocked()

    anyio.run(main)
    assert world.events.groups[-2:] == [1, 5]


def test_several_event_loops_may_share_a_ledger(world: World) -> None:
    r = world.opened()
    ledger = AsyncLedger(world.ledger)
    for number in range(3):
        asyncio.run(ledger.execute(r.append(r.user(str(number), steering=True))))
    assert world.topics()[2:] == ["message.user.v1"] * 3
