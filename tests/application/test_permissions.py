"""Who may say yes to a call, to what exactly, and how often. SPEC F4 and F6."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.decorator import tool
from safepoint.application.live_runs import LiveRun
from safepoint.domain.commands import AppendLate
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.outside import PermissionClosed, PermissionDecided, PermissionRequested
from safepoint.domain.events.run import CancelRequested, RunEnded, RunStatus
from safepoint.domain.events.session import GrantPosted
from safepoint.domain.events.tool import Effect
from safepoint.domain.identifiers import GrantId, OperationId, RunId
from safepoint.domain.reasons import ResponseCode
from safepoint.domain.replay.items import CallItem, ResultItem, TextItem, UserItem
from safepoint.ports.cancel_signal import CancelSignal
from safepoint.ports.permission_gate import (
    Allowed,
    Denied,
    PermissionAnswer,
    PermissionGate,
    PermissionRequest,
    Undecided,
)

from .counted_tools import Counted
from .wiring import SESSION, Process, beside, check_sound, go, until

ACT = calls(("act", {"n": 1}))


class Person(PermissionGate):
    """Answers each question by a function, which may wait."""

    def __init__(self, answer: Callable[[PermissionRequest, CancelSignal], PermissionAnswer]) -> None:
        self.asked: list[PermissionRequest] = []
        self._answer = answer

    def policy_id(self) -> str:
        return "person"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer | None:
        return None

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        self.asked.append(request)
        return self._answer(request, cancel)


class Waiting(Person):
    """A person who thinks until told what to answer, by tool name; gives up when the run is stopped."""

    def __init__(self, *, gives_up: bool = True) -> None:
        super().__init__(self._wait)
        self._answers: dict[str, PermissionAnswer] = {}
        self._told = threading.Condition()
        self._gives_up = gives_up

    def say(self, tool_name: str, answer: PermissionAnswer) -> None:
        with self._told:
            self._answers[tool_name] = answer
            self._told.notify_all()

    def _wait(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        with self._told:
            while request.tool_name not in self._answers:
                if self._gives_up and cancel.is_set():
                    return Undecided("stopped")
                self._told.wait(0.005)
            return self._answers[request.tool_name]


def test_what_the_policy_allows_is_dispatched_without_a_question() -> None:
    process, act = Process(), Counted()
    result = go(lambda: process.turn("go", PlannedModel([ACT, says("done")]), [act.function]))
    assert act.calls == [1]
    assert process.of(result.run_id, PermissionRequested) == []


def test_the_question_is_durable_before_a_person_is_asked_and_the_answer_before_t1() -> None:
    process, act = Process(), Counted()
    seen: list[list[str]] = []

    def answer(request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        seen.append(process.topics(process.head())[-1:])
        return Allowed("ada")

    result = go(lambda: process.turn("go", PlannedModel([ACT, says("done")]), [act.function], gate=Person(answer)))
    assert seen == [["permission.requested"]]
    topics = process.topics(result.run_id)
    order = ["permission.requested", "permission.decided", "tool.dispatched", "tool.responded"]
    assert [topic for topic in topics if topic in order] == order
    (decided,) = process.of(result.run_id, PermissionDecided)
    assert (decided.approved, decided.decided_by) == (True, "ada")
    check_sound(process, result.run_id)


def test_a_question_that_could_not_be_recorded_is_not_asked() -> None:
    process, act = Process(), Counted()
    person = Person(lambda request, cancel: Allowed("ada"))
    process.events_store.fail_at(PermissionRequested.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: process.turn("go", PlannedModel([ACT]), [act.function], gate=person))
    assert person.asked == []
    assert act.calls == []


def test_an_answer_is_bound_to_the_arguments_and_the_contract_that_were_asked_about() -> None:
    process, act = Process(), Counted()
    person = Person(lambda request, cancel: Allowed("ada"))
    model = PlannedModel([calls(("act", {"n": 1})), calls(("act", {"n": 2})), says("done")])
    result = go(lambda: process.turn("go", model, [act.function], gate=person))
    asked = process.of(result.run_id, PermissionRequested)
    dispatched = process.dispatches(result.run_id)
    assert [one.args_hash for one in asked] == [one.args_hash for one in dispatched]
    assert [one.contract_digest for one in asked] == [one.contract.digest for one in dispatched]
    assert len({one.request_id for one in asked}) == 2, "an approval of one call is none of the next"


@pytest.mark.parametrize("first", ["left", "right"])
def test_parallel_questions_are_answered_each_for_itself_in_either_order_r3_173(first: str) -> None:
    ran: list[str] = []

    @tool(resource_key="left")
    def left() -> str:
        """Left."""
        ran.append("left")
        return "ok"

    @tool(resource_key="right")
    def right() -> str:
        """Right."""
        ran.append("right")
        return "ok"

    process, person = Process(), Waiting()
    answers: dict[str, PermissionAnswer] = {"left": Allowed("ada"), "right": Denied("ada", "no")}

    async def work() -> RunId:
        async def answering() -> None:
            await until(lambda: len(person.asked) == 2)
            person.say(first, answers[first])
            await until(lambda: len(process.of(process.head(), PermissionDecided)) == 1)
            other = "right" if first == "left" else "left"
            person.say(other, answers[other])

        model = PlannedModel([calls(("left", {}), ("right", {})), says("done")])
        return (await beside(answering, process.turn("go", model, [left, right], gate=person))).run_id

    run_id = go(work)
    assert ran == ["left"]
    asked = {one.request_id: one.tool_name for one in process.of(run_id, PermissionRequested)}
    decided = {asked[one.request_id]: one.approved for one in process.of(run_id, PermissionDecided)}
    assert decided == {"left": True, "right": False}
    assert process.response(run_id, "right").code == ResponseCode.PERMISSION_DENIED
    assert process.response(run_id, "left").effect is Effect.DONE
    check_sound(process, run_id)


@pytest.mark.parametrize("gives_up", [True, False])
def test_a_run_that_is_stopped_while_a_question_is_open_closes_it_once_as_cancelled_r3_157(gives_up: bool) -> None:
    process, act = Process(cancel_bound_seconds=0.05), Counted()
    person = Waiting(gives_up=gives_up)
    lives: list[LiveRun] = []

    async def work() -> RunId:
        async def stopping() -> None:
            await until(lambda: person.asked)
            await lives[0].cancel("ada")
            await lives[0].cancel("bob")

        model = PlannedModel([calls(("act", {"n": 1}), text="May I?"), says("never asked for")])
        turn = process.turn("please act", model, [act.function], gate=person, started=lives.append)
        result = await beside(stopping, turn)
        assert result.outcome.status is RunStatus.CANCELLED
        assert len(model.asked) == 1
        return result.run_id

    run_id = go(work)
    person.say("act", Allowed("too late"))
    assert act.calls == []
    (closed,) = process.of(run_id, PermissionClosed)
    (asked,) = process.of(run_id, PermissionRequested)
    assert closed.request_id == asked.request_id
    (response,) = process.responses(run_id)
    assert (response.code, response.effect, response.operation_id) == ("not_executed_interrupted", Effect.NONE, None)
    assert "ada stopped the run" in str(response.result)
    assert [event.by for event in process.of(run_id, CancelRequested)] == ["ada"]
    assert len(process.of(run_id, RunEnded)) == 1
    check_sound(process, run_id)

    later = PlannedModel([says("I see")])
    go(lambda: process.turn("go on", later, [act.function]))
    kinds = [type(item) for item in later.asked[0].request.history]
    assert kinds == [UserItem, TextItem, CallItem, ResultItem, UserItem], "the stopped turn is seen whole"


def test_an_undecided_question_stays_open_for_a_person_who_answers_later() -> None:
    process, act = Process(), Counted()
    gate = ScriptedGate({})
    result = go(lambda: process.turn("go", PlannedModel([ACT, says("done")]), [act.function], gate=gate))
    assert process.of(result.run_id, PermissionDecided) == []
    assert process.of(result.run_id, PermissionClosed) == []
    assert len(process.ledger.run(result.run_id).open_permissions) == 1


@pytest.mark.parametrize("why", ["x" * 100_000, "\ud800", "no\x00"])
def test_whatever_a_person_says_is_told_to_the_model_in_bounds(why: str) -> None:
    process, act = Process(), Counted()
    gate = ScriptedGate({"act": Denied("ada", why)})
    result = go(lambda: process.turn("go", PlannedModel([ACT, says("done")]), [act.function], gate=gate))
    response = process.response(result.run_id, "act")
    assert response.code == ResponseCode.PERMISSION_DENIED
    assert len(str(response.result)) < 3_000
    assert result.outcome.status is RunStatus.COMPLETED


# Grants


def interrupted_with_open_question(process: Process, act: Counted) -> RunId:
    """A run that failed while a person had not answered yet."""
    gate = ScriptedGate({})
    result = go(lambda: process.turn("go", PlannedModel([ACT]), [act.function], gate=gate))
    assert result.outcome.status is RunStatus.FAILED
    return result.run_id


def decide(process: Process, run_id: RunId, *, approved: bool, repeats: OperationId | None = None) -> GrantId:
    """A person decides an open question of an ended run, as the use case for that will."""
    (asked,) = process.of(run_id, PermissionRequested)
    grant_id = process.world.ids.fresh(GrantId)
    owned = process.ownership.own(SESSION)
    fact = PermissionDecided(
        **process.spines.run(asked.identity),
        request_id=asked.request_id,
        approved=approved,
        decided_by="ada",
        grant_id=grant_id,
    )
    grant = GrantPosted(
        **process.spines.session(SESSION),
        grant_id=grant_id,
        request_id=asked.request_id,
        tool_name=asked.tool_name,
        call_id=asked.call_id,
        args_hash=asked.args_hash,
        contract_digest=asked.contract_digest,
        approved=approved,
        decided_by="ada",
        repeats=repeats,
    )
    process.ledger.execute(AppendLate(owned.session_id, owned.incarnation_id, owned.epoch, run_id, fact, grant))
    process.ownership.release(owned)
    return grant_id


def test_a_grant_lets_exactly_one_call_through_and_is_named_by_its_dispatch() -> None:
    process, act = Process(), Counted()
    grant_id = decide(process, interrupted_with_open_question(process, act), approved=True)
    model = PlannedModel([calls(("act", {"n": 2})), ACT, ACT, says("done")])
    result = go(lambda: process.turn("again", model, [act.function], gate=ScriptedGate({})))
    assert act.calls == [1]
    (dispatch,) = process.dispatches(result.run_id)
    assert dispatch.grant_id == grant_id
    assert [one.code for one in process.responses(result.run_id)] == ["permission_denied", None, "permission_denied"]
    check_sound(process, result.run_id)


def test_a_grant_lapses_with_the_run_that_took_it_over() -> None:
    process, act = Process(), Counted()
    decide(process, interrupted_with_open_question(process, act), approved=True)
    go(lambda: process.turn("again", PlannedModel([says("not now")]), [act.function]))
    model = PlannedModel([ACT, says("done")])
    go(lambda: process.turn("and again", model, [act.function], gate=ScriptedGate({})))
    assert act.calls == []


def test_a_denied_grant_refuses_the_call_without_asking_again() -> None:
    process, act = Process(), Counted()
    decide(process, interrupted_with_open_question(process, act), approved=False)
    gate = ScriptedGate({"act": Allowed("bob")})
    result = go(lambda: process.turn("again", PlannedModel([ACT, says("done")]), [act.function], gate=gate))
    assert act.calls == []
    assert gate.asked == []
    assert process.response(result.run_id, "act").code == ResponseCode.PERMISSION_DENIED


def test_a_grant_does_not_outlive_a_changed_contract() -> None:
    process, act = Process(), Counted()
    decide(process, interrupted_with_open_question(process, act), approved=True)
    changed = Counted(recovery="never_auto_retry")
    result = go(
        lambda: process.turn("again", PlannedModel([ACT, says("done")]), [changed.function], gate=ScriptedGate({}))
    )
    assert changed.calls == []
    assert process.dispatches(result.run_id) == []
    assert process.response(result.run_id, "act").code == ResponseCode.PERMISSION_DENIED
    assert len(process.of(result.run_id, PermissionRequested)) == 1, "it is asked about anew"
