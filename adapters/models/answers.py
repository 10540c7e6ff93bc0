"""What a model answered to somebody else's client, as a finished step that can be recorded. SPEC F5.

One function a format. Each takes what the official client gave, or the same as JSON, and holds it to the rules that a
streamed answer is held to: nothing unfinished becomes a step, and nothing that only the provider understands is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ports.model_step import StepFinished
from ...ports.provider_failures import ProviderFailed
from .anthropic_stream import step_of_message
from .openai_stream import StreamedStep
from .responses_answer import step_of_response


def step_from_openai_chat(completion: object) -> StepFinished:
    """Give the step of a chat completion; its first choice counts.

    Args:
        completion: a `ChatCompletion`, or its JSON.

    Raises:
        ProviderStreamIncomplete: there is no finish reason.
        ProviderFailed: it is no completion, or what it holds cannot be recorded.
    """
    fields = _fields_of(completion, "choices")
    choices = fields.get("choices")
    step = StreamedStep()
    whole = [{**choice, "delta": choice.get("message")} for choice in _objects(choices)]
    list(step.take({**fields, "choices": whole}))
    return step.finished()


def step_from_openai_responses(response: object) -> StepFinished:
    """Give the step of a response.

    Args:
        response: a `Response`, or its JSON.

    Raises:
        ProviderStreamIncomplete: it has not ended.
        ProviderFailed: it failed, or what it holds cannot be recorded.
    """
    return step_of_response(_fields_of(response, "output"))


def step_from_anthropic(message: object) -> StepFinished:
    """Give the step of a message.

    Args:
        message: a `Message`, or its JSON.

    Raises:
        ProviderStreamIncomplete: there is no stop reason.
        ProviderFailed: it is no message, or what it holds cannot be recorded.
    """
    return step_of_message(_fields_of(message, "content"))


def _fields_of(answer: object, has: str) -> Mapping[str, Any]:
    """The JSON object of an answer, with the members that the provider sent and no others.

    Args:
        has: a member of every such answer, an error but for that.
    """
    fields = _json_of(answer)
    if has not in fields and "error" not in fields:
        raise ProviderFailed(f"this is no answer of that format, which has `{has}`: give the whole of it, as it came")
    return fields


def _json_of(answer: object) -> Mapping[str, Any]:
    if isinstance(answer, Mapping):
        return answer
    dump = getattr(answer, "model_dump", None)
    if dump is None:
        raise ProviderFailed(f"{type(answer).__name__} is no answer of a client that is known here")
    fields: Mapping[str, Any] = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    return fields


def _objects(values: object) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
