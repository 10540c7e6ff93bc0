"""From pydantic-ai's messages to recorded steps, and back. SPEC section 12."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ...domain.events.event import Json
from ...domain.events.model import Usage
from ...domain.own_copies import own
from ...domain.replay.history import Replay
from ...domain.replay.items import CallItem, Item, ResultItem, TextItem, ThinkingItem
from ...ports.model_step import Block, CallBlock, StepFinished, TextBlock, ThinkingBlock
from ..embedding.recorded import RecordedRun
from ..embedding.unrecordable import NotRecordable
from ..histories.kept import kept_in
from ..histories.spelling import items_in

KEPT: Final = "pydantic_ai"
"""The member of provider options that holds what only pydantic-ai understands of a part."""
_FIELDS: Final = ("id", "provider_name", "provider_details")


def step_of(response: ModelResponse, outputs: Collection[str] = ()) -> StepFinished:
    """The finished step of a response.

    Args:
        outputs: names of output tools: what the model gives them is its answer, and is kept as text.

    Raises:
        NotRecordable: it did not finish, or holds what has no place in the record.
    """
    if response.state != "complete":
        raise NotRecordable(f"a response that is {response.state}", "only what a model finished is recorded")
    blocks = [_block(part, outputs) for part in response.parts]
    called = any(isinstance(block, CallBlock) for block in blocks)
    return StepFinished(
        blocks=tuple(block for block in blocks if not isinstance(block, TextBlock) or block.text),
        finish_reason="tool_calls" if called else response.finish_reason or "stop",
        model=response.model_name,
        provider_response_id=response.provider_response_id,
        usage=Usage(input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens),
    )


def _block(part: ModelResponsePart, outputs: Collection[str]) -> Block:
    match part:
        case TextPart():
            return TextBlock(part.content, provider_options=_kept(part))
        case ThinkingPart():
            return ThinkingBlock(part.content, part.signature, _kept(part))
        case ToolCallPart() if part.tool_name in outputs:
            return TextBlock(part.args_as_json_str())
        case ToolCallPart():
            return CallBlock(part.tool_call_id, part.tool_name, part.args_as_json_str(), _kept(part))
        case _:
            raise NotRecordable(f"a part of kind {part.part_kind}", "take tools that run here, and text")


def _kept(part: TextPart | ThinkingPart | ToolCallPart) -> Json:
    kept: dict[str, Json] = {name: value for name in _FIELDS if (value := getattr(part, name)) is not None}
    return {KEPT: kept} if kept else None


def history(run: RecordedRun | Replay | Iterable[Item]) -> list[ModelMessage]:
    """What the agent goes on with: `await agent.run(message_history=history(run), capabilities=[Recording(run)])`.

    Args:
        run: an open run; or a plan's `replay`, or items. The agent's own instructions are no part of it.
    """
    items = run.history() if isinstance(run, RecordedRun) else items_in(run)
    messages: list[ModelMessage] = []
    step: object = None
    for item in items:
        if isinstance(item, TextItem | ThinkingItem | CallItem):
            if step != item.step_id:
                messages.append(ModelResponse(parts=[]))
            step = item.step_id
            messages[-1].parts = [*messages[-1].parts, _part(item)]
            continue
        said: ModelRequestPart = _result(item) if isinstance(item, ResultItem) else UserPromptPart(item.text)
        last = messages[-1] if messages else None
        if isinstance(last, ModelRequest):
            last.parts = [*last.parts, said]
        else:
            messages.append(ModelRequest(parts=[said]))
    return messages


def _part(item: TextItem | ThinkingItem | CallItem) -> ModelResponsePart:
    found = kept_in(KEPT, item.provider_options)
    kept: dict[str, Any] = {name: found[name] for name in _FIELDS if name in found}
    match item:
        case TextItem():
            return TextPart(item.text, **kept)
        case ThinkingItem():
            return ThinkingPart(item.text, signature=item.signature, **kept)
        case CallItem():
            arguments = item.args_text if item.args_text is not None else own(item.args)
            return ToolCallPart(item.tool_name, arguments, tool_call_id=item.call_id, **kept)  # type: ignore[arg-type]


def _result(item: ResultItem) -> ToolReturnPart[Any]:
    outcome: Any = "failed" if item.is_error else "success"
    return ToolReturnPart(item.tool_name, own(item.result), tool_call_id=item.call_id, outcome=outcome)
