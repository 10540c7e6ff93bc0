"""One call of a graph's tool, carried out at most once: preflight, T1, the tool, T2. SPEC section 8."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolInvocationError
from langgraph.types import Command

from ...application.call_answers import CallRefused
from ...application.current_call import handed
from ...application.open_call import OpenCall
from ...domain.events.tool import ToolCalled
from ...domain.own_copies import own
from ...ports.tool_catalog import BoundCall, ToolCatalog
from ..embedding.cancelled_body import ends_when_cancelled
from .messages import result_id, shown
from .refusals import InterruptInTool, StateDiffers
from .turn import Turn

Execute: TypeAlias = Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]


async def carried_out(
    turn: Turn, state: Sequence[AnyMessage], catalog: ToolCatalog, request: ToolCallRequest, execute: Execute
) -> ToolMessage:
    """Record the step that the call belongs to, and give its answer: a recorded one, or what comes of calling the tool.

    Args:
        state: the messages that the tools' node was given.
        execute: lets the graph's own tool do it.

    Raises:
        StateDiffers: the call belongs to no message of the turn.
        BudgetSpent, RunStopped, InterruptInTool, StoreError, WriteRefused: as `Threads.awrap_tool_call`.
    """
    asked = request.tool_call
    said = (one for one in reversed(state) if isinstance(one, AIMessage) and asked["id"] in _call_ids(one))
    message = next(said, None)
    await turn.record(state)
    call = None if message is None else turn.called(message, asked["id"])
    if message is None or call is None:
        raise StateDiffers(turn.thread_id, f"{asked['name']} is called for a message that is no part of the open turn")
    async with _in_order(turn, catalog, call):
        answered = turn.run.answer(call)
        if answered is not None:
            return shown(answered, message, asked)
        returned: ToolMessage | None = None
        try:
            async with turn.run.tool_call(call) as operation:
                returned = await _done(operation, request, execute)
        except CallRefused as refused:
            return shown(refused.answer, message, asked)
        answer = operation.answer
        if returned is None or answer.code is not None or answer.is_error:
            return shown(answer, message, asked)
        return returned.model_copy(update={"id": result_id(message, asked["id"])})


def _in_order(turn: Turn, catalog: ToolCatalog, call: ToolCalled) -> AbstractAsyncContextManager[object]:
    """Calls that may have an effect run one after the other, in call order; readers wait for nobody."""
    bound = catalog.bind(call.tool_name, own(call.args))
    reads = isinstance(bound, BoundCall) and not bound.needs_permission
    return nullcontext() if reads else turn.order


async def _done(operation: OpenCall, request: ToolCallRequest, execute: Execute) -> ToolMessage | None:
    """Let the graph's own tool do it, with the stored arguments, and declare what came of it."""
    stored = request.override(tool_call={**request.tool_call, "args": operation.arguments})
    try:
        asynchronous = getattr(request.tool, "coroutine", None) is not None
        with handed(operation.context), ends_when_cancelled(operation, asynchronous=asynchronous):
            returned = await execute(stored)
    except GraphBubbleUp:
        operation.error("The tool left its call by an interrupt or a jump; its effect is not certain.")
        raise InterruptInTool(operation.call.tool_name) from None
    except ToolInvocationError as error:
        operation.refused(str(error))
    except Exception as error:  # noqa: BLE001 (whatever a tool raises is an answer)
        operation.error(error)
    else:
        if isinstance(returned, ToolMessage) and returned.status == "error":
            operation.error(returned.content)
        elif isinstance(returned, ToolMessage):
            operation.result(returned.content)
            return returned
        else:
            operation.result(returned)  # no strict JSON: the answer says that the effect did happen
    return None


def _call_ids(message: AIMessage) -> set[str | None]:
    return {call["id"] for call in message.tool_calls}
