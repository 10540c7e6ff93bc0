"""What a loop of others gives to `call`: cancelled, forgotten, or of a kind whose call alone runs nothing."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.tools.decorator import tool
from safepoint.adapters.tools.promised_tool import contract
from safepoint.application.call_answers import RunStopped
from safepoint.application.recorded_run import RecordedRun
from safepoint.application.tool_boundary import ToolNotOver
from safepoint.application.unanswered_calls import CallsUnanswered
from safepoint.domain.events.run import RunEnded, RunStatus
from safepoint.domain.events.tool import Effect, ToolDispatched, ToolResponded
from safepoint.domain.reasons import FailureClass

from .test_record_run import Recording, look, pay, step, unwrapped
from .wiring import SESSION, check_sound, go, until

PAYS = ("pay", {"amount": 5})


class Slow:
    """An asynchronous function that does not end by itself, and is counted."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.ended: list[str] = []

    async def __call__(self, amount: int = 0) -> str:
        self.began.append(amount)
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.append("cleaned up")
        return "never"


# ---- a cancellation goes on as one ----------------------------------------------------------------------------------


async def by_its_task(began: Callable[[], object], work: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(work())
    await until(began)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def by_a_time_out(began: Callable[[], object], work: Callable[[], Awaitable[None]]) -> None:
    async def soon(clock: asyncio.Timeout) -> None:
        await until(began)
        clock.reschedule(0)

    with pytest.raises(TimeoutError):  # noqa: PT012 (the clock is what raises)
        async with asyncio.timeout(None) as clock:
            other = asyncio.ensure_future(soon(clock))
            await work()
    await other


async def by_a_scope(began: Callable[[], object], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await until(began)
        group.cancel_scope.cancel()


CANCELLED = pytest.mark.parametrize("cancelled", [by_its_task, by_a_time_out, by_a_scope])


def cancelled_in_a_call(
    process: Recording, cancelled: Any, began: Callable[[], object], function: Any, name: str = "pay"
) -> list[str]:
    """A loop that goes on for ever, whose call is cancelled; what it did after the cancellation."""
    after: list[str] = []

    async def work() -> None:
        agent = process.theirs(tools=[pay, look])
        async with unwrapped() as tasks, process.record.turn(SESSION, "Pay.", agent, tasks) as run:
            await run.model_step(step((name, {"amount": 5} if name == "pay" else {})))
            await run.call("c1", function)
            after.append("asked the model again")

    go(lambda: cancelled(began, work))
    return after


@CANCELLED
def test_a_cancellation_in_a_call_ends_the_loop_and_leaves_the_operation_indeterminate(cancelled: Any) -> None:
    process, slow = Recording(), Slow()
    assert cancelled_in_a_call(process, cancelled, lambda: slow.began, slow) == []
    run_id = process.head()
    assert (slow.began, slow.ended) == ([5], ["cleaned up"])
    assert process.of(run_id, RunEnded) == [], "it is interrupted: repair ends it"
    (verdict,) = process.verdicts(run_id)
    assert (verdict.status, verdict.reason) == ("indeterminate", "dispatch_without_response")
    assert process.not_over(run_id) == (), "its task has ended"
    process.die()
    later = Recording(process.world)
    go(lambda: later.turn("again", PlannedModel([says("ok")])))
    check_sound(later, run_id)


@CANCELLED
def test_a_function_that_returns_although_it_is_cancelled_has_its_outcome_and_the_cancellation_goes_on(
    cancelled: Any,
) -> None:
    process, began = Recording(), threading.Event()

    async def holds_on(amount: int) -> str:
        began.set()
        with suppress(asyncio.CancelledError):
            await anyio.sleep_forever()
        return f"paid {amount}"

    assert cancelled_in_a_call(process, cancelled, began.is_set, holds_on) == []
    answer = process.response(process.head(), "pay")
    assert (answer.result, answer.effect) == ("paid 5", Effect.DONE)


@CANCELLED
def test_a_reader_that_is_cancelled_changed_nothing(cancelled: Any) -> None:
    process, slow = Recording(), Slow()
    assert cancelled_in_a_call(process, cancelled, lambda: slow.began, slow, "look") == []
    assert process.response(process.head(), "look").effect is Effect.NONE


@CANCELLED
def test_a_thread_that_outlives_the_cancellation_counts_as_running_and_tells_its_outcome_late(cancelled: Any) -> None:
    process, began, let_go = Recording(), threading.Event(), threading.Event()

    def stuck(amount: int) -> str:
        began.set()
        assert let_go.wait(60)
        return f"paid {amount}"

    assert cancelled_in_a_call(process, cancelled, began.is_set, stuck) == []
    run_id = process.head()
    assert len(process.not_over(run_id)) == 1
    let_go.set()
    go(lambda: until(lambda: not process.live.of(SESSION)))
    assert process.response(run_id, "pay").result == "paid 5"


@pytest.mark.parametrize("stuck", [False, True])
def test_a_loop_that_swallows_the_cancellation_of_one_call_gets_no_further(stuck: bool) -> None:
    process, slow, began, let_go = Recording(), Slow(), threading.Event(), threading.Event()

    def in_a_thread(amount: int) -> str:
        began.set()
        assert let_go.wait(60)
        return f"paid {amount}"

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS, PAYS))
        with anyio.move_on_after(0.05) as scope:
            await run.call("c1", in_a_thread if stuck else slow)
        assert scope.cancelled_caught
        for goes_on in (run.model_step(step(text="on")), run.call("c2", slow)):
            with pytest.raises(RunStopped):
                await goes_on
        with pytest.raises(RunStopped):
            run.check()

    run = process.told(loop)
    let_go.set()
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    assert len(process.dispatches(run.identity.run_id)) == 1


def test_a_call_that_is_cancelled_before_it_was_dispatched_may_be_carried_out_after_all() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run.call("c1")
        if run.answer("c1") is None:
            await run.call("c1")

    run = process.told(loop)
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.COMPLETED
    dispatched = process.of(run.identity.run_id, ToolDispatched)
    assert len(dispatched) == len(process.of(run.identity.run_id, ToolResponded)) == 1


@CANCELLED
def test_a_cancellation_goes_on_where_our_own_loop_calls_the_tool(cancelled: Any) -> None:
    process, slow = Recording(), Slow()
    model = PlannedModel([calls(("act", {})), says("done")])

    async def act() -> str:
        """Act."""
        return await slow()

    async def work() -> None:
        await process.turn("go", model, [act])

    go(lambda: cancelled(lambda: slow.began, work))
    assert len(model.asked) == 1
    assert process.of(process.head(), RunEnded) == []


# ---- what a function returns is awaited, or is not done -------------------------------------------------------------


async def pays(amount: int) -> str:
    """Pay."""
    await anyio.lowlevel.checkpoint()
    return f"paid {amount}"


class Payer:
    """An object that is called, and awaited."""

    async def __call__(self, amount: int) -> str:
        return await pays(amount)


@functools.wraps(pays)
def decorated(amount: int) -> Awaitable[str]:
    """Pay."""
    return pays(amount)


async def twice(amount: int) -> Awaitable[str]:
    """Pay."""
    return pays(amount)


AWAITABLE = {
    "async": pays,
    "lambda": lambda **given: pays(**given),  # noqa: PLW0108 (it is what is tried)
    "partial": functools.partial(pays),
    "object": Payer(),
    "partial object": functools.partial(Payer()),
    "decorated": decorated,
    "twice": twice,
}


@pytest.mark.parametrize("function", AWAITABLE.values(), ids=list(AWAITABLE))
def test_whatever_can_be_awaited_is_awaited(function: Any) -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS))
        answer = await run.call("c1", function)
        assert (answer.result, answer.effect) == ("paid 5", Effect.DONE)

    check_sound(process, process.told(loop).identity.run_id)


@pytest.mark.parametrize("function", [decorated, twice])
def test_what_a_declared_tool_returns_is_awaited_too(function: Any) -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("transfer", {"amount": 5})))
        assert (await run.call("c1")).result == "paid 5"

    process.told(loop, tools=[tool(name="transfer")(function)])


def test_what_is_awaited_of_a_synchronous_function_is_cancelled_by_its_time_out() -> None:
    process, slow = Recording(), Slow()

    @tool(timeout_seconds=0.05, supervised=False)
    def act() -> Awaitable[str]:
        """Act."""
        return slow()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("act", {})))
        answer = await run.call("c1")
        assert (answer.code, answer.effect) == ("tool_timed_out", Effect.UNKNOWN)

    process.told(loop, tools=[act])
    assert slow.ended == ["cleaned up"]


def one_by_one(amount: int) -> Iterator[int]:
    """Pay."""
    yield amount


async def one_by_one_async(amount: int) -> AsyncIterator[int]:
    """Pay."""
    yield amount


@pytest.mark.parametrize(
    "function",
    [one_by_one, one_by_one_async, functools.partial(one_by_one), pays(5), "pay"],
    ids=["generator", "async generator", "partial", "coroutine", "text"],
)
def test_what_would_run_nothing_is_refused_before_anything_is_recorded(function: Any) -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS))
        with pytest.raises(TypeError, match=r"generator|awaitable|no function"):
            await run.call("c1", function)
        await run.call("c1", lambda amount: amount)  # it is as it was

    run = process.told(loop)
    assert len(process.dispatches(run.identity.run_id)) == 1
    if asyncio.iscoroutine(function):
        function.close()


@pytest.mark.parametrize("generator", [one_by_one, one_by_one_async])
def test_what_returns_something_that_nobody_ran_is_never_done(generator: Any) -> None:
    process = Recording()

    def function(amount: int) -> Any:
        return generator(amount)

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS))
        answer = await run.call("c1", function)
        assert (answer.is_error, answer.effect, answer.code) == (True, Effect.UNKNOWN, "tool_raised")
        assert "nobody ran it" in str(answer.result)

    process.told(loop)


def test_a_formatter_may_run_what_a_tool_returns() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("one_by_one", {"amount": 5})))
        assert (await run.call("c1")).result == [5]

    process.told(loop, tools=[tool(format_result=list)(one_by_one)])


def test_a_block_declares_no_result_that_is_still_to_be_awaited() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS))
        async with run.tool_call("c1") as operation:
            unawaited = pays(5)
            with pytest.raises(TypeError, match="await it"):
                operation.result(unawaited)
            operation.result(await unawaited)

    assert process.response(process.told(loop).identity.run_id, "pay").result == "paid 5"


@pytest.mark.parametrize("arguments", [{"amuont": 5}, {}, {"amount": 5, "to": "me"}])
def test_arguments_that_the_function_does_not_take_are_refused_before_t1(arguments: Any) -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", arguments)))
        answer = await run.call("c1", pays)
        assert (answer.code, answer.effect) == ("args_schema_mismatch", Effect.NONE)
        assert "argument" in str(answer.result)

    run = process.told(loop, tools=[contract("pay", recovery="never_auto_retry")])
    assert process.dispatches(run.identity.run_id) == []


# ---- calls without an answer ----------------------------------------------------------------------------------------


def test_the_model_is_not_asked_again_while_a_call_has_no_answer() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS, PAYS))
        await run.call("c1")
        with pytest.raises(CallsUnanswered, match="c2 of pay"):
            run.check()
        with pytest.raises(CallsUnanswered, match=r"is an await missing.*run\.decline"):
            await run.model_step(step(text="Paid both."))
        await run.decline("c2", "once is enough")
        run.check()
        await run.model_step(step(text="Paid once."))

    run = process.told(loop)
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.text) == (RunStatus.COMPLETED, "Paid once.")


def test_a_forgotten_await_is_noticed_at_the_next_step() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS))
        run.call("c1").close()
        await run.model_step(step(text="Paid."))

    with pytest.raises(CallsUnanswered):
        process.told(loop)
    (ended,) = process.of(process.head(), RunEnded)
    assert ended.status is RunStatus.FAILED
    assert process.dispatches(process.head()) == []


def test_a_run_that_is_left_while_a_call_goes_on_is_not_completed() -> None:
    process, slow = Recording(), Slow()
    left: list[Any] = []

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(PAYS))
        left.append(asyncio.ensure_future(run.call("c1", slow)))
        await until(lambda: slow.began)

    with pytest.raises(CallsUnanswered):
        process.told(loop)
    (ended,) = process.of(process.head(), RunEnded)
    assert (ended.status, ended.failure_class) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    assert [verdict.status for verdict in process.verdicts(process.head())] == ["indeterminate"]
    with suppress(asyncio.CancelledError, RunStopped, ToolNotOver):
        left[0].exception()
