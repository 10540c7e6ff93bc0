"""Very many runs at once, in one process, over one store and one event loop. SPEC sections 7 and 21."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import Planned, PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.tools.decorator import tool
from safepoint.application.ownership import SessionBusy
from safepoint.application.places import Places
from safepoint.application.run_turn import TurnResult
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import SessionId
from safepoint.ports.cancel_signal import CancelSignal
from safepoint.ports.permission_gate import Allowed, PermissionAnswer, PermissionRequest

from .wiring import Process, World, check_sound, go

RUNS = 64


def plan(turns: int = 1) -> PlannedModel:
    one: list[Planned] = [
        calls(("note", {"n": 1}), ("look", {"n": 1}), ("note", {"n": 2}), ("wait", {"n": 1}), text="one"),
        calls(("look", {"n": 2}), ("fail", {}), ("nope", {}), text="two"),
        says("done"),
    ]
    return PlannedModel(one * turns)


class Tools:
    """Tools of every kind, counted."""

    def __init__(self) -> None:
        self.noted = 0
        lock = threading.Lock()

        @tool(resource_key=lambda typed: str(typed["n"]))
        def note(n: int) -> str:
            """Note."""
            with lock:
                self.noted += 1
            return f"noted {n}"

        @tool(recovery="replay_safe", concurrency_limit=3)
        async def look(n: int) -> str:
            """Look."""
            await anyio.sleep(0.001)
            return f"saw {n}"

        @tool(recovery="replay_safe")
        def wait(n: int) -> str:
            """Wait."""
            threading.Event().wait(0.001)
            return f"waited {n}"

        @tool(repeat_free=True)
        def fail() -> str:
            """Fail."""
            raise ValueError("boom")

        self.functions: list[Callable[..., Any]] = [note, look, wait, fail]


def test_sixty_four_runs_at_once_all_reach_their_end_without_a_deadlock() -> None:
    tools = Tools()
    process = Process(places=Places(threads_max=8))
    results: list[TurnResult] = []

    async def one(name: str) -> None:
        results.append(await process.turn("go", plan(), tools.functions, session_id=SessionId(name)))

    async def work() -> None:
        async with anyio.create_task_group() as group:
            for number in range(RUNS):
                group.start_soon(one, f"s{number}")

    go(work)
    assert len(results) == RUNS
    assert {result.outcome.status for result in results} == {RunStatus.COMPLETED}
    assert tools.noted == 2 * RUNS
    for result in results[::16]:
        check_sound(process, result.run_id)
        assert process.owner(result.session_id) is None
    assert len(process.live) == 0


def test_runs_that_wait_for_people_do_not_hold_up_others() -> None:
    tools = Tools()
    process = Process()
    answered = threading.Event()

    class Thinks(ScriptedGate):
        def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
            answered.wait(30)
            return Allowed("ada")

    async def work() -> None:
        async with anyio.create_task_group() as group:
            for number in range(RUNS):  # more than the event loop's default number of threads
                model = plan()
                session_id = SessionId(f"waits{number}")
                turn = partial(process.turn, "go", model, tools.functions, gate=Thinks({}), session_id=session_id)
                group.start_soon(turn)
            result = await process.turn("go", plan(), tools.functions, session_id=SessionId("free"))
            assert result.outcome.status is RunStatus.COMPLETED
            answered.set()

    go(work)
    assert tools.noted == 2 * (RUNS + 1)


def test_event_loops_of_several_threads_share_one_runtime() -> None:
    tools = Tools()
    process = Process()
    results: list[TurnResult] = []

    def thread(number: int) -> None:
        async def work() -> None:
            async def one(name: str) -> None:
                results.append(await process.turn("go", plan(), tools.functions, session_id=SessionId(name)))

            async with anyio.create_task_group() as group:
                for inner in range(8):
                    group.start_soon(one, f"t{number}-{inner}")

        go(work)

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(results) == 32
    assert {result.outcome.status for result in results} == {RunStatus.COMPLETED}


@pytest.mark.parametrize("processes", [2, 5])
def test_of_several_processes_that_begin_a_turn_in_one_session_at_once_one_does_and_the_others_are_told(
    processes: int,
) -> None:
    world = World()
    tools = Tools()
    results: list[TurnResult] = []
    busy: list[SessionBusy] = []
    together = threading.Barrier(processes)
    kept: list[Process] = []

    def one() -> None:
        process = Process(world)
        kept.append(process)
        together.wait(10)
        try:
            results.append(go(lambda: process.turn("go", plan(), tools.functions)))
        except SessionBusy as error:
            busy.append(error)

    threads = [threading.Thread(target=one) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) + len(busy) == processes
    assert results
    assert tools.noted == 2 * len(results)
    for result in results:
        check_sound(kept[0], result.run_id)
