"""Records a run of an agent: each answer of its model before anything of it is carried out. SPEC sections 8 and 17."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapModelRequestHandler, WrapOutputProcessHandler
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.output import OutputContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import AbstractToolset

from ..embedding.recorded import RecordedRun
from ..embedding.told_to_model import ToldToModel, is_open
from ..embedding.unrecordable import AgentUnsupported, NotRecordable, check_promised
from .messages import step_of
from .toolset import guarded


class Recording(AbstractCapability[Any]):
    """A capability for one run of an agent, or several within one recorded run.

        async with session.record("Pay the bill.") as run:
            await agent.run(message_history=history(run), capabilities=[Recording(run)])

    The user's message is the recorded one, so the agent is given no prompt.

    Args:
        run: open; the session was opened with the agent's tools, `promised`.
    """

    def __init__(self, run: RecordedRun) -> None:
        super().__init__()
        self.run = run
        self._asked = False

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Record the calls of every toolset."""
        return guarded(toolset, self.run)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        """Record what the model is shown that is not recorded, ask it, and record what it answered.

        Raises:
            AgentUnsupported: the agent has tools that run elsewhere, or that the runtime was not opened with; nothing
                was asked.
            NotRecordable: something has no place in the record.
            RunStopped, BudgetSpent: nothing was asked.
            StoreError, WriteRefused: it was not recorded; the agent goes no further.
        """
        outputs = _checked(request_context.model_request_parameters, self.run.tool_names)
        if self.run.stopped_by is None:
            await self._told(ctx.messages)
        self.run.check()
        response = await handler(request_context)
        await self.run.model_step(step_of(response, outputs))
        self._asked = True
        return response

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: WrapOutputProcessHandler
    ) -> Any:
        """Let an output be made; functions that make one are refused, since nothing would record them.

        Raises:
            AgentUnsupported: a function would be called.
        """
        if output_context.has_function:
            raise AgentUnsupported("an output function", "give the agent a tool, or call it with the agent's result")
        return await handler(output)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Record the answers to calls that the agent left out, once it has its result."""
        await self._declined(result.all_messages())
        return result

    async def _told(self, messages: list[ModelMessage]) -> None:
        await self._declined(messages)
        told = ToldToModel(self.run, asked=self._asked)
        for message in messages:
            for part in message.parts if isinstance(message, ModelRequest) else ():
                if isinstance(part, UserPromptPart | RetryFeedbackPart):
                    await told.say(_text_of(part))

    async def _declined(self, messages: list[ModelMessage]) -> None:
        """Calls of the newest step that the agent answered itself: not valid, not approved, not needed any more."""
        for message in reversed(messages):
            if not isinstance(message, ModelRequest):
                return
            for part in message.parts:
                if isinstance(part, ToolReturnPart) and is_open(self.run, part.tool_call_id):
                    await self.run.decline(part.tool_call_id, part.model_response_str())


def _checked(parameters: ModelRequestParameters, known: Collection[str]) -> frozenset[str]:
    """The names of the output tools."""
    for native in parameters.native_tools:
        raise AgentUnsupported(f"the provider's own tool {native.kind}", "take a tool that runs here")
    for tool in parameters.function_tools:
        if tool.kind == "external":
            raise AgentUnsupported(f"the external tool {tool.name}", "take a tool that runs here")
    check_promised((tool.name for tool in parameters.function_tools), known)
    return frozenset(tool.name for tool in parameters.output_tools)


def _text_of(part: UserPromptPart | RetryFeedbackPart) -> str:
    if isinstance(part, RetryFeedbackPart):
        return part.model_response()
    content = part.content
    if isinstance(content, str):
        return content
    if not all(isinstance(one, str) for one in content):
        raise NotRecordable("a file in what the user says", "name it, and let a tool read it")
    return "\n".join(one for one in content if isinstance(one, str))
