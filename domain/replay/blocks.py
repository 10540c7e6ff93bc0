"""A segment's events, taken in one by one and kept as blocks: messages and model steps. SPEC section 12.

A step is one block, so whatever arrived while it was open stands after it, and an answer that was recorded after the
terminal event stands where its call's step is. Of an event only what a provider may be shown is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeAlias

from ..events.event import Json, RunEvent
from ..events.model import HostMessage, ModelText, ModelThinking, UserMessage
from ..events.run import ContinuationStarted, RunOpened
from ..events.tool import Statement, ToolAttested, ToolCalled, ToolResponded
from ..identifiers import EventId, StepId
from ..sentences import SentenceId, render
from .items import CallItem, HostItem, Item, MessageItem, ResultItem, TextItem, ThinkingItem, UserItem
from .origin import Origin, origin_of
from .steps import NOTHING_SHOWN, StepBlock

Block: TypeAlias = MessageItem | StepBlock


class SegmentBlocks:
    """The provider-visible facts of one run, in the order in which a history shows them.

    A live run keeps one and feeds it what it commits: `items` then costs what is new, not the whole run.

    Attributes:
        origin: who made the model's part, None where no profile is recorded.
    """

    __slots__ = ("_attested", "_by_step", "_calls", "_settled", "_settled_items", "blocks", "origin")

    def __init__(self, events: Iterable[RunEvent] = ()) -> None:
        self.blocks: list[Block] = []
        self.origin: Origin | None = None
        self._by_step: dict[StepId, StepBlock] = {}
        self._calls: dict[str, CallItem] = {}
        self._attested: dict[str, str] = {}
        self._settled = 0
        self._settled_items: list[Item] = []
        for event in events:
            self.feed(event)

    def feed(self, event: RunEvent) -> None:
        """Take in the next event; one that no provider sees costs one look at its type."""
        take = self._TAKE.get(type(event))
        if take is not None:
            take(self, event)

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

    def _step(self, step_id: StepId) -> StepBlock:
        step = self._by_step.get(step_id)
        if step is None:
            step = self._by_step[step_id] = StepBlock(step_id)
            self.blocks.append(step)
        return step

    # ---- one method a kind ------------------------------------------------------------------------------------------

    def _take_opening(self, event: RunOpened | ContinuationStarted) -> None:
        self.origin = origin_of(event.profile)

    def _take_user(self, event: UserMessage) -> None:
        self.blocks.append(UserItem(event.event_id, event.text, event.attachments, event.steering))

    def _take_host(self, event: HostMessage) -> None:
        self.blocks.append(HostItem(event.event_id, event.text, event.sentence_id))

    def _take_text(self, event: ModelText) -> None:
        item = TextItem(event.event_id, event.step_id, event.text, event.provider_options)
        self._step(event.step_id).parts.append(item)

    def _take_thinking(self, event: ModelThinking) -> None:
        item = ThinkingItem(event.event_id, event.step_id, event.text, event.signature, event.provider_options)
        self._step(event.step_id).parts.append(item)

    def _take_call(self, event: ToolCalled) -> None:
        fields = event.__dict__  # much quicker than attributes of a pydantic model
        step = self._step(fields["step_id"])
        item = self._calls[fields["call_id"]] = CallItem(
            fields["event_id"],
            step.step_id,
            fields["call_id"],
            fields["tool_name"],
            fields["args"],
            fields["args_text"],
            fields["provider_text"],
            fields["provider_options"],
        )
        step.parts.append(item)
        step.calls += 1

    def _take_answer(self, event: ToolResponded) -> None:
        fields = event.__dict__
        call = self._calls.get(fields["call_id"])
        if call is None:  # an orphan is corruption, which the resolver reports
            return
        answers = self._by_step[call.step_id].answers
        if call.call_id not in answers:
            result = fields["result"]
            if self._attested or fields["original_length"] is not None:
                result = self._with_note(event)
            answers[call.call_id] = ResultItem(
                fields["event_id"], call.step_id, call.call_id, call.tool_name, result, fields["is_error"]
            )

    def _take_attestation(self, event: ToolAttested) -> None:
        # The answer that an attestation makes follows it; one to an answered call rewrites no history.
        if event.statement is Statement.OVER:
            return
        completed = event.statement is Statement.COMPLETED
        said = SentenceId.ATTESTED_COMPLETED if completed else SentenceId.ATTESTED_NOT_EXECUTED
        self._attested[event.operation_id] = render(said, {"by": event.by})

    def _with_note(self, answer: ToolResponded) -> Json:
        """The result with what the model must know of it: that a person attested it, that it is not whole."""
        notes = []
        if answer.operation_id in self._attested:
            notes.append(self._attested[answer.operation_id])
        if answer.original_length is not None:
            notes.append(render(SentenceId.RESULT_TRUNCATED, {"size": answer.original_length}))
        return {"note": " ".join(notes), "result": answer.result} if notes else answer.result

    # By exact type: `isinstance` is slow on pydantic models, and half of the events are none of these.
    _TAKE: ClassVar[Mapping[type[RunEvent], Callable[[Any, Any], None]]] = {
        ToolCalled: _take_call,
        ToolResponded: _take_answer,
        ModelText: _take_text,
        ModelThinking: _take_thinking,
        UserMessage: _take_user,
        HostMessage: _take_host,
        ToolAttested: _take_attestation,
        RunOpened: _take_opening,
        ContinuationStarted: _take_opening,
    }


def append_block(block: Block, out: list[Item], left_out: list[EventId]) -> None:
    """Append the items of a block whose calls need no computed answer."""
    if type(block) is StepBlock:
        block.project(out, NOTHING_SHOWN, left_out)
    else:
        out.append(block)  # type: ignore[arg-type]  # a block that is no step is an item
