"""A client hangs up while a tool works: the record says what is known, as after a kill, and recovery goes on there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.tools.decorator import tool
from safepoint.application.reconciliation import Completed
from safepoint.application.resume_run import Continued, Parked
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.tool import Effect, Observation, ToolReconciled
from safepoint.domain.reasons import ParkReason
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.tool_catalog import ToolContext

from .resuming import Killed, killing
from .test_record_run import Recording, step, unwrapped
from .test_their_functions import CANCELLED, by_a_scope, by_a_time_out, by_its_task
from .wiring import SESSION, check_sound, go, until

ACT: tuple[str, Any] = ("act", {"n": 1})


class Act:
    """An asynchronous tool that does not end by itself until it may; its deliveries are counted by their keys."""

    def __init__(self, **promise: Any) -> None:
        self.keys: list[str] = []
        self.ends = False

        @tool(**promise)
        async def act(context: ToolContext, n: int) -> str:
            """Act."""
            self.keys.append(context.idempotency_key)
            if not self.ends:
                await anyio.sleep_forever()
            return f"acted {n}"

        self.function = act


def hung_up(act: Act, by: str, cancelled: Any) -> Recording:
    """The process in which a turn was cut while its tool worked; after a kill, the next one."""
    process = Recording()

    async def ours() -> None:
        await process.turn("go", [calls(ACT), says("never asked for")], [act.function])

    async def theirs() -> None:
        agent = process.theirs(tools=[act.function])
        async with unwrapped() as tasks, process.record.turn(SESSION, "go", agent, tasks) as run:
            await run.model_step(step(ACT))
            await run.call("c1")

    if by == "a kill":
        process.failpoints.at_hit = killing(Failpoint.IMPLEMENTATION_RUNNING)
        with pytest.raises((Killed, BaseExceptionGroup)):
            go(ours)
        process.die()
        return Recording(process.world)
    go(lambda: cancelled(lambda: act.keys, ours if by == "our loop" else theirs))
    return process


WAYS = pytest.mark.parametrize(
    ("by", "cancelled"),
    [
        *((loop, how) for loop in ("our loop", "a loop of others") for how in (by_its_task, by_a_time_out, by_a_scope)),
        ("a kill", None),
    ],
)


@WAYS
@pytest.mark.parametrize("recovery", ["idempotent", "outcome_unknown", "never_auto_retry"])
def test_a_tool_that_was_ended_with_its_turn_has_no_outcome_and_is_over(by: str, cancelled: Any, recovery: str) -> None:
    act = Act(recovery=recovery, **({"key_valid_seconds": 60} if recovery == "idempotent" else {}))
    process = hung_up(act, by, cancelled)
    run_id = process.head()
    assert process.topics(run_id)[-1] == "tool.dispatched"
    (verdict,) = process.verdicts(run_id)
    assert (verdict.status, verdict.reason) == (VerdictStatus.INDETERMINATE, "dispatch_without_response")
    assert process.not_over(run_id) == ()
    resumed = go(lambda: process.resume([says("never asked for")], [act.function]))
    assert isinstance(resumed, Parked)
    assert ParkReason.DANGLING_TOOL_STATE in resumed.codes
    check_sound(process, run_id)


@WAYS
@pytest.mark.parametrize("through", ["reconcile", "resume"])
def test_an_idempotent_call_is_delivered_again_with_its_recorded_key(by: str, cancelled: Any, through: str) -> None:
    act = Act(recovery="idempotent", key_valid_seconds=60)
    process = hung_up(act, by, cancelled)
    run_id, before = process.head(), len(act.keys)
    (dispatch,) = process.dispatches(run_id)
    act.ends = True
    if through == "reconcile":
        (one,) = go(lambda: process.reconcile([act.function])).operations
        assert one.became == Completed(Observation.REDELIVERED, is_error=False)
    else:
        resumed = go(lambda: process.resume([says("done")], [act.function], reconcile=True))
        assert isinstance(resumed, Continued)
        assert resumed.outcome.text == "done"
    assert act.keys[before:] == [dispatch.idempotency_key]
    (verdict,) = process.verdicts(run_id)
    assert (verdict.status, verdict.effect) == (VerdictStatus.COMPLETED, Effect.DONE)
    check_sound(process, run_id)


@CANCELLED
@pytest.mark.parametrize("through", ["reconcile", "resume"])
@pytest.mark.parametrize("recovery", ["idempotent", "replay_safe"])
def test_a_cancellation_while_it_is_delivered_again_goes_on_and_settles_nothing(
    cancelled: Callable[[Callable[[], object], Callable[[], Awaitable[None]]], Awaitable[None]],
    through: str,
    recovery: str,
) -> None:
    """A reader would be answered with an error, and a resume would ask the model for a client that has gone."""
    act = Act(recovery=recovery, **({"key_valid_seconds": 60} if recovery == "idempotent" else {}))
    process = hung_up(act, "a kill", None)
    run_id, model = process.head(), PlannedModel([says("done")])

    async def again() -> None:
        if through == "reconcile":
            await process.reconcile([act.function])
        else:
            await process.resume(model, [act.function], reconcile=True)

    go(lambda: cancelled(lambda: act.keys, again))
    assert (model.asked, process.of(run_id, ToolReconciled)) == ([], [])
    assert process.head() == run_id
    assert [verdict.status for verdict in process.verdicts(run_id)] == [VerdictStatus.INDETERMINATE]
    assert process.not_over(run_id) == ()
    assert process.owner() is None
    act.ends = True
    resumed = go(lambda: process.resume(model, [act.function], reconcile=True))
    assert isinstance(resumed, Continued)
    assert len(act.keys) == 2
    check_sound(process, run_id)


def test_the_next_turn_after_a_hang_up_ends_the_run_and_leaves_the_operation_to_whoever_looks() -> None:
    act = Act(recovery="idempotent", key_valid_seconds=60)
    process = hung_up(act, "our loop", by_its_task)
    run_id = process.head()
    go(lambda: process.turn("again", [says("ok")], [act.function]))
    assert len(process.of(run_id, RunEnded)) == 1
    act.ends = True
    (one,) = go(lambda: process.reconcile([act.function])).operations
    assert isinstance(one.became, Completed)
    assert len(set(act.keys)) == 1


def test_an_asyncio_task_that_hung_up_is_cancelled_and_its_siblings_are_not_dispatched() -> None:
    act = Act()
    process = Recording()

    async def work() -> None:
        turn = asyncio.ensure_future(process.turn("go", [calls(ACT, ACT)], [act.function]))
        await until(lambda: act.keys)
        turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled()

    go(work)
    assert len(process.dispatches(process.head())) == len(act.keys) == 1
