"""A run that somebody else's loop drives is recorded by the rules of our own loop: T1, the effect, T2, and an end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from safepoint.adapters.memory.model_provider import PlannedModel
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.adapters.tools.promised_tool import contract
from safepoint.application.agent import Agent
from safepoint.application.call_answers import CallRefused, OutcomeNotDeclared, RunStopped
from safepoint.application.live_runs import LiveRun
from safepoint.application.reconciliation import Completed, Left, LeftAlone
from safepoint.application.record_run import RecordRun, ResumeParked
from safepoint.application.recorded_run import RecordedRun
from safepoint.application.tool_boundary import ToolNotOver
from safepoint.application.unanswered_calls import CallsUnanswered
from safepoint.domain.canonical import encode
from safepoint.domain.errors import RefusedWithoutEffect, StoreUnavailable
from safepoint.domain.events.run import Budgets, RunEnded, RunStatus
from safepoint.domain.events.tool import Effect, Observation, ToolDispatched, ToolResponded
from safepoint.domain.identifiers import RunId
from safepoint.domain.reasons import FailureClass, ParkReason
from safepoint.domain.replay.items import CallItem, ResultItem, TextItem, UserItem
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.model_step import CallBlock, StepFinished, TextBlock, ThinkingBlock
from safepoint.ports.permission_gate import PermissionGate
from safepoint.ports.tool_catalog import ToolContext

from .wiring import ALLOW_ALL, SESSION, Process, World, check_sound, go

Loop = Callable[[RecordedRun], Awaitable[None]]


def step(*calls: tuple[str, dict[str, Any]], text: str = "", ids: str = "c") -> StepFinished:
    """A step with calls, whose ids the provider numbered."""
    said = (TextBlock(text),) if text else ()
    blocks = [CallBlock(f"{ids}{n}", name, encode(args).decode()) for n, (name, args) in enumerate(calls, 1)]
    return StepFinished(blocks=(*said, *blocks), finish_reason="tool_calls" if calls else "stop")


@tool(recovery="never_auto_retry")
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(recovery="replay_safe")
def look() -> str:
    """Look."""
    return "seen"


@asynccontextmanager
async def unwrapped() -> AsyncIterator[TaskGroup]:
    """Where calls wait for their blocks, as a runtime keeps it: what its block raises is not grouped."""
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    try:
        yield tasks
    finally:
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)


class Recording(Process):
    """A process whose loop is somebody else's."""

    def __init__(self, world: World | None = None, **more: Any) -> None:
        super().__init__(world, **more)
        self.record = RecordRun(self.run_turn, self.resume_run, self.drive, self.drive._run_agent)

    def theirs(self, gate: PermissionGate = ALLOW_ALL, tools: Any = (pay, look)) -> Agent:
        return self.agent(PlannedModel([]), tools, gate)

    def told(self, loop: Loop, gate: PermissionGate = ALLOW_ALL, tools: Any = (pay, look), **more: Any) -> RecordedRun:
        """Let a loop drive a turn to its end."""

        async def main() -> RecordedRun:
            agent = self.theirs(gate, tools)
            async with unwrapped() as tasks, self.record.turn(SESSION, "Pay 5.", agent, tasks, **more) as run:
                await loop(run)
            return run

        return go(main)


async def pays(run: RecordedRun) -> None:
    """What a small loop does."""
    await run.model_step(step(("pay", {"amount": 5}), text="I pay."))
    async with run.tool_call("c1") as operation:
        operation.result(pay(**operation.arguments))
    await run.model_step(step(text="Done."))


def test_a_loop_of_others_leaves_the_record_that_ours_leaves() -> None:
    process = Recording()
    run = process.told(pays)
    run_id = run.identity.run_id
    assert process.topics(run_id) == [
        "run.opened",
        "message.user",
        "model.text",
        "tool.called",
        "model.step_completed",
        "tool.dispatched",
        "tool.responded",
        "model.text",
        "model.step_completed",
        "run.ended",
    ]
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.text) == (RunStatus.COMPLETED, "Done.")
    answer = process.response(run_id, "pay")
    assert (answer.result, answer.is_error, answer.effect) == ("paid 5", False, Effect.DONE)
    assert process.owner() is None
    check_sound(process, run_id)


def test_t1_is_durable_in_the_block_and_t2_when_it_is_left() -> None:
    process = Recording()
    seen: list[list[str]] = []

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        run_id = run.identity.run_id
        async with run.tool_call("c1") as operation:
            seen.append(process.topics(run_id)[-1:])
            operation.result("paid")
            assert run.answer("c1") is None
        seen.append(process.topics(run_id)[-1:])
        assert operation.answer == run.answer("c1")
        assert operation.answer.result == "paid"

    process.told(loop)
    assert seen == [["tool.dispatched"], ["tool.responded"]]


def test_the_block_is_told_what_an_implementation_is_told() -> None:
    process = Recording()
    seen: list[ToolContext] = []

    async def loop(run: RecordedRun) -> None:
        (call,) = (await run.model_step(step(("pay", {"amount": 5})))).calls
        async with run.tool_call(call) as operation:
            seen.append(operation.context)
            assert operation.arguments == {"amount": 5}
            assert operation.operation_id == operation.context.operation_id
            assert operation.idempotency_key == operation.context.idempotency_key
            assert not operation.context.cancelled()
            operation.result(None)

    run = process.told(loop)
    (dispatch,) = process.dispatches(run.identity.run_id)
    assert [context.operation_id for context in seen] == [dispatch.operation_id]


def test_the_history_is_what_our_own_model_would_be_shown() -> None:
    process = Recording()
    shown: list[Any] = []

    async def loop(run: RecordedRun) -> None:
        shown.append(run.history())
        thinking = ThinkingBlock("I think.", signature="c2ln")
        finished = step(("pay", {"amount": 5}), text="I pay.")
        await run.model_step(StepFinished(blocks=(thinking, *finished.blocks), finish_reason="tool_use"))
        async with run.tool_call("c1") as operation:
            operation.result("paid 5")
        shown.append(run.history())

    process.told(loop)
    assert [[item.kind for item in one] for one in shown] == [["user"], ["user", "thinking", "text", "call", "result"]]
    assert shown[1][1].signature == "c2ln"


def test_parallel_calls_are_carried_out_beside_one_another() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 1}), ("pay", {"amount": 2})))
        both = anyio.Event()

        async def one(call_id: str) -> None:
            async with run.tool_call(call_id) as operation:
                if call_id == "c2":
                    both.set()
                await both.wait()
                operation.result(call_id)

        async with anyio.create_task_group() as group:
            group.start_soon(one, "c1")
            group.start_soon(one, "c2")
        assert [run.answer(name).result for name in ("c1", "c2")] == ["c1", "c2"]  # type: ignore[union-attr]

    check_sound(process, process.told(loop).identity.run_id)


@pytest.mark.parametrize(
    ("declare", "result", "is_error", "effect"),
    [
        (lambda op: op.result({"a": 1}), {"a": 1}, False, Effect.DONE),
        (lambda op: op.error("declined", effect="none"), "declined", True, Effect.NONE),
        (lambda op: op.error(OSError("no such account"), effect="none"), "OSError: no such account", True, Effect.NONE),
        (lambda op: op.error(OSError("half of it"), effect="done"), "OSError: half of it", True, Effect.DONE),
        (lambda op: op.error({"isError": True}), {"isError": True}, True, Effect.UNKNOWN),
    ],
)
def test_what_is_declared_is_what_is_recorded(declare: Any, result: Any, is_error: bool, effect: Effect) -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        async with run.tool_call("c1") as operation:
            declare(operation)

    run = process.told(loop)
    answer = process.response(run.identity.run_id, "pay")
    assert (answer.result, answer.is_error, answer.effect) == (result, is_error, effect)
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("declare", "effect", "code"),
    [
        (lambda op: op.error(OSError("gone")), Effect.UNKNOWN, "tool_raised"),
        (lambda op: op.error(RefusedWithoutEffect("no such account")), Effect.NONE, "refused_without_effect"),
        (lambda op: op.refused("no such account"), Effect.NONE, "refused_without_effect"),
        (lambda op: op.result(object()), Effect.DONE, "result_not_strict_json"),
    ],
)
def test_an_exception_is_judged_as_one_of_an_implementation(declare: Any, effect: Effect, code: str) -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        async with run.tool_call("c1") as operation:
            declare(operation)

    answer = process.response(process.told(loop).identity.run_id, "pay")
    assert (answer.is_error, answer.effect, answer.code) == (True, effect, code)


def test_a_tool_that_only_reads_never_has_an_unknown_effect() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("look", {})))
        async with run.tool_call("c1") as operation:
            operation.error("nothing to see")

    assert process.response(process.told(loop).identity.run_id, "look").effect is Effect.NONE


@pytest.mark.parametrize(
    ("call", "gate", "code"),
    [
        (("pay", {"amount": "five"}), ALLOW_ALL, "args_schema_mismatch"),
        (("fly", {}), ALLOW_ALL, "unknown_tool"),
        (("pay", {"amount": 5}), DenyGate(), "permission_denied"),
    ],
)
def test_a_refused_call_is_answered_and_its_block_is_never_entered(call: Any, gate: PermissionGate, code: str) -> None:
    process = Recording()
    entered: list[bool] = []

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(call))
        with pytest.raises(CallRefused) as refused:
            async with run.tool_call("c1"):
                entered.append(True)
        answer = refused.value.answer
        assert (answer.code, answer.is_error, answer.effect) == (code, True, Effect.NONE)
        assert answer == run.answer("c1")
        await run.model_step(step(text="I see."))

    run = process.told(loop, gate)
    assert entered == []
    assert process.dispatches(run.identity.run_id) == []
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.COMPLETED


def test_arguments_that_are_no_strict_json_are_refused() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        blocks = (CallBlock("c1", "pay", '{"amount": NaN}'),)
        await run.model_step(StepFinished(blocks=blocks, finish_reason="tool_calls"))
        with pytest.raises(CallRefused) as refused:
            async with run.tool_call("c1"):
                pass
        assert refused.value.answer.code == "args_not_strict_json"

    process.told(loop)


# ---- torn away -----------------------------------------------------------------------------------------------------


def interrupted(process: Recording, loop: Loop, error: type[BaseException]) -> RunId:
    """A turn out of which the loop was torn by an error."""
    with pytest.raises(error):
        process.told(loop)
    return process.head()


def test_a_block_that_is_torn_away_leaves_its_operation_indeterminate() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        async with run.tool_call("c1"):
            raise ZeroDivisionError

    run_id = interrupted(process, loop, ZeroDivisionError)
    (verdict,) = process.verdicts(run_id)
    assert (verdict.status, verdict.reason) == ("indeterminate", "dispatch_without_response")
    (ended,) = process.of(run_id, RunEnded)
    assert (ended.status, ended.failure_class) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    assert process.not_over(run_id) == ()
    assert process.owner() is None
    check_sound(process, run_id)


def test_a_block_that_says_nothing_is_a_defect_and_leaves_its_operation_indeterminate() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        async with run.tool_call("c1"):
            pass

    run_id = interrupted(process, loop, OutcomeNotDeclared)
    assert [verdict.status for verdict in process.verdicts(run_id)] == ["indeterminate"]


def test_a_loop_that_swallows_the_tearing_gets_no_further() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5}), ("pay", {"amount": 6})))
        with pytest.raises(ZeroDivisionError):
            async with run.tool_call("c1"):
                raise ZeroDivisionError
        with pytest.raises(RunStopped):
            run.check()
        with pytest.raises(RunStopped):
            run.tool_call("c2")

    run = process.told(loop)
    assert run.outcome is not None
    assert (run.outcome.status, run.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    assert [one.status for one in process.verdicts(run.identity.run_id)] == ["indeterminate", "completed"]
    assert len(process.dispatches(run.identity.run_id)) == 1


def cancelled_in_a_block(process: Recording, *, over: bool = False, declared: bool = False) -> RunId:
    """A turn whose task is cancelled in the block of its call."""

    async def main() -> None:
        async with unwrapped() as tasks:
            with anyio.CancelScope() as scope:
                async with process.record.turn(SESSION, "Pay.", process.theirs(), tasks) as run:
                    await run.model_step(step(("pay", {"amount": 5})))
                    async with run.tool_call("c1") as operation:
                        if over:
                            operation.over()
                        if declared:
                            operation.result("paid 5")
                        scope.cancel()
                        await anyio.sleep_forever()

    go(main)
    return process.head()


def test_a_cancelled_block_counts_as_running_until_the_process_ends() -> None:
    process = Recording()
    run_id = cancelled_in_a_block(process)
    assert process.of(run_id, RunEnded) == []
    assert process.of(run_id, ToolResponded) == []
    assert len(process.not_over(run_id)) == 1
    process.die()
    later = Recording(process.world)
    assert later.not_over(run_id) == ()


def test_a_cancelled_block_of_which_nothing_is_left_is_over_at_once() -> None:
    process = Recording()
    run_id = cancelled_in_a_block(process, over=True)
    assert process.of(run_id, ToolResponded) == []
    assert process.not_over(run_id) == ()


def test_what_was_declared_before_the_cancellation_is_committed() -> None:
    process = Recording()
    run_id = cancelled_in_a_block(process, declared=True)
    assert process.response(run_id, "pay").result == "paid 5"


def test_a_cancellation_before_the_block_is_entered_leaves_no_doubt() -> None:
    """Whoever waits for a person is cancelled: nothing was dispatched, or T2 says that nothing happened."""
    process = Recording()

    async def main() -> None:
        async with unwrapped() as tasks:
            with anyio.CancelScope() as scope:
                async with process.record.turn(SESSION, "Pay.", process.theirs(), tasks) as run:
                    await run.model_step(step(("pay", {"amount": 5})))
                    scope.cancel()
                    async with run.tool_call("c1"):
                        pytest.fail("the block was entered")

    go(main)
    run_id = process.head()
    dispatched = process.of(run_id, ToolDispatched)
    assert [one.effect for one in process.of(run_id, ToolResponded)] == [Effect.NONE for _ in dispatched]
    assert process.not_over(run_id) == ()


def test_a_t2_that_fails_is_raised_where_the_result_would_be_shown() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        async with run.tool_call("c1") as operation:
            operation.result("paid 5")
            process.events_store.fail_at(ToolResponded.topic, Failure.UNAVAILABLE)

    run_id = interrupted(process, loop, StoreUnavailable)
    assert process.of(run_id, ToolResponded) == []
    assert process.of(run_id, RunEnded) == []


def test_a_runtime_that_is_closed_over_a_block_leaves_its_operation_indeterminate() -> None:
    process = Recording()

    async def main() -> None:
        inside = anyio.Event()

        async def theirs(tasks: TaskGroup) -> None:
            async with process.record.turn(SESSION, "Pay.", process.theirs(), tasks) as run:
                await run.model_step(step(("pay", {"amount": 5})))
                async with run.tool_call("c1") as operation:
                    inside.set()
                    with anyio.CancelScope(shield=True):
                        await closed.wait()
                    operation.result("paid")

        closed = anyio.Event()
        with pytest.raises(ExceptionGroup) as failed:  # noqa: PT012 (what is entered is what fails)
            async with anyio.create_task_group() as outer:
                async with anyio.create_task_group() as tasks:
                    outer.start_soon(theirs, tasks)
                    await inside.wait()
                    tasks.cancel_scope.cancel()
                closed.set()
        assert failed.group_contains(ToolNotOver)

    go(main)
    assert len(process.not_over(process.head())) == 1


# ---- functions -----------------------------------------------------------------------------------------------------


def test_a_call_can_be_carried_out_by_a_function_or_by_the_catalogs_own() -> None:
    process = Recording()

    def sync(amount: int) -> str:
        return f"sync {amount}"

    async def later(amount: int) -> str:
        await anyio.lowlevel.checkpoint()
        return f"async {amount}"

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(*(("pay", {"amount": n}) for n in (1, 2, 3))))
        answers = [
            await run.call("c1", sync),
            await run.call("c2", later),
            await run.call("c3"),
        ]
        assert [answer.result for answer in answers] == ["sync 1", "async 2", "paid 3"]

    check_sound(process, process.told(loop).identity.run_id)


def test_a_function_that_raises_is_answered_with_an_unknown_effect_and_the_run_goes_on() -> None:
    process = Recording()

    def broken(amount: int) -> str:
        raise OSError("gone")

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        answer = await run.call("c1", broken)
        assert (answer.is_error, answer.effect) == (True, Effect.UNKNOWN)
        await run.model_step(step(text="It failed."))

    run = process.told(loop)
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.COMPLETED


def test_a_refusal_is_an_answer_like_another_for_a_function() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": "five"})))
        assert (await run.call("c1", pytest.fail)).code == "args_schema_mismatch"

    process.told(loop)


# ---- the rules of the loop -----------------------------------------------------------------------------------------


def test_calls_that_nobody_recorded_or_that_were_carried_out_are_the_callers_mistakes() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        with pytest.raises(ValueError, match="no step"):
            run.tool_call("c1")
        await run.model_step(step(("pay", {"amount": 5})))
        async with run.tool_call("c1") as operation:
            operation.result("paid")
            with pytest.raises(RuntimeError, match="declared before"):
                operation.result("paid")
        with pytest.raises(RuntimeError, match="in the block"):
            operation.result("paid")
        with pytest.raises(ValueError, match="carried out before"):
            run.tool_call("c1")
        with pytest.raises(ValueError, match="carried out before"):
            await run.call("c1")

    run = process.told(loop)
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.COMPLETED


def test_a_call_that_the_loop_does_not_carry_out_is_answered_without_a_dispatch() -> None:
    process = Recording()
    answers: list[Any] = []

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5}), ("steal", {})))
        answers.append(await run.decline("c1", "not approved"))
        answers.append(await run.decline("c2", "nobody has it"))
        with pytest.raises(ValueError, match="carried out before"):
            run.tool_call("c1")
        await run.model_step(step(text="Done."))

    run = process.told(loop)
    assert [(answer.result, answer.is_error, answer.effect, answer.code) for answer in answers] == [
        ("not approved", True, Effect.NONE, "refused_without_effect"),
        ("nobody has it", True, Effect.NONE, "unknown_tool"),
    ]
    assert "tool.dispatched" not in process.topics(run.identity.run_id)
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.COMPLETED
    check_sound(process, run.identity.run_id)


def test_a_repeated_provider_id_means_its_newest_call() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        for amount in (1, 2):
            (call,) = (await run.model_step(step(("pay", {"amount": amount})))).calls
            async with run.tool_call("c1") as operation:
                assert operation.arguments == {"amount": amount}
                operation.result(amount)
            assert (call.call_id == "c1") is (amount == 1)

    check_sound(process, process.told(loop).identity.run_id)


def test_a_call_without_a_block_is_closed_by_the_end_of_the_run() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))

    with pytest.raises(CallsUnanswered, match=r"c1 of pay.*is an await missing") as forgotten:
        process.told(loop)
    run_id = process.head()
    assert forgotten.value.run_id == run_id
    assert [call.call_id for call in forgotten.value.calls] == ["c1"]
    assert process.response(run_id, "pay").effect is Effect.NONE
    (ended,) = process.of(run_id, RunEnded)
    assert (ended.status, ended.failure_class) == (RunStatus.FAILED, FailureClass.STEP_LIMIT)
    assert process.owner() is None
    check_sound(process, run_id)


def test_a_loop_that_fails_ends_its_run_as_failed() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(text="Hm."))
        raise KeyError("amount")

    run_id = interrupted(process, loop, KeyError)
    (ended,) = process.of(run_id, RunEnded)
    assert (ended.status, ended.failure_class) == (RunStatus.FAILED, FailureClass.APP_RESTARTED)


def test_a_person_stops_a_run_of_another_loop() -> None:
    process = Recording()
    live: list[LiveRun] = []

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5}), ("pay", {"amount": 6})))
        async with run.tool_call("c1") as operation:
            live_run = process.live_runs.get(SESSION)
            assert live_run is not None
            live.append(live_run)
            await live_run.cancel("alice")
            assert operation.context.cancelled()
            assert run.stopped_by == "alice"
            operation.result("paid before it was stopped")
        with pytest.raises(RunStopped):
            async with run.tool_call("c2"):
                pytest.fail("the block was entered")
        with pytest.raises(RunStopped):
            await run.model_step(step(text="on"))
        with pytest.raises(RunStopped):
            run.check()

    run = process.told(loop)
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.CANCELLED
    assert [one.effect for one in process.responses(run.identity.run_id)] == [Effect.DONE, Effect.NONE]


def test_the_turns_budget_holds_for_a_loop_that_asks() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        run.check()
        await run.model_step(step(text="one"))
        run.check()

    with pytest.raises(Exception, match="it may use"):
        process.told(loop, budgets=Budgets(steps_max=1))
    (ended,) = process.of(process.head(), RunEnded)
    assert ended.failure_class == FailureClass.STEP_LIMIT


def test_what_the_user_says_meanwhile_is_shown_after_the_open_step() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        await run.steer("Only 4!")
        await run.call("c1")
        assert [item.kind for item in run.history()] == ["user", "call", "result", "user"]

    process.told(loop)


# ---- going on ------------------------------------------------------------------------------------------------------


def killed_after(process: Recording, loop: Loop) -> RunId:
    """A turn whose process dies while the loop is where it is."""

    class Dies(BaseException):
        pass

    async def until_dead(run: RecordedRun) -> None:
        await loop(run)
        raise Dies

    with pytest.raises((Dies, BaseExceptionGroup)):
        process.told(until_dead)
    process.die()
    return process.head()


def test_an_interrupted_run_goes_on_in_the_loop_of_others_with_its_history() -> None:
    process = Recording()

    async def paid(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5}), text="I pay."))
        await run.call("c1")

    source = killed_after(process, paid)
    later = Recording(process.world)

    async def main() -> RecordedRun:
        async with (
            anyio.create_task_group() as tasks,
            later.record.resume(SESSION, later.theirs(), tasks) as run,
        ):
            user, text, call, result = run.history()
            assert isinstance(user, UserItem)
            assert isinstance(text, TextItem)
            assert isinstance(call, CallItem)
            assert isinstance(result, ResultItem)
            assert result.result == "paid 5"
            await run.model_step(step(text="Done."))
        return run

    run = go(main)
    assert run.identity.run_id != source
    assert run.outcome is not None
    assert run.outcome.status is RunStatus.COMPLETED
    check_sound(later, run.identity.run_id)


def test_a_run_with_an_unknown_outcome_is_parked() -> None:
    process = Recording()

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("pay", {"amount": 5})))
        await run.tool_call("c1").__aenter__()

    killed_after(process, loop)
    later = Recording(process.world)

    async def main() -> None:
        async with unwrapped() as tasks:
            with pytest.raises(ResumeParked) as parked:
                await later.record.resume(SESSION, later.theirs(), tasks).__aenter__()
            assert ParkReason.DANGLING_TOOL_STATE in parked.value.parked.codes

    go(main)


def test_a_run_is_recorded_by_one_loop_only() -> None:
    process = Recording()

    async def main() -> None:
        begun, _ = await process.run_turn.begin(SESSION, "go", process.theirs())
        async with process.drive.driving(begun) as live:
            make = partial(process.drive._run_agent.recording, begun, live, process.theirs())
            make()
            with pytest.raises(Exception, match="was used already"):
                make()

    go(main)


@pytest.mark.parametrize("carry_out", [None, lambda: "seen again"])
def test_recovery_runs_a_reader_of_another_loop_only_where_it_can_be_run_here(carry_out: Any) -> None:
    process = Recording()
    watch = contract("watch", recovery="replay_safe", carry_out=carry_out)

    async def loop(run: RecordedRun) -> None:
        await run.model_step(step(("watch", {})))
        async with run.tool_call("c1"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        process.told(loop, tools=[watch])
    process.die()
    later = Recording(process.world)
    (one,) = go(lambda: later.reconcile(FunctionCatalog([watch]))).operations
    if carry_out is None:
        assert isinstance(one.became, LeftAlone)
        assert one.became.why is Left.TOOL_CHANGED
        assert later.responses(later.head()) == []
    else:
        assert one.became == Completed(Observation.EFFECT_FREE, is_error=False)
        assert later.response(later.head(), "watch").result == "seen again"


INSTANTS = (
    Failpoint.T1_COMMITTED,
    Failpoint.IMPLEMENTATION_RUNNING,
    Failpoint.EFFECT_DONE,
    Failpoint.T2_COMMITTED,
)


@pytest.mark.parametrize("point", [None, *INSTANTS])
@pytest.mark.parametrize("declares", [True, False])
def test_whenever_a_loop_is_cancelled_the_record_says_what_is_known(point: Failpoint | None, declares: bool) -> None:
    """Cancelled while T1 or T2 is under way, before it, or never: an effect has its dispatch, a `none` has none."""
    scopes: list[anyio.CancelScope] = []
    process = Recording(at_failpoint=lambda hit: scopes[0].cancel() if hit == point else None)
    effects: list[int] = []

    async def main() -> None:
        async with unwrapped() as tasks:
            with anyio.CancelScope() as scope, suppress(OutcomeNotDeclared):
                scopes.append(scope)
                async with process.record.turn(SESSION, "Pay.", process.theirs(), tasks) as run:
                    await run.model_step(step(("pay", {"amount": 5})))
                    async with run.tool_call("c1") as operation:
                        effects.append(5)
                        if declares:
                            operation.result("paid 5")
                        await anyio.lowlevel.checkpoint()

    go(main)
    run_id = process.head()
    dispatched, answered = process.of(run_id, ToolDispatched), process.of(run_id, ToolResponded)
    assert len(dispatched) == 1
    if effects and declares:
        assert [one.effect for one in answered] == [Effect.DONE]
    elif effects:
        assert answered == []
    else:
        assert [one.effect for one in answered] == [Effect.NONE]
    assert not process.resolution(run_id).has_corruption
