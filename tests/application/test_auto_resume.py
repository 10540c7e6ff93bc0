"""Auto-resume: when it is enabled, once for each interruption, and never past a person. SPEC section 17 and F11."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio import to_thread

from safepoint.adapters.memory.model_provider import PlannedModel, Stall, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application import auto_resume
from safepoint.application.auto_resume import AutoResume, Interrupted
from safepoint.application.host import Host
from safepoint.application.host_phases import Phase
from safepoint.application.plan_resume import PlanRequest
from safepoint.application.resume_run import Continued, Parked
from safepoint.domain.commands import Append, OpenRun
from safepoint.domain.errors import StoreFull, StoreUnavailable
from safepoint.domain.events.model import ModelStepCompleted
from safepoint.domain.events.run import CancelRequested, RunClaimed, RunEnded, RunOpened, Trigger
from safepoint.domain.events.session import RunAdmitted, RunKind, SessionOpened
from safepoint.domain.events.tool import ToolDispatched
from safepoint.domain.identifiers import RunId, SessionId
from safepoint.domain.planning.outcome import Reason
from safepoint.domain.reasons import ParkReason
from safepoint.ports.failpoints import Failpoint
from safepoint.ports.lifecycle_sink import LifecycleKind

from .hosting import STEPS, Hosting, Waits, act, interrupted, killed_resume
from .resuming import Killed, killing
from .wiring import SESSION, Process, World, go, until

OTHER = SessionId("s2")


def hosted(process: Hosting, **how: Any) -> None:
    """Open a host with auto-resume, wait for all that it tries, and close it; the process goes on living."""
    how.setdefault("auto", True)

    async def work() -> None:
        host = process.host(**how)
        async with host:
            await host.recovered()

    go(work)


def became(process: Hosting) -> list[tuple[ParkReason, ...] | str]:
    return [one.codes if isinstance(one, Parked) else one.outcome.text for one in process.became]


def claims(process: Process, run_id: RunId) -> list[Trigger]:
    return [claimed.trigger for claimed in process.of(run_id, RunClaimed)]


# ---- once for each interruption --------------------------------------------------------------------------------------


def test_it_is_off_unless_it_is_enabled() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)
    hosted(process, auto=False)
    assert (process.became, process.models, claims(process, run_id)) == ([], {}, [])
    assert len(process.of(run_id, RunEnded)) == 1


def test_what_a_crash_interrupted_goes_on_by_itself_when_repair_is_complete() -> None:
    world = World()
    first, second = interrupted(world), interrupted(world, OTHER)
    process = Hosting(world)
    phases: list[Phase] = []
    host: Host

    def agent_for(one: Interrupted) -> Any:
        phases.append(host.phase)
        assert all(process.of(run, RunEnded) for run in (first, second))
        return process.agent_for(one)

    async def work() -> None:
        nonlocal host
        host = process.host(auto=True, agent_for=agent_for)
        async with host:
            await host.recovered()

    go(work)
    assert (became(process), phases) == (["done", "done"], [Phase.READY] * 2)
    for run_id in (first, second):
        assert claims(process, run_id) == [Trigger.AUTO]
    assert [event.tool_name for event in process.dispatches(first)] == ["act"]
    assert process.dispatches(process.head()) == []
    assert process.projections_agree()


@pytest.mark.parametrize(
    "at", [Failpoint.CLAIM_COMMITTED, Failpoint.START_COMMITTED, Failpoint.FIRST_STEP], ids=lambda point: point.name
)
def test_r3_129_what_it_continued_itself_is_left_to_a_person_when_it_is_interrupted_again(at: Failpoint) -> None:
    """A crash loop costs one automatic try; a claim that repair had to close counts as one."""
    world = World()
    interrupted(world)
    target = killed_resume(world, at, request=PlanRequest(trigger=Trigger.AUTO))
    for _ in range(2):
        process = Hosting(world)
        hosted(process)
        assert process.head() == target
        process.die()
    first_after = Hosting(world)
    assert first_after.of(target, RunEnded)[0].recovered
    assert claims(first_after, target) == []
    result = go(lambda: first_after.resume([says("by a person")], [act]))
    assert isinstance(result, Continued)
    assert claims(first_after, target) == [Trigger.PERSON]


def test_the_reason_is_that_it_is_spent() -> None:
    world = World()
    interrupted(world)
    killed_resume(world, Failpoint.FIRST_STEP, request=PlanRequest(trigger=Trigger.AUTO))
    process = Hosting(world)
    hosted(process)
    assert became(process) == [(ParkReason.AUTO_RESUME_SPENT,)]


@pytest.mark.parametrize("at", [Failpoint.CLAIM_COMMITTED, Failpoint.FIRST_STEP], ids=lambda point: point.name)
def test_what_a_person_continued_is_continued_by_itself_once(at: Failpoint) -> None:
    world = World()
    source = interrupted(world)
    target = killed_resume(world, at)
    process = Hosting(world)
    hosted(process)
    assert became(process) == ["done"]
    assert (claims(process, source), claims(process, target)) == ([Trigger.PERSON], [Trigger.AUTO])


def test_only_what_this_start_repaired_is_tried() -> None:
    """A session that was left yesterday is not woken because somebody switches it on today."""
    world = World()
    run_id = interrupted(world)
    for auto in (False, True):
        process = Hosting(world)
        hosted(process, auto=auto)
        process.die()
    assert (process.became, claims(process, run_id)) == ([], [])


# ---- where a host dies between its repair and its try ----------------------------------------------------------------


class Died(BaseException):
    """Stands for SIGKILL."""


def dies_at_the_try(world: World) -> Hosting:
    """A host that repairs, and is killed before it has begun to try."""
    process = Hosting(world)

    def agent_for(one: Interrupted) -> Any:
        process.die()
        raise Died

    process.ownership.give_up_unused = lambda session_id: None  # type: ignore[method-assign] # the dead do nothing
    with pytest.raises(BaseExceptionGroup):
        hosted(process, agent_for=agent_for)
    return process


def test_a_try_that_was_not_begun_is_made_by_a_later_start_however_many_died_before_it() -> None:
    world = World()
    run_id = interrupted(world)
    for _ in range(3):
        dead = dies_at_the_try(world)
        assert len(dead.of(run_id, RunEnded)) == 1
        assert claims(dead, run_id) == []
    process = Hosting(world)
    hosted(process)
    assert (became(process), claims(process, run_id)) == (["done"], [Trigger.AUTO])
    assert process.owner() is None
    process.die()
    again = Hosting(world)
    hosted(again)
    assert (again.became, len(again.events(run_id))) == ([], len(process.events(run_id)))


def test_a_try_that_was_begun_is_not_made_again() -> None:
    """Killed while it plans: a plan that kills its process must not do so at each start."""
    world = World()
    run_id = interrupted(world)
    dead = Hosting(world)

    def die(*_: Any, **__: Any) -> None:
        dead.die()
        raise Died

    dead.resume_run._plan = die  # type: ignore[assignment]
    with pytest.raises(BaseExceptionGroup):
        hosted(dead)
    process = Hosting(world)
    hosted(process)
    assert (process.became, process.models, claims(process, run_id)) == ([], {}, [])
    assert isinstance(go(lambda: process.resume([says("by a person")], [act])), Continued)


def test_what_a_closing_host_had_not_begun_is_tried_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_resume, "AT_ONCE_MAX", 1)
    world = World()
    interrupted(world)
    interrupted(world, OTHER)
    first = Hosting(world)

    async def work() -> None:
        model = Waits()  # the other one waits for its place meanwhile
        host = first.host(auto=True, agent_for=lambda one: first.agent(model, [act]))
        async with anyio.create_task_group() as group, host:
            await until(first.live_runs.run_ids)
            group.start_soon(host.aclose)
            await until(lambda: host.phase is Phase.DRAINING)
            model.go_on.set()

    go(work)
    assert became(first) == ["done"]
    first.die()
    second = Hosting(world)
    hosted(second)
    assert became(second) == ["done"]
    assert {one.session_id for one in (*first.became, *second.became)} == {SESSION, OTHER}


def test_what_a_closing_host_was_still_finding_an_agent_for_is_tried_by_the_next() -> None:
    """Cancelled while it waits for a thread, and at its first checkpoint: not having begun is not giving it up."""
    world = World()
    names = [SESSION, OTHER, SessionId("s3")]
    for name in names:
        interrupted(world, name)
    closing = Hosting(world)
    asked: list[SessionId] = []
    go_on = threading.Event()

    def agent_for(one: Interrupted) -> Any:
        asked.append(one.session_id)
        assert go_on.wait(30)
        return closing.agent_for(one)

    async def closed_early() -> None:
        to_thread.current_default_thread_limiter().total_tokens = 1  # a host whose threads are all at work
        async with anyio.create_task_group() as group, closing.host(auto=True, agent_for=agent_for) as host:
            await until(lambda: bool(asked))
            await anyio.wait_all_tasks_blocked()
            group.start_soon(host.aclose)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
            await host.aclose()

    go(closed_early)
    me = closing.ownership.incarnation.incarnation_id
    assert (list(closing.models), {closing.owner(name) for name in names}) == ([SESSION], {me})
    closing.die()
    process = Hosting(world)
    hosted(process)
    assert sorted(process.models) == sorted(names)


def test_what_is_not_tried_is_given_up_at_once_and_not_tried_by_the_next_host() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)
    hosted(process, agent_for=lambda one: None)
    assert process.owner() is None
    process.die()
    again = Hosting(world)
    hosted(again)
    assert (again.became, claims(again, run_id)) == ([], [])


def test_a_try_that_is_not_made_takes_nothing_from_who_has_died_with_the_session_since() -> None:
    """A person's turn had ended it here, and another program was killed in it: whoever comes next repairs it."""
    world = World()
    interrupted(world)
    process, other = Hosting(world), Process(world, at_failpoint=killing(Failpoint.RESULT_DELIVERED))
    asked, answer = threading.Event(), threading.Event()

    def no_agent(_: Interrupted) -> None:
        asked.set()
        assert answer.wait(30)

    async def work() -> None:
        async with process.host(auto=True, agent_for=no_agent) as host:
            await until(asked.is_set)
            await host.run_turn(SESSION, "hello", process.agent([says("hello")]))
            assert process.owner() is None
            with pytest.raises((Killed, BaseExceptionGroup)):
                await other.turn("go", STEPS, [act])
            other.die()
            answer.set()
            await host.recovered()
            assert process.owner() == other.ownership.incarnation.incarnation_id
            assert isinstance(await Process(world).resume([says("done")], [act]), Continued)

    go(work)


@pytest.mark.parametrize("failing", [1, 2])
def test_a_transaction_of_giving_up_that_fails_costs_no_try(monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    world = World()
    interrupted(world)
    left = Process(world)  # it took a session, and was killed before it had begun anything
    left.ownership.keep(left.ownership.own(OTHER))
    left.die()
    process = Hosting(world)
    owners: Any = process.ownership._owners
    release_all, failures = owners.release_all, iter(range(failing))

    def fails_at_first(rows: Any) -> Any:
        if rows and next(failures, None) is not None:
            raise StoreUnavailable("it is locked")
        return release_all(rows)

    monkeypatch.setattr(owners, "release_all", fails_at_first)
    hosted(process)
    assert (became(process), process.owner(), process.owner(OTHER)) == (["done"], None, None)


def test_what_parked_is_given_up_and_not_tried_by_the_next_host() -> None:
    world = World()
    interrupted(world, at=Failpoint.EFFECT_DONE)
    process = Hosting(world)
    hosted(process)
    assert became(process) == [(ParkReason.DANGLING_TOOL_STATE,)]
    assert process.owner() is None
    process.die()
    again = Hosting(world)
    hosted(again)
    assert again.became == []


def test_a_session_is_kept_where_its_continuation_may_have_begun_so_that_the_next_start_repairs_it() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)
    begin = process.resume_run._begin_continuation

    async def begins_unproven(*parts: Any) -> Reason:
        await begin(*parts)
        return Reason(ParkReason.CONTINUATION_STARTED_INDETERMINATE, {})

    process.resume_run._begin_continuation = begins_unproven  # type: ignore[assignment]
    hosted(process)
    assert became(process) == [(ParkReason.CONTINUATION_STARTED_INDETERMINATE,)]
    assert process.owner() is not None
    target = process.head()
    process.die()
    again = Hosting(world)
    hosted(again, auto=False)
    assert (target != run_id, [ended.recovered for ended in again.of(target, RunEnded)]) == (True, [True])


def test_what_waits_is_given_up_where_nobody_can_tell_whether_it_is_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    interrupted(world)
    process = Hosting(world)

    def unreadable(*_: Any) -> Any:
        raise StoreUnavailable("disk I/O error")

    monkeypatch.setattr(AutoResume, "_children", unreadable)
    with pytest.raises(ExceptionGroup):
        hosted(process)
    assert (process.became, process.owner()) == ([], None)


def disk_is_gone(*_: Any, **__: Any) -> Any:
    raise StoreUnavailable("disk I/O error")


@pytest.mark.parametrize("where", ["screen", "epoch", "plan"])
def test_a_try_that_fails_before_it_begins_is_told_and_leaves_its_session_to_a_person(where: str) -> None:
    """The host goes on for weeks: meanwhile others must get at the session."""
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)
    before: list[int] = []
    host = process.host(auto=True, **({"screen_for": disk_is_gone} if where == "screen" else {}))
    if where == "epoch":
        process.ownership.take_anew = disk_is_gone  # type: ignore[method-assign]
    if where == "plan":
        process.resume_run._plan = disk_is_gone  # type: ignore[assignment]

    async def work() -> None:
        async with host:
            before.append(len(process.events(run_id)))
            await host.recovered()
            assert [str(error) for error in host.errors] == ["disk I/O error"]
            assert process.owner() is None
            person = Process(world)
            assert isinstance(await person.resume([says("by a person")], [act]), Continued)

    with pytest.raises(ExceptionGroup):
        go(work)
    failed = [event for event in process.sink.events if event.kind is LifecycleKind.EXECUTION_FAILED]
    assert [(event.session_id, event.run_id, event.error_class) for event in failed] == [
        (SESSION, run_id, "StoreUnavailable")
    ]
    assert (process.became, claims(process, run_id)) == ([], [Trigger.PERSON])
    assert len(process.events(run_id)) == before[0] + 1  # the claim


def failing(at: Failpoint) -> Callable[[str], None]:
    def hit(point: str) -> None:
        if point == at:
            raise RuntimeError(point)

    return hit


def test_a_try_that_fails_while_it_begins_keeps_its_session_where_a_claim_stands() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world, at_failpoint=failing(Failpoint.CLAIM_COMMITTED))
    with pytest.raises(ExceptionGroup):
        hosted(process)
    target = process.head()
    assert (target != run_id, process.events(target), process.owner() is not None) == (True, [], True)
    process.die()
    again = Hosting(world)
    hosted(again, auto=False)
    assert [ended.recovered for ended in again.of(target, RunEnded)] == [True]


def test_leaving_a_session_to_a_person_leaves_it_owned_where_a_turn_of_a_person_was_kept_meanwhile() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)

    async def fails() -> None:
        process.events_store.fail_at(ModelStepCompleted.topic, Failure.FULL)
        with pytest.raises(StoreFull):
            await process.turn("something else", [says("yes")])

    def agent_for(one: Interrupted) -> Any:
        anyio.from_thread.run(fails)

    hosted(process, agent_for=agent_for)
    turn = process.head()
    assert (turn != run_id, process.of(turn, RunEnded)) == (True, [])
    assert process.owner() == process.ownership.incarnation.incarnation_id
    process.die()
    again = Hosting(world)
    hosted(again, auto=False)
    assert [ended.recovered for ended in again.of(turn, RunEnded)] == [True]


def test_what_a_dead_host_had_closed_waits_for_a_person_where_the_next_one_tries_nothing() -> None:
    world = World()
    run_id = interrupted(world)
    dies_at_the_try(world)
    for auto in (False, True):
        process = Hosting(world)
        hosted(process, auto=auto)
        assert (process.became, process.owner(), claims(process, run_id)) == ([], None, [])
        process.die()


def test_a_person_who_was_faster_than_the_next_start_has_it() -> None:
    world = World()
    run_id = interrupted(world)
    dies_at_the_try(world)
    person = Process(world)
    owned = person.ownership.own(SESSION)
    person.repair(owned)
    person.die()
    process = Hosting(world)
    hosted(process)
    assert (process.became, claims(process, run_id)) == ([], [])


# ---- never past a person, nor past a doubt ---------------------------------------------------------------------------


def test_what_a_person_stopped_is_never_continued() -> None:
    world = World()
    run_id = interrupted(world)
    stopping = Process(world)
    owned = stopping.ownership.own(SESSION)
    opening = stopping.ledger.run(run_id).opening
    assert opening is not None
    fact = CancelRequested(**stopping.spines.run(opening.identity), by="Ada")
    stopping.ledger.execute(Append(owned.session_id, owned.incarnation_id, owned.epoch, run_id, (fact,)))
    stopping.die()
    process = Hosting(world)
    hosted(process)
    assert [event.status for event in process.of(run_id, RunEnded)] == ["cancelled"]
    assert (process.became, process.models, claims(process, run_id)) == ([], {}, [])


def test_what_is_in_doubt_parks_as_it_would_for_a_person() -> None:
    world = World()
    run_id = interrupted(world, at=Failpoint.EFFECT_DONE)
    process = Hosting(world)
    hosted(process)
    assert became(process) == [(ParkReason.DANGLING_TOOL_STATE,)]
    assert (process.models[SESSION].asked, claims(process, run_id)) == ([], [])


def test_a_person_who_was_faster_has_it() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)

    def agent_for(one: Interrupted) -> Any:
        anyio.from_thread.run(lambda: process.turn("something else", [says("yes")]))
        return process.agent_for(one)

    hosted(process, agent_for=agent_for)
    (codes,) = became(process)
    assert ParkReason.SOURCE_SUPERSEDED in codes
    assert claims(process, run_id) == []


def test_a_child_run_waits_for_a_person() -> None:
    world = World()
    interrupted(world)
    parent = Process(world)
    run_id = parent.head()
    (dispatched,) = parent.of(run_id, ToolDispatched)
    owned = parent.ownership.own(OTHER)
    identity = parent.spines.identity(OTHER)
    (opened,) = parent.of(run_id, RunOpened)
    child = opened.model_copy(
        update={
            **parent.spines.run(identity),
            "incarnation_id": owned.incarnation_id,
            "epoch": owned.epoch,
            "parent_session_id": SESSION,
            "parent_run_id": run_id,
            "parent_operation_id": dispatched.operation_id,
        }
    )
    message = parent.events(run_id)[1].model_copy(update=dict(parent.spines.run(identity)))
    parent.ledger.execute(
        OpenRun(
            *(owned.session_id, owned.incarnation_id, owned.epoch),
            opened=child,
            message=message,  # type: ignore[arg-type]
            admitted=RunAdmitted(
                **parent.spines.session(OTHER),
                run_id=identity.run_id,
                turn_id=identity.turn_id,
                invocation_id=identity.invocation_id,
                kind=RunKind.CHILD,
            ),
            session_opened=SessionOpened(**parent.spines.session(OTHER)),
        )
    )
    parent.die()
    process = Hosting(world)
    hosted(process)
    assert [event.failure_class for event in process.of(identity.run_id, RunEnded)] == ["app_restarted"]
    assert list(process.models) == [SESSION]


def test_a_host_that_has_no_agent_for_it_leaves_it_to_a_person() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)
    hosted(process, agent_for=lambda one: None)
    assert (process.became, claims(process, run_id)) == ([], [])


# ---- beside one another, and at the end ------------------------------------------------------------------------------


def test_one_that_fails_stops_none_of_the_others() -> None:
    world = World()
    interrupted(world)
    interrupted(world, OTHER)
    process = Hosting(world)

    def agent_for(one: Interrupted) -> Any:
        if one.session_id == SESSION:
            raise RuntimeError
        return process.agent_for(one)

    with pytest.raises(ExceptionGroup):
        hosted(process, agent_for=agent_for)
    assert became(process) == ["done"]


def test_so_many_are_driven_at_once_and_closing_begins_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_resume, "AT_ONCE_MAX", 2)
    world = World()
    for number in range(4):
        interrupted(world, SessionId(f"s{number}"))
    process = Hosting(world)
    models: list[PlannedModel] = []

    def agent_for(one: Interrupted) -> Any:
        models.append(PlannedModel([Stall()]))
        return process.agent(models[-1], [act])

    async def work() -> None:
        host = process.host(auto=True, agent_for=agent_for, drain_seconds=0.0)
        async with host:
            await until(lambda: sum(len(model.asked) for model in models) == 2)
            await anyio.sleep(0.05)
        assert host.errors == []

    go(work)
    assert (len(models), process.became, process.order) == (2, [], ["open", "close"])


def test_closing_waits_for_what_goes_on_by_itself() -> None:
    world = World()
    interrupted(world)
    process = Hosting(world)

    async def work() -> None:
        model = Waits()
        host = process.host(auto=True, agent_for=lambda one: process.agent(model, [act]))
        async with anyio.create_task_group() as group, host:
            await until(process.live_runs.run_ids)
            group.start_soon(host.aclose)
            await until(lambda: host.phase is Phase.DRAINING)
            model.go_on.set()

    go(work)
    assert became(process) == ["done"]
