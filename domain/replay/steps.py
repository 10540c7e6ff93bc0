"""One model step with the answers to its calls, as one block of a history. SPEC section 12."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ..events.event import Json
from ..events.model import ModelText, ModelThinking
from ..events.tool import ToolCalled, ToolResponded
from ..identifiers import EventId, StepId
from ..sentences import SentenceId, render
from .items import CallItem, Item, ResultItem, TextItem, ThinkingItem

Part: TypeAlias = ModelText | ModelThinking | ToolCalled


class Shown(NamedTuple):
    """The answer that is computed for a call whose outcome is unknown: which sentence, and of which fact it speaks."""

    sentence_id: str
    about: EventId


NOTHING_SHOWN: Mapping[str, Shown] = {}


class StepBlock:
    """A model step's parts in the provider's order, and the answers, however late they came.

    `attested` holds, by call id, what is said beside an answer that a person gave.
    """

    __slots__ = ("answers", "attested", "calls", "parts", "step_id")

    def __init__(self, step_id: StepId) -> None:
        self.step_id = step_id
        self.parts: list[Part] = []
        self.calls = 0
        self.answers: dict[str, ToolResponded] = {}
        self.attested: dict[str, str] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a call of it has no stored answer."""
        return len(self.answers) < self.calls

    def unanswered(self, shown: Mapping[str, Shown]) -> list[EventId]:
        """Its calls that have neither a stored nor a computed answer, in order."""
        if len(self.answers) == self.calls:
            return []
        return [
            part.event_id
            for part in self.parts
            if type(part) is ToolCalled and part.call_id not in self.answers and part.call_id not in shown
        ]

    def project(self, out: list[Item], shown: Mapping[str, Shown], left_out: list[EventId]) -> int:
        """Append the step's items: its parts, then all its answers in call order. Calls go in with their answer only.

        Returns how many pairs of call and answer went in.

        Args:
            out: the history so far.
            shown: call id -> the answer that is computed where none is stored.
            left_out: receives thinking that cannot be shown although its step is.
        """
        # Providers refuse reasoning without the item that followed it, and item ids without their reasoning: where a
        # call is left out, its step's thinking and opaque blobs are left out with it.
        whole = len(self.answers) == self.calls or not self.unanswered(shown)
        step_id = self.step_id
        thinking: list[Item] = []
        results: list[Item] = []
        for part in self.parts:
            if type(part) is ToolCalled:
                result = self._result(part, shown)
                if result is None:
                    continue
                options = part.provider_options if whole else None
                item: Item = CallItem(
                    part.event_id,
                    step_id,
                    part.call_id,
                    part.tool_name,
                    part.args,
                    part.args_text,
                    part.provider_text,
                    options,
                )
                results.append(result)
            elif type(part) is ModelText:
                options = part.provider_options if whole else None
                if not part.text and options is None:
                    continue
                item = TextItem(part.event_id, step_id, part.text, options)
            elif type(part) is ModelThinking:
                thinking.append(ThinkingItem(part.event_id, step_id, part.text, part.signature, part.provider_options))
                continue
            if thinking:
                if whole:
                    out += thinking
                else:
                    left_out.extend(thought.event_id for thought in thinking)
                thinking = []
            out.append(item)
        left_out.extend(thought.event_id for thought in thinking)
        out += results
        return len(results)

    def _result(self, call: ToolCalled, shown: Mapping[str, Shown]) -> Item | None:
        call_id = call.call_id
        answer = self.answers.get(call_id)
        if answer is not None:
            result = answer.result
            if answer.original_length is not None or self.attested is not None:
                result = self._with_note(answer)
            return ResultItem(answer.event_id, self.step_id, call_id, call.tool_name, result, answer.is_error)
        computed = shown.get(call_id)
        if computed is None:
            return None
        text = render(computed.sentence_id)
        return ResultItem(computed.about, self.step_id, call_id, call.tool_name, text, True, computed.sentence_id)

    def _with_note(self, answer: ToolResponded) -> Json:
        """The result with what the model must know of it: that a person attested it, that it is not whole."""
        notes = []
        if self.attested is not None and answer.call_id in self.attested:
            notes.append(self.attested[answer.call_id])
        if answer.original_length is not None:
            notes.append(render(SentenceId.RESULT_TRUNCATED, {"size": answer.original_length}))
        return {"note": " ".join(notes), "result": answer.result} if notes else answer.result
