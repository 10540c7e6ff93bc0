"""From the chunks of a streamed chat completion to one finished step, or to a typed failure. SPEC F5.

The chunks are read with types of our own: the client does not validate what a server sends, and servers that merely
speak this protocol send fields of any kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, Field, ValidationError

from ...domain.events.model import Usage
from ...ports.model_step import Block, CallBlock, StepFinished, TextBlock, TextDelta, ThinkingBlock, ThinkingDelta
from ...ports.provider_failures import ProviderFailed, ProviderStreamIncomplete
from .streamed_text import AnswerSize, shown, tool_name, whole

_CUT_SHORT: Final = frozenset({"length", "content_filter"})


class _Function(BaseModel):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(BaseModel):
    index: int | None = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: Annotated[int, Field(ge=0)] | None = None
    completion_tokens: Annotated[int, Field(ge=0)] | None = None


class _Chunk(BaseModel):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


@dataclass(slots=True)
class _Call:
    """A call in the making: nothing of it is a call until the step has finished."""

    index: int | None
    id: str | None
    name: str
    arguments: list[str]


class StreamedStep:
    """Collects the chunks of one answer."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._size = AnswerSize()
        self._finish_reason = ""
        self._model: str | None = None
        self._response_id: str | None = None
        self._usage: Usage | None = None

    @property
    def is_begun(self) -> bool:
        """True: an error in this protocol's stream never proves that no answer was begun."""
        return True

    @property
    def is_finished(self) -> bool:
        """True once the provider gave a finish reason."""
        return bool(self._finish_reason)

    def take(self, fields: object) -> Iterator[TextDelta | ThinkingDelta]:
        """Add a chunk, as the JSON object that the server sent, and give what may be shown of it.

        Raises:
            ProviderFailed: it is not a chunk of a chat completion, or comes after the end.
        """
        try:
            chunk = _Chunk.model_validate(fields)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the chunk"
            raise ProviderFailed(
                f"the provider's stream is not that of a chat completion: {where}: {first['msg']}"
            ) from error
        self._model = chunk.model or self._model
        self._response_id = chunk.id or self._response_id
        if chunk.usage is not None:
            tokens = chunk.usage
            self._usage = Usage(input_tokens=tokens.prompt_tokens or 0, output_tokens=tokens.completion_tokens or 0)
        for choice in chunk.choices or ():
            if not choice.index:  # another answer beside the first was not asked for
                yield from self._take_choice(choice)

    def _take_choice(self, choice: _Choice) -> Iterator[TextDelta | ThinkingDelta]:
        delta = choice.delta or _Delta()
        text = (delta.content or "") + (delta.refusal or "")
        thinking = next((told for told in (delta.reasoning_content, delta.reasoning) if isinstance(told, str)), "")
        if self.is_finished and (text or thinking or delta.tool_calls):
            raise ProviderFailed("the provider went on after it had finished the step")
        if thinking:
            self._size.add(thinking)
            self._thinking.append(thinking)
            yield ThinkingDelta(shown(thinking))
        if text:
            self._size.add(text)
            self._text.append(text)
            yield TextDelta(shown(text))
        for fragment in delta.tool_calls or ():
            self._take_fragment(fragment)
        self._finish_reason = choice.finish_reason or self._finish_reason

    def _take_fragment(self, fragment: _CallDelta) -> None:
        function = fragment.function or _Function()
        call = self._call_of(fragment, function)
        if function.name and function.name != call.name:
            if call.name:
                raise ProviderFailed("the provider changed the name of a tool call while it sent it")
            call.name = function.name
        if function.arguments:
            self._size.add(function.arguments)
            call.arguments.append(function.arguments)

    def _call_of(self, fragment: _CallDelta, function: _Function) -> _Call:
        """Find the call of a fragment: by its index, and by its id where a server uses one index for all."""
        if fragment.index is None:
            known = self._calls[-1] if self._calls and not function.name else None
        else:
            known = next((call for call in reversed(self._calls) if call.index == fragment.index), None)
        if known is not None and (not fragment.id or not known.id or fragment.id == known.id):
            known.id = known.id or fragment.id
            return known
        call = _Call(fragment.index, fragment.id, "", [])
        self._calls.append(call)
        return call

    def finished(self) -> StepFinished:
        """Give the finished step.

        Raises:
            ProviderStreamIncomplete: no finish reason came, or a call without a name.
            ProviderFailed: what came cannot be recorded.
        """
        if not self.is_finished:
            raise ProviderStreamIncomplete("the provider's answer ended without a finish reason")
        if self._finish_reason == "tool_calls" and not self._calls:
            raise ProviderFailed("the provider finished with tool_calls and sent no tool call in a form that is known")
        blocks: list[Block] = []
        if thinking := whole("".join(self._thinking)):
            blocks.append(ThinkingBlock(thinking))
        if text := whole("".join(self._text)):
            blocks.append(TextBlock(text))
        blocks.extend(self._block_of(call) for call in self._calls)
        return StepFinished(
            blocks=tuple(blocks),
            finish_reason=whole(self._finish_reason),
            model=self._model and whole(self._model),
            provider_response_id=self._response_id and whole(self._response_id),
            usage=self._usage,
        )

    def _block_of(self, call: _Call) -> CallBlock:
        name = tool_name(call.name)
        arguments = whole("".join(call.arguments))
        if not arguments and self._finish_reason not in _CUT_SHORT:
            arguments = "{}"  # this protocol sends a call without arguments as an empty text
        return CallBlock(call.id if call.id is None else whole(call.id), name, arguments)
