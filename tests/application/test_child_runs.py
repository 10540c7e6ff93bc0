"""A call starts one child run, under an id that its T1 recorded before: after a crash it is found by that. SPEC 11."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, Stall, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.declaration import ToolDefinitionError
from safepoint.adapters.tools.decorator import tool
from safepoint.adapters.tools.promised_tool import contract
from safepoint.application.child_runs import ChildRunExists, Ended, Interrupted, Open, ParentCall, ParentNotOpen
from safepoint.application.live_runs import LiveRun
from safepoint.application.reconciliation import Completed, Left, LeftAlone, NowParked
from safepoint.application.resume_run import Continued
from safepoint.application.run_agent import Screen
from safepoint.application.run_turn import TurnResult
from safepoint.domain.child_runs import reserved_child_run
from safepoint.domain.errors import StoreFull
from safepoint.domain.events.run import CancelRequested, RunEnded, RunOpened, RunStatus
from safepoint.domain.events.session import RunAdmitted, RunKind
from safepoint.domain.events.tool import Effect, Life, RecoveryMode, ToolResponded
from safepoint.domain.identifiers import SessionId
from safepoint.domain.reasons import RecoveryReason
from safepoint.ports.tool_catalog import ToolContext

from .counted_tools import Counted
from .wiring import SESSION, Process, World, beside, check_sound, go, until

CHILD = SessionId("child")
DELEGATES = [calls(("delegate", {"task": "help"})), says("I had help.")]


class Delegating:
    """A tool that starts a child run, as often as a test says.

    Args:
        process: runs the child.
        begin: called with the process, the parent's call and the task; by default runs the child once.
    """

    def __init__(self, process: Process, *answers: Any, begin: Callable[..., Any] | None = None) -> None:
        self.model = PlannedModel(list(answers) or [says("I helped.")])
        self.contexts: list[ToolContext] = []
        delegating = self

        @tool(recovery="reattach", child_run=True)
        async def delegate(context: ToolContext, task: str) -> str:
            """Let somebody else do it."""
            delegating.contexts.append(context)
            if begin is not None:
                return str(await begin(delegating, context, task))
            return (await delegating.child(process, context, task)).outcome.text

        self.function = delegate

    async def child(
        self, process: Process, context: ToolContext, task: str, session_id: SessionId = CHILD
    ) -> TurnResult:
        """Run the child, or find it."""
        return await process.turn(task, self.model, session_id=session_id, parent=ParentCall.of(context))


def delegated(process: Process, delegating: Delegating) -> TurnResult:
    """A turn whose model delegates once."""
    return go(lambda: process.turn("go", PlannedModel(list(DELEGATES)), [delegating.function]))


def children(process: Process) -> list[RunOpened]:
    """All runs that were ever begun in the child's session."""
    admitted = [event for event in process.session_events(CHILD) if isinstance(event, RunAdmitted)]
    return [opened for one in admitted for opened in process.of(one.run_id, RunOpened)]


def became(process: Process) -> Completed | NowParked | LeftAlone:
    (one,) = go(process.reconcile).operations
    return one.became


def test_the_id_of_a_child_run_is_recorded_before_the_child_is_begun_with_it() -> None:
    process = Process()
    delegating = Delegating(process)
    result = delegated(process, delegating)
    (dispatch,) = process.dispatches(result.run_id)
    (opened,) = children(process)
    assert dispatch.evidence == reserved_child_run(opened.run_id)
    assert (dispatch.contract.mode, dispatch.life) == (RecoveryMode.REATTACH, Life.TASK)
    assert dispatch.occurred_at <= opened.occurred_at
    header = (opened.parent_session_id, opened.parent_run_id, opened.parent_operation_id)
    assert header == (SESSION, result.run_id, dispatch.operation_id)
    (admitted,) = [event for event in process.session_events(CHILD) if isinstance(event, RunAdmitted)]
    assert admitted.kind is RunKind.CHILD
    assert [one.child_run for one in delegating.contexts] == [opened.run_id]
    assert process.response(result.run_id, "delegate").result == "I helped."
    check_sound(process, result.run_id)
    check_sound(process, opened.run_id)


def test_each_call_gets_an_id_of_its_own() -> None:
    process = Process()
    delegating = Delegating(process, says("First."), says("Second."))
    twice = [calls(("delegate", {"task": "a"}), ("delegate", {"task": "b"})), says("Done.")]
    result = go(lambda: process.turn("go", PlannedModel(twice), [delegating.function]))
    assert [one.result for one in process.responses(result.run_id)] == ["First.", "Second."]
    assert len({opened.run_id for opened in children(process)}) == 2


def test_the_same_child_asked_for_again_is_found_and_not_run_again() -> None:
    process = Process()

    async def twice(delegating: Delegating, context: ToolContext, task: str) -> object:
        first = await delegating.child(process, context, task)
        again = await delegating.child(process, context, task)
        assert (again.run_id, again.outcome) == (first.run_id, first.outcome)
        return again.outcome.text

    delegating = Delegating(process, begin=twice)
    result = delegated(process, delegating)
    assert process.response(result.run_id, "delegate").result == "I helped."
    assert (len(children(process)), len(delegating.model.asked)) == (1, 1)


@pytest.mark.parametrize(
    ("session_id", "task"), [(CHILD, "help more"), (SessionId("elsewhere"), "help")], ids=["message", "session"]
)
def test_another_child_of_the_same_call_is_refused_and_nothing_is_begun(session_id: SessionId, task: str) -> None:
    process = Process()
    refused: list[ChildRunExists] = []

    async def two(delegating: Delegating, context: ToolContext, first: str) -> object:
        done = await delegating.child(process, context, first)
        with pytest.raises(ChildRunExists) as exists:
            await delegating.child(process, context, task, session_id)
        refused.append(exists.value)
        return done.outcome.text

    delegating = Delegating(process, says("I helped."), says("Once more."), begin=two)
    delegated(process, delegating)
    (error,) = refused
    assert (error.same, isinstance(error.found, Ended), "starts one child run" in str(error)) == (False, True, True)
    assert (len(children(process)), len(delegating.model.asked)) == (1, 1)
    assert process.owner(SessionId("elsewhere")) is None


def test_a_child_that_runs_already_is_not_begun_a_second_time_beside_it() -> None:
    process = Process()
    refused: list[ChildRunExists] = []

    async def beside(delegating: Delegating, context: ToolContext, task: str) -> object:
        async with anyio.create_task_group() as group:

            async def other() -> None:
                await until(lambda: delegating.model.asked)
                with pytest.raises(ChildRunExists) as exists:
                    await delegating.child(process, context, task)
                refused.append(exists.value)
                going.set()

            going = anyio.Event()
            group.start_soon(other)

            @tool(recovery="replay_safe")
            async def wait() -> str:
                """Wait."""
                await going.wait()
                return "waited"

            agent = process.agent(delegating.model, [wait])
            parent = ParentCall.of(context)
            result = await process.run_turn(CHILD, task, agent, Screen(), parent=parent)
        return result.outcome.text

    delegating = Delegating(process, calls(("wait", {})), says("I helped."), begin=beside)
    delegated(process, delegating)
    (error,) = refused
    assert (error.same, isinstance(error.found, Open), "has not ended" in str(error)) == (True, True, True)
    assert (len(children(process)), len(delegating.model.asked)) == (1, 2)


def test_a_call_that_is_answered_starts_nothing_more() -> None:
    process = Process()

    async def nothing(delegating: Delegating, context: ToolContext, task: str) -> object:
        return "I did it myself."

    delegating = Delegating(process, begin=nothing)
    delegated(process, delegating)
    (context,) = delegating.contexts
    with pytest.raises(ParentNotOpen):
        go(lambda: delegating.child(process, context, "help"))
    assert process.session_events(CHILD) == []
    assert delegating.model.asked == []


def test_a_tool_that_declares_no_child_run_starts_none() -> None:
    process = Process()
    contexts: list[ToolContext] = []

    @tool(recovery="reattach")
    def act(context: ToolContext) -> str:
        """Act."""
        contexts.append(context)
        return "acted"

    go(lambda: process.turn("go", PlannedModel([calls(("act", {})), says("Done.")]), [act]))
    assert contexts[0].child_run is None
    with pytest.raises(ValueError, match="declare its tool with child_run=True"):
        ParentCall.of(contexts[0])


def test_a_handle_of_ones_own_making_is_no_reservation() -> None:
    process = Process()
    contexts: list[ToolContext] = []

    @tool(recovery="reattach", evidence=lambda arguments, workspace: {"child_run": "mine"})
    def act(context: ToolContext) -> str:
        """Act."""
        contexts.append(context)
        return "acted"

    go(lambda: process.turn("go", PlannedModel([calls(("act", {})), says("Done.")]), [act]))
    assert contexts[0].child_run == "mine"
    with pytest.raises(ValueError, match="child_run=True"):
        ParentCall.of(contexts[0])


@pytest.mark.parametrize(
    "declared",
    [{}, {"recovery": "idempotent", "key_valid_seconds": 5}, {"recovery": lambda arguments: "reattach"}],
    ids=["nothing", "idempotent", "by-arguments"],
)
def test_a_child_run_is_declared_with_reattach_alone(declared: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="recovery='reattach'"):
        contract("delegate", child_run=True, **declared)


def test_a_child_run_is_declared_without_other_evidence() -> None:
    with pytest.raises(ToolDefinitionError, match="child_run is evidence itself"):
        tool(recovery="reattach", child_run=True, evidence=lambda arguments, workspace: None)(lambda: None)


def test_what_is_promised_of_a_child_run_is_part_of_the_contract() -> None:
    plain = contract("delegate", recovery="reattach").spec.contract_digest
    assert contract("delegate", recovery="reattach", child_run=True).spec.contract_digest != plain


def test_who_stops_a_run_stops_the_child_that_a_call_of_it_started() -> None:
    process = Process()
    delegating = Delegating(process, Stall("I am thinking."))
    lives: list[LiveRun] = []

    async def stop() -> None:
        await until(lambda: delegating.model.asked)
        await lives[0].cancel("ada")

    async def main() -> TurnResult:
        model = PlannedModel(list(DELEGATES))
        turn = process.turn("go", model, [delegating.function], started=lives.append)
        return await beside(stop, turn)

    result = go(main)
    assert result.outcome.status is RunStatus.CANCELLED
    (opened,) = children(process)
    (stopped,) = process.of(opened.run_id, CancelRequested)
    (ended,) = process.of(opened.run_id, RunEnded)
    assert (stopped.by, ended.status, ended.recovered) == ("ada", RunStatus.CANCELLED, False)
    response = process.response(result.run_id, "delegate")
    assert (response.effect, response.is_error) == (Effect.DONE, False)  # the tool returned in time
    assert process.owner() is process.owner(CHILD) is None


def test_a_child_that_is_begun_when_its_call_should_stop_already_stops_at_once() -> None:
    process = Process()
    lives: list[LiveRun] = []

    async def late(delegating: Delegating, context: ToolContext, task: str) -> object:
        await lives[0].cancel("ada")
        return (await delegating.child(process, context, task)).outcome.status

    delegating = Delegating(process, Stall(), begin=late)
    go(lambda: process.turn("go", PlannedModel(list(DELEGATES)), [delegating.function], started=lives.append))
    (opened,) = children(process)
    (ended,) = process.of(opened.run_id, RunEnded)
    assert ended.status is RunStatus.CANCELLED


# After a crash


def killed(world: World, *answers: Any, at: str) -> None:
    """A process that died while a call of it had started, or was to start, a child run.

    Args:
        at: the first fact that is missing: the child's first, its end, or the answer of its parent's call.
    """
    dead = Process(world)

    async def begin(delegating: Delegating, context: ToolContext, task: str) -> object:
        dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
        if at != ToolResponded.topic:
            dead.events_store.fail_at(at, Failure.FULL)
        return (await delegating.child(dead, context, task)).outcome.text

    with pytest.raises(StoreFull):
        delegated(dead, Delegating(dead, *answers, begin=begin))
    dead.die()


def repair_child(process: Process) -> None:
    """As a program does that repairs a session with its children."""
    owned = process.ownership.own(CHILD)
    process.repair(owned)
    process.ownership.release(owned)


def test_a_child_that_was_never_begun_is_answered_as_that_and_the_run_goes_on() -> None:
    world = World()
    killed(world, at=RunOpened.topic)
    process = Process(world)
    settled = became(process)
    assert isinstance(settled, Completed)
    assert (settled.is_error, "was never begun" in settled.detail) == (True, True)
    (response,) = process.responses(process.head())
    assert (response.effect, response.is_error) == (Effect.NONE, True)
    assert process.ledger.session(SESSION).watched == {}
    delegating = Delegating(process)
    done = go(lambda: process.resume(list(DELEGATES), [delegating.function]))
    assert isinstance(done, Continued)
    assert len(children(process)) == 1
    check_sound(process, process.head())


def test_that_a_child_was_never_begun_is_not_believed_of_a_store_that_may_lack_facts() -> None:
    world = World()
    killed(world, at=RunOpened.topic)
    world.store.adopt(by="ada", note="restored", at="2026-01-01T00:00:00.000000Z")
    process = Process(world)
    parked = became(process)
    assert isinstance(parked, NowParked)
    assert parked.reason is RecoveryReason.HANDLE_UNKNOWN


def test_a_child_that_ended_before_its_parent_heard_of_it_is_the_outcome() -> None:
    world = World()
    killed(world, says("I helped."), at=ToolResponded.topic)
    process = Process(world)
    settled = became(process)
    assert isinstance(settled, Completed)
    (response,) = process.responses(process.head())
    (opened,) = children(process)
    assert response.result == {
        "run_id": opened.run_id,
        "status": "completed",
        "failure_class": None,
        "text": "I helped.",
    }
    delegating = Delegating(process)
    assert isinstance(go(lambda: process.resume([says("All done.")], [delegating.function])), Continued)
    assert len(children(process)) == 1


def test_a_child_that_was_interrupted_waits_for_its_own_resume_whose_end_is_the_outcome() -> None:
    world = World()
    killed(world, says("half"), at=RunEnded.topic)
    process = Process(world)
    repair_child(process)
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert (left.why, left.child) == (Left.CHILD_INTERRUPTED, CHILD)
    assert isinstance(go(lambda: process.resume([says("all of it")], session_id=CHILD)), Continued)
    settled = became(process)
    assert isinstance(settled, Completed)
    (response,) = process.responses(process.head())
    assert isinstance(response.result, dict)
    assert response.result["text"] == "all of it"
    assert len(children(process)) == 1


def test_a_child_whose_place_a_later_turn_took_is_not_said_to_be_resumable() -> None:
    world = World()
    killed(world, says("half"), at=RunEnded.topic)
    process = Process(world)
    go(lambda: process.turn("something else", PlannedModel([says("Done.")]), session_id=CHILD))
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert (left.why, left.child) == (Left.HANDLE_LOST, None)
    assert "a later turn has taken its place" in left.detail


def test_a_run_that_another_call_started_settles_nothing() -> None:
    world = World()
    process = Process(world)
    delegating = Delegating(process)
    delegated(process, delegating)
    (opened,) = children(process)
    other = SessionId("other")
    act = Counted(recovery="reattach", evidence=lambda arguments, workspace: reserved_child_run(opened.run_id))
    dead = Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([calls(("act", {"n": 1}))]), [act.function], session_id=other))
    dead.die()
    process = Process(world)
    (one,) = go(lambda: process.reconcile(session_id=other)).operations
    assert isinstance(one.became, NowParked)
    assert (one.became.reason, "not started by this call" in one.became.detail) == (RecoveryReason.HANDLE_UNKNOWN, True)


def test_a_tool_finds_its_interrupted_child_and_does_not_begin_another() -> None:
    process = Process()
    found: list[ChildRunExists] = []

    async def broken(delegating: Delegating, context: ToolContext, task: str) -> object:
        process.events_store.fail_at(RunEnded.topic, Failure.FULL)
        with pytest.raises(StoreFull):
            await delegating.child(process, context, task)
        repair_child(process)
        with pytest.raises(ChildRunExists) as exists:
            await delegating.child(process, context, task)
        found.append(exists.value)
        return "resume it"

    delegating = Delegating(process, says("half"), says("again"), begin=broken)
    delegated(process, delegating)
    (error,) = found
    assert (error.same, isinstance(error.found, Interrupted)) == (True, True)
    assert "resume session child" in str(error)
    assert (len(children(process)), len(delegating.model.asked)) == (1, 1)


def test_a_dispatch_of_another_tool_names_no_child() -> None:
    process, act = Process(), Counted(recovery="reattach")
    result = go(lambda: process.turn("go", PlannedModel([calls(("act", {"n": 1})), says("Done.")]), [act.function]))
    (dispatch,) = process.dispatches(result.run_id)
    assert dispatch.evidence is None
