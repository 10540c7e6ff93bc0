"""Function tools of an agent, so that each call goes through preflight, T1 and T2. SPEC section 8."""

from __future__ import annotations

import copy
import inspect
from functools import cached_property
from typing import Any

import pydantic_core
from agents import (
    FunctionTool,
    ModelBehaviorError,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    default_tool_error_function,
)
from agents.tool import (
    invoke_function_tool,
    maybe_invoke_function_tool_failure_error_function,
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext as TheirContext

from ...application.call_answers import CallRefused
from ...application.current_call import handed
from ...domain.canonical import encode
from ..embedding.cancelled_body import ends_when_cancelled
from ..embedding.recorded import RecordedRun
from ..embedding.unrecordable import AgentUnsupported
from ..histories.spelling import result_text
from .arguments import ToolArguments


class RecordedInvoker:
    """Carries the calls of one function tool out, each at most once, with what is recorded of it.

    Args:
        tool: what carries them out.
        run: whose steps recorded them.
    """

    def __init__(self, tool: FunctionTool, run: RecordedRun) -> None:
        self.run = run
        self._tool = tool
        self._tells_errors = resolve_function_tool_failure_error_function(tool) is not None
        self._is_async = inspect.iscoroutinefunction(getattr(tool, "__wrapped__", None))
        self._inner = copy.copy(tool)
        self._inner.timeout_behavior = "raise_exception"
        set_function_tool_failure_error_function(self._inner, None)  # an error is recorded as one

    async def __call__(self, ctx: TheirContext[Any], input: str) -> Any:  # noqa: A002 (the framework's word)
        """Carry one call out, with the arguments that are recorded.

        Raises:
            ModelBehaviorError: its arguments do not fit, and the tool says that errors are raised; nothing happened.
            RunStopped: it was not carried out; the end of the run answers it.
            StoreError, WriteRefused: T1 or T2 was not recorded; the model must not be shown a result.
        """
        if (unfit := self._arguments.refused_text(input)) is not None:
            return await self._refuse(ctx, unfit.said)
        problem: Exception | None = None
        returned: Any = None
        try:
            async with self.run.tool_call(ctx.tool_call_id) as operation:
                arguments = encode(operation.arguments).decode()
                try:
                    with handed(operation.context), ends_when_cancelled(operation, asynchronous=self._is_async):
                        returned = await invoke_function_tool(
                            function_tool=self._inner, context=ctx, arguments=arguments
                        )
                except Exception as error:  # noqa: BLE001 (told, or raised again, once it is recorded)
                    problem = error
                    operation.error(error)
                else:
                    operation.result(_plain(returned))
        except CallRefused as refused:
            return result_text(refused.answer.result)
        if problem is not None and not self._tells_errors:
            raise problem
        return result_text(operation.answer.result) if operation.answer.is_error else returned

    @cached_property
    def _arguments(self) -> ToolArguments:
        """Made where a call comes: it takes milliseconds, and most turns call few of many tools."""
        return ToolArguments(self._tool)

    async def _refuse(self, ctx: TheirContext[Any], said: str) -> str:
        """Answer a call that the tool itself would not begin, in the words of the tool's own handler where it has one.

        Nothing is dispatched. The handler is asked first, so that what the model is shown is what is recorded.
        """
        error: Exception = ModelBehaviorError(f"Invalid JSON input for tool {self._tool.name}: {said}")
        problem: Exception | None = None
        try:
            theirs = await maybe_invoke_function_tool_failure_error_function(
                function_tool=self._tool, context=ctx, error=error
            )
        except Exception as raised:  # noqa: BLE001 (raised again, once the call is answered)
            problem = raised
        else:
            if theirs is None:
                problem = error
            elif theirs != default_tool_error_function(ctx, error):  # which says nothing of what does not fit
                said = str(theirs)
        answer = await self.run.decline(ctx.tool_call_id, said)
        if problem is not None:
            raise problem
        return result_text(answer.result)


def guarded(tool: Any, run: RecordedRun) -> FunctionTool:
    """The same tool with each call recorded.

    Raises:
        AgentUnsupported: it runs elsewhere, or its results are changed behind the record.
    """
    checked(tool)
    made = copy.copy(tool)
    made.on_invoke_tool = RecordedInvoker(tool, run)
    made.timeout_seconds = None  # the call itself is timed: what became of it is recorded
    return made  # type: ignore[no-any-return]


def checked(tool: Any) -> None:
    """Refuse a tool whose calls could not be recorded.

    Raises:
        AgentUnsupported: it is one.
    """
    if not isinstance(tool, FunctionTool):
        raise AgentUnsupported(f"the tool {getattr(tool, 'name', tool)!r}", "take a function tool, which runs here")
    if tool.tool_output_guardrails:
        raise AgentUnsupported(f"an output guardrail of the tool {tool.name!r}", "check its result in the tool")


def _plain(returned: Any) -> object:
    """What is recorded: JSON; files have no place in it."""
    match returned:
        case ToolOutputText():
            return returned.text
        case ToolOutputImage() | ToolOutputFileContent():
            return returned  # judged where every result is
        case list() | tuple():
            return [_plain(one) for one in returned]
        case _:
            return _json(returned)


def _json(returned: Any) -> object:
    try:
        return pydantic_core.to_jsonable_python(returned)
    except (pydantic_core.PydanticSerializationError, ValueError):
        return str(returned)  # as the model is shown it
