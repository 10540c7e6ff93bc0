"""The life of a host: repair before ready, admission stops first, the lock goes last. SPEC sections 15 and 17."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, Stall, calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.application import repair_order
from safepoint.application.host import Host, HostParts
from safepoint.application.host_phases import HostClosedMeanwhile, HostNotReady, Phase
from safepoint.application.repair_before_ready import RepairIncomplete
from safepoint.application.repair_report import RepairStep
from safepoint.domain.errors import StoreUnavailable
from safepoint.domain.events.run import RunEnded, RunStatus
from safepoint.domain.events.session import RunKind
from safepoint.domain.identifiers import SessionId
from safepoint.ports.event_store import Commit, CommitAnswer, OwnerGuard
from safepoint.ports.lifecycle_sink import LifecycleKind

from ..domain.facts import Facts, sealed
from .hosting import Hosting, Waits, interrupted
from .test_permissions import Waiting
from .wiring import SESSION, World, go, until

OTHER = SessionId("s2")


def ends(process: Hosting, run_id: Any) -> list[tuple[RunStatus, str | None]]:
    return [(event.status, event.failure_class) for event in process.of(run_id, RunEnded)]


# ---- opening ---------------------------------------------------------------------------------------------------------


def test_repair_is_complete_before_the_host_is_ready() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)
    seen: list[tuple[Phase, int]] = []
    host: Host = process.host(progress=lambda step: seen.append((host.phase, step.report.runs_closed)))

    async def work() -> None:
        async with host:
            assert (host.phase, host.report.runs_closed) == (Phase.READY, 1)
            assert ends(process, run_id) == [(RunStatus.FAILED, "app_restarted")]
            result = await host.run_turn(SESSION, "go on", process.agent([says("hello")]))
            assert result.outcome.text == "hello"

    go(work)
    assert seen == [(Phase.OPENING, 1)]
    assert (host.phase, process.order) == (Phase.CLOSED, ["open", "close"])


def test_nothing_is_taken_in_before_the_host_is_ready_nor_after() -> None:
    process = Hosting()
    opened, opening = threading.Event(), threading.Event()
    model = PlannedModel([])

    def open_parts() -> HostParts:
        opening.set()
        assert opened.wait(60)
        return process._open()

    host = Host(open_parts, process._close)
    phases: list[Phase] = []

    async def refused() -> None:
        for work in (
            lambda: host.run_turn(SESSION, "hello", process.agent(model)),
            lambda: host.resume(SESSION, process.agent(model)),
        ):
            with pytest.raises(HostNotReady) as error:
                await work()
            phases.append(error.value.phase)

    async def while_opening() -> None:
        await until(opening.is_set)
        await refused()
        opened.set()

    async def work() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(while_opening)
            await opened_and_closed(host)
        await refused()

    go(work)
    assert phases == [Phase.OPENING, Phase.OPENING, Phase.CLOSED, Phase.CLOSED]
    assert model.asked == []


def unavailable(*_: object, **__: object) -> Any:
    raise StoreUnavailable("the disk is gone")


@pytest.mark.parametrize("where", ["open", "repair", "progress"])
def test_an_opening_that_fails_gives_back_what_it_had(where: str) -> None:
    world = World()
    interrupted(world)
    process = Hosting(world)
    host = process.host(progress=unavailable if where == "progress" else lambda step: None)
    if where == "open":
        host = Host(unavailable, process._close)
    elif where == "repair":
        process.everything._order._keeping.owned_sessions = unavailable  # type: ignore[method-assign]

    async def work() -> None:
        with pytest.raises(StoreUnavailable):
            await host.__aenter__()
        assert (host.phase, process.order[-1]) == (Phase.CLOSED, "close")
        await host.aclose()

    go(work)
    assert process.order.count("close") == 1


def many(world: World) -> list[Any]:
    return [interrupted(world, SessionId(f"s{number}")) for number in range(3)]


@pytest.mark.parametrize("how", ["cancelled", "closed by another task"])
def test_an_opening_that_is_cut_short_while_it_repairs_gives_back_what_it_had(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """After the batch that is being written, and no other; the next start does the rest."""
    monkeypatch.setattr(repair_order, "BATCH_MAX", 1)
    world = World()
    runs = many(world)
    process = Hosting(world)
    cut: list[Callable[[], object]] = []

    def progress(step: RepairStep) -> None:
        cut[0]()

    host = process.host(progress=progress)

    async def cancelled() -> None:
        with anyio.CancelScope() as scope:
            cut.append(scope.cancel)
            async with host:
                raise AssertionError("it was ready")
        assert scope.cancelled_caught

    async def closed() -> None:
        async with anyio.create_task_group() as group:
            cut.append(lambda: group.start_soon(host.aclose))
            with pytest.raises(HostNotReady) as error:
                await host.__aenter__()
        assert error.value.phase is Phase.CLOSED

    go(cancelled if how == "cancelled" else closed)
    assert (host.phase, process.order) == (Phase.CLOSED, ["open", "close"])
    assert [len(ends(process, run)) for run in runs] == [1, 0, 0]
    process.die()
    after = Hosting(world)
    go(lambda: opened_and_closed(after.host()))
    assert [len(ends(process, run)) for run in runs] == [1, 1, 1]


async def opened_and_closed(host: Host) -> None:
    async with host:
        pass


def test_r3_040_a_session_that_cannot_be_repaired_is_named_and_the_host_is_not_ready_until_it_is() -> None:
    """Three interrupted sessions; the store fails at the second one, whenever it is tried."""
    world = World()
    runs = many(world)
    process = Hosting(world)
    append = process.events_store.append

    def hiccup(commits: Sequence[Commit]) -> Sequence[CommitAnswer]:
        if any(commit.guard.session_id == "s1" for commit in commits):
            raise StoreUnavailable("database is locked")
        return append(commits)

    process.events_store.append = hiccup  # type: ignore[method-assign]
    host = process.host()
    with pytest.raises(RepairIncomplete, match="s1: database is locked") as incomplete:
        go(lambda: opened_and_closed(host))
    report = incomplete.value.report
    assert (report.runs_closed, [(one.session_id, one.error.code) for one in report.failed]) == (
        2,
        [("s1", "store_unavailable")],
    )
    assert (host.phase, process.order) == (Phase.CLOSED, ["open", "close"])
    assert [len(ends(process, run)) for run in runs] == [1, 0, 1]
    process.die()
    after = Hosting(world)
    go(lambda: opened_and_closed(after.host()))
    assert [len(ends(after, run)) for run in runs] == [1, 1, 1]


def test_what_could_not_be_repaired_is_tried_once_more() -> None:
    world = World()
    runs = many(world)
    process = Hosting(world)
    for _ in range(2):  # all together, and the first one alone
        process.events_store.fail_at(RunEnded.topic, Failure.UNAVAILABLE)
    host = process.host()
    go(lambda: opened_and_closed(host))
    assert [len(ends(process, run)) for run in runs] == [1, 1, 1]
    assert (host.report.runs_closed, host.report.failed) == (3, [])


def unexplained(world: World, session: str) -> None:
    """A session whose head run was admitted and never opened, left by a process that died."""
    process = Hosting(world)
    owned = process.ownership.own(SessionId(session))
    facts = Facts(f"r-{session}", session=session, incarnation=owned.incarnation_id, epoch=owned.epoch)
    events = sealed([facts.session_opened(), facts.admitted(RunKind.CONTINUATION, claim_id="claim")])
    world.store.events.append([Commit(OwnerGuard(*facts.guard), tuple(events))])
    process.die()


def test_each_session_is_counted_once_although_repair_goes_over_some_twice() -> None:
    world = World()
    many(world)
    living = Hosting(world)
    living.ownership.keep(living.ownership.own(SessionId("lives")))
    unexplained(world, "d")
    process = Hosting(world)
    for _ in range(2):  # all together, and the first one alone
        process.events_store.fail_at(RunEnded.topic, Failure.UNAVAILABLE)
    steps: list[list[SessionId]] = []
    host = process.host(
        auto=True,
        agent_for=lambda one: None,
        progress=lambda step: steps.append([one.session_id for one in step.repaired]),
    )
    go(lambda: opened_and_closed(host))
    report = host.report
    assert (report.runs_closed, report.nothing_open, report.quarantined_count, report.alive) == (3, 0, 1, 1)
    assert (report.looked_at, len(report.quarantined), report.taken_by_others, report.failed) == (4, 1, 0, [])
    assert [sorted(one) for one in steps] == [["d"], ["s1", "s2"], ["s0"]]


def test_a_host_is_used_once() -> None:
    host = Hosting().host()

    async def work() -> None:
        await opened_and_closed(host)
        with pytest.raises(RuntimeError, match="once"):
            await host.__aenter__()

    go(work)


def test_a_host_that_was_never_opened_is_closed_without_ado() -> None:
    process = Hosting()
    host = process.host()
    go(host.aclose)
    assert (host.phase, process.order) == (Phase.CLOSED, [])


# ---- draining and closed ---------------------------------------------------------------------------------------------


def test_a_run_that_lives_is_waited_for_while_nothing_new_is_taken_in() -> None:
    process = Hosting()
    host = process.host()

    async def work() -> None:
        model = Waits()
        async with anyio.create_task_group() as group, host:
            results: list[Any] = []

            async def turn() -> None:
                results.append(await host.run_turn(SESSION, "hello", process.agent(model)))

            group.start_soon(turn)
            await until(process.live_runs.run_ids)
            group.start_soon(host.aclose)
            await until(lambda: host.phase is Phase.DRAINING)
            with pytest.raises(HostNotReady) as error:
                await host.run_turn(OTHER, "hello", process.agent([]))
            assert error.value.phase is Phase.DRAINING
            assert process.order == ["open"]
            model.go_on.set()
            await host.aclose()
            assert (host.phase, process.order) == (Phase.CLOSED, ["open", "close"])
            assert results[0].outcome.status is RunStatus.COMPLETED

    go(work)


def test_a_run_that_is_waited_for_no_longer_is_interrupted_and_the_next_start_closes_its_record() -> None:
    world = World()
    process = Hosting(world)
    host = process.host(drain_seconds=0.0)

    async def work() -> None:
        async with anyio.create_task_group() as group, host:

            async def turn() -> None:
                with pytest.raises(HostClosedMeanwhile):
                    await host.run_turn(SESSION, "hello", process.agent([Stall()]))

            group.start_soon(turn)
            await until(process.live_runs.run_ids)
            await host.aclose()

    go(work)
    assert process.order == ["open", "close"]
    assert ends(process, process.head()) == []
    process.die()
    after = Hosting(world)
    go(lambda: opened_and_closed(after.host()))
    assert ends(after, after.head()) == [(RunStatus.FAILED, "app_restarted")]
    assert go(lambda: after.resume([says("done")])).outcome.text == "done"  # type: ignore[union-attr]


def test_closing_twice_is_closing_once_and_each_waits_for_the_end() -> None:
    process = Hosting()
    host = process.host()

    async def work() -> None:
        async with host:
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(host.aclose)
            assert host.phase is Phase.CLOSED
            await host.aclose()

    go(work)
    assert process.order == ["open", "close"]


def test_whoever_closes_and_is_cancelled_goes_when_what_ran_was_interrupted_and_all_is_given_back() -> None:
    """By the event loop, which knows no shield, and as often as it likes."""

    class Closing(Hosting):
        def _close(self) -> None:
            assert not self.live_runs.run_ids()
            super()._close()

    async def never() -> str:
        began.append("never")
        await anyio.sleep_forever()
        return "never"

    process, person, began = Closing(), Waiting(), list[str]()
    host = process.host(drain_seconds=0.2)
    ended: list[type[BaseException]] = []

    async def turn(session: str, agent: Any) -> None:
        try:
            await host.run_turn(SessionId(session), "hello", agent)
        except BaseException as error:  # noqa: BLE001 (how it ended is what is asked)
            ended.append(type(error))

    async def work() -> None:
        agents = [
            process.agent([Stall()]),
            process.agent([calls(("never", {}))], [never], person),
            process.agent([calls(("never", {}))], [never]),
        ]
        async with host:
            turns = [asyncio.ensure_future(turn(f"t{number}", one)) for number, one in enumerate(agents)]
            await until(lambda: person.asked and began and len(process.live_runs.run_ids()) == len(agents))
            closing = [asyncio.ensure_future(host.aclose()) for _ in range(2)]
            for _ in range(3):
                await anyio.sleep(0.01)
                for one in closing:
                    one.cancel()
            await asyncio.wait(closing)
            assert [one.cancelled() for one in closing] == [True, True]
            assert (host.phase, host.errors, process.order) == (Phase.CLOSED, [], ["open", "close"])
        await asyncio.wait(turns)

    go(work)
    assert ended == [HostClosedMeanwhile] * 3
    go(lambda: until(lambda: "safepoint permission" not in [thread.name for thread in threading.enumerate()]))


def test_a_time_out_of_closing_shortens_nothing() -> None:
    process = Hosting()
    host = process.host()

    async def work() -> None:
        model, results = Waits(), list[Any]()
        async with host:

            async def turn() -> None:
                results.append(await host.run_turn(SESSION, "hello", process.agent(model)))

            living = asyncio.ensure_future(turn())
            await until(process.live_runs.run_ids)
            closing = asyncio.ensure_future(asyncio.wait_for(host.aclose(), 0.01))
            await anyio.sleep(0.1)
            assert (host.phase, closing.done(), process.order) == (Phase.DRAINING, False, ["open"])
            model.go_on.set()
            with pytest.raises(asyncio.TimeoutError):
                await closing
            await living
        assert results[0].outcome.status is RunStatus.COMPLETED

    go(work)
    assert process.order == ["open", "close"]


@pytest.mark.parametrize("how", ["an error", "cancelled"])
def test_however_the_block_ends_everything_is_given_back(how: str) -> None:
    process = Hosting()
    host = process.host()

    async def work() -> None:
        if how == "an error":
            with pytest.raises(KeyError):
                async with host:
                    raise KeyError
            return
        with anyio.CancelScope() as scope:
            async with host:
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught

    go(work)
    assert (host.phase, process.order) == (Phase.CLOSED, ["open", "close"])


def test_what_goes_wrong_at_the_very_end_is_raised_and_the_host_is_closed_all_the_same() -> None:
    process = Hosting()
    host = Host(process._open, unavailable)

    async def work() -> None:
        with pytest.raises(StoreUnavailable):
            async with host:
                pass
        await host.aclose()

    go(work)
    assert host.phase is Phase.CLOSED


# ---- what fails in the background ------------------------------------------------------------------------------------


def broken(*_: object) -> Any:
    raise RuntimeError("no agent can be made")


def test_what_fails_in_the_background_is_told_and_raised_when_the_host_is_closed() -> None:
    world = World()
    run_id = interrupted(world)
    process = Hosting(world)
    host = process.host(auto=True, agent_for=broken)

    async def work() -> None:
        async with host:
            await until(lambda: host.errors)
            await host.run_turn(OTHER, "hello", process.agent([says("hello")]))

    with pytest.raises(ExceptionGroup) as raised:
        go(work)
    assert [str(error) for error in raised.value.exceptions] == ["no agent can be made"]
    assert process.order == ["open", "close"]
    failed = [event for event in process.sink.events if event.kind is LifecycleKind.EXECUTION_FAILED]
    assert [(event.session_id, event.run_id, event.error_class) for event in failed] == [
        (SESSION, run_id, "RuntimeError")
    ]


def test_what_failed_in_the_background_is_noted_on_the_error_that_ends_the_block() -> None:
    world = World()
    interrupted(world)
    host = Hosting(world).host(auto=True, agent_for=broken)

    async def work() -> None:
        async with host:
            await until(lambda: host.errors)
            raise KeyError("mine")

    with pytest.raises(KeyError) as raised:
        go(work)
    assert raised.value.__notes__ == ["in the background: RuntimeError: no agent can be made"]


def test_a_defect_of_recovery_itself_is_kept_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    interrupted(world)
    host = Hosting(world).host(auto=True)
    monkeypatch.setattr("safepoint.application.host.AutoResume", broken)

    with pytest.raises(ExceptionGroup):
        go(lambda: opened_and_closed_after(host))


async def opened_and_closed_after(host: Host) -> None:
    async with host:
        await until(lambda: host.errors)


def test_progress_is_told_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_order, "BATCH_MAX", 2)
    world = World()
    many(world)
    steps: list[RepairStep] = []
    go(lambda: opened_and_closed(Hosting(world).host(progress=steps.append)))
    assert [len(step.repaired) for step in steps] == [2, 1]
