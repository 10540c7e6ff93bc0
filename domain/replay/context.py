"""The history that a new turn is given: earlier turns, as its recorded context names them. SPEC section 12."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..events.event import Json
from ..events.run import PrefixRef, RunOpened, ShownUnsettled
from ..identifiers import EventId, OperationId, RunId
from ..reasons import VerdictReason
from ..recovery.verdict import Resolution, Verdict, VerdictStatus
from ..sentences import SentenceId, render
from .blocks import SegmentBlocks
from .segment import UNSETTLED, Segment, project_blocks
from .steps import NOTHING_SHOWN, Shown


class TurnSegment(NamedTuple):
    """One run of a turn: what a provider may be shown of it up to the recorded boundary, and the verdicts on it."""

    run_id: RunId
    blocks: SegmentBlocks
    resolution: Resolution


Turn = Sequence[TurnSegment]
"""The lineage of one turn, oldest first: the run that the user's message opened, then its continuations."""


@dataclass(frozen=True, slots=True)
class ContextHistory:
    """Earlier turns, ready for `replay`.

    Attributes:
        segments: oldest first, none of them blocked.
        unsettled: every call that is shown as unknown, for the run's record.
        blocked: runs of which no history can be made, with the reason; empty where the context may be used.
    """

    segments: tuple[Segment, ...]
    unsettled: tuple[ShownUnsettled, ...]
    blocked: tuple[tuple[RunId, Segment], ...]


def project_context(turns: Iterable[Turn], recorded: Iterable[ShownUnsettled] = ()) -> ContextHistory:
    """Project earlier turns: every completed step whole, the final answer included.

    Only what a turn's own continuations trimmed stays out, and calls that were never dispatched. A call whose outcome
    is unknown is shown with a computed answer that says so.

    Args:
        turns: oldest first; those that the context cuts off or leaves out are not among them.
        recorded: with which sentence an unknown was shown before, from `run.opened` of the runs that showed it.
    """
    sentences = {(shown.run_id, shown.operation_id): shown.sentence_id for shown in recorded}
    segments: list[Segment] = []
    unsettled: list[ShownUnsettled] = []
    blocked: list[tuple[RunId, Segment]] = []
    for turn in turns:
        for number, run in enumerate(turn, 1):
            is_last = number == len(turn)
            shown = NOTHING_SHOWN
            if is_last:
                told = unsettled_of(run.run_id, run.resolution, sentences)
                unsettled += told.values()
                shown = {call_id: Shown(s.sentence_id, _about(run, call_id)) for call_id, s in told.items()}
            segment = project_blocks(run.blocks, run.resolution, resumed=not is_last, shown=shown)
            if segment.blocked is None:
                segments.append(segment)
            else:
                blocked.append((run.run_id, segment))
    return ContextHistory(tuple(segments), tuple(unsettled), tuple(blocked))


def joined(turns: Iterable[ContextHistory]) -> ContextHistory:
    """The history of several turns, oldest first; projecting each alone gives the same as projecting all at once."""
    made = list(turns)
    return ContextHistory(
        tuple(segment for one in made for segment in one.segments),
        tuple(shown for one in made for shown in one.unsettled),
        tuple(blocked for one in made for blocked in one.blocked),
    )


def unsettled_of(
    run_id: RunId, resolution: Resolution, recorded: dict[tuple[RunId, OperationId], str] | None = None
) -> dict[str, ShownUnsettled]:
    """The calls of a run that must be shown as unknown, by call id, with the sentence that says the truth of each.

    A call without a dispatch has no operation; its call id stands in the operation's place.
    """
    found: dict[str, ShownUnsettled] = {}
    for verdict in resolution.verdicts:
        if verdict.status in UNSETTLED:
            operation_id = OperationId(verdict.operation_id or verdict.call_id)
            said = (recorded or {}).get((run_id, operation_id)) or _sentence_for(verdict)
            found[verdict.call_id] = ShownUnsettled(run_id=run_id, operation_id=operation_id, sentence_id=said)
    return found


def older_turn(root: RunOpened, turn: Collection[RunId], cuts: Collection[RunId]) -> PrefixRef | None:
    """Where the turn before this one was taken, None where the history begins here.

    Args:
        root: the first event of the turn's first run.
        turn: all runs of this turn.
        cuts: the `cut_before` of every context between this turn and the reader: from that run's turn on is kept.
    """
    if root.context is None or not set(cuts).isdisjoint(turn):
        return None
    return root.context.previous


class Told(NamedTuple):
    """A host message that a first commit must carry: the sentence, its parameters and its text."""

    sentence_id: SentenceId
    parameters: dict[str, Json]
    text: str


def told_of(left_out: Collection[RunId], cut_turns: int) -> tuple[Told, ...]:
    """What the model must be told about turns that its context does not hold; they are never missing silently.

    Args:
        left_out: damaged runs that are newly left out.
        cut_turns: how many turns its own cut leaves out; 0 without one.
    """
    said: list[tuple[SentenceId, dict[str, Json]]] = []
    if cut_turns:
        said.append((SentenceId.CONTEXT_CUT, {"turns": cut_turns}))
    said += ((SentenceId.TURN_LEFT_OUT, {}) for _ in left_out)
    return tuple(Told(sentence_id, values, render(sentence_id, values)) for sentence_id, values in said)


def _sentence_for(verdict: Verdict) -> SentenceId:
    if verdict.status is VerdictStatus.PARKED:
        return SentenceId.OUTCOME_UNKNOWN_PARKED
    if verdict.reason == VerdictReason.LEGACY_DISPATCH_UNKNOWN:
        return SentenceId.OUTCOME_UNKNOWN_DISPATCH_UNKNOWN
    return SentenceId.OUTCOME_UNKNOWN


def _about(run: TurnSegment, call_id: str) -> EventId:
    verdict = next(v for v in run.resolution.verdicts if v.call_id == call_id)
    return EventId(verdict.dispatch_event_id or verdict.call_event_id or "")
