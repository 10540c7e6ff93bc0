"""A person stops a run: here, from another process, after its owner died, or before it began. SPEC section 7, F4."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, Stall, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application.cancel_run import Cancelled, CancelResult
from safepoint.application.live_runs import LiveRun
from safepoint.application.ownership import SessionBusy
from safepoint.application.run_recorder import RunRecorder
from safepoint.application.run_turn import SessionQuarantined, TurnResult
from safepoint.application.stopping import Stopping
from safepoint.domain.commands import Append
from safepoint.domain.errors import StoreError, StoreFull
from safepoint.domain.events.run import CancelRequested, ContinuationStarted, RunEnded, RunOpened, RunStatus, StartKind
from safepoint.domain.events.tool import Effect, ToolDispatched
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.incarnations import Liveness
from safepoint.ports.provider_failures import ProviderFailed

from .counted_tools import Counted
from .wiring import SESSION, Process, World, beside, check_sound, go, until


class Waits:
    """A tool that runs until it is stopped."""

    def __init__(self) -> None:
        self.began = threading.Event()

        def act(n: int) -> str:
            """Act."""
            self.began.set()
            self.let_go.wait(60)
            return "acted"

        self.let_go = threading.Event()
        self.function = act


def stalls() -> PlannedModel:
    return PlannedModel([Stall("hm")])


async def driven_while(process: Process, model: PlannedModel, other: Callable[[], None]) -> TurnResult:
    """Drive a run that waits for its model, and do something on another thread meanwhile."""

    async def meanwhile() -> None:
        await until(lambda: model.asked)
        await anyio.to_thread.run_sync(other)

    return await beside(meanwhile, process.turn("go", model))


def test_a_live_run_is_stopped_from_another_thread_of_its_process() -> None:
    process = Process()
    results: list[CancelResult] = []
    result = go(lambda: driven_while(process, stalls(), lambda: results.append(process.cancel(SESSION, "ada"))))
    assert result.outcome.status is RunStatus.CANCELLED
    assert results == [CancelResult(Cancelled.STOPPING, result.run_id)]
    assert [event.by for event in process.of(result.run_id, CancelRequested)] == ["ada"]
    check_sound(process, result.run_id)
    assert process.owner() is None


def test_a_live_run_is_stopped_by_another_process_through_its_owner() -> None:
    world = World()
    owner, other = Process(world), Process(world)
    owner.listen()
    results: list[CancelResult] = []
    result = go(lambda: driven_while(owner, stalls(), lambda: results.append(other.cancel(SESSION, "bob"))))
    assert result.outcome.status is RunStatus.CANCELLED
    assert results == [CancelResult(Cancelled.STOPPING, result.run_id)]
    assert [event.by for event in owner.of(result.run_id, CancelRequested)] == ["bob"]
    check_sound(owner, result.run_id)


def test_stopping_twice_is_stopping_once() -> None:
    process = Process()
    results: list[CancelResult] = []

    def twice() -> None:
        threads = [threading.Thread(target=lambda: results.append(process.cancel(SESSION, "ada"))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    result = go(lambda: driven_while(process, stalls(), twice))
    assert len(process.of(result.run_id, CancelRequested)) == 1
    assert len(process.of(result.run_id, RunEnded)) == 1
    assert len(results) == 4
    assert process.cancel(SESSION, "bob") == CancelResult(Cancelled.NOTHING_OPEN, result.run_id)
    assert len(process.of(result.run_id, CancelRequested)) == 1


def test_a_run_that_ends_by_itself_while_it_is_being_stopped_has_simply_ended() -> None:
    lives: list[LiveRun] = []
    answers: list[bool] = []
    process = Process()

    async def work() -> TurnResult:
        result = await process.turn("go", PlannedModel([says("done")]), started=lives.append)
        answers.append(await lives[0].cancel("ada"))
        return result

    result = go(work)
    assert answers == [False]
    assert result.outcome.status is RunStatus.COMPLETED
    assert process.of(result.run_id, CancelRequested) == []


def test_an_owner_that_does_not_listen_leaves_the_session_busy_with_its_pid() -> None:
    world = World()
    owner, other = Process(world), Process(world)
    busy: list[SessionBusy] = []

    def stop() -> None:
        with pytest.raises(SessionBusy) as caught:
            other.cancel(SESSION, "bob")
        busy.append(caught.value)
        owner.cancel(SESSION, "ada")

    go(lambda: driven_while(owner, stalls(), stop))
    assert busy[0].owner is not None
    assert busy[0].owner.pid == owner.ownership.incarnation.pid


def test_an_owner_that_could_not_be_looked_at_is_not_taken_for_dead() -> None:
    world = World()
    owner, other = Process(world), Process(world)

    def stop() -> None:
        owner.incarnations.tell(owner.ownership.incarnation, Liveness.COULD_NOT_LOOK)
        with pytest.raises(SessionBusy):
            other.cancel(SESSION, "bob")
        owner.incarnations.tell(owner.ownership.incarnation, None)
        owner.cancel(SESSION, "ada")

    result = go(lambda: driven_while(owner, stalls(), stop))
    assert [event.by for event in owner.of(result.run_id, CancelRequested)] == ["ada"]


def left_behind(world: World, topic: str = ToolDispatched.topic) -> Process:
    """A process that died in the middle of a run."""
    dead, act = Process(world), Counted()
    dead.events_store.fail_at(topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([calls(("act", {"n": 1}))]), [act.function]))
    dead.die()
    return dead


def test_the_run_of_a_dead_owner_is_closed_as_cancelled_by_whoever_asks() -> None:
    world = World()
    dead = left_behind(world)
    other = Process(world)
    assert other.cancel(SESSION, "bob") == CancelResult(Cancelled.CLOSED, dead.head())
    (ended,) = other.of(dead.head(), RunEnded)
    assert (ended.status, ended.recovered, ended.failure_class) == (RunStatus.CANCELLED, True, None)
    (response,) = other.responses(dead.head())
    assert response.effect is Effect.NONE
    assert "bob stopped the run" in str(response.result)
    check_sound(other, dead.head())
    assert other.owner() is None
    assert other.cancel(SESSION, "bob") == CancelResult(Cancelled.NOTHING_OPEN, dead.head())


def test_whoever_dies_between_the_record_of_a_stop_and_its_end_leaves_a_run_that_repair_ends_as_cancelled() -> None:
    world = World()
    dead = left_behind(world)
    helper = Process(world)
    helper.events_store.fail_at(RunEnded.topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        helper.cancel(SESSION, "bob")
    helper.die()
    last = Process(world)
    stopped = dead.head()
    result = go(lambda: last.turn("go on", PlannedModel([says("ok")])))
    assert (result.repaired.run_id, result.repaired.status) == (stopped, RunStatus.CANCELLED)
    assert [event.status for event in last.of(stopped, RunEnded)] == [RunStatus.CANCELLED]


def test_a_claim_that_never_started_is_ended_as_cancelled_without_any_request_to_a_provider() -> None:
    world = World()
    first = go(lambda: Process(world).turn("go", PlannedModel([ProviderFailed("down")])))
    dead, model = Process(world), PlannedModel([says("never")])
    dead.events_store.fail_at(ContinuationStarted.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.resume(model))
    dead.die()
    assert model.asked == []
    other = Process(world)
    result = other.cancel(SESSION, "bob")
    assert result == CancelResult(Cancelled.CLOSED, other.head())
    assert other.head() != first.run_id
    started, ended = other.events(other.head())
    assert isinstance(started, ContinuationStarted)
    assert started.kind is StartKind.CLAIM_REPAIR
    assert isinstance(ended, RunEnded)
    assert ended.status is RunStatus.CANCELLED
    assert other.owner() is None


def test_a_session_without_an_open_run_or_without_any_has_nothing_to_stop() -> None:
    process = Process()
    assert process.cancel(SESSION, "ada") == CancelResult(Cancelled.NOTHING_OPEN, None)
    assert process.session_events() == []
    result = go(lambda: process.turn("go", PlannedModel([says("done")])))
    assert process.cancel(SESSION, "ada") == CancelResult(Cancelled.NOTHING_OPEN, result.run_id)
    assert process.owner() is None


def test_a_session_that_another_use_case_of_this_process_is_just_beginning_in_is_busy() -> None:
    process = Process()
    owned = process.ownership.own(SESSION)
    with pytest.raises(SessionBusy):
        process.cancel(SESSION, "ada")
    process.ownership.release(owned)
    assert process.cancel(SESSION, "ada").cancelled is Cancelled.NOTHING_OPEN


def damage(world: World) -> None:
    """Change a byte of the only user message."""
    records = world.store._tables.records
    (row,) = [at for at, record in enumerate(records) if record.topic == "message.user.v1"]
    records[row] = records[row]._replace(state=records[row].state.replace(b'"go"', b'"no"'))


def test_a_damaged_run_is_not_called_closed() -> None:
    world = World()
    left_behind(world)
    damage(world)
    with pytest.raises(SessionQuarantined):
        Process(world).cancel(SESSION, "bob")


def test_an_owner_with_an_open_run_that_it_drives_no_more_closes_it_when_it_is_asked_by_another() -> None:
    world = World()
    owner, other = Process(world), Process(world)
    owner.listen()
    owner.events_store.fail_at(ToolDispatched.topic, Failure.FULL)
    act = Counted()
    with pytest.raises(StoreFull):
        go(lambda: owner.turn("go", PlannedModel([calls(("act", {"n": 1}))]), [act.function]))
    assert other.cancel(SESSION, "bob") == CancelResult(Cancelled.CLOSED, owner.head())
    check_sound(owner, owner.head())


def test_a_run_whose_event_loop_is_gone_is_driven_by_nobody_and_is_closed() -> None:
    process = Process()
    left_open = ExitStack()

    async def begin_and_vanish() -> None:
        begun = await process.start(process.ownership.own(SESSION), process.agent(stalls()), "hello")
        recorder = RunRecorder(
            process.async_ledger, process.spines, process.failpoints, begun.identity, begun.owned, begun.receipt
        )
        left_open.enter_context(process.live_runs.driving(recorder, Stopping()))
        process.ownership.keep(begun.owned)

    go(begin_and_vanish)
    assert process.cancel(SESSION, "ada") == CancelResult(Cancelled.CLOSED, process.head())
    check_sound(process, process.head())
    left_open.close()


# The order of a stop and a dispatch


def test_a_stop_that_is_recorded_right_before_t1_prevents_the_dispatch_and_the_run_ends_cancelled() -> None:
    lives: list[LiveRun] = []
    process = Process()

    def evidence(typed: object, workspace: object) -> str:
        # Between the admission of the call and T1, a person stops the run from elsewhere; the loop is not told yet.
        live = lives[0]
        fact = CancelRequested(**live.recorder.spine(), by="ada")
        owned = live.recorder.owned
        process.ledger.execute(
            Append(owned.session_id, owned.incarnation_id, owned.epoch, live.recorder.run_id, (fact,))
        )
        live.stopping.ask("ada")
        anyio.from_thread.run_sync(live.stopping.request, token=live.token)
        return "seen"

    counted = Counted(evidence=evidence)
    model = PlannedModel([calls(("act", {"n": 1})), says("never")])
    result = go(lambda: process.turn("go", model, [counted.function], started=lives.append))
    assert result.outcome.status is RunStatus.CANCELLED
    assert counted.calls == []
    assert process.dispatches(result.run_id) == []
    (response,) = process.responses(result.run_id)
    assert response.operation_id is None
    check_sound(process, result.run_id)


def test_a_stop_that_only_the_record_knows_of_refuses_t1_and_is_no_failure() -> None:
    lives: list[LiveRun] = []
    process = Process()

    def evidence(typed: object, workspace: object) -> str:
        live = lives[0]
        fact = CancelRequested(**live.recorder.spine(), by="ada")
        owned = live.recorder.owned
        process.ledger.execute(
            Append(owned.session_id, owned.incarnation_id, owned.epoch, live.recorder.run_id, (fact,))
        )
        threading.Timer(0.05, lambda: anyio.from_thread.run_sync(live.stopping.request, token=live.token)).start()
        return "seen"

    counted = Counted(evidence=evidence)
    model = PlannedModel([calls(("act", {"n": 1})), Stall()])
    result = go(lambda: process.turn("go", model, [counted.function], started=lives.append))
    assert counted.calls == []
    assert process.dispatches(result.run_id) == []
    assert result.outcome.status is RunStatus.CANCELLED
    check_sound(process, result.run_id)


def test_a_stop_between_t1_and_the_start_closes_the_operation_unexecuted() -> None:
    act = Counted()

    def at(point: str) -> None:
        if point == Failpoint.T1_COMMITTED:
            live = process.live_runs.get(SESSION)
            assert live is not None
            live.stopping.ask("ada")
            live.stopping.request()

    process = Process(at_failpoint=at)
    model = PlannedModel([calls(("act", {"n": 1}))])
    result = go(lambda: process.turn("go", model, [act.function]))
    assert result.outcome.status is RunStatus.CANCELLED
    assert act.calls == []
    (response,), (dispatch,) = process.responses(result.run_id), process.dispatches(result.run_id)
    assert (response.operation_id, response.effect) == (dispatch.operation_id, Effect.NONE)
    check_sound(process, result.run_id)


def test_a_stop_that_cannot_be_recorded_still_stops_the_work_and_the_run_fails_to_whoever_drives_it() -> None:
    process = Process()
    lives: list[LiveRun] = []
    model = stalls()

    async def work() -> TurnResult:
        async def stopping() -> None:
            await until(lambda: model.asked)
            process.events_store.fail_at(CancelRequested.topic, Failure.UNAVAILABLE)
            with pytest.raises(StoreError):
                await lives[0].cancel("ada")

        return await beside(stopping, process.turn("go", model, started=lives.append))

    result = go(work)
    assert result.outcome.status is RunStatus.CANCELLED
    assert [event.by for event in process.of(result.run_id, CancelRequested)] == ["ada"]
    check_sound(process, result.run_id)


# Two use cases in one process


def test_a_second_turn_in_a_session_that_this_process_is_running_is_busy_and_runs_nothing_r3_038() -> None:
    process, act = Process(), Waits()
    second = Counted()

    async def work() -> TurnResult:
        async def meanwhile() -> None:
            await until(act.began.is_set)
            with pytest.raises(SessionBusy) as busy:
                await process.turn("me too", PlannedModel([calls(("act", {"n": 2}))]), [second.function])
            assert busy.value.owner is not None
            assert busy.value.owner.pid == process.ownership.incarnation.pid
            act.let_go.set()

        turn = process.turn("go", PlannedModel([calls(("act", {"n": 1})), says("done")]), [act.function])
        return await beside(meanwhile, turn)

    result = go(work)
    assert result.outcome.status is RunStatus.COMPLETED
    assert second.calls == []
    check_sound(process, result.run_id)


def test_a_second_turn_from_another_thread_with_its_own_event_loop_is_busy_too_r3_038() -> None:
    process, act = Process(), Waits()
    errors: list[BaseException] = []

    def other() -> None:
        act.began.wait(10)
        try:
            go(lambda: process.turn("me too", PlannedModel([says("no")])))
        except SessionBusy as busy:
            errors.append(busy)
        finally:
            act.let_go.set()

    thread = threading.Thread(target=other)
    thread.start()
    model = PlannedModel([calls(("act", {"n": 1})), says("done")])
    result = go(lambda: process.turn("go", model, [act.function]))
    thread.join()
    assert result.outcome.status is RunStatus.COMPLETED
    assert len(errors) == 1


def test_a_session_is_free_for_others_as_soon_as_its_turn_has_ended() -> None:
    world = World()
    for _ in range(3):
        process = Process(world)
        go(partial(process.turn, "go", PlannedModel([says("done")])))
        assert process.owner() is None


def test_a_session_that_is_quarantined_is_given_back() -> None:
    world = World()
    go(lambda: Process(world).turn("go", PlannedModel([says("done")])))
    damage(world)
    process, model = Process(world), PlannedModel([says("no")])
    with pytest.raises(SessionQuarantined):
        go(lambda: process.turn("again", model))
    assert model.asked == []
    assert process.owner() is None


def test_a_session_stays_owned_while_it_is_not_known_whether_a_run_was_opened_in_it() -> None:
    process = Process()
    process.events_store.fail_at(RunOpened.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: process.turn("go", PlannedModel([says("no")])))
    assert process.owner() is not None
    with pytest.raises(SessionBusy):
        go(lambda: Process(process.world).turn("go", PlannedModel([says("no")])))
    go(lambda: process.turn("go", PlannedModel([says("done")])))
    assert process.owner() is None
