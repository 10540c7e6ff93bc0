"""Calls of one step run at once where that is right, and in call order where it is not. SPEC section 8."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.application.call_order import predecessors
from safepoint.application.places import Places
from safepoint.domain.events.event import Json
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Effect
from safepoint.domain.identifiers import SessionId
from safepoint.domain.replay.items import ResultItem
from safepoint.ports.model_step import CallBlock
from safepoint.ports.tool_catalog import BoundCall, ToolContext

from .wiring import Process, beside, check_sound, go, until


def bound(key: str | None, *, reads: bool = False) -> BoundCall:
    @tool(recovery="replay_safe" if reads else "outcome_unknown", resource_key=key)
    def act() -> None:
        """Act."""

    one = FunctionCatalog([act]).bind("act", {})
    assert isinstance(one, BoundCall)
    return one


A, B, NONE, READS = bound("a"), bound("b"), bound(None), bound(None, reads=True)


@pytest.mark.parametrize(
    ("step", "waits"),
    [
        ([A, A, A], [(), (0,), (1,)]),
        ([A, B, A, B], [(), (), (0,), (1,)]),
        ([NONE, NONE, NONE], [(), (0,), (1,)]),
        ([A, B, NONE], [(), (), (0, 1)]),
        ([NONE, A, B], [(), (0,), (0,)]),
        ([A, NONE, A, B, NONE], [(), (0,), (1,), (1,), (2, 3)]),
        ([READS, A, READS, A, READS], [(), (), (), (1,), ()]),
        ([A, None, A], [(), (), (0,)]),
        ([NONE, READS, NONE], [(), (), (0,)]),
        ([], []),
    ],
)
def test_each_call_waits_for_the_calls_that_it_could_disturb(
    step: Sequence[BoundCall | None], waits: list[tuple[int, ...]]
) -> None:
    assert list(predecessors(step)) == waits


class Recorded:
    """Writes down when each call begins and ends; the first to come may wait for others to have begun."""

    def __init__(self) -> None:
        self.happened: list[tuple[str, int]] = []
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def act(self, n: int, until_running: int = 1) -> str:
        with self._lock:
            self.happened.append(("begin", n))
            self.running += 1
            self.most = max(self.most, self.running)
        deadline = threading.Event()
        for _ in range(400):
            if self.most >= until_running:
                break
            deadline.wait(0.005)
        with self._lock:
            self.running -= 1
            self.happened.append(("end", n))
        return f"{n}"


def step(count: int, name: str = "act") -> PlannedModel:
    wanted: list[tuple[str, Json] | CallBlock] = [(name, {"n": n}) for n in range(count)]
    return PlannedModel([calls(*wanted), says("done")])


def ran_in_order(recorded: Recorded, count: int) -> bool:
    expected = [(what, n) for n in range(count) for what in ("begin", "end")]
    return recorded.happened == expected


@pytest.mark.parametrize("key", ["door", None])
def test_calls_of_one_resource_or_of_none_run_one_after_the_other_in_call_order(key: str | None) -> None:
    recorded = Recorded()

    @tool(resource_key=key)
    def act(n: int) -> str:
        """Act."""
        return recorded.act(n)

    process = Process()
    result = go(lambda: process.turn("go", step(8), [act]))
    assert ran_in_order(recorded, 8)
    topics = [topic for topic in process.topics(result.run_id) if topic.startswith("tool.") and topic != "tool.called"]
    assert topics == ["tool.dispatched", "tool.responded"] * 8, "T1 of a call comes after T2 of the one before it"
    check_sound(process, result.run_id)


def test_evidence_is_computed_after_the_outcome_of_the_call_before() -> None:
    content = ["0"]

    @tool(resource_key="file", evidence=lambda typed, workspace: content[0])
    def write(context: ToolContext, n: int) -> str:
        """Write."""
        assert context.evidence == content[0], "an implementation finds what was recorded for it"
        content[0] = str(n)
        return "ok"

    process = Process()
    result = go(lambda: process.turn("go", step(3, "write"), [write]))
    assert [one.evidence for one in process.dispatches(result.run_id)] == ["0", "0", "1"]
    check_sound(process, result.run_id)


@pytest.mark.parametrize(
    "declared", [{"recovery": "replay_safe"}, {"resource_key": lambda typed: str(typed["n"])}], ids=["reads", "keys"]
)
def test_calls_that_cannot_disturb_one_another_run_at_once(declared: dict[str, Any]) -> None:
    recorded = Recorded()

    @tool(**declared)
    def act(n: int) -> str:
        """Act."""
        return recorded.act(n, until_running=6)

    process = Process()
    result = go(lambda: process.turn("go", step(6), [act]))
    assert recorded.most == 6
    check_sound(process, result.run_id)


def test_a_tool_runs_at_most_as_often_at_once_as_its_contract_allows_over_all_runs_of_a_runtime() -> None:
    recorded = Recorded()

    @tool(recovery="replay_safe", concurrency_limit=2)
    def act(n: int) -> str:
        """Act."""
        return recorded.act(n, until_running=2)

    process = Process(places=Places())

    async def work() -> None:
        async with anyio.create_task_group() as group:
            for name in ("a", "b", "c"):

                async def one(session_id: SessionId) -> None:
                    await process.turn("go", step(4), [act], session_id=session_id)

                group.start_soon(one, SessionId(name))

    go(work)
    assert recorded.most == 2
    assert len(recorded.happened) == 24


def test_the_time_of_a_call_does_not_run_while_it_waits_for_its_place() -> None:
    @tool(recovery="replay_safe", concurrency_limit=1, timeout_seconds=0.5)
    def act(n: int) -> str:
        """Act."""
        threading.Event().wait(0.12)
        return f"{n}"

    process = Process()
    result = go(lambda: process.turn("go", step(8), [act]))
    assert {one.code for one in process.responses(result.run_id)} == {None}
    topics = [topic for topic in process.topics(result.run_id) if topic in ("tool.dispatched", "tool.responded")]
    assert topics == ["tool.dispatched", "tool.responded"] * 8, "what waits is not dispatched"


def test_synchronous_tools_of_a_runtime_share_a_bounded_number_of_threads() -> None:
    began: list[int] = []
    let_go = threading.Event()

    @tool(recovery="replay_safe")
    def act(n: int) -> str:
        """Act."""
        began.append(n)
        let_go.wait(30)
        return f"{n}"

    process = Process(places=Places(threads_max=3))

    async def work() -> None:
        async def looking() -> None:
            await until(lambda: len(began) == 3)
            await anyio.sleep(0.1)  # time enough for a fourth to begin, if it could
            dispatched = len(process.dispatches(process.head()))
            let_go.set()
            assert dispatched == 3

        result = await beside(looking, process.turn("go", step(12), [act]))
        assert result.outcome.status is RunStatus.COMPLETED

    go(work)
    assert len(began) == 12


@pytest.mark.parametrize("count", [99, 100, 128, 150, 1000])
@pytest.mark.parametrize("reads", [False, True], ids=["effects", "reads"])
def test_a_step_of_very_many_calls_has_every_result_once_and_in_call_order_r3_044(count: int, reads: bool) -> None:
    bodies: list[int] = []

    @tool(recovery="replay_safe" if reads else "outcome_unknown", resource_key=lambda typed: str(typed["n"] % 50))
    def act(n: int) -> str:
        """Act."""
        bodies.append(n)
        return f"{n}"

    process = Process()
    model = step(count)
    result = go(lambda: process.turn("go", model, [act]))
    assert result.outcome.status is RunStatus.COMPLETED
    assert sorted(bodies) == list(range(count))
    assert len(process.dispatches(result.run_id)) == count
    results = [item.result for item in model.asked[1].request.history if isinstance(item, ResultItem)]
    assert results == [str(n) for n in range(count)]
    assert not process.resolution(result.run_id).issues


def test_one_failing_call_of_a_step_leaves_its_siblings_alone_r3_174() -> None:
    def make(name: str, body: Callable[[], str], **declared: Any) -> Any:
        def one() -> str:
            """One."""
            return body()

        one.__name__ = name
        return tool(resource_key=name, **declared)(one)

    failed = threading.Event()

    def fails() -> str:
        failed.set()
        raise ValueError("boom")

    def sees_the_failure() -> str:
        assert failed.wait(10)
        return "went on"

    tools = [make("a", fails), make("b", sees_the_failure), make("c", lambda: "came later")]
    process = Process()
    model = PlannedModel([calls(("a", {}), ("b", {}), ("c", {}), ("a", {}), ("c", {})), says("done")])
    result = go(lambda: process.turn("go", model, tools))
    assert result.outcome.status is RunStatus.COMPLETED
    effects = [(one.tool_name, one.effect) for one in process.responses(result.run_id)]
    assert sorted(effects) == [
        ("a", Effect.UNKNOWN),
        ("a", Effect.UNKNOWN),
        ("b", Effect.DONE),
        ("c", Effect.DONE),
        ("c", Effect.DONE),
    ]
    check_sound(process, result.run_id)


def test_results_stand_in_call_order_for_the_model_in_whatever_order_they_came() -> None:
    second_done = threading.Event()

    @tool(recovery="replay_safe")
    def act(n: int) -> str:
        """Act."""
        if n == 0:
            assert second_done.wait(10)
        else:
            second_done.set()
        return f"{n}"

    process = Process()
    model = step(2)
    go(lambda: process.turn("go", model, [act]))
    results = [item.result for item in model.asked[1].request.history if isinstance(item, ResultItem)]
    assert results == ["0", "1"]
