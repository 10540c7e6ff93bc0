"""A segment's events, taken in one by one and kept as blocks: messages and model steps. SPEC section 12.

A step is one block, so whatever arrived while it was open stands after it, and an answer that was recorded after the
terminal event stands where its call's step is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ..events.event import RunEvent
from ..events.model import HostMessage, ModelText, ModelThinking, UserMessage
from ..events.run import ContinuationStarted, RunOpened
from ..events.tool import Statement, ToolAttested, ToolCalled, ToolResponded
from ..identifiers import EventId, StepId
from ..sentences import SentenceId, render
from .items import HostItem, Item, MessageItem, UserItem
from .origin import Origin, origin_of
from .steps import NOTHING_SHOWN, StepBlock

Block: TypeAlias = MessageItem | StepBlock

_PROJECTED = frozenset(
    {
        ToolCalled,
        ModelText,
        ModelThinking,
        ToolResponded,
        UserMessage,
        HostMessage,
        ToolAttested,
        RunOpened,
        ContinuationStarted,
    }
)


class SegmentBlocks:
    """The provider-visible facts of one run, in the order in which a history shows them.

    A live run keeps one and feeds it what it commits: `items` then costs what is new, not the whole run.
    """

    __slots__ = ("_answers", "_attested", "_by_call", "_by_step", "_settled", "_settled_items", "blocks", "origin")

    def __init__(self, events: Iterable[RunEvent] = ()) -> None:
        self.blocks: list[Block] = []
        self.origin: Origin | None = None
        self._by_step: dict[StepId, StepBlock] = {}
        self._by_call: dict[str, StepBlock] = {}
        self._attested: dict[str, str] = {}
        self._settled = 0
        self._settled_items: list[Item] = []
        self.feed(events)

    def feed(self, events: Iterable[RunEvent]) -> None:
        """Take in the next events; what no provider sees costs one look at its type."""
        by_step, by_call, blocks = self._by_step, self._by_call, self.blocks
        # Exact types: `isinstance` is slow on pydantic models, and half of the events are none of these.
        for event in [event for event in events if type(event) in _PROJECTED]:
            if type(event) is ToolCalled or type(event) is ModelText or type(event) is ModelThinking:
                step = by_step.get(event.step_id)
                if step is None:
                    step = by_step[event.step_id] = StepBlock(event.step_id)
                    blocks.append(step)
                step.parts.append(event)
                if type(event) is ToolCalled:
                    step.calls += 1
                    by_call[event.call_id] = step
            elif type(event) is ToolResponded:
                step = by_call.get(event.call_id)
                if step is not None:  # an orphan is corruption, which the resolver reports
                    self._answer(step, event)
            elif type(event) is UserMessage:
                blocks.append(UserItem(event.event_id, event.text, event.attachments, event.steering))
            elif type(event) is HostMessage:
                blocks.append(HostItem(event.event_id, event.text, event.sentence_id))
            elif type(event) is ToolAttested:
                self._attest(event)
            elif type(event) is RunOpened or type(event) is ContinuationStarted:
                self.origin = origin_of(event.profile)

    def items(self) -> tuple[Item, ...]:
        """The history of a run that goes on; calls that have no answer yet are not in it."""
        left_out: list[EventId] = []
        while self._settled < len(self.blocks) - 1:  # the last may still grow
            block = self.blocks[self._settled]
            if isinstance(block, StepBlock) and block.is_open:
                break
            append_block(block, self._settled_items, left_out)
            self._settled += 1
        pending: list[Item] = []
        for block in self.blocks[self._settled :]:
            append_block(block, pending, left_out)
        return (*self._settled_items, *pending)

    def _answer(self, step: StepBlock, event: ToolResponded) -> None:
        step.answers.setdefault(event.call_id, event)
        if self._attested and event.operation_id in self._attested:
            if step.attested is None:
                step.attested = {}
            step.attested[event.call_id] = self._attested[event.operation_id]

    def _attest(self, event: ToolAttested) -> None:
        # The answer that an attestation makes follows it; one to an answered call rewrites no history.
        if event.statement is Statement.OVER:
            return
        completed = event.statement is Statement.COMPLETED
        said = SentenceId.ATTESTED_COMPLETED if completed else SentenceId.ATTESTED_NOT_EXECUTED
        self._attested[event.operation_id] = render(said, {"by": event.by})


def append_block(block: Block, out: list[Item], left_out: list[EventId]) -> None:
    """Append the items of a block whose calls need no computed answer."""
    if type(block) is StepBlock:
        block.project(out, NOTHING_SHOWN, left_out)
    else:
        out.append(block)  # type: ignore[arg-type]  # a block that is no step is an item
