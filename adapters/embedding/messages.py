"""Histories and answers in the formats of the providers' own packages, by the name of the format. SPEC section 12."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from ...domain.canonical import encode
from ...domain.events.event import Json
from ...domain.replay.history import Replay
from ...domain.replay.items import Item
from ...ports.model_step import Block, CallBlock, StepFinished, TextBlock

Format: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic"]


def messages(history: Replay | Iterable[Item], format: Format, *, system_prompt: str = "") -> list[dict[str, Any]]:  # noqa: A002 (it is the word for it)
    """Make a provider's messages of a history: plain dictionaries, as the provider's own package takes them.

    >>> messages([], "openai-chat", system_prompt="Be careful.")
    [{'role': 'system', 'content': 'Be careful.'}]

    Args:
        history: of a run, or of a plan: it is legal for every provider.
        format: of the provider. In `openai-responses` and `anthropic` the system prompt is a parameter of the request.
        system_prompt: stands first in `openai-chat`, where it is not empty.

    Raises:
        ValueError: there is no such format.
    """
    made: list[Any]
    match format:
        case "openai-chat":
            from ..histories.openai_chat import to_openai_chat

            made = [*to_openai_chat(history, system_prompt=system_prompt)]
        case "openai-responses":
            from ..histories.openai_responses import to_openai_responses

            made = [*to_openai_responses(history)]
        case "anthropic":
            from ..histories.anthropic import to_anthropic

            made = [*to_anthropic(history)]
        case _:
            raise _unknown(format)
    return made


def step_from(answer: object, format: Format) -> StepFinished:  # noqa: A002 (it is the word for it)
    """Read what a model answered, whole, as the provider's own package gave it, or as its dictionary.

    Raises:
        ProviderFailed, ProviderStreamIncomplete: it is no finished step.
        ValueError: there is no such format.
    """
    from ..models.answers import step_from_anthropic, step_from_openai_chat, step_from_openai_responses

    match format:
        case "openai-chat":
            return step_from_openai_chat(answer)
        case "openai-responses":
            return step_from_openai_responses(answer)
        case "anthropic":
            return step_from_anthropic(answer)
        case _:
            raise _unknown(format)


def _unknown(name: object) -> ValueError:
    return ValueError(f"{name!r} is no format: give 'openai-chat', 'openai-responses' or 'anthropic'")


def tool_call(call_id: str | None, tool_name: str, arguments: Json) -> CallBlock:
    """One call that a model asked for, as part of a `step`.

    >>> tool_call("call_1", "pay", {"amount": 5}).arguments_text
    '{"amount":5}'

    Args:
        call_id: the provider's id; None or one that was used before gets one of ours.
        arguments: strict JSON; or their text, exactly as the provider sent it.

    Raises:
        CanonicalError: they are no strict JSON.
    """
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    return CallBlock(call_id, tool_name, text)


def step(*parts: Block | str, finish_reason: str | None = None, **more: Any) -> StepFinished:
    """One finished step of a model, made by hand: what it said and asked for, in its order.

    >>> step("I pay.", tool_call("call_1", "pay", {"amount": 5})).finish_reason
    'tool_calls'

    Args:
        parts: texts, thinking and calls.
        finish_reason: the provider's word; by default `tool_calls` where there are calls, else `stop`.
        more: `model`, `provider_response_id`, `usage`.
    """
    blocks = tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)
    asked = any(isinstance(block, CallBlock) for block in blocks)
    return StepFinished(blocks=blocks, finish_reason=finish_reason or ("tool_calls" if asked else "stop"), **more)
