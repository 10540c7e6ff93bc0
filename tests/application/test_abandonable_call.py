"""A blocking call can be given up: its thread goes on, and tells its end to exactly one side."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial

import anyio
import pytest

from safepoint.application.abandonable_call import AbandonableCall, Ended, Raised, Returned, joined

from .wiring import go, until


def test_a_call_that_ends_tells_whoever_waits() -> None:
    async def work() -> Ended[int] | None:
        call = AbandonableCall(lambda: 7, "test")
        assert call.start()
        await call.finished()
        assert not call.give_up()
        return call.ended

    assert go(work) == Returned(7)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), StopIteration()])
def test_whatever_a_call_raises_is_how_it_ended(error: BaseException) -> None:
    def fails() -> int:
        raise error

    async def work() -> Ended[int] | None:
        call = AbandonableCall(fails, "test")
        call.start()
        await call.finished()
        return call.ended

    assert go(work) == Raised(error)


def test_a_cancelled_wait_leaves_the_call_alone_and_may_be_begun_again() -> None:
    let_go = threading.Event()

    async def work() -> Ended[bool] | None:
        call = AbandonableCall(partial(let_go.wait, 30), "test")
        call.start()
        with anyio.move_on_after(0.01) as scope:
            await call.finished()
        assert scope.cancelled_caught
        assert call.ended is None
        let_go.set()
        await call.finished()
        return call.ended

    assert go(work) == Returned(True)


def test_the_end_of_a_call_that_was_given_up_goes_to_whoever_took_over_once() -> None:
    let_go = threading.Event()
    told: list[Ended[bool]] = []

    async def work() -> None:
        call = AbandonableCall(partial(let_go.wait, 30), "test")
        call.start()
        assert call.give_up(told.append)
        let_go.set()
        await until(lambda: told)

    go(work)
    assert told == [Returned(True)]


def test_giving_up_and_ending_at_the_same_moment_never_loses_nor_doubles_the_end() -> None:
    async def work() -> None:
        for _ in range(300):
            told: list[Ended[int]] = []
            call = AbandonableCall(lambda: 1, "test")
            call.start()
            await anyio.lowlevel.checkpoint()
            if call.give_up(told.append):
                await until(lambda told=told: told)  # type: ignore[misc]
                assert told == [Returned(1)]
            else:
                assert call.ended == Returned(1)
                assert told == []

    go(work)


def test_a_call_is_waited_for_within_a_bound() -> None:
    async def work() -> tuple[object, object]:
        slow = await AbandonableCall(threading.Event().wait, "test").ended_within(0.01)
        quick = await AbandonableCall(lambda: "ok", "test").ended_within(10)
        return slow, quick

    assert go(work) == (None, Returned("ok"))


def test_a_thread_may_wait_for_another_call_within_a_bound_too() -> None:
    assert joined(lambda: "ok", 10) == Returned("ok")
    assert joined(threading.Event().wait, 0.01) is None


def test_an_end_after_its_event_loop_is_gone_harms_nobody() -> None:
    let_go = threading.Event()
    calls: list[AbandonableCall[bool]] = []

    async def work() -> None:
        calls.append(AbandonableCall(partial(let_go.wait, 30), "test"))
        calls[0].start()

    go(work)
    let_go.set()
    for _ in range(1000):
        if calls[0].ended is not None:
            break
        threading.Event().wait(0.005)
    assert calls[0].ended == Returned(True)


def test_a_call_that_never_ends_does_not_keep_the_process_from_ending() -> None:
    program = (
        "import anyio, threading\n"
        "from safepoint.application.abandonable_call import AbandonableCall\n"
        "async def main():\n"
        "    call = AbandonableCall(threading.Event().wait, 'stuck')\n"
        "    call.start()\n"
        "    call.give_up()\n"
        "anyio.run(main)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert ended.returncode == 0
