"""What a model provider says while it answers, and the step that it finished. SPEC F5 and R13."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..domain.events.event import Json
from ..domain.events.model import Usage


class TextDelta(NamedTuple):
    """More text, for display only: it never enters a record, a digest or a replay."""

    text: str


class ThinkingDelta(NamedTuple):
    """More reasoning, for display only."""

    text: str


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text of a finished step."""

    text: str
    provider_options: Json = None


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Reasoning of a finished step; signature and options are kept byte for byte."""

    text: str
    signature: str | None = None
    provider_options: Json = None


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A tool call of a finished step, as the provider sent it.

    Attributes:
        provider_call_id: may be None, empty, or one that was used before: intake gives it a fresh one.
        tool_name: 1 to 200 characters without control characters; whether such a tool exists is not asked here.
        arguments_text: raw text; `parse_arguments` alone decides whether it is strict JSON.
    """

    provider_call_id: str | None
    tool_name: str
    arguments_text: str
    provider_options: Json = None


Block: TypeAlias = TextBlock | ThinkingBlock | CallBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """The provider finished the step: the only thing that may be recorded.

    Attributes:
        blocks: in the order in which the provider made them; no text in them holds a lone surrogate.
        finish_reason: the provider's word, such as `stop`, `tool_use` or `length`; never empty. One that is not among
            `ORDINARY_FINISHES` of the planner is told of as an answer that was cut short.
        model: the model that answered, where the provider says so.
    """

    blocks: tuple[Block, ...]
    finish_reason: str
    model: str | None = None
    provider_response_id: str | None = None
    usage: Usage | None = None

    @property
    def calls(self) -> tuple[CallBlock, ...]:
        """The tool calls of the step, in order."""
        return tuple(block for block in self.blocks if isinstance(block, CallBlock))

    @property
    def text(self) -> str:
        """The text of the step."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))


ModelPart: TypeAlias = TextDelta | ThinkingDelta | StepFinished
