"""What is indeterminate is looked at again, by the mode that T1 recorded; nothing happens twice. SPEC section 10."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.application import looking_up
from safepoint.application.ownership import SessionBusy
from safepoint.application.reconcile_operations import Hands
from safepoint.application.reconciliation import Completed, Left, LeftAlone, NowParked, OperationReconciled
from safepoint.application.resume_run import Continued, Parked
from safepoint.application.settle_workspace import SettleWorkspace
from safepoint.application.settlement import SaidBy
from safepoint.application.stopping import Stopping
from safepoint.domain.errors import RefusedWithoutEffect, StoreFull, StoreUnavailable
from safepoint.domain.events.model import HostMessage
from safepoint.domain.events.session import ClearedBy, EffectCleared
from safepoint.domain.events.tool import (
    Effect,
    Observation,
    RecoveryMode,
    Statement,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolRedeliveryStarted,
    ToolResponded,
)
from safepoint.domain.identifiers import OperationId
from safepoint.domain.operation.state import operation_by_id
from safepoint.domain.reasons import ParkReason, RecoveryReason
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.tool_results import RESULT_BYTES_MAX, PreparedResult
from safepoint.ports.incarnations import Liveness
from safepoint.ports.lifecycle_sink import LifecycleKind
from safepoint.ports.provider_failures import ProviderFailed
from safepoint.ports.reconciler import AskedOperation, Observed, Reconciler
from safepoint.ports.tool_catalog import ToolContext

from ..changing import change_all
from .counted_tools import Counted
from .wiring import SESSION, WORKSPACE, Process, World, beside, check_sound, go, until

ACT = calls(("act", {"n": 1}))
IDEMPOTENT: dict[str, Any] = {"recovery": "idempotent", "key_valid_seconds": 60}


class Looking(Reconciler):
    """Sees what it is told to see."""

    reconciler_id = "test.looking"
    version = 3

    def __init__(self, seen: Observed, *contract_ids: str) -> None:
        self.seen = seen
        self.asked: list[AskedOperation] = []
        self.tidied: list[OperationId] = []
        self._contract_ids = contract_ids or ("act",)

    @property
    def contract_ids(self) -> Collection[str]:
        return self._contract_ids

    def observe(self, asked: AskedOperation) -> Observed:
        self.asked.append(asked)
        return self.seen

    def tidy(self, asked: AskedOperation) -> None:
        self.tidied.append(asked.operation_id)


DONE = PreparedResult({"path": "a.txt"}, is_error=False, effect=Effect.DONE)


def left_unsettled(world: World, tool: Any, clock: ManualClock | None = None) -> OperationId:
    """A process that died after its tool ran and before the outcome was committed."""
    dead = Process(world, clock=clock)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([ACT]), [tool]))
    dead.die()
    (dispatch,) = dead.dispatches(dead.head())
    return dispatch.operation_id


def became(process: Process, tools: Any = (), **given: Any) -> Completed | NowParked | LeftAlone:
    """What became of the only operation."""
    (one,) = go(lambda: process.reconcile(tools, **given)).operations
    return one.became


def bundles(process: Process) -> int:
    return len(process.of(process.head(), ToolRecoveryDecided))


# A reader runs again


def test_a_reader_is_run_again_and_its_fresh_result_is_the_outcome() -> None:
    world, act = World(), Counted(recovery="replay_safe")
    operation_id = left_unsettled(world, act.function)
    process = Process(world)
    result = go(lambda: process.reconcile([act.function]))
    assert [one.operation_id for one in result.operations] == [operation_id]
    assert result.operations[0].became == Completed(Observation.EFFECT_FREE, is_error=False)
    assert act.calls == [1, 1]
    run_id = process.head()
    (response,) = process.responses(run_id)
    assert (response.result, response.effect) == ("acted 1", Effect.NONE)
    assert process.of(run_id, ToolRedeliveryStarted) == []
    (verdict,) = process.verdicts(run_id)
    assert verdict.status is VerdictStatus.COMPLETED
    assert process.owner() is None
    check_sound(process, run_id)
    told = [event for event in process.sink.events if event.kind is LifecycleKind.OPERATION_RECONCILED]
    assert [(event.operation_id, event.codes) for event in told] == [(operation_id, ("effect_free",))]


def test_after_that_there_is_nothing_to_reconcile_and_the_run_goes_on() -> None:
    world, act = World(), Counted(recovery="replay_safe")
    left_unsettled(world, act.function)
    process = Process(world)
    go(lambda: process.reconcile([act.function]))
    before = process.stored_bytes(process.head())
    assert go(lambda: process.reconcile([act.function])).operations == ()
    assert process.stored_bytes(process.head()) == before
    assert act.calls == [1, 1]
    assert isinstance(go(lambda: process.resume([says("done")], [act.function])), Continued)


def test_an_error_of_a_reader_is_a_known_result() -> None:
    world, act = World(), Counted(recovery="replay_safe")
    left_unsettled(world, act.function)

    def broken(n: int) -> str:
        """Act."""
        raise FileNotFoundError("gone")

    failing = tool(recovery="replay_safe", name="act")(broken)
    process = Process(world)
    assert became(process, [failing]) == Completed(Observation.EFFECT_FREE, is_error=True)
    (response,) = process.responses(process.head())
    assert (response.is_error, response.effect) == (True, Effect.NONE)


@pytest.mark.parametrize(
    "other",
    [
        (),
        (Counted().function,),
        (Counted(recovery="replay_safe", version=2).function,),
        (Counted(recovery="replay_safe", contract_id="other").function,),
    ],
)
def test_a_tool_that_is_gone_or_promises_something_else_is_not_run(other: Any) -> None:
    world, act = World(), Counted(recovery="replay_safe")
    left_unsettled(world, act.function)
    process = Process(world)
    left = became(process, other)
    assert isinstance(left, LeftAlone)
    assert left.why is Left.TOOL_CHANGED
    assert act.calls == [1]
    assert bundles(process) == 0


# An idempotent call is delivered again with its recorded key


def keyed(keys: list[str], *answers: object) -> Any:
    """An idempotent tool that notes the key of each delivery."""
    left = list(answers)

    def act(context: ToolContext, n: int) -> object:
        """Act."""
        keys.append(context.idempotency_key)
        answer = left.pop(0) if left else "acted"
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return tool(**IDEMPOTENT)(act)


def test_what_a_tool_is_told_of_its_call_is_its_own_at_each_delivery() -> None:
    """It changes the evidence that it finds again: what T1 recorded of it stays what it is."""
    world = World()
    found: list[Any] = []

    @tool(**IDEMPOTENT, evidence=lambda arguments, workspace: {"found": []})
    def act(context: ToolContext, n: int) -> str:
        """Act."""
        change_all(context.evidence)
        (dispatch,) = here.ledger.run(here.head()).dispatches.values()
        found.append(dispatch.evidence)
        return "acted"

    here = Process(world)
    here.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: here.turn("go", PlannedModel([ACT]), [act]))
    here.die()
    here = Process(world)
    assert isinstance(became(here, [act]), Completed)
    assert found == [{"found": []}] * 2


def test_an_idempotent_call_is_delivered_again_with_the_recorded_key_and_recorded_before() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys)
    operation_id = left_unsettled(world, act)
    process = Process(world)
    assert became(process, [act]) == Completed(Observation.REDELIVERED, is_error=False)
    run_id = process.head()
    (dispatch,) = process.dispatches(run_id)
    assert keys == [dispatch.idempotency_key] * 2
    (started,) = process.of(run_id, ToolRedeliveryStarted)
    assert (started.operation_id, started.idempotency_key) == (operation_id, dispatch.idempotency_key)
    assert started.incarnation_id == process.ownership.incarnation.incarnation_id
    topics = process.topics(run_id)
    assert topics[topics.index("run.ended") + 1 :] == [
        "tool.redelivery_started",
        "tool.reconciled",
        "tool.responded",
        "tool.recovery_decided",
    ]
    check_sound(process, run_id)


@pytest.mark.parametrize("error", [ConnectionError("reset"), TimeoutError("slow")])
def test_a_second_delivery_that_does_not_know_settles_nothing_and_a_third_may(error: Exception) -> None:
    world, keys = World(), list[str]()
    act = keyed(keys, "acted", error, "acted")
    left_unsettled(world, act)
    process = Process(world)
    left = became(process, [act])
    assert isinstance(left, LeftAlone)
    assert left.why is Left.NOT_DELIVERED
    assert bundles(process) == 0
    assert process.owner() is None
    assert became(process, [act]) == Completed(Observation.REDELIVERED, is_error=False)
    assert len(set(keys)) == 1
    assert len(keys) == 3
    check_sound(process, process.head())


def test_a_second_delivery_that_was_refused_before_it_did_anything_says_nothing_of_the_first() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys, "acted", RefusedWithoutEffect("no network"))
    left_unsettled(world, act)
    process = Process(world)
    left = became(process, [act])
    assert isinstance(left, LeftAlone)
    assert left.why is Left.NOT_DELIVERED
    assert "no network" in left.detail
    assert process.responses(process.head()) == []


@pytest.mark.parametrize("seconds", [61, -0.5, -86_400], ids=["expired", "set back a little", "set back a day"])
def test_once_the_key_is_not_known_to_be_valid_it_is_parked_and_delivered_no_more(seconds: float) -> None:
    world, keys, clock = World(), list[str](), ManualClock()
    act = keyed(keys)
    left_unsettled(world, act, clock)
    clock.jump_wall(seconds)
    process = Process(world, clock=clock)
    parked = became(process, [act])
    assert isinstance(parked, NowParked)
    assert parked.reason is RecoveryReason.IDEMPOTENCY_KEY_EXPIRED
    assert len(keys) == 1
    assert process.of(process.head(), ToolRedeliveryStarted) == []
    assert became(process, [act]) == LeftAlone(Left.PARKED, "idempotency_key_expired")
    assert bundles(process) == 1
    check_sound(process, process.head())


def test_a_redelivery_that_dies_is_indeterminate_again_and_over_when_both_lives_are() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys)
    operation_id = left_unsettled(world, act)
    second = Process(world)
    second.events_store.fail_at(ToolReconciled.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: second.reconcile([act]))
    third = Process(world)
    with pytest.raises(SessionBusy):
        go(lambda: third.reconcile([act]))
    assert third.not_over(third.head()) == (operation_id,)
    assert len(keys) == 2
    second.die()
    assert became(third, [act]) == Completed(Observation.REDELIVERED, is_error=False)
    assert len(set(keys)) == 1
    assert len(third.of(third.head(), ToolRedeliveryStarted)) == 2
    check_sound(third, third.head())


def test_a_redelivery_that_could_not_be_recorded_as_started_is_not_delivered() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys)
    left_unsettled(world, act)
    process = Process(world)
    process.events_store.fail_at(ToolRedeliveryStarted.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: process.reconcile([act]))
    assert len(keys) == 1


def test_a_bundle_whose_commit_is_in_doubt_is_found_by_the_second_run() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys)
    left_unsettled(world, act)
    process = Process(world)
    process.events_store.fail_at(ToolReconciled.topic, Failure.COMMIT_STORED)
    with pytest.raises(StoreUnavailable):
        go(lambda: process.reconcile([act]))
    assert go(lambda: process.reconcile([act])).operations == ()
    assert len(keys) == 2
    assert bundles(process) == 1


# Evidence is compared


def test_what_a_killed_reconcile_did_not_commit_is_tidied_again() -> None:
    world, act = World(), Counted(recovery="reconcile")
    operation_id = left_unsettled(world, act.function)
    looking = Looking(Observed(Observation.DIVERGED))
    process = Process(world, reconcilers=[looking])
    process.events_store.fail_at(ToolReconciled.topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreUnavailable):
        go(lambda: process.reconcile([act.function]))
    assert (looking.tidied, bundles(process)) == ([operation_id], 0)
    assert isinstance(became(process), NowParked)
    assert (looking.tidied, bundles(process)) == ([operation_id] * 2, 1)


@pytest.mark.parametrize("observation", [Observation.MATCHES_EXPECTED_STATE, Observation.ALREADY_SATISFIED])
def test_what_matches_is_tidied_and_finalized_and_the_tool_is_not_run(observation: Observation) -> None:
    world, act = World(), Counted(recovery="reconcile")
    operation_id = left_unsettled(world, act.function)
    looking = Looking(Observed(observation, DONE, "ab" * 32, "a.txt"))
    process = Process(world, reconcilers=[looking])
    assert became(process, [act.function]) == Completed(observation, is_error=False, detail="a.txt")
    assert act.calls == [1]
    assert looking.tidied == [operation_id]
    run_id = process.head()
    (seen,) = process.of(run_id, ToolReconciled)
    assert (seen.reconciler_id, seen.reconciler_version, seen.evidence_digest) == ("test.looking", 3, "ab" * 32)
    (response,) = process.responses(run_id)
    assert (response.result, response.effect) == ({"path": "a.txt"}, Effect.DONE)
    (asked,) = looking.asked
    assert (asked.operation_id, asked.call.args) == (operation_id, {"n": 1})
    assert asked.workspace == Path(WORKSPACE)
    assert asked.workspace_identity is not None
    check_sound(process, run_id)


def test_what_a_reconciler_is_asked_and_answers_is_its_own() -> None:
    """It changes what it was given, and before the commit what it gave."""
    world, act = World(), Counted(recovery="reconcile")
    operation_id = left_unsettled(world, act.function)
    answer: Any = {"path": ["a.txt"]}
    kept: list[Any] = []

    class Changing(Looking):
        def observe(self, asked: AskedOperation) -> Observed:
            assert change_all(asked) > 1
            known = operation_by_id(process.ledger.run(process.head()), operation_id)
            if known is not None and known.called is not None and known.dispatch is not None:
                kept.append((known.called.args, known.dispatch.contract.parameters))
            return super().observe(asked)

        def tidy(self, asked: AskedOperation) -> None:
            change_all(answer)

    found = Observed(Observation.MATCHES_EXPECTED_STATE, PreparedResult(answer, is_error=False, effect=Effect.DONE))
    process = Process(world, reconcilers=[Changing(found)])
    assert isinstance(became(process), Completed)
    assert kept == [({"n": 1}, {})]
    (response,) = process.responses(process.head())
    assert response.result == {"path": ["a.txt"]}


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (Observation.MATCHES_PRIOR_STATE, RecoveryReason.RECONCILE_MATCHES_PRIOR_STATE),
        (Observation.DIVERGED, RecoveryReason.RECONCILE_DIVERGED),
        (Observation.UNREADABLE, RecoveryReason.RECONCILE_UNREADABLE),
    ],
)
def test_what_does_not_match_is_parked_with_its_reason(observation: Observation, reason: RecoveryReason) -> None:
    world, act = World(), Counted(recovery="reconcile")
    operation_id = left_unsettled(world, act.function)
    looking = Looking(Observed(observation, detail="a.txt"))
    process = Process(world, reconcilers=[looking])
    assert became(process) == NowParked(observation, reason, "a.txt")
    assert looking.tidied == [operation_id], "nobody comes back to what is parked"
    assert process.responses(process.head()) == []
    (verdict,) = process.verdicts(process.head())
    assert (verdict.status, verdict.reason) == (VerdictStatus.PARKED, reason)
    check_sound(process, process.head())
    # Only a person can say more.
    assert became(process, [act.function]) == LeftAlone(Left.PARKED, reason.value)
    process.settle(SaidBy(operation_id, Statement.COMPLETED, "ada", "looked", "ok"))
    (verdict,) = process.verdicts(process.head())
    assert verdict.status is VerdictStatus.COMPLETED


@pytest.mark.parametrize(
    "wrong",
    [
        Observed(Observation.MATCHES_EXPECTED_STATE),
        Observed(Observation.DIVERGED, DONE),
        Observed(Observation.REDELIVERED, DONE),
        Observed(Observation.LATE_OUTCOME, DONE),
        Observed(Observation.HANDLE_SETTLED, DONE),
        Observed(Observation.MATCHES_EXPECTED_STATE, PreparedResult("no", is_error=True, effect=Effect.DONE)),
    ],
)
def test_a_reconciler_that_answers_what_settles_nothing_is_not_believed(wrong: Observed) -> None:
    world, act = World(), Counted(recovery="reconcile")
    left_unsettled(world, act.function)
    process = Process(world, reconcilers=[Looking(wrong)])
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert left.why is Left.RECONCILER_FAILED
    assert bundles(process) == 0


def test_a_reconciler_that_raises_could_not_look() -> None:
    class Broken(Looking):
        def observe(self, asked: AskedOperation) -> Observed:
            raise RuntimeError("bug")

    world, act = World(), Counted(recovery="reconcile")
    left_unsettled(world, act.function)
    process = Process(world, reconcilers=[Broken(Observed(Observation.DIVERGED))])
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert (left.why, "RuntimeError" in left.detail) == (Left.RECONCILER_FAILED, True)
    assert bundles(process) == 0


def unprepared(**changed: Any) -> Observed:
    return Observed(Observation.MATCHES_EXPECTED_STATE, replace(DONE, **changed))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "matches_expected_state",
        SystemExit(3),
        KeyboardInterrupt(),
        Observed("diverged"),  # type: ignore[arg-type]
        Observed(Observation.DIVERGED, evidence_digest="short"),
        Observed(Observation.DIVERGED, detail=7),  # type: ignore[arg-type]
        Observed(Observation.HANDLE_RUNNING, ends_never="no"),  # type: ignore[arg-type]
        Observed(Observation.MATCHES_EXPECTED_STATE, {"path": "a.txt"}),  # type: ignore[arg-type]
        unprepared(result={1, 2}),
        unprepared(result="\ud800"),
        unprepared(result="x" * (RESULT_BYTES_MAX + 1)),
        unprepared(effect="done"),
        unprepared(code="odd"),
    ],
    ids=lambda answer: repr(answer)[:60],
)
def test_whatever_a_reconciler_of_others_answers_nothing_breaks_and_nothing_is_settled(answer: Any) -> None:
    class Odd(Looking):
        def observe(self, asked: AskedOperation) -> Observed:
            if isinstance(answer, BaseException):
                raise answer
            seen: Observed = answer
            return seen

        def tidy(self, asked: AskedOperation) -> None:
            raise SystemExit(4)

    world, act = World(), Counted(recovery="reconcile")
    left_unsettled(world, act.function)
    process = Process(world, reconcilers=[Odd(Observed(Observation.DIVERGED))])
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert left.why is Left.RECONCILER_FAILED
    assert "test.looking" in left.detail
    assert bundles(process) == 0


def test_one_that_exits_while_it_tidies_up_changes_nothing_of_what_was_seen() -> None:
    class Exiting(Looking):
        def tidy(self, asked: AskedOperation) -> None:
            raise SystemExit(4)

    world, act = World(), Counted(recovery="reconcile")
    left_unsettled(world, act.function)
    seen = Observed(Observation.MATCHES_EXPECTED_STATE, DONE)
    assert became(Process(world, reconcilers=[Exiting(seen)])) == Completed(seen.observation, is_error=False)


class Hanging(Looking):
    """Looks for as long as the test wants, and sees it then; of a call with n = 2 it sees it at once."""

    def __init__(self, seen: Observed, *contract_ids: str) -> None:
        super().__init__(seen, *contract_ids)
        self.answer, self.answered = threading.Event(), threading.Event()

    def observe(self, asked: AskedOperation) -> Observed:
        self.asked.append(asked)
        if asked.call.args != {"n": 2}:
            self.answer.wait(30)
            self.answered.set()
        return self.seen


MATCHES = Observed(Observation.MATCHES_EXPECTED_STATE, DONE, "0" * 64)


def two_left(world: World) -> None:
    """A process that died over two calls of one step."""
    dead = Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    two = calls(("act", {"n": 1}), ("act", {"n": 2}))
    act = Counted(recovery="reconcile", resource_key=lambda arguments: str(arguments["n"]))
    with pytest.raises((StoreFull, ExceptionGroup)):
        go(lambda: dead.turn("go", PlannedModel([two]), [act.function]))
    dead.die()
    assert len(dead.dispatches(dead.head())) == 2


def test_a_reconciler_that_does_not_answer_is_left_the_others_are_looked_at_and_nothing_is_written_later() -> None:
    world, hanging = World(), Hanging(MATCHES)
    two_left(world)
    process = Process(world, reconcilers=[hanging], observe_seconds_max=0.05)

    async def main() -> list[Completed | NowParked | LeftAlone]:
        became = [one.became for one in (await process.reconcile()).operations]
        before = process.stored_bytes(process.head())
        hanging.answer.set()
        await until(hanging.answered.is_set)
        await anyio.sleep(0.02)
        assert process.stored_bytes(process.head()) == before
        return became

    left, completed = go(main)
    assert isinstance(left, LeftAlone)
    assert (left.why, left.detail) == (Left.RECONCILER_TIMED_OUT, "test.looking did not answer within 0.05 s")
    assert isinstance(completed, Completed)
    assert process.owner() is None
    (one,) = go(process.reconcile).operations
    assert isinstance(one.became, Completed), "asked again, it may answer in time"


def test_who_stops_while_a_reconciler_looks_is_not_kept_waiting_by_it() -> None:
    world, hanging, stopping = World(), Hanging(MATCHES), Stopping()
    left_unsettled(world, Counted(recovery="reconcile").function)
    process = Process(world, reconcilers=[hanging])

    async def stop() -> None:
        await until(lambda: hanging.asked)
        assert stopping.ask("ada")
        stopping.request()

    result = go(lambda: beside(stop, process.reconcile(stopping=stopping)))
    hanging.answer.set()
    (one,) = result.operations
    assert one.became == LeftAlone(Left.STOPPED)
    assert bundles(process) == 0


def test_one_that_tidies_up_for_ever_keeps_nobody_from_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking_up, "TIDY_SECONDS_MAX", 0.05)
    world, done = World(), threading.Event()

    class Tidying(Looking):
        def tidy(self, asked: AskedOperation) -> None:
            done.wait(30)

    left_unsettled(world, Counted(recovery="reconcile").function)
    process = Process(world, reconcilers=[Tidying(MATCHES)])
    assert isinstance(became(process), Completed)
    done.set()


def test_a_contract_that_nobody_knows_stays_indeterminate() -> None:
    world, act = World(), Counted(recovery="reconcile")
    left_unsettled(world, act.function)
    process = Process(world, reconcilers=[Looking(Observed(Observation.DIVERGED), "other")])
    left = became(process)
    assert isinstance(left, LeftAlone)
    assert left.why is Left.NO_RECONCILER
    assert bundles(process) == 0


def test_of_two_reconcilers_for_one_contract_none_is_chosen_by_chance() -> None:
    seen = Observed(Observation.DIVERGED)
    with pytest.raises(ValueError, match="contract act would be looked up by two"):
        Process(reconcilers=[Looking(seen), Looking(seen)])


# Nothing was promised


@pytest.mark.parametrize("mode", [RecoveryMode.OUTCOME_UNKNOWN, RecoveryMode.NEVER_AUTO_RETRY])
def test_without_a_promise_it_is_parked_for_a_person(mode: RecoveryMode) -> None:
    world, act = World(), Counted(recovery=mode)
    left_unsettled(world, act.function)
    process = Process(world)
    parked = became(process, [act.function])
    assert parked == NowParked(Observation.UNREADABLE, RecoveryReason.CONTRACT_FORBIDS_RECOVERY)
    assert act.calls == [1]
    check_sound(process, process.head())


# What is not looked at


@pytest.mark.parametrize(
    ("liveness", "why"),
    [(Liveness.ALIVE, Left.MAY_BE_RUNNING), (Liveness.COULD_NOT_LOOK, Left.COULD_NOT_LOOK)],
)
def test_what_may_still_run_is_left_exactly_as_it_is(liveness: Liveness, why: Left) -> None:
    world, keys = World(), list[str]()
    act = keyed(keys)
    dead = Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([ACT]), [act]))
    dead.die()
    run_id = dead.head()
    other = Process(world)
    go(lambda: other.turn("go on", PlannedModel([says("ok")])))
    other.incarnations.tell(dead.ownership.incarnation, liveness)
    before = other.stored_bytes(run_id)
    left = became(other, [act])
    assert isinstance(left, LeftAlone)
    assert left.why is why
    assert other.stored_bytes(run_id) == before
    assert len(keys) == 1
    assert other.owner() is None


def test_a_session_with_a_living_owner_is_busy() -> None:
    world, act = World(), Counted(recovery="replay_safe")
    dead = Process(world)
    dead.events_store.fail_at(ToolResponded.topic, Failure.FULL)
    with pytest.raises(StoreFull):
        go(lambda: dead.turn("go", PlannedModel([ACT]), [act.function]))
    with pytest.raises(SessionBusy):
        go(lambda: Process(world).reconcile([act.function]))
    assert act.calls == [1]


def test_who_asked_to_stop_before_it_began_leaves_it_as_it_is() -> None:
    world, act = World(), Counted(recovery="replay_safe")
    left_unsettled(world, act.function)
    process, stopping = Process(world), Stopping()
    stopping.ask("ada")

    async def stopped() -> tuple[OperationReconciled, ...]:
        stopping.request()
        return (await process.reconcile([act.function], stopping=stopping)).operations

    (one,) = go(stopped)
    assert one.became == LeftAlone(Left.STOPPED)
    assert act.calls == [1]


@pytest.mark.parametrize("mode", ["replay_safe", "idempotent", "reconcile"])
def test_in_another_workspace_nothing_is_run_and_nothing_is_compared(mode: str) -> None:
    world = World()
    act = Counted(**({"recovery": mode} if mode != "idempotent" else IDEMPOTENT))
    left_unsettled(world, act.function)
    world.workspaces.make_folder("/other")
    world.workspaces.ensure("/other")
    looking = Looking(Observed(Observation.DIVERGED))
    process = Process(world, reconcilers=[looking])
    for folder, why in ((Path("/other"), Left.OTHER_WORKSPACE), (Path("/gone"), Left.WORKSPACE_UNSEEN)):
        left = became(process, [act.function], folder=folder)
        assert isinstance(left, LeftAlone)
        assert left.why is why
    assert act.calls == [1]
    assert looking.asked == []
    assert bundles(process) == 0


@pytest.mark.parametrize("mode", ["replay_safe", "idempotent", "reconcile"])
def test_a_copy_beside_the_folder_that_the_run_worked_in_settles_nothing(mode: str) -> None:
    world = World()
    act = Counted(**({"recovery": mode} if mode != "idempotent" else IDEMPOTENT))
    left_unsettled(world, act.function)
    world.workspaces.copy_folder(WORKSPACE, "/copy")
    looking = Looking(Observed(Observation.DIVERGED))
    process = Process(world, reconcilers=[looking])
    left = became(process, [act.function], folder=Path("/copy"))
    assert isinstance(left, LeftAlone)
    assert left.why is Left.COPY_AMBIGUOUS
    assert WORKSPACE in left.detail
    assert (act.calls, looking.asked, bundles(process)) == ([1], [], 0)


@pytest.mark.parametrize("said", ["adopt", "renew"])
def test_once_a_person_has_said_which_is_the_workspace_it_is_looked_at_there(said: str) -> None:
    world, act = World(), Counted(recovery="reconcile")
    left_unsettled(world, act.function)
    world.workspaces.copy_folder(WORKSPACE, "/copy")
    looking = Looking(Observed(Observation.DIVERGED))
    process = Process(world, reconcilers=[looking])
    views = process.world.store.views
    about = (process.events_store, views, process.ledger, process.ownership, process.repair, world.workspaces)
    settle = SettleWorkspace(*about, process.spines)
    folder = {"adopt": "/copy", "renew": WORKSPACE}[said]
    settled = getattr(settle, said)(folder, by="Ada")
    assert isinstance(became(process, [act.function]), NowParked)
    (asked,) = looking.asked
    assert (asked.workspace, asked.workspace_identity) == (Path(folder), settled.seen.identity)


# A session that has gone on


def test_a_later_turn_is_told_once_what_became_of_a_call_that_it_was_shown_as_unknown() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys, "acted", {"receipt": 7})
    operation_id = left_unsettled(world, act)
    process = Process(world)
    first = process.head()
    go(lambda: process.turn("go on", PlannedModel([says("ok")]), [act]))
    (one,) = go(lambda: process.reconcile([act])).operations
    assert (one.operation_id, one.run_id) == (operation_id, first)
    assert one.became == Completed(Observation.REDELIVERED, is_error=False)
    assert list(process.world.store.views.unsettled(SESSION)) == []
    told = go(lambda: process.turn("and?", PlannedModel([says("ok")]), [act]))
    (message,) = process.of(told.run_id, HostMessage)
    assert 'has since been settled: it was done, with this result: {"receipt":7}' in message.text
    cleared = [event for event in process.session_events() if isinstance(event, EffectCleared)]
    assert [(event.operation_id, event.by) for event in cleared] == [(operation_id, ClearedBy.TURN_ENDED)]
    later = go(lambda: process.turn("and now?", PlannedModel([says("ok")]), [act]))
    assert process.of(later.run_id, HostMessage) == []
    check_sound(process, first)


def test_a_call_whose_repeat_took_its_place_is_not_delivered_again() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys)
    operation_id = left_unsettled(world, act)
    process = Process(world)
    go(lambda: process.turn("again", PlannedModel([ACT, says("ok")]), [act]))
    assert len(keys) == 2
    assert go(lambda: process.reconcile([act])).operations == ()
    left = became(process, [act], operation_id=operation_id)
    assert left == LeftAlone(Left.REPEATED)
    assert len(keys) == 2


def test_an_operation_of_another_session_or_of_none_is_not_the_sessions() -> None:
    world, act = World(), Counted(recovery="replay_safe")
    left_unsettled(world, act.function)
    process = Process(world)
    assert go(lambda: process.reconcile_session(SESSION, _hands(), OperationId("nowhere"))) is None


def _hands() -> Hands:
    return Hands(FunctionCatalog([]))


# As a step of a resume


def test_a_resume_that_may_reconcile_goes_on_where_one_that_may_not_parks() -> None:
    world, keys = World(), list[str]()
    act = keyed(keys)
    operation_id = left_unsettled(world, act)
    process = Process(world)
    parked = go(lambda: process.resume([says("done")], [act]))
    assert isinstance(parked, Parked)
    assert parked.codes == (ParkReason.DANGLING_TOOL_STATE,)
    assert len(keys) == 1
    done = go(lambda: process.resume([says("done")], [act], reconcile=True))
    assert isinstance(done, Continued)
    assert [(one.operation_id, one.became) for one in done.reconciled] == [
        (operation_id, Completed(Observation.REDELIVERED, is_error=False))
    ]
    assert len(keys) == 2
    check_sound(process, done.source_run_id)
    check_sound(process, done.run_id)


def test_what_a_resume_parks_while_it_reconciles_parks_the_run() -> None:
    world, act = World(), Counted()
    left_unsettled(world, act.function)
    process = Process(world)
    parked = go(lambda: process.resume([says("done")], [act.function], reconcile=True))
    assert isinstance(parked, Parked)
    assert ParkReason.TOOL_RECOVERY_PARKED in parked.codes
    assert [type(one.became) for one in parked.reconciled] == [NowParked]
    assert act.calls == [1]


def test_a_resume_that_may_reconcile_a_run_that_nobody_has_repaired_yet_does_all_in_one() -> None:
    world, act = World(), Counted(recovery="replay_safe")
    left_unsettled(world, act.function)
    process = Process(world)
    done = go(lambda: process.resume([says("done")], [act.function], reconcile=True))
    assert isinstance(done, Continued)
    assert act.calls == [1, 1]
    assert process.owner() is None


def test_a_resume_with_nothing_to_reconcile_is_a_resume() -> None:
    world, act = World(), Counted()
    dead = Process(world)
    go(lambda: dead.turn("go", PlannedModel([ProviderFailed("down")]), [act.function]))
    process = Process(world)
    done = go(lambda: process.resume([says("done")], [act.function], reconcile=True))
    assert isinstance(done, Continued)
    assert done.reconciled == ()
