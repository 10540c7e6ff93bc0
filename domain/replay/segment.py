"""One segment of a boundary, projected alone: its items, or why no history can be made of it. SPEC section 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..events.event import RunEvent
from ..identifiers import EventId
from ..reasons import ReplayBlock
from ..recovery.verdict import Resolution, VerdictStatus
from .blocks import SegmentBlocks
from .items import Item, UserItem
from .origin import Origin
from .steps import NOTHING_SHOWN, Shown, StepBlock

UNSETTLED: Final = frozenset({VerdictStatus.INDETERMINATE, VerdictStatus.PARKED})
"""What no resume goes past, and what a context shows as unknown."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What one segment gives to a history.

    Attributes:
        items: what the provider is shown of it; none where it is blocked.
        blocked: why no history can be made of it, None where one can.
        blocking: the facts that are in the way.
        trimmed: facts after the last stable item, and calls that were never dispatched, in order; they never come back.
        left_out: thinking that no provider would accept where it stands.
        origin: who made it, None where no profile is recorded.
    """

    items: tuple[Item, ...] = ()
    blocked: ReplayBlock | None = None
    blocking: tuple[EventId, ...] = ()
    trimmed: tuple[EventId, ...] = ()
    left_out: tuple[EventId, ...] = ()
    origin: Origin | None = field(default=None)

    @property
    def contributes(self) -> bool:
        """Whether a provider sees anything of it; otherwise it does not count as a segment of a boundary."""
        return bool(self.items)


def project_segment(
    events: Sequence[RunEvent],
    resolution: Resolution,
    *,
    resumed: bool,
) -> Segment:
    """As `project_blocks`, of a run's events in ledger order, from the first to the boundary; not as a context."""
    return project_blocks(SegmentBlocks(events), resolution, resumed=resumed)


def project_blocks(
    segment: SegmentBlocks,
    resolution: Resolution,
    *,
    resumed: bool,
    shown: Mapping[str, Shown] = NOTHING_SHOWN,
) -> Segment:
    """Project a run up to a boundary.

    Args:
        segment: fed with the run's events in ledger order, from the first to the boundary.
        resolution: the resolver's verdicts on exactly these events.
        resumed: a continuation is made from here, so what is not stable at the end is trimmed; otherwise (a turn shown
            as context) every completed step stays whole.
        shown: call id -> the computed answer of calls that are unsettled; only a context has any.
    """
    if resolution.has_corruption:
        return Segment(blocked=ReplayBlock.TOOL_RECOVERY_CORRUPTION)
    unsettled = [v for v in resolution.verdicts if v.status in UNSETTLED and v.call_id not in shown]
    if unsettled:
        about = tuple(EventId(v.dispatch_event_id or v.call_event_id or "") for v in unsettled)
        return Segment(blocked=ReplayBlock.TOOL_RECOVERY_UNSETTLED, blocking=about)
    empty = [b.event_id for b in segment.blocks if type(b) is UserItem and not b.text and not b.attachments]
    if empty:  # no provider takes a message that says nothing
        return Segment(blocked=ReplayBlock.PROVIDER_REPLAY_UNSUPPORTED, blocking=tuple(empty))
    return _project(segment, resumed, shown)


def _project(segment: SegmentBlocks, resumed: bool, shown: Mapping[str, Shown]) -> Segment:
    items: list[Item] = []
    left_out: list[EventId] = []
    unanswered: list[EventId] = []
    stable_blocks = stable_items = stable_left_out = 0
    for number, block in enumerate(segment.blocks, 1):
        if type(block) is StepBlock:
            before = len(items)
            pairs = block.project(items, shown, left_out)
            if unanswered and resumed and len(items) > before:
                return Segment(blocked=ReplayBlock.PROVIDER_REPLAY_NON_SUFFIX_GAP, blocking=tuple(unanswered))
            unanswered += block.unanswered(shown)
            if not pairs:
                continue
        else:
            items.append(block)  # type: ignore[arg-type]  # a block that is no step is an item
        stable_blocks, stable_items, stable_left_out = number, len(items), len(left_out)
    if not resumed:
        return Segment(tuple(items), trimmed=tuple(unanswered), left_out=tuple(left_out), origin=segment.origin)
    after = (block for block in segment.blocks[stable_blocks:] if type(block) is StepBlock)
    suffix = tuple(part.event_id for block in after for part in block.parts)
    earlier = set(unanswered).difference(suffix)
    return Segment(
        tuple(items[:stable_items]),
        trimmed=(*(event_id for event_id in unanswered if event_id in earlier), *suffix),
        left_out=tuple(left_out[:stable_left_out]),
        origin=segment.origin,
    )
