"""The repeat guard is no nuisance: what a model may do again unasked, one case a line. F9, r3-029."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.tools.decorator import tool
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.outside import PermissionRequested
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import OperationId
from safepoint.domain.reasons import ResponseCode
from safepoint.ports.permission_gate import Allowed

from .wiring import ALLOW_ALL, Process, check_sound, go

SOON = 0.01


class Fails:
    """A tool whose first call ends without a certain outcome: it raises, or takes longer than it may."""

    def __init__(self, name: str, *, hangs: bool = False, error: Exception | None = None, **declared: Any) -> None:
        self.calls = 0

        async def run(target: str = "") -> str:
            """Run."""
            self.calls += 1
            if self.calls == 1 and hangs:
                await anyio.sleep_forever()
            if self.calls == 1:
                raise error or ConnectionError("no answer")
            return "ok"

        bounded: dict[str, Any] = {"timeout_seconds": SOON} if hangs else {}
        self.function: Callable[..., Any] = tool(name=name, **bounded, **declared)(run)


def by_method(arguments: Any) -> str:
    """An HTTP request: its mode is a pure function of the arguments."""
    return "replay_safe" if arguments["target"].startswith("GET") else "outcome_unknown"


@dataclass(frozen=True)
class Case:
    """A call that failed in one turn and is made again in the next.

    Attributes:
        then: the tool of the first turn.
        now: the tool of the second one, where that is another.
        free: whether it goes through unasked.
        named: whether its dispatch names what it repeats.
        left: how many effects are watched in the end, where the second call succeeded.
    """

    then: dict[str, Any]
    args: dict[str, Any] = field(default_factory=lambda: {"target": "tests"})
    now: dict[str, Any] | None = None
    free: bool = True
    named: bool = False
    left: int = 0
    beside: bool = False


IDEMPOTENT = {"recovery": "idempotent", "key_valid_seconds": 3600}
CASES = {
    "tests that took too long": Case({"name": "pytest", "hangs": True, "repeat_free": True}, named=True),
    "tests that broke off": Case({"name": "pytest", "repeat_free": True}, named=True),
    "a build": Case({"name": "make", "repeat_free": True, "recovery": "never_auto_retry"}, {}, named=True),
    "polling a job": Case({"name": "job_status", "recovery": "replay_safe"}),
    "polling a job that took too long": Case({"name": "job_status", "hangs": True, "recovery": "replay_safe"}),
    "reading a file": Case({"name": "read", "recovery": "replay_safe"}),
    "an HTTP GET": Case({"name": "http", "recovery": by_method}, {"target": "GET /orders"}),
    "an HTTP POST": Case({"name": "http", "recovery": by_method}, {"target": "POST /orders"}, free=False, left=1),
    "a delivery with a key": Case({"name": "pay", **IDEMPOTENT}, named=True),
    "what it refused before any effect": Case({"name": "pay", "error": RefusedWithoutEffect("no funds")}),
    "an error that means no effect": Case({"name": "pay", "error": KeyError("x"), "no_effect_errors": (KeyError,)}),
    "a payment": Case({"name": "pay"}, free=False, left=1),
    "tests that are not declared so": Case({"name": "pytest", "hangs": True}, free=False, left=1),
    "a renamed payment": Case({"name": "pay"}, now={"name": "pay_v2"}, free=False, left=1),
    "a renamed payment that got a key": Case({"name": "pay"}, now={"name": "pay_v2", **IDEMPOTENT}, free=False, left=1),
    "a renamed tool without arguments": Case({"name": "pay"}, {}, now={"name": "pay_v2"}, left=1),
    "a tool that reads what a tool that is gone wrote": Case(
        {"name": "write"}, now={"name": "read", "recovery": "replay_safe"}, left=1
    ),
    "tests with the arguments of a tool that is gone": Case(
        {"name": "deploy"}, now={"name": "pytest", "repeat_free": True}, left=1
    ),
    "another tool while the first is still there": Case({"name": "pay"}, now={"name": "refund"}, left=1, beside=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_a_model_does_again(case: Case) -> None:
    process, then = Process(), Fails(**case.then)
    now = then
    if case.now is not None:
        now = Fails(**case.now)
        now.calls = 1
    first, again = str(case.then["name"]), str((case.now or case.then)["name"])
    go(lambda: process.turn("go", PlannedModel([calls((first, case.args)), says("hm")]), [then.function]))
    before, gate = now.calls, ScriptedGate({})
    tools = [then.function, now.function] if case.beside else [now.function]
    policy = AllowListGate([], gate, allow_all=True)
    model = PlannedModel([calls((again, case.args)), says("done")])
    result = go(lambda: process.turn("again", model, tools, gate=policy))
    assert result.outcome.status is RunStatus.COMPLETED
    assert (now.calls - before, [one.tool_name for one in gate.asked]) == ((1, []) if case.free else (0, [again]))
    assert [bool(one.repeats) for one in process.dispatches(result.run_id)] == ([case.named] if case.free else [])
    code = process.response(result.run_id, again).code
    assert code == (None if case.free else ResponseCode.REPEAT_OF_UNSETTLED_EFFECT)
    assert len(process.ledger.session(result.session_id).watched) == case.left
    unsettled = process.world.store.views.unsettled(result.session_id)
    assert len(unsettled) == case.left, "nobody is told for ever of what a repeat has taken the place of"
    check_sound(process, result.run_id)


REFUSED = {name: case for name, case in CASES.items() if not case.free}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_is_not_free_is_refused_where_nobody_can_be_asked_and_goes_once_a_person_allows_it(case: Case) -> None:
    process, then = Process(), Fails(**case.then)
    now = then
    if case.now is not None:
        now = Fails(**case.now)
        now.calls = 1
    first, again = str(case.then["name"]), str((case.now or case.then)["name"])
    went = go(lambda: process.turn("go", PlannedModel([calls((first, case.args)), says("hm")]), [then.function]))
    (watched,) = process.ledger.session(went.session_id).watched

    def repeats(gate: Any) -> tuple[str | None, list[OperationId | None]]:
        model = PlannedModel([calls((again, case.args)), says("done")])
        result = go(lambda: process.turn("again", model, [now.function], gate=gate))
        asked = [one.repeats for one in process.of(result.run_id, PermissionRequested)]
        return process.response(result.run_id, again).code, asked

    assert repeats(ALLOW_ALL) == (ResponseCode.REPEAT_OF_UNSETTLED_EFFECT, [])
    assert repeats(AllowListGate([], ScriptedGate({again: Allowed("ada")}), allow_all=True)) == (None, [watched])
    assert not process.ledger.session(went.session_id).watched
    assert repeats(ALLOW_ALL) == (None, []), "the repeat was certain, so the next call is a new effect"


def test_tests_that_always_take_too_long_are_watched_once_however_often_they_are_run() -> None:
    process = Process()

    async def run(target: str = "") -> str:
        """Run."""
        await anyio.sleep_forever()
        raise AssertionError

    pytest_tool = tool(name="pytest", timeout_seconds=SOON, repeat_free=True)(run)
    for _ in range(3):
        model = PlannedModel([calls(("pytest", {"target": "tests"})), says("too slow")])
        result = go(partial(process.turn, "go", model, [pytest_tool]))
    (dispatch,) = process.dispatches(result.run_id)
    assert list(process.ledger.session(result.session_id).watched) == [dispatch.operation_id]
