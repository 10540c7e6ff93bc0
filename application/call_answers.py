"""What a loop of others is told of its calls: a committed answer, or why there is none. SPEC sections 8 and 17."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.errors import SafepointError
from ..domain.events.event import Json
from ..domain.events.tool import Effect, ToolCalled, ToolResponded
from ..domain.identifiers import OperationId, RunId, ToolCallId
from ..domain.own_copies import own
from .run_recorder import RunRecorder


@dataclass(frozen=True, slots=True)
class Answer:
    """A committed answer to a call: what the model is to be shown. Its result is a copy, for whoever asked.

    Attributes:
        call_id: ours, which is the provider's where that was fresh.
        provider_call_id: as the provider sent it.
        effect: what is known of the effect: `done`, `none` or `unknown`.
        code: why it is not simply what the tool returned.
    """

    call_id: ToolCallId
    provider_call_id: str | None
    tool_name: str
    result: Json
    is_error: bool
    effect: Effect
    code: str | None = None


class CallRefused(SafepointError):
    """The call is answered, and must not be carried out.

    Attributes:
        answer: what the model is to be shown; it is committed.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"the call of {answer.tool_name} is refused: {answer.result}")
        self.answer = answer


class RunStopped(SafepointError):
    """Nothing more of this run may be asked for or carried out; its end answers what waits.

    Attributes:
        by: who stopped it; None where an operation was left without an outcome, or the run could not be recorded.
    """

    def __init__(self, run_id: RunId, by: str | None) -> None:
        why = "an operation of it has no outcome, or it could not be recorded" if by is None else f"{by} stopped it"
        super().__init__(f"nothing more happens in run {run_id}: {why}")
        self.run_id = run_id
        self.by = by


class OutcomeNotDeclared(SafepointError):
    """A call was left, or ended, and nobody said what came of it: the operation is indeterminate, and stays so.

    Attributes:
        operation_id: which one.
    """

    def __init__(self, operation_id: OperationId, tool_name: str) -> None:
        super().__init__(f"operation {operation_id} ({tool_name}) was left without an outcome")
        self.operation_id = operation_id
        self.tool_name = tool_name


def answer_of(recorder: RunRecorder, call: ToolCalled) -> Answer | None:
    """The committed answer to a call, None where it has none."""
    event = _response_to(recorder, call)
    if event is None:
        return None
    return Answer(
        call.call_id,
        call.provider_call_id,
        call.tool_name,
        own(event.result),
        event.is_error,
        event.effect,
        event.code,
    )


def is_answered(recorder: RunRecorder, call: ToolCalled) -> bool:
    """Whether a call has its committed answer."""
    return _response_to(recorder, call) is not None


def _response_to(recorder: RunRecorder, call: ToolCalled) -> ToolResponded | None:
    for event in reversed(recorder.events):
        if isinstance(event, ToolResponded) and event.call_id == call.call_id:
            return event
        if event is call:
            break
    return None
