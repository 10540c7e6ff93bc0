"""A person decides a question: of a live run, here or in another process, or after its process died. F4, F6."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.memory.tables import Failure
from safepoint.application.decide_permission import Decided, Decision, UnknownQuestion
from safepoint.application.ledger import Receipt
from safepoint.application.live_runs import LiveRun
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Continued, Parked
from safepoint.application.run_turn import TurnResult
from safepoint.domain.commands import AnyCommand, Append
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.outside import PermissionDecided, PermissionRequested
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.session import GrantPosted
from safepoint.domain.events.tool import ToolDispatched, ToolResponded
from safepoint.domain.identifiers import RequestId, RunId, SessionId
from safepoint.domain.reasons import ParkReason, ResponseCode
from safepoint.domain.run.state import Run
from safepoint.domain.sentences import SentenceId
from safepoint.ports.cancel_signal import CancelSignal
from safepoint.ports.permission_gate import Allowed, Denied, PermissionAnswer, PermissionRequest, Undecided

from .counted_tools import Counted
from .test_permissions import ACT, Person
from .wiring import SESSION, Process, World, beside, check_sound, go, until


class Elsewhere(Person):
    """A gate that knows no answer itself: it waits until it is told to give up."""

    def __init__(self, *, gives_up: bool = True) -> None:
        super().__init__(self._wait)
        self.let_go = threading.Event()
        self._gives_up = gives_up

    def policy_id(self) -> str:
        return "ask"

    def _wait(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        while not (self._gives_up and cancel.is_set()):
            if self.let_go.wait(0.005):
                break
        return Undecided("nobody answered here")


def request_of(process: Process) -> RequestId:
    return process.of(process.head(), PermissionRequested)[-1].request_id


async def waits_while(process: Process, act: Counted, gate: Elsewhere, other: Callable[[], object]) -> TurnResult:
    """Drive a run whose call waits for a person, and do something on another thread meanwhile."""

    async def meanwhile() -> None:
        await until(lambda: gate.asked)
        await anyio.to_thread.run_sync(other)

    return await beside(meanwhile, process.turn("go", PlannedModel([ACT, says("done")]), [act.function], gate=gate))


@pytest.mark.parametrize("gives_up", [True, False], ids=["a gate that gives up", "a gate that hangs"])
@pytest.mark.parametrize("approved", [True, False])
def test_a_run_that_waits_goes_on_as_soon_as_another_process_decides(approved: bool, gives_up: bool) -> None:
    world = World()
    owner, other, act, gate = Process(world), Process(world), Counted(), Elsewhere(gives_up=gives_up)
    owner.listen()
    told: list[Decision] = []
    result = go(
        lambda: waits_while(
            owner, act, gate, lambda: told.append(other.decide(request_of(other), approved=approved, by="ada"))
        )
    )
    gate.let_go.set()
    assert result.outcome.status is RunStatus.COMPLETED
    assert act.calls == ([1] if approved else [])
    (decision,) = told
    assert (decision.decided, decision.approved, decision.by) == (Decided.ANSWERED, approved, "ada")
    assert (decision.session_id, decision.run_id, decision.tool_name) == (SESSION, result.run_id, "act")
    (decided,) = owner.of(result.run_id, PermissionDecided)
    assert (decided.approved, decided.decided_by, decided.grant_id) == (approved, "ada", None)
    code = None if approved else ResponseCode.PERMISSION_DENIED
    assert owner.response(result.run_id, "act").code == code
    check_sound(owner, result.run_id)


def test_a_decision_that_came_first_stands_whoever_decides_again_and_however() -> None:
    world = World()
    owner, other, act, gate = Process(world), Process(world), Counted(), Elsewhere()
    owner.listen()
    told: list[Decision] = []

    def twice() -> None:
        for approved, by in ((True, "ada"), (False, "bob")):
            told.append(other.decide(request_of(other), approved=approved, by=by, session_id=SESSION))

    result = go(lambda: waits_while(owner, act, gate, twice))
    assert [one.decided for one in told] == [Decided.ANSWERED, Decided.ALREADY_DECIDED]
    assert (told[1].approved, told[1].by) == (True, "ada")
    assert act.calls == [1]
    assert len(owner.of(result.run_id, PermissionDecided)) == 1


def test_the_answer_at_the_terminal_that_came_first_stands_as_well() -> None:
    process, act, told = Process(), Counted(), list[Decision]()

    def answered(request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        return Denied("ada", "not now")

    model = PlannedModel([ACT, says("done")])
    result = go(lambda: process.turn("go", model, [act.function], gate=Person(answered)))
    told.append(process.decide(request_of(process), approved=True, by="bob", session_id=SESSION))
    assert [(one.decided, one.approved, one.by) for one in told] == [(Decided.ALREADY_DECIDED, False, "ada")]
    assert process.of(result.run_id, GrantPosted) == []
    assert act.calls == []


def test_whoever_decides_as_soon_as_the_question_is_durable_is_heard_and_the_gate_is_not_asked() -> None:
    """The answer may be quicker than the call that begins to wait for it."""
    process, act, gate = Process(), Counted(), Elsewhere()
    told: list[Decision] = []
    recorded = process.ledger.execute

    def quick(command: AnyCommand) -> Receipt:
        receipt = recorded(command)
        if isinstance(command, Append) and isinstance(command.facts[0], PermissionRequested):
            request_id = command.facts[0].request_id
            decide = partial(process.decide, request_id, approved=True, by="ada", session_id=SESSION)
            threading.Thread(target=lambda: told.append(decide())).start()
            live = process.live_runs.get(SESSION)
            assert live is not None
            while not live.questions.is_taken(request_id):
                time.sleep(0.001)
        return receipt

    process.ledger.execute = quick  # type: ignore[method-assign]
    result = go(lambda: process.turn("go", PlannedModel([ACT, says("done")]), [act.function], gate=gate))
    assert [one.decided for one in told] == [Decided.ANSWERED]
    assert (act.calls, gate.asked) == ([1], [])
    check_sound(process, result.run_id)


def test_a_run_that_ends_before_the_one_who_decided_looks_again_was_answered_all_the_same() -> None:
    process, act, gate = Process(), Counted(), Elsewhere()
    told: list[Decision] = []
    known = process.ledger.run

    def slow(run_id: RunId) -> Run:
        if threading.current_thread().name == "decides":
            while process.world.store.views.run(run_id).status is None:  # type: ignore[union-attr]
                time.sleep(0.001)
        return known(run_id)

    def decide() -> None:
        request_id = request_of(process)
        process.ledger.run = slow  # type: ignore[method-assign]
        work = partial(process.decide, request_id, approved=True, by="ada", session_id=SESSION)
        threading.Thread(target=lambda: told.append(work()), name="decides").start()

    result = go(lambda: waits_while(process, act, gate, decide))
    while not told:
        time.sleep(0.001)
    assert [(one.decided, one.approved) for one in told] == [(Decided.ANSWERED, True)]
    assert len(process.of(result.run_id, PermissionDecided)) == 1


def test_a_decision_that_cannot_be_recorded_lets_nothing_through() -> None:
    process, act, gate = Process(), Counted(), Elsewhere()
    raised: list[BaseException] = []

    def decide() -> None:
        process.events_store.fail_at(PermissionDecided.topic, Failure.FULL)
        try:
            process.decide(request_of(process), approved=True, by="ada")
        except StoreFull as error:
            raised.append(error)

    with pytest.raises(ExceptionGroup) as group:
        go(lambda: waits_while(process, act, gate, decide))
    assert isinstance(group.value.exceptions[0], StoreFull), (
        "the run that waited knows no more than the one who decided"
    )
    assert len(raised) == 1
    assert act.calls == []


def test_a_run_that_is_being_stopped_takes_no_decision_any_more() -> None:
    process, act, gate = Process(cancel_bound_seconds=0.3), Counted(), Elsewhere(gives_up=False)
    lives: list[LiveRun] = []
    told: list[Decision] = []

    async def work() -> TurnResult:
        async def meanwhile() -> None:
            await until(lambda: gate.asked)
            await lives[0].cancel("ada")
            decide = partial(process.decide, request_of(process), approved=True, by="bob")
            told.append(await anyio.to_thread.run_sync(decide))

        model = PlannedModel([ACT, says("done")])
        turn = process.turn("go", model, [act.function], gate=gate, started=lives.append)
        return await beside(meanwhile, turn)

    result = go(work)
    gate.let_go.set()
    assert result.outcome.status is RunStatus.CANCELLED
    assert act.calls == []
    assert [one.decided for one in told] == [Decided.CLOSED]
    later = process.decide(request_of(process), approved=True, by="bob", session_id=SESSION)
    assert later.decided is Decided.CLOSED
    assert process.ledger.session(SESSION).grants == ()
    check_sound(process, result.run_id)


# After the process died


def died_waiting(world: World, act: Counted) -> RequestId:
    """A process that dies while a person is waited for."""
    process, gate = Process(world), Elsewhere()
    thread = threading.Thread(target=lambda: _quietly(lambda: go(lambda: _turn(process, act, gate))), daemon=True)
    thread.start()
    while not gate.asked:
        thread.join(0.002)
    process.die()
    return request_of(process)


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:  # noqa: BLE001 (a ghost: its session has another owner by now)
        return


async def _turn(process: Process, act: Counted, gate: Elsewhere) -> TurnResult:
    return await process.turn("go", PlannedModel([ACT, says("done")]), [act.function], gate=gate)


def test_after_the_process_died_the_decision_is_kept_for_the_run_that_continues_it() -> None:
    world, act = World(), Counted()
    request_id = died_waiting(world, act)
    other = Process(world)
    decision = other.decide(request_id, approved=True, by="ada")
    assert (decision.decided, decision.by) == (Decided.KEPT, "ada")
    source = decision.run_id
    (decided,) = other.of(source, PermissionDecided)
    (grant,) = other.ledger.session(SESSION).grants
    assert decided.grant_id == grant.grant_id
    again = other.decide(request_id, approved=True, by="ada", session_id=SESSION)
    assert again.decided is Decided.ALREADY_DECIDED

    resumed = go(lambda: Process(world).resume([ACT, ACT, says("done")], [act.function], gate=ScriptedGate({}, "ask")))
    assert isinstance(resumed, Continued)
    assert act.calls == [1]
    (dispatch,) = other.dispatches(resumed.run_id)
    assert dispatch.grant_id == grant.grant_id
    told = [event.sentence_id for event in other.of(resumed.run_id, HostMessage)]
    assert told == [SentenceId.PERMISSION_GRANTED]
    check_sound(other, resumed.run_id)


def test_a_refusal_after_the_process_died_holds_for_the_run_that_continues_it() -> None:
    world, act = World(), Counted()
    other = Process(world)
    assert other.decide(died_waiting(world, act), approved=False, by="ada").decided is Decided.KEPT
    gate = ScriptedGate({"act": Allowed("bob")}, "ask")
    resumed = go(lambda: Process(world).resume([ACT, says("done")], [act.function], gate=gate))
    assert isinstance(resumed, Continued)
    assert (act.calls, gate.asked) == ([], [])
    assert other.response(resumed.run_id, "act").code == ResponseCode.PERMISSION_DENIED


def test_an_approval_does_not_outlive_the_schema_of_its_tool_r3_120() -> None:
    world, act = World(), Counted()
    other = Process(world)
    other.decide(died_waiting(world, act), approved=True, by="ada")
    ran: list[int] = []

    def changed(n: int, m: int = 0) -> str:
        """Act."""
        ran.append(n)
        return "acted"

    changed.__name__ = "act"
    gate = ScriptedGate({}, "ask")
    parked = go(lambda: Process(world).resume([ACT, says("done")], [changed], gate=gate))
    assert isinstance(parked, Parked)
    assert parked.codes == (ParkReason.TOOL_CATALOG_MISMATCH,)
    result = go(lambda: Process(world).turn("again", PlannedModel([ACT, says("done")]), [changed], gate=gate))
    assert ran == []
    assert other.response(result.run_id, "act").code == ResponseCode.PERMISSION_DENIED
    assert len(other.of(result.run_id, PermissionRequested)) == 1, "it is asked about anew"
    assert Process(world).ledger.session(SESSION).grants == ()


def test_a_question_of_an_earlier_turn_is_decided_while_a_later_one_runs() -> None:
    world, act = World(), Counted()
    earlier = died_waiting(world, act)
    owner, other, gate = Process(world), Process(world), Elsewhere()
    owner.listen()
    told: list[Decision] = []

    def decide() -> None:
        told.append(other.decide(earlier, approved=True, by="ada"))
        gate.let_go.set()

    result = go(lambda: waits_while(owner, act, gate, decide))
    assert [one.decided for one in told] == [Decided.KEPT]
    assert told[0].run_id != result.run_id
    assert act.calls == [], "it is kept for the next run, not for the one that runs"
    model = PlannedModel([ACT, says("done")])
    go(lambda: owner.turn("now", model, [act.function], gate=ScriptedGate({}, "ask")))
    assert act.calls == [1]


def test_a_question_that_was_dropped_cannot_be_decided_any_more() -> None:
    world, act = World(), Counted()
    request_id = died_waiting(world, act)
    process = Process(world)
    request = PlanRequest(drop_permissions=True)
    go(lambda: process.resume([says("done")], [act.function], gate=ScriptedGate({}, "ask"), request=request))
    assert process.decide(request_id, approved=True, by="ada", session_id=SESSION).decided is Decided.CLOSED
    assert process.ledger.session(SESSION).grants == ()


def test_a_question_without_an_answer_in_a_run_that_goes_on_is_decided_when_that_has_ended() -> None:
    process, act = Process(), Counted()
    told: list[Decision] = []
    gate = Elsewhere()

    def decide() -> None:
        first = process.of(process.head(), PermissionRequested)[0].request_id
        told.append(process.decide(first, approved=True, by="ada"))
        gate.let_go.set()

    async def work() -> TurnResult:
        async def meanwhile() -> None:
            await until(lambda: len(gate.asked) == 1)
            gate.let_go.set()
            await until(lambda: len(gate.asked) == 2)
            await anyio.to_thread.run_sync(decide)

        model = PlannedModel([ACT, calls(("act", {"n": 2})), says("done")])
        return await beside(meanwhile, process.turn("go", model, [act.function], gate=gate))

    class Twice(Elsewhere):
        def _wait(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
            answer = super()._wait(request, cancel)
            self.let_go.clear()
            return answer

    gate = Twice()
    go(work)
    assert [one.decided for one in told] == [Decided.NOT_WAITED_FOR]
    first = process.of(process.head(), PermissionRequested)[0].request_id
    assert process.decide(first, approved=True, by="ada").decided is Decided.KEPT


def test_who_is_slower_is_answered_once_the_faster_answer_is_durable() -> None:
    process, act = Process(), Counted()
    gate, told = Elsewhere(), list[tuple[bool, int]]()

    async def meanwhile() -> None:
        await until(lambda: len(gate.asked) == 1)
        live = process.live_runs.get(SESSION)
        assert live is not None
        request_id = process.of(process.head(), PermissionRequested)[0].request_id

        async def decide(answer: Allowed | Denied) -> None:
            counts = await live.questions.decide(request_id, answer)
            told.append((counts, len(process.of(process.head(), PermissionDecided))))

        async with anyio.create_task_group() as deciding:
            deciding.start_soon(decide, Allowed("ada"))
            deciding.start_soon(decide, Denied("bob", ""))

    model = PlannedModel([ACT, says("done")])
    go(lambda: beside(meanwhile, process.turn("go", model, [act.function], gate=gate)))
    assert sorted(told) == [(False, 1), (True, 1)]


@pytest.mark.parametrize("session_id", [None, SESSION, SessionId("another")])
def test_a_question_that_nobody_asked_is_unknown(session_id: SessionId | None) -> None:
    world = World()
    owner, act, gate = Process(world), Counted(), Elsewhere()
    owner.listen()
    raised: list[UnknownQuestion] = []

    def decide() -> None:
        with pytest.raises(UnknownQuestion) as unknown:
            Process(world).decide(RequestId("nobody"), approved=True, by="ada", session_id=session_id)
        raised.append(unknown.value)
        gate.let_go.set()

    go(lambda: waits_while(owner, act, gate, decide))
    assert [one.request_id for one in raised] == ["nobody"]


def test_a_request_that_does_not_say_what_is_decided_is_refused() -> None:
    process = Process()
    told = process.commands.answer(
        {"command": "decide_permission", "session_id": SESSION, "request_id": "r", "by": "a"}
    )
    assert told["error"] == "unknown_request"


# Decided in time, and the process died before T1


@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_that_was_given_in_time_is_not_lost_when_the_process_dies_before_t1(approved: bool) -> None:
    world, act = World(), Counted()
    process = Process(world)
    answer: PermissionAnswer = Allowed("ada") if approved else Denied("ada", "no")
    process.events_store.fail_at(ToolDispatched.topic if approved else ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: process.turn("go", PlannedModel([ACT]), [act.function], gate=ScriptedGate({"act": answer}, "ask")))
    process.die()
    other, asks = Process(world), ScriptedGate({}, "ask")
    resumed = go(lambda: other.resume([ACT, says("done")], [act.function], gate=asks))
    assert isinstance(resumed, Continued)
    assert (act.calls, asks.asked) == ([1] if approved else [], [])
    assert [bool(one.grant_id) for one in other.dispatches(resumed.run_id)] == ([True] if approved else [])
    check_sound(other, resumed.run_id)
    again = go(lambda: other.turn("again", PlannedModel([ACT, says("done")]), [act.function], gate=asks))
    assert len(asks.asked) == 1, "it lapsed with the run that took it over"
    assert again.outcome.status is RunStatus.COMPLETED
