"""What a response says of the effect, for everything that an implementation can do. SPEC section 8 and R3."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.tools.decorator import tool
from safepoint.application.run_agent import RunLimits
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.run import RunStatus
from safepoint.domain.events.tool import Effect
from safepoint.domain.identifiers import RunId
from safepoint.domain.reasons import FailureClass, ResponseCode
from safepoint.domain.recovery.verdict import SettlementOrigin, VerdictStatus
from safepoint.domain.replay.items import CallItem, ResultItem
from safepoint.domain.tool_results import RESULT_BYTES_MAX
from safepoint.ports.tool_catalog import OutcomeNotSeen, ToolContext

from .counted_tools import raising, returning
from .wiring import SESSION, Process, check_sound, go


class NotFound(Exception):
    pass


def called(
    process: Process, function: Callable[..., Any], name: str = "give", args: dict[str, Any] | None = None
) -> tuple[RunId, PlannedModel]:
    """A run in which the model calls a tool once and goes on."""
    model = PlannedModel([calls((name, args or {})), says("done")])
    result = go(lambda: process.turn("go", model, [function]))
    assert result.outcome.status is RunStatus.COMPLETED
    assert len(model.asked) == 2
    check_sound(process, result.run_id)
    return result.run_id, model


@dataclass(frozen=True)
class Ends:
    """What is known after a tool did something: as an effectful tool, and as one that only reads."""

    function: Callable[..., Callable[..., Any]]
    effect: Effect
    reading: Effect
    code: ResponseCode | None
    is_error: bool


UNSTRICT = {
    "a set": {1},
    "bytes": b"x",
    "a date": datetime(2030, 1, 1),  # noqa: DTZ001 (a naive one, as tools return them)
    "a decimal": Decimal("1.5"),
    "NaN": float("nan"),
    "infinity": float("inf"),
    "a lone surrogate": "\ud800",
    "a key that is no text": {1: "x"},
    "an unsafe integer": 2**53 + 1,
    "an object": object(),
    "deep inside": {"a": [{"b": {1, 2}}]},
}
HAPPENINGS = {
    "returns": Ends(lambda **d: returning("ok", **d), Effect.DONE, Effect.NONE, None, False),
    "returns nothing": Ends(lambda **d: returning(None, **d), Effect.DONE, Effect.NONE, None, False),
    "raises": Ends(
        lambda **d: raising(ValueError("boom"), **d), Effect.UNKNOWN, Effect.NONE, ResponseCode.TOOL_RAISED, True
    ),
    "raises what cannot be said": Ends(
        lambda **d: raising(_Unsayable(), **d), Effect.UNKNOWN, Effect.NONE, ResponseCode.TOOL_RAISED, True
    ),
    "exits": Ends(lambda **d: raising(SystemExit(3), **d), Effect.UNKNOWN, Effect.NONE, ResponseCode.TOOL_RAISED, True),
    "cancels itself": Ends(
        lambda **d: raising(anyio_cancelled(), **d), Effect.UNKNOWN, Effect.NONE, ResponseCode.TOOL_RAISED, True
    ),
    "refuses": Ends(
        lambda **d: raising(RefusedWithoutEffect("no such file"), **d),
        Effect.NONE,
        Effect.NONE,
        ResponseCode.REFUSED_WITHOUT_EFFECT,
        True,
    ),
    "raises what its contract calls harmless": Ends(
        lambda **d: raising(NotFound("x"), no_effect_errors=(NotFound,), **d),
        Effect.NONE,
        Effect.NONE,
        ResponseCode.REFUSED_WITHOUT_EFFECT,
        True,
    ),
    **{
        f"returns {name}": Ends(
            lambda value=value, **d: returning(value, **d),
            Effect.DONE,
            Effect.NONE,
            ResponseCode.RESULT_NOT_STRICT_JSON,
            True,
        )
        for name, value in UNSTRICT.items()
    },
    "formats to no JSON": Ends(
        lambda **d: returning("ok", format_result=lambda value: {1, 2}, **d),
        Effect.DONE,
        Effect.NONE,
        ResponseCode.RESULT_NOT_STRICT_JSON,
        True,
    ),
    "has a formatter that raises": Ends(
        lambda **d: returning("ok", format_result=_raise(KeyError("x")), **d),
        Effect.DONE,
        Effect.NONE,
        ResponseCode.RESULT_NOT_STRICT_JSON,
        True,
    ),
    "has a formatter that exits": Ends(
        lambda **d: returning("ok", format_result=_raise(SystemExit(1)), **d),
        Effect.DONE,
        Effect.NONE,
        ResponseCode.RESULT_NOT_STRICT_JSON,
        True,
    ),
    "has a formatter that hangs": Ends(
        lambda **d: returning("ok", format_result=lambda value: threading.Event().wait(), **d),
        Effect.DONE,
        Effect.NONE,
        ResponseCode.RESULT_NOT_STRICT_JSON,
        True,
    ),
    "returns too much text": Ends(
        lambda **d: returning("x" * (RESULT_BYTES_MAX + 1), **d),
        Effect.DONE,
        Effect.NONE,
        ResponseCode.RESULT_TOO_LARGE,
        False,
    ),
    "returns too many members": Ends(
        lambda **d: returning(list(range(RESULT_BYTES_MAX)), **d),
        Effect.DONE,
        Effect.NONE,
        ResponseCode.RESULT_TOO_LARGE,
        False,
    ),
}


class _Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def anyio_cancelled() -> BaseException:
    import asyncio

    return asyncio.CancelledError("by itself")


def _raise(error: BaseException) -> Callable[[object], object]:
    def format_result(value: object) -> object:
        raise error

    return format_result


def as_async(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same tool on the event loop."""
    declared = getattr(function, "__safepoint_tool__", None)

    async def same() -> object:
        return function()

    same.__name__ = function.__name__
    if declared is not None:
        same.__safepoint_tool__ = declared  # type: ignore[attr-defined]
    return same


@pytest.mark.parametrize("on_loop", [False, True], ids=["in a thread", "on the event loop"])
@pytest.mark.parametrize("reads", [False, True], ids=["has an effect", "only reads"])
@pytest.mark.parametrize("happening", HAPPENINGS)
def test_the_response_says_what_is_known_of_the_effect(happening: str, reads: bool, on_loop: bool) -> None:
    ends = HAPPENINGS[happening]
    function = ends.function(**({"recovery": "replay_safe"} if reads else {"recovery": "outcome_unknown"}))
    process = Process(limits=RunLimits(format_seconds_max=0.05) if "hangs" in happening else None)
    name = function.__name__
    run_id, _ = called(process, as_async(function) if on_loop else function, name)
    response = process.response(run_id, name)
    assert response.effect is (ends.reading if reads else ends.effect)
    assert (response.code, response.is_error) == (ends.code, ends.is_error)
    (verdict,) = process.verdicts(run_id)
    assert (verdict.status, verdict.origin) == (VerdictStatus.COMPLETED, SettlementOrigin.NORMAL_T2)
    json.dumps(response.result)


@pytest.mark.parametrize(
    ("format_result", "said"),
    [
        (_raise(SystemExit(1)), "raised SystemExit"),
        (_raise(KeyError("x")), "raised KeyError"),
        (lambda value: threading.Event().wait(), "took more than 0.05 s"),
    ],
)
def test_why_a_result_could_not_be_kept_is_said(format_result: Callable[[object], object], said: str) -> None:
    process = Process(limits=RunLimits(format_seconds_max=0.05))
    run_id, _ = called(process, returning("ok", format_result=format_result))
    assert said in str(process.response(run_id, "give").result)


def test_a_tool_that_raises_is_answered_durably_and_the_conversation_goes_on_r3_005() -> None:
    process = Process()
    run_id, model = called(process, raising(ValueError("boom")), "fail")
    (verdict,) = process.verdicts(run_id)
    assert (verdict.status, verdict.is_error) == (VerdictStatus.COMPLETED, True)
    call, answer = model.asked[1].request.history[-2:]
    assert isinstance(call, CallItem)
    assert isinstance(answer, ResultItem)
    assert (answer.call_id, answer.is_error) == (call.call_id, True)
    assert "ValueError: boom" in str(answer.result)


def test_the_stack_of_an_error_is_not_recorded_so_two_machines_record_the_same_r3_049() -> None:
    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        raise ValueError("boom")

    texts: list[object] = []
    for levels in (0, 40):

        def fail(levels: int = levels) -> str:
            """Fail."""
            deeper(levels)
            return ""

        process = Process()
        run_id, _ = called(process, fail, "fail", {})
        texts.append(process.response(run_id, "fail").result)
        stored = b"".join(process.stored_bytes(run_id)).decode()
        assert "Traceback" not in stored
        assert __file__ not in stored
        assert "line " not in str(texts[-1])
    assert texts[0] == texts[1]


def test_the_message_of_an_error_is_bounded() -> None:
    process = Process()
    run_id, _ = called(process, raising(ValueError("x" * 1_000_000)), "fail")
    assert len(str(process.response(run_id, "fail").result)) < 5_000


def test_a_result_that_is_cut_says_how_long_it_was_and_is_cut_between_code_points() -> None:
    process = Process()
    text = "ä" * RESULT_BYTES_MAX
    run_id, _ = called(process, returning(text))
    response = process.response(run_id, "give")
    assert isinstance(response.result, str)
    assert text.startswith(response.result)
    assert len(response.result.encode()) <= RESULT_BYTES_MAX
    assert (response.original_length, response.effect) == (len(text.encode()), Effect.DONE)
    assert response.original_digest is not None
    assert not response.is_error


@pytest.mark.parametrize(
    "value",
    [None, "", [], {}, {"size": None, "lines": None, "more": {"x": None}}, [None, None], {"": None}, 0, False, 0.0],
)
def test_nulls_and_empty_values_are_results_like_any_other_r3_100(value: object) -> None:
    process = Process()
    run_id, model = called(process, returning(value))
    response = process.response(run_id, "give")
    assert (response.result, response.is_error, response.effect) == (value, False, Effect.DONE)
    last = model.asked[1].request.history[-1]
    assert isinstance(last, ResultItem)
    assert last.result == value


def test_progress_is_shown_in_bounded_pieces_and_is_not_durable_r3_175() -> None:
    from safepoint.application.run_agent import Screen

    shown: list[int] = []
    noise = "\x00" * 20_000_000

    def chat(context: ToolContext) -> str:
        """Chat."""
        for _ in range(100):
            context.report(noise)
        return "ok"

    process = Process()
    screen = Screen(progress=lambda name, line: shown.append(len(line)))
    model = PlannedModel([calls(("chat", {})), says("done")])
    result = go(lambda: process.turn("go", model, [chat], screen=screen))
    assert len(shown) == 100
    assert max(shown) <= 4_000
    assert sum(len(row) for row in process.stored_bytes(result.run_id)) < 10_000


def test_a_screen_that_breaks_changes_nothing() -> None:
    from safepoint.application.run_agent import Screen

    def broken(*_: object) -> None:
        raise BrokenPipeError

    def chat(context: ToolContext) -> str:
        """Chat."""
        context.report("hello")
        return "ok"

    process = Process()
    screen = Screen(partial=broken, note=broken, progress=broken)
    model = PlannedModel([calls(("chat", {}), text="hi"), says("done")])
    result = go(lambda: process.turn("go", model, [chat], screen=screen))
    assert result.outcome.status is RunStatus.COMPLETED
    assert process.response(result.run_id, "chat").effect is Effect.DONE


def test_the_context_of_a_call_tells_its_operation_its_key_and_its_run() -> None:
    seen: list[ToolContext] = []

    def look(context: ToolContext) -> str:
        """Look."""
        seen.append(context)
        return "ok"

    process = Process()
    run_id, _ = called(process, look, "look")
    (context,), (dispatch,) = seen, process.dispatches(run_id)
    assert context.operation_id == dispatch.operation_id
    assert context.identity == dispatch.identity
    assert not context.cancelled()
    assert len(context.idempotency_key) >= 16


def test_a_tool_may_run_an_event_loop_of_its_own_in_its_thread() -> None:
    async def inner() -> str:
        await anyio.lowlevel.checkpoint()
        return "inner"

    def nest() -> str:
        """Nest."""
        return anyio.run(inner)

    process = Process()
    run_id, _ = called(process, nest, "nest")
    assert process.response(run_id, "nest").result == "inner"


def test_a_tool_sees_the_context_variables_of_whoever_runs_the_turn() -> None:
    import contextvars

    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace")

    def look() -> str:
        """Look."""
        return trace.get("none")

    process = Process()

    async def work() -> RunId:
        trace.set("t-1")
        model = PlannedModel([calls(("look", {})), says("done")])
        return (await process.turn("go", model, [look])).run_id

    assert process.response(go(work), "look").result == "t-1"


def test_a_tool_that_recurses_without_end_is_answered() -> None:
    def recurse() -> str:
        """Recurse."""
        return recurse()

    limit = sys.getrecursionlimit()
    process = Process()
    run_id, _ = called(process, recurse, "recurse")
    assert process.response(run_id, "recurse").code == ResponseCode.TOOL_RAISED
    assert sys.getrecursionlimit() == limit


@tool(recovery="never_auto_retry")
def declared_at_the_top() -> str:
    """Stand for a tool of a module."""
    return "ok"


def test_a_declared_function_is_still_the_function() -> None:
    assert declared_at_the_top() == "ok"


async def unheard() -> str:
    """Ask a server that does not answer."""
    raise OutcomeNotSeen("the server did not answer")


def test_what_nobody_sees_the_outcome_of_stays_indeterminate_in_this_process() -> None:
    process = Process()
    result = go(lambda: process.turn("go", PlannedModel([calls(("unheard", {})), says("done")]), [tool(unheard)]))
    assert (result.outcome.status, result.outcome.failure) == (RunStatus.FAILED, FailureClass.TOOL_NOT_OVER)
    assert not process.responses(result.run_id)
    assert process.live.of(SESSION), "it may be running"
    check_sound(process, result.run_id)


def test_a_reader_that_nobody_hears_is_answered_as_one_that_failed() -> None:
    process = Process()
    run_id, _ = called(process, tool(recovery="replay_safe", name="look")(unheard), "look")
    response = process.response(run_id, "look")
    assert (response.code, response.effect) == (ResponseCode.TOOL_RAISED, Effect.NONE)
