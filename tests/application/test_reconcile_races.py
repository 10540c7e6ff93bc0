"""Reconciling beside what else may happen to the same operation: late outcomes, a person's word, another process."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.decorator import tool
from safepoint.application.ownership import SessionBusy
from safepoint.application.reconciliation import Completed, Left, LeftAlone
from safepoint.application.settlement import Recorded, SaidBy
from safepoint.application.stopping import Stopping
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.tool import (
    Observation,
    Statement,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolResponded,
)
from safepoint.domain.identifiers import OperationId
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.ports.tool_catalog import ToolContext

from .wiring import SESSION, Process, World, check_sound, go, until

ACT = calls(("act", {"n": 1}))


class Held:
    """An idempotent tool whose deliveries wait, from the second on, until they are let go."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.let_go = threading.Event()

        def act(context: ToolContext, n: int) -> str:
            """Act."""
            self.keys.append(context.idempotency_key)
            if len(self.keys) > 1:
                self.let_go.wait(30)
            return "acted"

        self.function: Any = tool(recovery="idempotent", key_valid_seconds=600)(act)


def left_unsettled(world: World, held: Held) -> OperationId:
    dead = Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([ACT]), [held.function]))
    dead.die()
    (dispatch,) = dead.dispatches(dead.head())
    return dispatch.operation_id


async def stopped_while_it_is_delivered(process: Process, held: Held) -> list[Completed | LeftAlone | Any]:
    """Stop a reconcile in the middle of a delivery that does not heed it."""
    stopping, became = Stopping(bound_seconds=0.05), list[Any]()

    async def reconcile() -> None:
        became.extend((await process.reconcile([held.function], stopping=stopping)).operations)

    async with anyio.create_task_group() as group:
        group.start_soon(reconcile)
        await until(lambda: len(held.keys) == 2)
        assert stopping.ask("ada")
        stopping.request()
    return [one.became for one in became]


def test_a_delivery_that_was_given_up_hands_its_outcome_in_late_and_then_gives_the_session_up() -> None:
    world, held = World(), Held()
    left_unsettled(world, held)
    process = Process(world)
    (left,) = go(lambda: stopped_while_it_is_delivered(process, held))
    assert left == LeftAlone(Left.MAY_BE_RUNNING, "the delivery did not end when it had to")
    assert process.owner() is not None
    with pytest.raises(SessionBusy):
        go(lambda: Process(world).reconcile([held.function]))

    held.let_go.set()
    go(lambda: until(lambda: process.owner() is None))
    (seen,) = process.of(process.head(), ToolReconciled)
    assert seen.observation is Observation.LATE_OUTCOME
    assert len(held.keys) == 2
    assert go(lambda: process.reconcile([held.function])).operations == ()
    check_sound(process, process.head())


def test_while_it_lives_in_this_process_nothing_else_is_done_about_it_here_either() -> None:
    world, held = World(), Held()
    operation_id = left_unsettled(world, held)
    process = Process(world)
    go(lambda: stopped_while_it_is_delivered(process, held))
    (one,) = go(lambda: process.reconcile([held.function])).operations
    assert isinstance(one.became, LeftAlone)
    assert (one.operation_id, one.became.why) == (operation_id, Left.MAY_BE_RUNNING)
    assert len(held.keys) == 2
    held.let_go.set()
    go(lambda: until(lambda: process.owner() is None))
    (verdict,) = process.verdicts(process.head())
    assert verdict.status is VerdictStatus.COMPLETED


def test_while_it_is_delivered_a_person_is_told_that_it_is_being_worked_on() -> None:
    world, held = World(), Held()
    operation_id = left_unsettled(world, held)
    process = Process(world)
    said: list[Recorded | str] = []

    async def both() -> list[Any]:
        became: list[Any] = []

        async def reconcile() -> None:
            became.extend((await process.reconcile([held.function])).operations)

        async with anyio.create_task_group() as group:
            group.start_soon(reconcile)
            await until(lambda: len(held.keys) == 2)
            try:
                word = SaidBy(operation_id, Statement.NOT_EXECUTED, "ada", "looked")
                said.append((await anyio.to_thread.run_sync(process.settle, word)).recorded)
            except SessionBusy:
                said.append("busy")
            held.let_go.set()
        return [one.became for one in became]

    assert go(both) == [Completed(Observation.REDELIVERED, is_error=False)]
    assert said == ["busy"]
    assert len(process.of(process.head(), ToolRecoveryDecided)) == 1
    check_sound(process, process.head())


def test_of_two_processes_that_reconcile_one_session_one_does_and_the_other_is_told() -> None:
    world, held = World(), Held()
    left_unsettled(world, held)
    first, second = Process(world), Process(world)

    async def both() -> list[Any]:
        became: list[Any] = []

        async def reconcile() -> None:
            became.extend((await first.reconcile([held.function])).operations)

        async with anyio.create_task_group() as group:
            group.start_soon(reconcile)
            await until(lambda: len(held.keys) == 2)
            with pytest.raises(SessionBusy):
                await second.reconcile([held.function])
            held.let_go.set()
        return [one.became for one in became]

    assert go(both) == [Completed(Observation.REDELIVERED, is_error=False)]
    assert len(held.keys) == 2
    assert go(lambda: second.reconcile([held.function])).operations == ()


def test_a_session_of_several_turns_is_reconciled_turn_by_turn() -> None:
    world = World()
    counted: list[int] = []

    def act(n: int) -> str:
        """Act."""
        counted.append(n)
        return f"acted {n}"

    function = tool(recovery="idempotent", key_valid_seconds=600)(act)
    for n in (1, 2):
        dead = Process(world)
        dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
        asked = PlannedModel([calls(("act", {"n": n}))])
        with pytest.raises(StoreFull):
            go(lambda asked=asked, dead=dead: dead.turn("go", asked, [function]))  # type: ignore[misc]
        dead.die()
    process = Process(world)
    result = go(lambda: process.reconcile([function]))
    assert [one.became for one in result.operations] == [Completed(Observation.REDELIVERED, is_error=False)] * 2
    assert result.settled
    assert counted == [1, 2, 1, 2]
    assert process.ledger.session(SESSION).head is not None
    told = go(lambda: process.turn("and?", PlannedModel([says("ok")]), [function]))
    assert process.events(told.run_id)
    for run_id in {one.run_id for one in result.operations}:
        check_sound(process, run_id)
