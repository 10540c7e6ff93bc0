"""Makes facts of a model step: fresh call ids where the provider's are empty or used, strict arguments or their text. SPEC section 4."""

from __future__ import annotations

from collections.abc import Callable

from ..domain.commands import StepFact
from ..domain.events.model import ModelStepCompleted, ModelText, ModelThinking
from ..domain.events.tool import ToolCalled
from ..domain.identifiers import ID_LENGTH_MAX, StepId, ToolCallId, parse_id
from ..domain.tool_arguments import NotStrictJson, parse_arguments
from ..ports.ids import Ids
from ..ports.model_step import CallBlock, StepFinished, TextBlock, ThinkingBlock
from .run_recorder import RunRecorder


def facts_of_step(finished: StepFinished, recorder: RunRecorder, ids: Ids) -> tuple[StepFact, ...]:
    """The facts of one finished step, its completion last.

    Raises:
        ValueError: a block cannot be recorded, such as a tool name with control characters; nothing may be recorded then.
    """
    step_id = ids.fresh(StepId)
    used = recorder.run().calls
    taken: set[str] = set()

    def call_id_of(block: CallBlock) -> ToolCallId:
        offered = block.provider_call_id
        if offered and offered not in taken and offered not in used and _legal(offered):
            taken.add(offered)
            return ToolCallId(offered)
        return ids.fresh(ToolCallId)

    facts: list[StepFact] = [_fact(block, step_id, recorder, call_id_of) for block in finished.blocks]
    facts.append(
        ModelStepCompleted(
            **recorder.spine(),
            step_id=step_id,
            finish_reason=finished.finish_reason,
            model=finished.model,
            provider_response_id=finished.provider_response_id,
            usage=finished.usage,
        )
    )
    return tuple(facts)


def _fact(
    block: TextBlock | ThinkingBlock | CallBlock,
    step_id: StepId,
    recorder: RunRecorder,
    call_id_of: Callable[[CallBlock], ToolCallId],
) -> StepFact:
    spine = recorder.spine()
    match block:
        case TextBlock():
            return ModelText(**spine, step_id=step_id, text=block.text, provider_options=block.provider_options)
        case ThinkingBlock():
            return ModelThinking(
                **spine,
                step_id=step_id,
                text=block.text,
                signature=block.signature,
                provider_options=block.provider_options,
            )
        case CallBlock():
            return _call(block, step_id, recorder, call_id_of(block))


def _call(block: CallBlock, step_id: StepId, recorder: RunRecorder, call_id: ToolCallId) -> ToolCalled:
    parsed = parse_arguments(block.arguments_text)
    return ToolCalled(
        **recorder.spine(),
        step_id=step_id,
        call_id=call_id,
        provider_call_id=block.provider_call_id,
        tool_name=block.tool_name,
        args=None if isinstance(parsed, NotStrictJson) else parsed.args,
        args_text=parsed.text if isinstance(parsed, NotStrictJson) else None,
        provider_options=block.provider_options,
    )


def _legal(offered: str) -> bool:
    if len(offered) > ID_LENGTH_MAX:
        return False
    try:
        parse_id(offered, "call id")
    except ValueError:
        return False
    return True
