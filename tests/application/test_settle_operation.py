"""A person settles what nobody could prove: once, visibly, and never while it may run. SPEC sections 10 and 15."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.memory.model_provider import Planned, PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.decorator import tool
from safepoint.application.ownership import SessionBusy
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Continued
from safepoint.application.settlement import Recorded, SaidBy, Settlement, SettlementRefusal, SettlementRefused
from safepoint.domain.errors import StoreFull, StoreUnavailable
from safepoint.domain.events.event import Json
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import EffectCleared, EffectWatched, NoticePosted, OperationAttested, WatchStatus
from safepoint.domain.events.tool import Effect, Statement, ToolAttested, ToolResponded
from safepoint.domain.identifiers import OperationId, RunId
from safepoint.domain.planning.outcome import Park
from safepoint.domain.reasons import ParkReason, VerdictReason
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.replay.items import HostItem, ResultItem
from safepoint.ports.incarnations import Liveness
from safepoint.ports.lifecycle_sink import LifecycleKind
from safepoint.ports.provider_failures import ProviderFailed

from .counted_tools import Counted, raising
from .wiring import SESSION, Process, World, beside, check_sound, go, until

ACT = calls(("act", {"n": 1}))
COMPLETED, NOT_EXECUTED, OVER = Statement.COMPLETED, Statement.NOT_EXECUTED, Statement.OVER


def said(
    operation_id: OperationId,
    statement: Statement = COMPLETED,
    result: Json = None,
    *,
    by: str = "ada",
    note: str = "seen",
) -> SaidBy:
    return SaidBy(operation_id, statement, by, note, result)


def unsettled(world: World, tool: Callable[..., Any] | None = None) -> tuple[Process, OperationId]:
    """A process that died after its tool ran and before the outcome was committed."""
    dead, act = Process(world), Counted()
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([ACT]), [tool or act.function]))
    dead.die()
    (dispatch,) = dead.dispatches(dead.head())
    return dead, dispatch.operation_id


def failed_effect(process: Process, *then: Planned) -> tuple[RunId, OperationId]:
    """A turn whose tool raised, so that its effect is unknown although it has its answer."""
    model = PlannedModel([calls(("fail", {})), *(then or (says("oh"),))])
    result = go(lambda: process.turn("go", model, [raising(RuntimeError("broke"))]))
    (dispatch,) = process.dispatches(result.run_id)
    return result.run_id, dispatch.operation_id


def refused(process: Process, what: SaidBy) -> SettlementRefusal:
    before = (process.session_events(), process.events(process.head()))
    with pytest.raises(SettlementRefused) as caught:
        process.settle(what)
    assert (process.session_events(), process.events(process.head())) == before
    assert process.owner() is None
    return caught.value.code


def shown(process: Process, run_id: RunId) -> list[ResultItem]:
    return [item for item in process.segment(run_id).blocks.items() if isinstance(item, ResultItem)]


def notices(process: Process) -> list[NoticePosted]:
    return [event for event in process.session_events() if isinstance(event, NoticePosted)]


# What is settled


@pytest.mark.parametrize(
    ("statement", "result", "effect", "reason"),
    [
        (COMPLETED, "paid 7", Effect.DONE, VerdictReason.ATTESTED_COMPLETED),
        (COMPLETED, {"paid": 7}, Effect.DONE, VerdictReason.ATTESTED_COMPLETED),
        (NOT_EXECUTED, None, Effect.NONE, VerdictReason.ATTESTED_NOT_EXECUTED),
    ],
)
def test_an_indeterminate_operation_gets_the_answer_that_a_person_attests(
    statement: Statement, result: Json, effect: Effect, reason: VerdictReason
) -> None:
    world = World()
    dead, operation_id = unsettled(world)
    other = Process(world)
    settled = other.settle(said(operation_id, statement, result))
    assert settled == Settlement(Recorded.IN_RUN, SESSION, dead.head(), "act", told_later=False)
    (attested,) = other.of(dead.head(), ToolAttested)
    assert (attested.statement, attested.by, attested.note) == (statement, "ada", "seen")
    (response,) = other.responses(dead.head())
    assert (response.effect, response.is_error) == (effect, statement is NOT_EXECUTED)
    (verdict,) = other.verdicts(dead.head())
    assert (verdict.status, verdict.reason, verdict.effect) == (VerdictStatus.COMPLETED, reason, effect)
    assert notices(other) == []
    assert other.owner() is None
    check_sound(other, dead.head())
    assert [event.operation_id for event in other.sink.events if event.kind is LifecycleKind.OPERATION_ATTESTED] == [
        operation_id
    ]


def test_after_that_the_run_is_continued_and_the_model_reads_who_attested_it() -> None:
    world = World()
    dead, operation_id = unsettled(world)
    other, act, model = Process(world), Counted(), PlannedModel([says("done")])
    other.settle(said(operation_id, COMPLETED, "paid"))
    result = go(lambda: other.resume(model, [act.function]))
    assert isinstance(result, Continued)
    assert act.calls == []
    (answer,) = [item for item in model.asked[0].request.history if isinstance(item, ResultItem)]
    assert answer.result == {
        "note": "Completed, as attested by ada; this was not observed by the program.",
        "result": "paid",
    }
    assert dead.head() == result.run_id


def test_what_was_watched_is_guarded_in_the_continuation_of_its_turn_and_cleared_when_it_was_not_executed() -> None:
    for statement, watched in ((COMPLETED, ["attested"]), (NOT_EXECUTED, [])):
        world = World()
        _, operation_id = unsettled(world)
        other = Process(world)
        other.settle(said(operation_id, statement))
        assert [one.status for one in other.ledger.session(SESSION).watched.values()] == watched


def test_an_answered_operation_whose_effect_is_unknown_keeps_its_answer_and_the_next_run_is_told() -> None:
    process = Process()
    run_id, operation_id = failed_effect(process)
    before = process.responses(run_id)
    settled = process.settle(said(operation_id, NOT_EXECUTED))
    assert (settled.recorded, settled.told_later) == (Recorded.IN_RUN, True)
    assert process.responses(run_id) == before
    (verdict,) = process.verdicts(run_id)
    assert (verdict.reason, verdict.effect) == (VerdictReason.MATCHING_RESPONSE, Effect.NONE)
    assert process.ledger.session(SESSION).watched == {}
    told = go(lambda: process.turn("and?", PlannedModel([says("ok")])))
    (message,) = process.of(told.run_id, HostMessage)
    assert "a call of fail" in message.text
    assert "as attested by ada, not executed" in message.text
    later = go(lambda: process.turn("and now?", PlannedModel([says("ok")])))
    assert process.of(later.run_id, HostMessage) == []  # once
    check_sound(process, run_id)


def test_an_operation_that_a_later_turn_showed_as_unknown_is_told_once_with_its_result() -> None:
    world = World()
    dead, operation_id = unsettled(world)
    first = dead.head()
    other = Process(world)
    go(lambda: other.turn("go on", PlannedModel([says("ok")])))
    settled = other.settle(said(operation_id, COMPLETED, {"paid": 7}))
    assert (settled.recorded, settled.run_id, settled.told_later) == (Recorded.IN_RUN, first, True)
    model = PlannedModel([says("ok")])
    told = go(lambda: other.turn("and?", model))
    (message,) = other.of(told.run_id, HostMessage)
    assert 'as attested by ada, completed, with this result: {"paid":7}' in message.text
    assert [item.text for item in model.asked[0].request.history if isinstance(item, HostItem)] == [message.text]
    # Its history is what it was given: the call stays unknown there, and the notice says what is known since.
    (answer,) = [item for item in model.asked[0].request.history if isinstance(item, ResultItem)]
    assert "Outcome unknown" in str(answer.result)


def test_in_a_claimed_run_the_session_is_told_and_nothing_of_the_run_changes() -> None:
    world = World()
    process = Process(world)
    failing = [raising(RuntimeError("broke"))]
    result = go(lambda: process.turn("go", PlannedModel([calls(("fail", {})), ProviderFailed("down")]), failing))
    source = result.run_id
    (dispatch,) = process.dispatches(source)
    continued = go(lambda: process.resume(PlannedModel([ProviderFailed("down")]), failing))
    assert isinstance(continued, Continued)
    before = process.stored_bytes(source)
    settled = process.settle(said(dispatch.operation_id, COMPLETED, "it went through"))
    assert (settled.recorded, settled.run_id) == (Recorded.IN_SESSION, source)
    assert process.stored_bytes(source) == before
    attested = [event for event in process.session_events() if isinstance(event, OperationAttested)]
    assert [(one.by, one.note, one.statement) for one in attested] == [("ada", "seen", COMPLETED)]
    (watched,) = process.ledger.session(SESSION).watched.values()
    assert (watched.operation_id, watched.status) == (dispatch.operation_id, WatchStatus.ATTESTED)
    assert list(process.world.store.views.unsettled(SESSION)) == []
    assert refused(process, said(dispatch.operation_id, NOT_EXECUTED)) is SettlementRefusal.ALREADY_ATTESTED
    again = go(lambda: process.resume(PlannedModel([says("done")]), failing))
    assert isinstance(again, Continued)
    (message,) = process.of(again.run_id, HostMessage)
    assert "it went through" in message.text
    assert process.projections_agree()


# Once


def test_the_same_words_again_write_nothing() -> None:
    world = World()
    _, operation_id = unsettled(world)
    process = Process(world)
    process.settle(said(operation_id, COMPLETED, "paid"))
    before = process.stored_bytes(process.head())
    assert process.settle(said(operation_id, COMPLETED, "paid")).recorded is Recorded.BEFORE
    assert process.stored_bytes(process.head()) == before


@pytest.mark.parametrize(
    "second",
    [
        {"statement": NOT_EXECUTED, "result": None},
        {"result": "paid twice"},
        {"by": "bob"},
        {"note": "looked again"},
    ],
)
def test_a_second_statement_is_refused(second: dict[str, Any]) -> None:
    world = World()
    _, operation_id = unsettled(world)
    process = Process(world)
    process.settle(said(operation_id, COMPLETED, "paid"))
    again = said(operation_id, **{"statement": COMPLETED, "result": "paid", **second})
    assert refused(process, again) is SettlementRefusal.ALREADY_ATTESTED
    with pytest.raises(SettlementRefused, match=r"ada attested operation .* as completed at 20"):
        process.settle(again)


def test_saying_it_again_after_an_unknown_commit_converges() -> None:
    world = World()
    _, operation_id = unsettled(world)
    process = Process(world)
    process.events_store.fail_at(ToolAttested.topic, Failure.COMMIT_STORED)
    with pytest.raises(StoreUnavailable):
        process.settle(said(operation_id, COMPLETED, "paid"))
    assert process.settle(said(operation_id, COMPLETED, "paid")).recorded is Recorded.BEFORE
    assert len(process.of(process.head(), ToolAttested)) == 1
    assert process.owner() is None


def test_whatever_has_a_certain_outcome_needs_no_word() -> None:
    process, act = Process(), Counted()
    result = go(lambda: process.turn("go", PlannedModel([ACT, says("done")]), [act.function]))
    (dispatch,) = process.dispatches(result.run_id)
    assert refused(process, said(dispatch.operation_id)) is SettlementRefusal.NOTHING_TO_SETTLE
    assert refused(process, said(dispatch.operation_id, OVER)) is SettlementRefusal.NOTHING_TO_SETTLE
    assert refused(process, said(OperationId("nowhere"))) is SettlementRefusal.UNKNOWN_OPERATION


def test_a_result_that_would_be_cut_is_refused() -> None:
    world = World()
    _, operation_id = unsettled(world)
    process = Process(world)
    go(lambda: process.turn("go on", PlannedModel([says("ok")])))
    assert refused(process, said(operation_id, COMPLETED, "x" * 600_000)) is SettlementRefusal.RESULT_TOO_LARGE


# Over


def test_while_it_may_run_nothing_is_said_of_it() -> None:
    world = World()
    dead, operation_id = unsettled(world)
    other = Process(world)
    go(lambda: other.turn("go on", PlannedModel([says("ok")])))
    other.incarnations.tell(dead.ownership.incarnation, Liveness.ALIVE)
    for statement in (COMPLETED, NOT_EXECUTED, OVER):
        assert refused(other, said(operation_id, statement)) is SettlementRefusal.OPERATION_NOT_OVER


def test_where_nobody_could_look_a_person_declares_it_over_first() -> None:
    world = World()
    dead, operation_id = unsettled(world)
    run_id = dead.head()
    other = Process(world)
    other.cancel(SESSION, "bob")
    dead.incarnations.delete_lock_file(dead.ownership.incarnation)
    other = Process(world)
    assert other.not_over(run_id) == (operation_id,)
    assert refused(other, said(operation_id, COMPLETED)) is SettlementRefusal.OPERATION_NOT_OVER
    settled = other.settle(said(operation_id, OVER, note="the machine is gone"))
    assert (settled.recorded, settled.told_later) == (Recorded.IN_RUN, False)
    assert other.not_over(run_id) == ()
    (verdict,) = other.verdicts(run_id)
    assert verdict.status is VerdictStatus.INDETERMINATE  # nothing is said of what happened
    assert other.settle(said(operation_id, OVER, note="the machine is gone")).recorded is Recorded.BEFORE
    assert refused(other, said(operation_id, OVER, note="once more")) is SettlementRefusal.KNOWN_TO_BE_OVER
    assert other.settle(said(operation_id, NOT_EXECUTED)).recorded is Recorded.IN_RUN
    check_sound(other, run_id)


def test_an_operation_that_is_declared_over_no_longer_parks_as_running() -> None:
    world = World()
    dead, operation_id = unsettled(world)
    other, act = Process(world), Counted()
    other.cancel(SESSION, "bob")
    dead.incarnations.delete_lock_file(dead.ownership.incarnation)
    other = Process(world)

    def codes() -> set[ParkReason]:
        plan = other.plan(SESSION, other.agent([], [act.function]), PlanRequest()).plan
        assert isinstance(plan, Park)
        return {reason.code for reason in plan.reasons}

    assert codes() == {ParkReason.DANGLING_TOOL_STATE, ParkReason.EFFECT_MAY_BE_RUNNING}
    other.settle(said(operation_id, OVER))
    assert codes() == {ParkReason.DANGLING_TOOL_STATE}


# Where the owner lives


class Slow:
    """A tool that works until it is let go."""

    def __init__(self) -> None:
        self.began, self.let_go = threading.Event(), threading.Event()

        def wait() -> str:
            """Wait."""
            self.began.set()
            self.let_go.wait(60)
            return "waited"

        self.function = wait


def test_a_living_owner_settles_an_operation_of_an_earlier_run_beside_the_one_that_it_drives() -> None:
    world, slow = World(), Slow()
    dead, operation_id = unsettled(world)
    first = dead.head()
    owner, other = Process(world), Process(world)
    owner.listen()
    settled: list[Settlement] = []

    async def settle() -> None:
        await until(slow.began.is_set)
        settled.append(await anyio.to_thread.run_sync(lambda: other.settle(said(operation_id, COMPLETED, "paid"))))
        with pytest.raises(SettlementRefused) as caught:
            await anyio.to_thread.run_sync(lambda: other.settle(said(operation_id, NOT_EXECUTED)))
        assert caught.value.code is SettlementRefusal.ALREADY_ATTESTED
        slow.let_go.set()

    model = PlannedModel([calls(("wait", {})), says("done")])
    result = go(lambda: beside(settle, owner.turn("go on", model, [slow.function])))
    assert result.outcome.status is RunStatus.COMPLETED
    assert settled == [Settlement(Recorded.IN_RUN, SESSION, first, "act", told_later=True)]
    check_sound(owner, first)
    check_sound(owner, result.run_id)
    assert len(notices(owner)) == 1


def test_an_operation_of_the_run_that_goes_on_is_not_settled() -> None:
    world, slow = World(), Slow()
    owner, other = Process(world), Process(world)
    owner.listen()

    async def settle() -> None:
        await until(slow.began.is_set)
        (dispatch,) = owner.dispatches(owner.head())
        with pytest.raises(SettlementRefused) as caught:
            await anyio.to_thread.run_sync(lambda: other.settle(said(dispatch.operation_id)))
        assert caught.value.code is SettlementRefusal.RUN_OPEN
        slow.let_go.set()

    model = PlannedModel([calls(("wait", {})), says("done")])
    go(lambda: beside(settle, owner.turn("go", model, [slow.function])))


@pytest.mark.parametrize(
    "lacking",
    ["operation_id", "statement", "by", "note"],
)
def test_a_request_that_lacks_something_is_no_request(lacking: str) -> None:
    process = Process()
    request = {
        "command": "settle",
        "session_id": "s1",
        "operation_id": "o",
        "statement": "over",
        "by": "a",
        "note": "b",
    }
    assert process.commands.answer({**request, lacking: ""})["error"] == "unknown_request"
    assert process.commands.answer({**request, "statement": "perhaps"})["error"] == "unknown_request"


def test_what_is_watched_is_cleared_by_the_word_and_says_so() -> None:
    process = Process()
    _, operation_id = failed_effect(process)
    process.settle(said(operation_id, COMPLETED))
    last = [event for event in process.session_events() if isinstance(event, EffectWatched | EffectCleared)][-1]
    assert (last.operation_id, process.projections_agree()) == (operation_id, True)


# A tool that was given up lives on in its thread


def test_a_cancelled_tool_that_is_still_in_its_thread_is_not_over_for_anybody() -> None:
    world, slow = World(), Slow()
    owner, other = Process(world, cancel_bound_seconds=0.05), Process(world)
    owner.listen()

    async def cancel() -> None:
        await until(slow.began.is_set)
        await anyio.to_thread.run_sync(lambda: owner.cancel(SESSION, "bob"))

    model = PlannedModel([calls(("wait", {}))])
    result = go(lambda: beside(cancel, owner.turn("go", model, [tool(supervised=False)(slow.function)])))
    assert result.outcome.status is not RunStatus.COMPLETED
    (dispatch,) = owner.dispatches(result.run_id)
    for process in (owner, other):
        for statement in (COMPLETED, NOT_EXECUTED, OVER):
            with pytest.raises(SettlementRefused) as caught:
                process.settle(said(dispatch.operation_id, statement))
            assert caught.value.code is SettlementRefusal.OPERATION_NOT_OVER
    assert owner.of(result.run_id, ToolAttested) == []
    slow.let_go.set()
    go(lambda: until(lambda: len(owner.live) == 0))
    (verdict,) = owner.verdicts(result.run_id)
    assert (verdict.status, verdict.effect) == (VerdictStatus.COMPLETED, Effect.DONE), "its late outcome is known"
    with pytest.raises(SettlementRefused) as caught:
        other.settle(said(dispatch.operation_id))
    assert caught.value.code is SettlementRefusal.NOTHING_TO_SETTLE


# The clock moves


@pytest.mark.parametrize("seconds", [-315_360_000, 315_360_000], ids=["back ten years", "on ten years"])
def test_no_clock_makes_an_owner_dead_or_an_operation_over_and_none_stands_in_the_way(seconds: int) -> None:
    world, act = World(), Counted()
    dead, operation_id = unsettled(world)
    run_id = dead.head()
    clock = ManualClock()
    clock.jump_wall(seconds)
    other = Process(world, clock=clock)
    dead.incarnations.tell(dead.ownership.incarnation, Liveness.ALIVE)
    for attempt in (lambda: other.cancel(SESSION, "bob"), lambda: other.settle(said(operation_id))):
        with pytest.raises(SessionBusy):
            attempt()
    assert other.not_over(run_id) == (operation_id,)
    dead.incarnations.tell(dead.ownership.incarnation, None)
    assert other.not_over(run_id) == ()
    other.settle(said(operation_id, COMPLETED, "paid"))
    result = go(lambda: other.resume(PlannedModel([says("done")]), [act.function]))
    assert isinstance(result, Continued)
    assert act.calls == []
    check_sound(other, run_id)
    check_sound(other, result.run_id)


def test_a_repeat_in_the_continuation_is_told_that_the_effect_was_settled_and_not_that_it_may_have_happened() -> None:
    world, act = World(), Counted()
    _, operation_id = unsettled(world, act.function)
    process = Process(world)
    process.settle(said(operation_id, COMPLETED, "paid"))
    assert isinstance(go(lambda: process.resume([ACT, says("done")], [act.function])), Continued)
    (response,) = process.responses(process.head())
    assert (response.code, response.effect, act.calls) == ("repeat_of_unsettled_effect", Effect.NONE, [1])
    assert "had this effect already" in str(response.result)
