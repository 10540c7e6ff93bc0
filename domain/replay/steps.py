"""One model step with the answers to its calls, as one block of a history. SPEC section 12."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..identifiers import EventId, StepId
from ..sentences import render
from .items import CallItem, Item, PartItem, ResultItem, TextItem, ThinkingItem


class Shown(NamedTuple):
    """The answer that is computed for a call whose outcome is unknown: which sentence, and of which fact it speaks."""

    sentence_id: str
    about: EventId


NOTHING_SHOWN: Mapping[str, Shown] = {}


class StepBlock:
    """A model step's parts in the provider's order, and by call id the answers, however late they came."""

    __slots__ = ("answers", "calls", "parts", "step_id")

    def __init__(self, step_id: StepId) -> None:
        self.step_id = step_id
        self.parts: list[PartItem] = []
        self.calls = 0
        self.answers: dict[str, ResultItem] = {}

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
            if type(part) is CallItem and part.call_id not in self.answers and part.call_id not in shown
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
        thinking: list[Item] = []
        results: list[Item] = []
        for part in self.parts:
            item = part
            if type(item) is ThinkingItem:
                thinking.append(item)
                continue
            if type(item) is CallItem:
                result = self.answers.get(item.call_id) or self._computed(item, shown)
                if result is None:
                    continue
                results.append(result)
            if not whole and item.provider_options is not None:
                item = item._replace(provider_options=None)
            if type(item) is TextItem and not item.text and item.provider_options is None:
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

    def _computed(self, call: CallItem, shown: Mapping[str, Shown]) -> ResultItem | None:
        computed = shown.get(call.call_id)
        if computed is None:
            return None
        text = render(computed.sentence_id)
        return ResultItem(computed.about, self.step_id, call.call_id, call.tool_name, text, True, computed.sentence_id)
