"""Reads runs and the chains that they form: a turn's lineage, and the turns before it. SPEC sections 12 and 14.

Every prefix is verified as it is read; each run is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ..domain.errors import StoreDamaged, StoreError, StoreUnavailable
from ..domain.events.run import ContinuationStarted, PrefixRef, RunClaimed, RunOpened, ShownUnsettled
from ..domain.identifiers import RunId, run_of, run_stream
from ..domain.planning.facts import SegmentFacts, SegmentReading, Unreadable
from ..domain.planning.survey import Survey
from ..domain.reasons import ParkReason
from ..domain.recovery.event_facts import event_facts
from ..domain.recovery.resolver import resolve
from ..domain.recovery.scanner import Scanner
from ..domain.replay.blocks import SegmentBlocks
from ..domain.replay.context import ContextHistory, TurnSegment, joined, older_turn, project_context
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, SealedEvent
from ..ports.event_store import EventReader
from .states import events_after, standing_of
from .uncollected import uncollected

LINEAGE_RUNS_MAX = 4_096
"""Bound on the runs of one turn, repaired claims included; more is a cycle or damage."""


class KnownSegments:
    """Runs that are not read from a store, such as those of a file.

    Args:
        segment: gives the facts of a run up to a sequence, or to its newest event; None when it has no event.
    """

    def __init__(self, segment: Callable[[RunId, int | None], SegmentFacts | None]) -> None:
        self.segment = segment


SegmentSource: TypeAlias = EventReader | KnownSegments


class LineageBroken(StoreDamaged):
    """A run's chain to its ancestors does not hold: `run_id` is where it breaks."""

    def __init__(self, run_id: RunId, detail: str) -> None:
        super().__init__(f"run {run_id}: {detail}")
        self.run_id = run_id


def broken_at(damage: LineageBroken | DamagedEvent) -> RunId:
    """The run at which a chain of runs could not be read any further."""
    run_id = damage.run_id if isinstance(damage, LineageBroken) else run_of(damage.stream)
    assert run_id is not None  # only runs stand in such a chain
    return run_id


def segment_of(sealed: Iterable[SealedEvent], *, foreign: bool, high_water: int | None = None) -> SegmentFacts | None:
    """The facts of a run's verified events, up to a sequence or to the newest event; a claim at the end is beyond it.

    Args:
        sealed: from the first on; None is answered where there is none. They are looked at one by one.
        foreign: absence proves nothing in this run.
        high_water: the boundary, from 1; by default all events but a claim.
    """
    scanner, survey, blocks = Scanner(), Survey(), SegmentBlocks()

    def feed(sequence: int, event: Any) -> None:  # a run's event: `isinstance` is slow on pydantic models
        fact = event_facts(event, scanner.identity)
        scanner.feed(fact, sequence)
        survey.feed(event, fact[1])  # its identity
        blocks.feed(event)

    boundary: SealedEvent | None = None
    claimed: SealedEvent | None = None  # what may be the claim behind the boundary
    for one in sealed:
        _, sequence, event, _, _, _ = one  # names of tuples are slow, and every event of a run passes here
        if sequence - 1 == high_water:
            claimed = one
            break
        if claimed is not None:
            feed(claimed.sequence, claimed.event)
            boundary, claimed = claimed, None
        if type(event) is RunClaimed and high_water is None and boundary is not None:
            claimed = one
            continue
        feed(sequence, event)
        boundary = one
    if boundary is None or scanner.identity is None:
        return None
    ref = PrefixRef(**scanner.identity._asdict(), high_water=survey.length, digest=boundary.digest)
    claim = claimed.event if claimed is not None and isinstance(claimed.event, RunClaimed) else None
    return SegmentFacts(ref, survey, blocks, resolve(scanner, foreign=foreign), foreign, claim)


def read_segment(reader: SegmentSource, run_id: RunId, high_water: int | None = None) -> SegmentFacts | None:
    """Read and verify a run up to a sequence and the event after it, or to its newest event; None when it has no event.

    Raises:
        DamagedEvent: the chain does not verify.
        StoreUnavailable: it could not be read.
    """
    if isinstance(reader, KnownSegments):
        return reader.segment(run_id, high_water)
    sealed = events_after(reader, run_stream(run_id), 0, FIRST_PREVIOUS_DIGEST)
    with uncollected():
        standing = reader.standing(run_id) if high_water is not None else standing_of(reader, run_id)
        return segment_of(sealed, foreign=standing.foreign, high_water=high_water)


def reading_of(reader: SegmentSource, run_id: RunId, high_water: int | None = None) -> SegmentReading:
    """As `read_segment`, with what stood in the way as a value: could not look, damaged, or not there."""
    try:
        segment = read_segment(reader, run_id, high_water)
    except DamagedEvent as damage:
        return Unreadable(ParkReason.RUNTIME_LEDGER_UNREADABLE, run_id, damage.detail, damage.sequence)
    except StoreError as error:
        damaged = isinstance(error, StoreDamaged)
        code = ParkReason.RUNTIME_LEDGER_UNREADABLE if damaged else ParkReason.STORE_UNAVAILABLE
        return Unreadable(code, run_id, error.detail)
    return segment if segment is not None else Unreadable(ParkReason.RUNTIME_LEDGER_EMPTY, run_id)


def read_ancestors(reader: SegmentSource, source: SegmentFacts) -> tuple[SegmentReading, ...]:
    """The lineage that ends with a run, oldest first; where it breaks, the run that could not be read stands first.

    Whether its edges hold is the planner's question; a run that is met twice stands twice, once.
    """
    chain: list[SegmentReading] = [source]
    seen = {source.ref.run_id}
    newest: SegmentReading = source
    while isinstance(newest, SegmentFacts) and isinstance(newest.opening, ContinuationStarted):
        named = newest.opening.source
        again = named.run_id in seen
        newest = reading_of(reader, named.run_id, named.high_water)
        if isinstance(newest, Unreadable) and newest.code is ParkReason.RUNTIME_LEDGER_EMPTY:
            newest = newest._replace(code=ParkReason.RUNTIME_LINEAGE_MISSING)
        chain.append(newest)
        seen.add(named.run_id)
        if again or len(chain) >= LINEAGE_RUNS_MAX:
            break
    return tuple(reversed(chain))


def read_lineage(reader: SegmentSource, head: SegmentFacts) -> tuple[SegmentFacts, ...]:
    """The runs of one turn, oldest first, for a context: every ancestor must be what its descendant names.

    Raises:
        LineageBroken: one is missing, damaged or differs, or the chain does not end.
        StoreUnavailable: one could not be read.
    """
    chain = read_ancestors(reader, head)
    for older, newer in zip((None, *chain), chain, strict=False):
        if isinstance(newer, Unreadable):
            if newer.code is ParkReason.STORE_UNAVAILABLE:
                raise StoreUnavailable(newer.detail)  # could not look is not the same as damaged (F1)
            raise LineageBroken(newer.run_id, newer.detail or newer.code.value)
        opening = newer.opening
        if older is None:
            if not isinstance(opening, RunOpened):
                raise LineageBroken(newer.ref.run_id, "its first ancestor does not begin a turn")
        elif not isinstance(opening, ContinuationStarted) or opening.source != _ref(older):
            raise LineageBroken(newer.ref.run_id, "its ancestor is not what it was made from")
    return tuple(segment for segment in chain if isinstance(segment, SegmentFacts))


def _ref(reading: SegmentReading) -> PrefixRef | None:
    return reading.ref if isinstance(reading, SegmentFacts) else None


def root_of(lineage: Sequence[SegmentFacts]) -> RunOpened:
    """The event that opened a turn."""
    opening = lineage[0].opening
    if not isinstance(opening, RunOpened):
        raise LineageBroken(lineage[0].ref.run_id, "does not begin a turn")
    return opening


def read_context(
    reader: SegmentSource, head: SegmentFacts, left_out: frozenset[RunId] = frozenset(), cuts: Sequence[RunId] = ()
) -> ContextHistory:
    """The history of the turns that end with a run's lineage, that lineage included.

    Args:
        head: the prefix at which the newest turn is taken.
        left_out: runs whose turns are left out at a person's request.
        cuts: runs whose turns are the oldest that are kept.

    Raises:
        LineageBroken, DamagedEvent: an earlier run is not what was recorded.
        StoreUnavailable: it could not be read.
    """
    turns = [lineage for lineage, is_left_out in turns_from(reader, head, left_out, cuts) if not is_left_out]
    return joined(reversed(histories_of(turns)))


def histories_of(turns: Sequence[Sequence[SegmentFacts]]) -> list[ContextHistory]:
    """The history of each turn alone, as it is shown in a context; newest first, like the turns."""
    recorded: list[ShownUnsettled] = []
    for turn in turns:
        opening = turn[0].opening
        if isinstance(opening, RunOpened) and opening.context is not None:
            recorded.extend(opening.context.unsettled)
    return [
        project_context([[TurnSegment(run.ref.run_id, run.blocks, run.resolution) for run in turn]], recorded)
        for turn in turns
    ]


def read_earlier(reader: SegmentSource, lineage: Sequence[SegmentFacts]) -> ContextHistory:
    """The history of the turns before a lineage, as its root recorded it.

    Raises:
        LineageBroken, DamagedEvent: an earlier run is not what was recorded.
    """
    root = root_of(lineage)
    runs = [segment.ref.run_id for segment in lineage]
    cuts = [] if root.context is None or root.context.cut_before is None else [root.context.cut_before]
    previous = older_turn(root, runs, cuts)
    if previous is None or root.context is None:
        return project_context(())
    return read_context(reader, _named(reader, previous), frozenset(root.context.left_out), cuts)


def _named(reader: SegmentSource, ref: PrefixRef) -> SegmentFacts:
    segment = read_segment(reader, ref.run_id, ref.high_water)
    if segment is None or segment.ref != ref:
        raise LineageBroken(ref.run_id, "is not what a later turn's context names")
    return segment


def turns_from(
    reader: SegmentSource, head: SegmentFacts, left_out: frozenset[RunId] = frozenset(), cuts: Sequence[RunId] = ()
) -> Iterator[tuple[tuple[SegmentFacts, ...], bool]]:
    """Turns from the newest to the oldest that the recorded contexts reach, and whether each is left out.

    Arguments and errors as for `read_context`.
    """
    newest: SegmentFacts | None = head
    borders = list(cuts)
    while newest is not None:
        lineage = read_lineage(reader, newest)
        root = root_of(lineage)
        runs = [segment.ref.run_id for segment in lineage]
        yield lineage, not left_out.isdisjoint(runs)
        if root.context is not None:
            left_out |= frozenset(root.context.left_out)
            if root.context.cut_before is not None:
                borders.append(root.context.cut_before)
        previous = older_turn(root, runs, borders)
        newest = None if previous is None else _named(reader, previous)
