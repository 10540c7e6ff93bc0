"""The toolsets of an agent, so that each call goes through preflight, T1 and T2. SPEC section 8."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pydantic_core
from pydantic_ai import CallDeferred, ModelRetry, RunContext, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset, ToolsetTool, WrapperToolset
from pydantic_ai.toolsets.function import FunctionToolsetTool

from ...application.call_answers import Answer, CallRefused
from ...application.current_call import handed
from ...application.open_call import OpenCall
from ...domain.canonical import encode
from ..embedding.cancelled_body import ends_when_cancelled
from ..embedding.recorded import RecordedRun
from ..embedding.unrecordable import AgentUnsupported
from ..histories.spelling import result_text


@dataclass
class RecordedToolset(WrapperToolset[Any]):
    """Carries the calls of a toolset out, each at most once, with what is recorded of it.

    Attributes:
        run: whose steps recorded the calls.
    """

    run: RecordedRun

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Carry one call out.

        Raises:
            ToolFailed: it is answered by an error, which the model is shown.
            ModelRetry: the tool asked for it.
            AgentUnsupported: it left its call unfinished, or was given other arguments than were recorded.
            RunStopped: it was not carried out; the end of the run answers it.
            StoreError, WriteRefused: T1 or T2 was not recorded; the model must not be shown a result.
        """
        call_id = ctx.tool_call_id or ""
        problem: Exception | None = None
        returned: Any = None
        try:
            async with self.run.tool_call(call_id) as operation:
                try:
                    arguments = _stored(operation, tool_args, tool)
                    with handed(operation.context), ends_when_cancelled(operation, asynchronous=self._is_async(tool)):
                        returned = await super().call_tool(name, arguments, ctx, tool)
                except (ApprovalRequired, CallDeferred, AgentUnsupported) as error:
                    problem = _left(name, error, operation)
                except Exception as error:  # noqa: BLE001 (raised again, once it is recorded)
                    problem = error
                    operation.error(error)
                else:
                    operation.result(_plain(returned))
        except CallRefused as refused:
            raise ToolFailed(result_text(refused.answer.result)) from refused
        return _given(operation.answer, returned, problem)

    def _is_async(self, tool: ToolsetTool[Any]) -> bool:
        """Whether its body is an asynchronous function; of a toolset of one's own nobody knows."""
        if isinstance(self.wrapped, FunctionToolset) and isinstance(tool, FunctionToolsetTool):
            return tool.is_async
        return False


def guarded(toolset: AbstractToolset[Any], run: RecordedRun) -> AbstractToolset[Any]:
    """The same toolset with each call recorded: inside what asks for approvals, around everything of one's own."""
    if isinstance(toolset, CombinedToolset):
        return replace(toolset, toolsets=[guarded(one, run) for one in toolset.toolsets])
    if isinstance(toolset, WrapperToolset) and type(toolset).call_tool.__module__.startswith("pydantic_ai.toolsets."):
        return replace(toolset, wrapped=guarded(toolset.wrapped, run))
    return RecordedToolset(toolset, run)


def _stored(operation: OpenCall, given: dict[str, Any], tool: ToolsetTool[Any]) -> dict[str, Any]:
    """The recorded arguments, as the tool takes them: what was hashed is what is used."""
    stored: dict[str, Any] = tool.args_validator.validate_json(encode(operation.arguments))
    if stored != given and _text(stored) != _text(given):
        raise AgentUnsupported("a call with other arguments than the model's", "let the model make a call of its own")
    return stored


def _text(arguments: object) -> object:
    return pydantic_core.to_jsonable_python(arguments, serialize_unknown=True)


def _left(name: str, error: Exception, operation: OpenCall) -> Exception:
    if isinstance(error, AgentUnsupported):
        operation.refused(str(error))
        return error
    operation.error(error)
    kind = type(error).__name__
    return AgentUnsupported(f"{kind} from the body of {name}", "ask before it: `Tool(requires_approval=True)`")


def _plain(returned: Any) -> object:
    """What is recorded: JSON as the agent itself would show it; files have no place in it."""
    value = returned.return_value if isinstance(returned, ToolReturn) else returned
    if _has_files(value):
        return value
    try:
        return pydantic_core.to_jsonable_python(value)
    except (pydantic_core.PydanticSerializationError, ValueError):
        return value  # judged where every result is


def _has_files(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_files, value))
    return getattr(value, "kind", None) in {"binary", "image-url", "audio-url", "video-url", "document-url"}


def _given(answer: Answer, returned: Any, problem: Exception | None) -> Any:
    """What the model is shown: only what is committed."""
    match problem:
        case ModelRetry():
            raise ModelRetry(result_text(answer.result)) from problem
        case ToolFailed():
            raise ToolFailed(result_text(answer.result)) from problem
        case Exception():
            raise problem
        case None:
            pass
    if answer.is_error:
        raise ToolFailed(result_text(answer.result))
    return returned
