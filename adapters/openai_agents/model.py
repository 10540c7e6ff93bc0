"""A model of the OpenAI Agents SDK whose answers are recorded before anything of them is done. SPEC section 17."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from agents import FunctionTool, Model, ModelResponse
from agents.items import TResponseInputItem, TResponseOutputItem
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from pydantic import BaseModel

from ..embedding.recorded import RecordedRun
from ..embedding.told_to_model import ToldToModel, is_open
from ..embedding.unrecordable import AgentUnsupported, NotRecordable
from .tools import RecordedInvoker

_KINDS: Final = ("message", "reasoning", "function_call")
_ELSEWHERE: Final = ("previous_response_id", "conversation_id")


class RecordedModel(Model):
    """Stands in front of a model: what it is shown and what it answers is recorded, in that order.

    Args:
        model: answers.
        run: open.
    """

    def __init__(self, model: Model, run: RecordedRun) -> None:
        self._model = model
        self._run = run
        self._asked = False
        self._recorded: list[object] = []

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 (the framework's word)
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> ModelResponse:
        """Ask the model, and record the whole of what it answered.

        Raises:
            AgentUnsupported: the agent has what runs elsewhere; nothing was asked.
            NotRecordable: something has no place in the record.
            RunStopped, BudgetSpent: nothing was asked.
            StoreError, WriteRefused: it was not recorded; the agent goes no further.
        """
        await self._before(input, tools, handoffs, more)
        response = await self._model.get_response(
            system_instructions, input, model_settings, tools, output_schema, handoffs, tracing, **more
        )
        await self._record(response.output, response.response_id, response.usage)
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 (the framework's word)
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        """Ask the model; that it has answered is told when the whole of it is recorded.

        Raises:
            AgentUnsupported, NotRecordable, RunStopped, BudgetSpent, StoreError, WriteRefused: as `get_response`.
        """
        await self._before(input, tools, handoffs, more)
        async for event in self._model.stream_response(
            system_instructions, input, model_settings, tools, output_schema, handoffs, tracing, **more
        ):
            if event.type == "response.completed":
                await self._record(event.response.output, event.response.id, event.response.usage)
            yield event

    def is_recorded(self, response: ModelResponse) -> bool:
        """Whether this is what the last recorded step answered."""
        return [*map(_json, response.output)] == self._recorded

    async def close(self) -> None:
        """See the model."""
        await self._model.close()

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """See the model."""
        return self._model.get_retry_advice(request)

    async def _before(
        self, shown: str | list[TResponseInputItem], tools: list[Any], handoffs: list[Any], more: Mapping[str, Any]
    ) -> None:
        for tool in tools:
            if not isinstance(tool, FunctionTool) or not isinstance(tool.on_invoke_tool, RecordedInvoker):
                name = getattr(tool, "name", type(tool).__name__)
                raise AgentUnsupported(f"the tool {name!r}", "take function tools of the agent that was `recorded`")
        if handoffs:
            raise AgentUnsupported("a handoff", "give the other agent as a tool: `agent.as_tool(...)`")
        for name in _ELSEWHERE:
            if more.get(name):
                raise AgentUnsupported(f"`{name}`", "give the agent `run.history('openai-responses')` alone")
        if self._run.stopped_by is None:
            await self._told(shown)
        self._run.check()

    async def _told(self, shown: str | list[TResponseInputItem]) -> None:
        items: Iterable[Any] = [{"role": "user", "content": shown}] if isinstance(shown, str) else shown
        told = ToldToModel(self._run, asked=self._asked)
        for item in items:
            if item.get("type") == "function_call_output":
                await self._answered(item)
            elif item.get("role") == "user":
                await told.say(_text_of(item.get("content")))

    async def _answered(self, item: Mapping[str, Any]) -> None:
        """Record an answer that the agent gave itself, such as a guardrail's, or that a call was not approved."""
        if is_open(self._run, item["call_id"]):
            output = item.get("output")
            await self._run.decline(item["call_id"], output if isinstance(output, str) else _text_of(output))

    async def _record(self, output: Iterable[TResponseOutputItem], response_id: str | None, usage: Any) -> None:
        items = [*map(_json, output)]
        for item in items:
            if item.get("type") not in _KINDS:
                raise NotRecordable(f"an answer of type {item.get('type')!r}", "take function tools, which run here")
        used = {name: getattr(usage, name, None) for name in ("input_tokens", "output_tokens")}
        answer = {"id": response_id, "status": "completed", "output": items, "usage": used}
        await self._run.model_step(answer, "openai-responses")
        self._asked, self._recorded = True, items


def _json(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True, warnings=False) if isinstance(item, BaseModel) else item


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [block.get("text") for block in content] if isinstance(content, list) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise NotRecordable("a file in what the model is shown", "name it, and let a tool read it")
    return "\n".join(map(str, texts))
