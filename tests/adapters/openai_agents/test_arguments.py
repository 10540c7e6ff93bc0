"""Arguments that do not fit their tool are answered before T1; what the SDK would take is carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from pydantic import BeforeValidator

import safepoint
from safepoint.adapters.openai_agents import promised, recorded

set_tracing_disabled(True)

PAID = [assistant_message("Paid.")]


class Paid:
    """What came of one call of a tool."""

    def __init__(self) -> None:
        self.amounts: list[Any] = []
        self.answer: Any = None
        self.shown: Any = None
        self.error: Exception | None = None
        self.in_doubt: Any = None
        self.plan: Any = None


def strict(done: list[Any], **more: Any) -> FunctionTool:
    async def pay(amount: int, note: str = "") -> str:
        """Pay."""
        done.append(amount)
        return f"paid {amount}"

    return function_tool(pay, **more)


def plain(done: list[Any], **more: Any) -> FunctionTool:
    return strict(done, strict_mode=False, **more)


def open_to_others(done: list[Any]) -> FunctionTool:
    @function_tool(strict_mode=False)
    def pay(amount: int, **others: int) -> str:
        done.append((amount, others))
        return "paid"

    return pay


def an_object(done: list[Any]) -> FunctionTool:
    class Till:
        async def __call__(self, amount: int) -> str:
            """Pay."""
            done.append(amount)
            return "paid"

    return function_tool(Till(), name_override="pay")


def by_hand(done: list[Any], **schema: Any) -> FunctionTool:
    async def pay(context: ToolContext[Any], text: str) -> str:
        done.append(text)
        return "paid"

    whole = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"], **schema}
    return FunctionTool("pay", "Pay.", whole, pay, strict_json_schema=False)


def broken(value: Any) -> Any:
    """A check of an argument that cannot be made."""
    raise OSError("the list of accounts is gone")


def checked_by_its_owner(done: list[Any]) -> FunctionTool:
    @function_tool(strict_mode=False)
    async def pay(amount: Annotated[int, BeforeValidator(broken)]) -> str:
        done.append(amount)
        return "paid"

    return pay


def an_agent(done: list[Any]) -> FunctionTool:
    return Agent("inner", model=ScriptedModel([PAID])).as_tool("pay", "Pay.")


def call_of(folder: Path, tool: FunctionTool, done: list[Any], arguments: Any, promise: Any = None) -> Paid:
    """Let a model call it once, approved where it asks, and look at what is recorded."""
    left = Paid()
    model = ScriptedModel([[function_call("pay", arguments, call_id="a")], PAID])

    async def main() -> None:
        tools = [promise or promised(tool, recovery="never_auto_retry")]
        named = safepoint.NamedModel("openai", "scripted")
        async with safepoint.open(folder / "store.sqlite", model=named, tools=tools) as runtime:
            session = runtime.session("bill")
            try:
                async with session.record("Pay.") as run:
                    try:
                        made = recorded(Agent("payer", model=model, tools=[tool]), run)
                        result = await Runner.run(made, run.history("openai-responses"))
                        for asked in result.interruptions:
                            assert run.answer("a") is None
                            state = result.to_state()
                            state.approve(asked)
                            result = await Runner.run(made, state)
                    finally:
                        left.answer = run.answer("a")
            except Exception as error:  # noqa: BLE001 (looked at by the test)
                left.error = error
            left.in_doubt, left.plan = await session.unsettled(), await session.plan()

    anyio.run(main)
    assert model.last_call is not None
    items: Any = model.last_call.input
    left.shown = [item["output"] for item in items if item.get("type") == "function_call_output"]
    left.amounts = done
    return left


def refused(left: Paid, code: str = "args_schema_mismatch") -> str:
    """What is recorded of a call that was never dispatched."""
    assert (left.answer.code, left.answer.effect, left.answer.is_error) == (code, "none", True)
    assert left.amounts == []
    assert list(left.in_doubt) == []
    return str(left.answer.result)


@pytest.mark.parametrize(
    ("made", "arguments", "said"),
    [
        (strict, {"amount": "ten"}, "amount: int_parsing"),
        (strict, {}, "amount: missing"),
        (strict, {"amount": 1.5}, "amount: int_from_float"),
        (strict, {"amount": 1, "note": 2}, "note: string_type"),
        (strict, {"amount": 1, "dry_run": True}, "dry_run: the tool has no such argument"),
        (strict, [1], "an object is expected"),
        (plain, {"amount": "ten"}, "amount: int_parsing"),
        (plain, {}, "amount: missing"),
        (open_to_others, {"amount": 1, "others": {"tip": "much"}}, "others.tip: int_parsing"),
        (an_object, {"amount": "ten"}, "amount: int_parsing"),
        (by_hand, {"amount": "5"}, "amount: type"),
        (by_hand, {}, "arguments: required"),
        (an_agent, {"input": 5}, "input: type"),
        (checked_by_its_owner, {"amount": 5}, "they cannot be checked: OSError"),
    ],
)
def test_arguments_that_do_not_fit_are_answered_without_a_dispatch(
    tmp_path: Path, made: Any, arguments: Any, said: str
) -> None:
    done: list[Any] = []
    left = call_of(tmp_path, made(done), done, arguments)
    assert left.error is None
    told = refused(left)
    assert told.startswith("Not executed: ")
    assert said in told
    assert "ten" not in told, "what does not fit is named by its place"
    assert left.shown == [told], "what the model is shown is what is recorded"


@pytest.mark.parametrize(
    ("made", "arguments", "paid"),
    [
        (strict, {"amount": "5"}, 5),
        (strict, {"amount": 5}, 5),
        (plain, {"amount": 5, "dry_run": True}, 5),
        (open_to_others, {"amount": 5, "others": {"tip": 1}}, (5, {"tip": 1})),
        (an_object, {"amount": "5"}, 5),
        (by_hand, {"amount": 5, "note": "x"}, '{"amount":5,"note":"x"}'),
    ],
)
def test_what_the_sdk_would_take_is_carried_out(tmp_path: Path, made: Any, arguments: Any, paid: Any) -> None:
    done: list[Any] = []
    left = call_of(tmp_path, made(done), done, arguments)
    assert (left.error, left.answer.code, left.amounts) == (None, None, [paid])


def test_an_error_handler_of_the_tool_says_it_in_its_own_words(tmp_path: Path) -> None:
    asked: list[Exception] = []

    async def handler(context: RunContextWrapper[Any], error: Exception) -> str:
        asked.append(error)
        return "An amount is a whole number."

    done: list[Any] = []
    left = call_of(tmp_path, strict(done, failure_error_function=handler), done, {"amount": "ten"})
    assert refused(left) == "An amount is a whole number."
    assert left.shown == ["An amount is a whole number."]
    (error,) = asked
    assert isinstance(error, ModelBehaviorError)
    assert "amount: int_parsing" in str(error)


def test_an_error_handler_is_not_asked_of_what_the_sdk_would_have_taken(tmp_path: Path) -> None:
    done: list[Any] = []
    tool = strict(done, failure_error_function=lambda context, error: pytest.fail("asked"))
    left = call_of(tmp_path, tool, done, {"amount": 5, "dry_run": True})
    assert left.error is None
    assert "dry_run" in refused(left)


def test_where_the_tool_says_that_errors_are_raised_the_run_ends_and_nothing_is_in_doubt(tmp_path: Path) -> None:
    done: list[Any] = []
    left = call_of(tmp_path, strict(done, failure_error_function=None), done, {"amount": "ten"})
    assert isinstance(left.error, ModelBehaviorError)
    assert "amount: int_parsing" in refused(left)
    assert not isinstance(left.plan, safepoint.Park)


def test_a_handler_that_fails_ends_the_run_and_the_call_is_answered(tmp_path: Path) -> None:
    def handler(context: RunContextWrapper[Any], error: Exception) -> str:
        raise LookupError("no such text")

    done: list[Any] = []
    left = call_of(tmp_path, strict(done, failure_error_function=handler), done, {"amount": "ten"})
    assert "no such text" in str(left.error)
    assert "amount: int_parsing" in refused(left)


@pytest.mark.parametrize("raises", [False, True])
def test_what_is_no_json_is_told_as_that(tmp_path: Path, raises: bool) -> None:
    done: list[Any] = []
    more = {"failure_error_function": None} if raises else {}
    left = call_of(tmp_path, strict(done, **more), done, '{"amount": ')
    assert "not strict JSON" in refused(left, "args_not_strict_json")
    assert isinstance(left.error, ModelBehaviorError) is raises


def test_a_tool_that_is_promised_by_name_alone_is_not_dispatched_either(tmp_path: Path) -> None:
    done: list[Any] = []
    left = call_of(tmp_path, strict(done), done, {"amount": "ten"}, safepoint.contract("pay"))
    assert "amount: int_parsing" in refused(left, "refused_without_effect")


def test_a_call_that_was_approved_is_not_dispatched_where_it_does_not_fit(tmp_path: Path) -> None:
    done: list[Any] = []
    left = call_of(tmp_path, strict(done, needs_approval=True), done, {"amount": "ten"})
    assert left.error is None
    assert "amount: int_parsing" in refused(left)


def test_a_schema_that_is_none_makes_no_tool() -> None:
    with pytest.raises(safepoint.ToolDefinitionError, match="pay cannot be a tool: the tool's schema is none"):
        promised(by_hand([], type="no such type"))
