"""What has a time-out, what cannot be ended, and what comes back after all. SPEC sections 7, 8, 10 and 15."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.decorator import tool
from safepoint.application.live_runs import LiveRun
from safepoint.application.ownership import SessionBusy
from safepoint.application.resume_run import Continued
from safepoint.application.run_agent import RunLimits
from safepoint.application.run_turn import TurnResult
from safepoint.domain.errors import RefusedWithoutEffect, WriteRefused
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import EffectWatched, NoticePosted, WatchStatus
from safepoint.domain.events.tool import (
    Effect,
    Observation,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolResponded,
)
from safepoint.domain.identifiers import RunId
from safepoint.domain.reasons import FailureClass, ResponseCode, VerdictReason
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.replay.items import HostItem
from safepoint.ports.provider_failures import ProviderFailed
from safepoint.ports.tool_catalog import ToolContext

from .wiring import SESSION, Process, beside, check_sound, go, until

SOON = 0.02


class Stuck:
    """A tool `act()` that does not end until it is let go, and does not listen.

    Args:
        ends: what it then does.
        declared: how it is declared.
    """

    def __init__(self, ends: Callable[[], object] = lambda: "acted after all", **declared: Any) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()

        def act() -> object:
            """Act."""
            self.began.set()
            assert self.let_go.wait(60)
            return ends()

        self.function = tool(**{"supervised": False, **declared})(act)


@pytest.fixture
def stuck() -> Iterator[Callable[..., Stuck]]:
    """Make stuck tools that are let go at the end."""
    made: list[Stuck] = []

    def make(*args: Any, **declared: Any) -> Stuck:
        made.append(Stuck(*args, **declared))
        return made[-1]

    yield make
    for one in made:
        one.let_go.set()


def plan(name: str = "act", steps: int = 1) -> PlannedModel:
    return PlannedModel([*[calls((name, {}))] * steps, says("done")])


async def settled(process: Process) -> None:
    """Wait until nothing of the session is left in the process."""
    await until(lambda: not process.live.of(SESSION))


# Readers


def test_a_reader_that_times_out_is_answered_at_once_and_its_thread_does_not_count(stuck: Callable[..., Stuck]) -> None:
    reader = stuck(recovery="replay_safe", timeout_seconds=SOON)
    process = Process()
    result = go(lambda: process.turn("go", plan(), [reader.function]))
    response = process.response(result.run_id, "act")
    assert (response.code, response.effect) == (ResponseCode.TOOL_TIMED_OUT, Effect.NONE)
    assert "nothing was changed" in str(response.result)
    assert result.outcome.status is RunStatus.COMPLETED
    assert not process.live.of(SESSION)
    assert process.owner() is None
    check_sound(process, result.run_id)
    reader.let_go.set()


def test_what_a_reader_says_after_its_time_out_is_nobodys_answer(stuck: Callable[..., Stuck]) -> None:
    reader = stuck(recovery="replay_safe", timeout_seconds=SOON)
    process = Process()
    result = go(lambda: process.turn("go", plan(), [reader.function]))
    reader.let_go.set()
    go(lambda: process.turn("again", PlannedModel([says("done")])))
    assert len(process.responses(result.run_id)) == 1
    check_sound(process, result.run_id)


# Tools with an effect that opted out of supervision


def test_a_tool_that_ends_within_the_bound_after_its_time_out_gets_its_true_outcome() -> None:
    @tool(timeout_seconds=SOON, supervised=False)
    def act(context: ToolContext) -> str:
        """Act."""
        while not context.cancelled():
            threading.Event().wait(0.005)
        return "half of it, in order"

    process = Process()
    result = go(lambda: process.turn("go", plan(), [act]))
    response = process.response(result.run_id, "act")
    assert (response.result, response.effect, response.is_error) == ("half of it, in order", Effect.DONE, False)
    check_sound(process, result.run_id)


@pytest.mark.parametrize(
    ("error", "effect", "code"),
    [
        (RuntimeError("interrupted"), Effect.UNKNOWN, ResponseCode.TOOL_TIMED_OUT),
        (RefusedWithoutEffect("not begun"), Effect.NONE, ResponseCode.REFUSED_WITHOUT_EFFECT),
    ],
)
def test_a_tool_that_gives_up_within_the_bound_after_its_time_out_says_what_it_knows(
    error: Exception, effect: Effect, code: ResponseCode
) -> None:
    @tool(timeout_seconds=SOON, supervised=False)
    def act(context: ToolContext) -> str:
        """Act."""
        while not context.cancelled():
            threading.Event().wait(0.005)
        raise error

    process = Process()
    result = go(lambda: process.turn("go", plan(), [act]))
    response = process.response(result.run_id, "act")
    assert (response.effect, response.code) == (effect, code)
    assert result.outcome.status is RunStatus.COMPLETED
    check_sound(process, result.run_id)


def ends_not_over(process: Process, tool_: Stuck, model: PlannedModel | None = None) -> TurnResult:
    result = go(lambda: process.turn("go", model or plan(), [tool_.function]))
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    check_sound(process, result.run_id)
    return result


def test_a_tool_that_will_not_end_leaves_its_operation_indeterminate_and_ends_the_run(
    stuck: Callable[..., Stuck],
) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    model = plan(steps=2)
    result = ends_not_over(process, act, model)
    assert len(model.asked) == 1
    (verdict,) = process.verdicts(result.run_id)
    assert verdict.status is VerdictStatus.INDETERMINATE
    assert process.responses(result.run_id) == []
    (watched,) = [event for event in process.session_events() if isinstance(event, EffectWatched)]
    assert watched.status is WatchStatus.INDETERMINATE
    assert process.not_over(result.run_id) == (verdict.operation_id,)
    assert process.owner() is not None, "the session stays owned while its thread is there"


def test_the_calls_that_waited_for_it_are_closed_unexecuted(stuck: Callable[..., Stuck]) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    result = ends_not_over(process, act, PlannedModel([calls(("act", {}), ("act", {}), ("act", {}))]))
    assert len(process.dispatches(result.run_id)) == 1
    codes = [one.code for one in process.responses(result.run_id)]
    assert codes == [ResponseCode.NOT_EXECUTED_INTERRUPTED] * 2


def test_a_call_that_waited_for_its_place_is_closed_unexecuted_too() -> None:
    began: list[int] = []
    let_go = threading.Event()

    @tool(timeout_seconds=SOON, supervised=False, concurrency_limit=1, resource_key=lambda typed: str(typed["n"]))
    def act(n: int) -> str:
        """Act."""
        began.append(n)
        let_go.wait(60)
        return "ok"

    process = Process(cancel_bound_seconds=SOON)
    model = PlannedModel([calls(("act", {"n": 1}), ("act", {"n": 2}))])
    result = go(lambda: process.turn("go", model, [act]))
    let_go.set()
    assert result.outcome.failure is FailureClass.TOOL_NOT_OVER
    assert len(began) == 1
    assert len(process.dispatches(result.run_id)) == 1
    check_sound(process, result.run_id)


# Late outcomes


@pytest.mark.parametrize(
    ("ends", "effect", "is_error"),
    [
        (lambda: "acted", Effect.DONE, False),
        (lambda: {1, 2}, Effect.DONE, True),
        (lambda: 1 / 0, Effect.UNKNOWN, True),
    ],
    ids=["returns", "returns no JSON", "raises"],
)
def test_an_outcome_that_comes_after_the_end_of_the_run_is_a_recovery_bundle(
    stuck: Callable[..., Stuck], ends: Callable[[], object], effect: Effect, is_error: bool
) -> None:
    act = stuck(ends, timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    result = ends_not_over(process, act)
    act.let_go.set()
    go(lambda: settled(process))
    (verdict,) = process.verdicts(result.run_id)
    assert (verdict.status, verdict.reason) == (VerdictStatus.COMPLETED, VerdictReason.RECOVERY_BUNDLE_COMPLETED)
    assert (verdict.effect, verdict.is_error) == (effect, is_error)
    (seen,) = process.of(result.run_id, ToolReconciled)
    assert seen.observation is Observation.LATE_OUTCOME
    kinds = [type(event) for event in process.events(result.run_id)][-3:]
    assert kinds == [ToolReconciled, ToolResponded, ToolRecoveryDecided]
    assert process.not_over(result.run_id) == ()
    check_sound(process, result.run_id)
    go(lambda: until(lambda: process.owner() is None))


def test_an_effect_that_became_certain_late_is_no_longer_watched_as_uncertain(stuck: Callable[..., Stuck]) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    ends_not_over(process, act)
    act.let_go.set()
    go(lambda: settled(process))
    kinds = [type(event) for event in process.session_events()]
    assert NoticePosted not in kinds, "no turn began meanwhile, so nobody has to be told"
    go(lambda: process.turn("new turn", PlannedModel([says("ok")])))
    assert process.ledger.session(SESSION).watched == {}


def test_a_turn_that_began_meanwhile_is_told_once_about_an_outcome_that_came_late(stuck: Callable[..., Stuck]) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    first = ends_not_over(process, act)
    go(lambda: process.turn("what now?", PlannedModel([says("I do not know")])))
    act.let_go.set()
    go(lambda: settled(process))
    assert process.verdicts(first.run_id)[0].status is VerdictStatus.COMPLETED
    assert len([event for event in process.session_events() if isinstance(event, NoticePosted)]) == 1
    told: list[list[str]] = []
    for _ in range(2):
        model = PlannedModel([says("ok")])
        result = go(partial(process.turn, "and now?", model))
        own = model.asked[0].request.history
        told.append([item.text for item in own if isinstance(item, HostItem) and "settled" in item.text])
        check_sound(process, result.run_id)
    assert len(told[0]) == 1
    assert "act" in told[0][0]


def test_a_turn_that_reads_its_history_just_before_an_outcome_comes_late_reads_it_again(
    stuck: Callable[..., Stuck], monkeypatch: pytest.MonkeyPatch
) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    ends_not_over(process, act)
    read, looks = process.start._context, []

    def read_and_be_overtaken(*args: Any, **named: Any) -> Any:
        made = read(*args, **named)
        looks.append(made)
        act.let_go.set()
        go(lambda: settled(process))
        return made

    monkeypatch.setattr(process.start, "_context", read_and_be_overtaken)
    model = PlannedModel([says("I see.")])
    result = go(lambda: process.turn("what now?", model))
    assert result.outcome.status is RunStatus.COMPLETED
    assert len(looks) == 2
    assert "acted after all" in str(model.asked[0].request.history)
    assert not [event for event in process.session_events() if isinstance(event, NoticePosted)]
    check_sound(process, result.run_id)


def test_a_turn_that_is_refused_for_what_it_is_does_not_read_its_history_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = Process()
    go(lambda: process.turn("go", PlannedModel([says("done")])))
    command, tries = process.start._command, []

    def of_another_run(*args: Any) -> Any:
        tries.append(args)
        made = command(*args)
        return replace(made, admitted=made.admitted.model_copy(update={"run_id": RunId("another")}))

    monkeypatch.setattr(process.start, "_command", of_another_run)
    with pytest.raises(WriteRefused, match="the admission is not of run"):
        go(lambda: process.turn("again", PlannedModel([says("never")])))
    assert len(tries) == 1


def shown_as_unknown(process: Process, act: Stuck, first: RunId, *steps: Any) -> TurnResult:
    """A turn whose model is shown the stuck call as unknown, whose outcome comes while it waits, and that goes on."""

    @tool(recovery="replay_safe")
    async def wait() -> str:
        """Wait until the outcome of the earlier call is there."""
        act.let_go.set()
        await until(lambda: process.verdicts(first)[0].status is VerdictStatus.COMPLETED)
        return "waited"

    model = PlannedModel([calls(("wait", {})), *steps])
    return go(lambda: process.turn("what now?", model, [wait, act.function]))


def test_f9_an_outcome_that_comes_during_a_later_run_which_was_shown_it_as_unknown_still_guards_against_its_repeat(
    stuck: Callable[..., Stuck],
) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    first = ends_not_over(process, act)
    later = shown_as_unknown(process, act, first.run_id, calls(("act", {})), says("I see."))
    refused = process.response(later.run_id, "act")
    assert refused.code == ResponseCode.REPEAT_OF_UNSETTLED_EFFECT
    assert "had this effect already, as was settled while this run was under way" in str(refused.result)
    assert process.dispatches(later.run_id)[-1].tool_name == "wait"
    assert list(process.world.store.views.unsettled(SESSION)) == [], "nothing of it is in doubt any more"
    model = PlannedModel([calls(("act", {})), says("ok")])
    told = go(lambda: process.turn("do it once more", model, [act.function]))
    assert any(isinstance(item, HostItem) and "settled" in item.text for item in model.asked[0].request.history)
    assert process.response(told.run_id, "act").result == "acted after all", "told of it, the model may mean it again"
    check_sound(process, later.run_id)
    check_sound(process, told.run_id)


def test_f9_once_a_continuation_is_told_of_an_outcome_of_another_turn_its_repeat_is_its_own_decision(
    stuck: Callable[..., Stuck],
) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    first = ends_not_over(process, act)
    later = shown_as_unknown(process, act, first.run_id, ProviderFailed("down"))
    assert [one.status for one in process.ledger.session(SESSION).watched.values()] == [WatchStatus.RECOVERED]

    @tool(recovery="replay_safe")
    async def wait() -> str:
        """Wait until the outcome of the earlier call is there."""
        return "waited"

    continued = go(lambda: process.resume([calls(("act", {})), says("ok")], [wait, act.function]))
    assert isinstance(continued, Continued)
    assert process.response(continued.run_id, "act").result == "acted after all"
    assert later.run_id != continued.run_id


def test_an_outcome_that_comes_while_the_run_is_still_open_is_an_ordinary_t2(stuck: Callable[..., Stuck]) -> None:
    act, other = stuck(timeout_seconds=SOON, resource_key="a"), stuck(resource_key="b", name="other")
    process = Process(cancel_bound_seconds=SOON)

    async def work() -> TurnResult:
        async def letting_go() -> None:
            await until(lambda: other.began.is_set() and act.began.is_set())
            await anyio.sleep(10 * SOON)  # act is given up by then; if it is not yet, it has its answer anyhow
            act.let_go.set()
            await until(lambda: process.responses(process.head()))
            other.let_go.set()

        model = PlannedModel([calls(("act", {}), ("other", {}))])
        return await beside(letting_go, process.turn("go", model, [act.function, other.function]))

    result = go(work)
    assert {one.effect for one in process.responses(result.run_id)} == {Effect.DONE}
    assert process.of(result.run_id, ToolReconciled) == []
    check_sound(process, result.run_id)


@pytest.mark.parametrize("failure", [Failure.FULL, Failure.UNAVAILABLE, Failure.DAMAGED, None])
def test_a_late_outcome_that_cannot_be_committed_is_given_up_quietly(
    stuck: Callable[..., Stuck], failure: Failure | None
) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    result = ends_not_over(process, act)
    process.events_store.fail_at(ToolReconciled.topic, failure)
    act.let_go.set()
    go(lambda: settled(process))
    (verdict,) = process.verdicts(result.run_id)
    assert verdict.status is VerdictStatus.INDETERMINATE
    assert process.not_over(result.run_id) == ()


def test_a_late_outcome_whose_formatter_hangs_is_recorded_without_its_text(stuck: Callable[..., Stuck]) -> None:
    act = stuck(timeout_seconds=SOON, format_result=lambda value: threading.Event().wait())
    process = Process(cancel_bound_seconds=SOON, limits=RunLimits(format_seconds_max=SOON))
    result = ends_not_over(process, act)
    act.let_go.set()
    go(lambda: settled(process))
    (verdict,) = process.verdicts(result.run_id)
    assert (verdict.status, verdict.effect) == (VerdictStatus.COMPLETED, Effect.DONE)


# The task itself is cancelled


def test_a_thread_that_outlives_a_cancelled_task_is_not_over_and_tells_its_outcome_late(
    stuck: Callable[..., Stuck],
) -> None:
    act = stuck()
    process = Process()

    async def work() -> None:
        async with anyio.create_task_group() as group:

            async def turn() -> None:
                await process.turn("go", plan(), [act.function])

            group.start_soon(turn)
            await until(act.began.is_set)
            group.cancel_scope.cancel()

    go(work)
    run_id = process.head()
    (dispatch,) = process.dispatches(run_id)
    assert process.not_over(run_id) == (dispatch.operation_id,)
    assert process.owner() is not None
    act.let_go.set()
    go(lambda: settled(process))
    (response,) = process.responses(run_id)
    assert (response.effect, response.operation_id) == (Effect.DONE, dispatch.operation_id)
    result = go(lambda: process.turn("again", PlannedModel([says("ok")])))
    assert result.repaired.run_id == run_id
    check_sound(process, run_id)


# Async tools


def test_an_async_tool_that_times_out_is_cancelled_and_the_run_goes_on() -> None:
    ended: list[str] = []

    @tool(timeout_seconds=SOON)
    async def act() -> str:
        """Act."""
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cleaned up")
        return "never"

    process = Process()
    result = go(lambda: process.turn("go", plan(), [act]))
    response = process.response(result.run_id, "act")
    assert (response.code, response.effect) == (ResponseCode.TOOL_TIMED_OUT, Effect.UNKNOWN)
    assert ended == ["cleaned up"]
    assert result.outcome.status is RunStatus.COMPLETED
    assert process.not_over(result.run_id) == ()
    check_sound(process, result.run_id)


def test_an_async_tool_that_returns_although_it_is_cancelled_gets_its_true_outcome() -> None:
    @tool(timeout_seconds=SOON)
    async def act() -> str:
        """Act."""
        try:
            await anyio.sleep_forever()
        except BaseException:  # noqa: BLE001 (a tool that holds on to its result)
            return "done all the same"
        return "never"

    process = Process()
    result = go(lambda: process.turn("go", plan(), [act]))
    assert process.response(result.run_id, "act").result == "done all the same"
    check_sound(process, result.run_id)


# Stopping


async def stopped(process: Process, tools: list[Any], began: Callable[[], bool], model: PlannedModel) -> TurnResult:
    lives: list[LiveRun] = []

    async def stopping() -> None:
        await until(began)
        await lives[0].cancel("ada")

    return await beside(stopping, process.turn("go", model, tools, started=lives.append))


def test_a_live_tool_that_ends_within_the_bound_after_a_stop_gets_its_true_outcome() -> None:
    began = threading.Event()

    def act(context: ToolContext) -> str:
        """Act."""
        began.set()
        while not context.cancelled():
            threading.Event().wait(0.005)
        return "stopped in order"

    process = Process()
    result = go(lambda: stopped(process, [act], began.is_set, plan(steps=2)))
    assert result.outcome.status is RunStatus.CANCELLED
    response = process.response(result.run_id, "act")
    assert (response.result, response.effect) == ("stopped in order", Effect.DONE)
    check_sound(process, result.run_id)


def test_an_async_tool_is_cancelled_once_the_bound_after_a_stop_has_passed() -> None:
    began = threading.Event()

    async def act() -> str:
        """Act."""
        began.set()
        await anyio.sleep_forever()
        return "never"

    process = Process(cancel_bound_seconds=SOON)
    result = go(lambda: stopped(process, [act], began.is_set, plan()))
    assert result.outcome.status is RunStatus.CANCELLED
    response = process.response(result.run_id, "act")
    assert response.effect is Effect.UNKNOWN
    assert "stopped by ada" in str(response.result)
    check_sound(process, result.run_id)


def test_a_live_tool_that_does_not_end_within_the_bound_ends_the_run_as_not_over(stuck: Callable[..., Stuck]) -> None:
    act = stuck()
    process = Process(cancel_bound_seconds=SOON)
    result = go(lambda: stopped(process, [act.function], act.began.is_set, plan()))
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    (verdict,) = process.verdicts(result.run_id)
    assert verdict.status is VerdictStatus.INDETERMINATE
    assert process.not_over(result.run_id) == (verdict.operation_id,)
    assert process.ledger.run(result.run_id).cancel_requested is not None
    check_sound(process, result.run_id)


def test_a_reader_that_is_stopped_had_no_effect_and_is_not_waited_for(stuck: Callable[..., Stuck]) -> None:
    reader = stuck(recovery="replay_safe")
    process = Process(cancel_bound_seconds=SOON)
    result = go(lambda: stopped(process, [reader.function], reader.began.is_set, plan()))
    assert result.outcome.status is RunStatus.CANCELLED
    response = process.response(result.run_id, "act")
    assert response.effect is Effect.NONE
    assert "nothing was changed" in str(response.result)
    check_sound(process, result.run_id)


def test_after_a_stop_nothing_more_is_dispatched_and_what_waited_is_closed_by_the_end() -> None:
    began, let_go = threading.Event(), threading.Event()

    def act(n: int) -> str:
        """Act."""
        began.set()
        let_go.wait(60)
        return f"acted {n}"

    process = Process()

    async def work() -> TurnResult:
        async def letting_go() -> None:
            await until(lambda: process.live_runs.get(SESSION) and began.is_set())
            live = process.live_runs.get(SESSION)
            assert live is not None
            await until(live.stopping.is_set)
            let_go.set()

        model = PlannedModel([calls(("act", {"n": 1}), ("act", {"n": 2}), ("act", {"n": 3}))])
        return await beside(letting_go, stopped(process, [act], began.is_set, model))

    result = go(work)
    assert result.outcome.status is RunStatus.CANCELLED
    assert len(process.dispatches(result.run_id)) == 1
    effects = [(one.operation_id is None, one.effect) for one in process.responses(result.run_id)]
    assert sorted(effects) == [(False, Effect.DONE), (True, Effect.NONE), (True, Effect.NONE)]
    check_sound(process, result.run_id)


def owner_after(process: Process, run_id: RunId) -> object:
    assert run_id
    return process.owner()


def test_another_process_finds_the_session_busy_while_a_thread_of_it_is_left(stuck: Callable[..., Stuck]) -> None:
    act = stuck(timeout_seconds=SOON)
    process = Process(cancel_bound_seconds=SOON)
    result = ends_not_over(process, act)
    other = Process(process.world)
    with pytest.raises(SessionBusy):
        go(lambda: other.turn("mine", PlannedModel([says("ok")])))
    act.let_go.set()
    go(lambda: until(lambda: owner_after(process, result.run_id) is None))
    go(lambda: other.turn("mine", PlannedModel([says("ok")])))
