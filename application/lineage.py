"""Reads runs and the chains that they form: a turn's lineage, and the turns before it. SPEC sections 12 and 14.

Every prefix is verified as it is read; each run is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..domain.errors import StoreDamaged
from ..domain.events.event import RunEvent
from ..domain.events.run import ContinuationStarted, PrefixRef, RunOpened, ShownUnsettled
from ..domain.identifiers import RunId, run_stream
from ..domain.recovery.event_facts import event_facts
from ..domain.recovery.resolver import resolve
from ..domain.recovery.scanner import Scanner
from ..domain.recovery.verdict import Resolution
from ..domain.replay.context import ContextHistory, Turn, TurnSegment, older_turn, project_context
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent
from ..ports.event_store import EventReader
from .states import events_after

LINEAGE_RUNS_MAX = 4_096
"""Bound on the runs of one turn, repaired claims included; more is a cycle or damage."""


class LineageBroken(StoreDamaged):
    """A run's chain to its ancestors does not hold: `run_id` is where it breaks."""

    def __init__(self, run_id: RunId, detail: str) -> None:
        super().__init__(f"run {run_id}: {detail}")
        self.run_id = run_id


@dataclass(frozen=True, slots=True)
class Prefix:
    """A run's events up to a boundary, and the verdicts on exactly these."""

    ref: PrefixRef
    events: tuple[RunEvent, ...]
    resolution: Resolution
    foreign: bool

    @property
    def opening(self) -> RunOpened | ContinuationStarted | None:
        """The run's first event."""
        first = self.events[0]
        return first if isinstance(first, RunOpened | ContinuationStarted) else None

    @property
    def segment(self) -> TurnSegment:
        """What replay projects."""
        return TurnSegment(self.ref.run_id, self.events, self.resolution)


def read_prefix(reader: EventReader, run_id: RunId, high_water: int | None = None) -> Prefix | None:
    """Read and verify a run up to a sequence, or to its newest event; None when it has no event.

    Raises:
        DamagedEvent: the chain does not verify.
        LineageBroken: the run is shorter than the boundary.
        StoreUnavailable: it could not be read.
    """
    events: list[RunEvent] = []
    scanner = Scanner.transient()
    digest = FIRST_PREVIOUS_DIGEST
    for sealed in events_after(reader, run_stream(run_id), 0, digest):
        event = sealed.event
        assert isinstance(event, RunEvent)
        scanner.feed(event_facts(event), sealed.sequence)
        events.append(event)
        digest = sealed.digest
        if sealed.sequence == high_water:
            break
    if not events:
        return None
    if high_water is not None and len(events) != high_water:
        raise LineageBroken(run_id, f"has {len(events)} events, and its boundary is at {high_water}")
    first, foreign = events[0], reader.standing(run_id).foreign
    ref = PrefixRef(
        session_id=first.session_id,
        run_id=run_id,
        turn_id=first.turn_id,
        invocation_id=first.invocation_id,
        high_water=len(events),
        digest=digest,
    )
    return Prefix(ref, tuple(events), resolve(scanner, foreign=foreign), foreign)


def read_lineage(reader: EventReader, head: Prefix) -> tuple[Prefix, ...]:
    """The runs of one turn, oldest first, from the run that the user's message opened to the given one.

    Raises:
        LineageBroken: an ancestor is missing, differs from what its descendant names, or the chain does not end.
    """
    chain, seen = [head], {head.ref.run_id}
    while isinstance(opening := chain[-1].opening, ContinuationStarted):
        source = opening.source
        if source.run_id in seen or len(chain) >= LINEAGE_RUNS_MAX:
            raise LineageBroken(source.run_id, "is its own ancestor, or the chain is too long")
        ancestor = read_prefix(reader, source.run_id, source.high_water)
        if ancestor is None:
            raise LineageBroken(source.run_id, "is missing")
        if ancestor.ref != source:
            raise LineageBroken(source.run_id, f"is not what run {chain[-1].ref.run_id} was made from")
        seen.add(source.run_id)
        chain.append(ancestor)
    if chain[-1].opening is None:
        raise LineageBroken(chain[-1].ref.run_id, "does not begin with an opening event")
    return tuple(reversed(chain))


def root_of(lineage: tuple[Prefix, ...]) -> RunOpened:
    """The event that opened a turn."""
    opening = lineage[0].opening
    assert isinstance(opening, RunOpened)
    return opening


def read_context(reader: EventReader, head: Prefix, left_out: frozenset[RunId] = frozenset()) -> ContextHistory:
    """The history of the turns that end with a run's lineage, that lineage included.

    Args:
        head: the prefix at which the newest turn is taken.
        left_out: runs whose turns are left out at a person's request.
    """
    turns = list(_turns(reader, head, left_out))
    recorded: list[ShownUnsettled] = []
    for turn in turns:
        opening = turn[0].opening
        if isinstance(opening, RunOpened) and opening.context is not None:
            recorded.extend(opening.context.unsettled)
    shown: list[Turn] = [tuple(prefix.segment for prefix in turn) for turn in reversed(turns)]
    return project_context(shown, recorded)


def read_earlier(reader: EventReader, lineage: tuple[Prefix, ...]) -> ContextHistory:
    """The history of the turns before a lineage, as its root recorded it."""
    root = root_of(lineage)
    if root.context is None:
        return project_context(())
    runs = [prefix.ref.run_id for prefix in lineage]
    cuts = [] if root.context.cut_before is None else [root.context.cut_before]
    previous = older_turn(root, runs, cuts)
    if previous is None:
        return project_context(())
    head = read_prefix(reader, previous.run_id, previous.high_water)
    if head is None or head.ref != previous:
        raise LineageBroken(previous.run_id, "is not what the turn's context names")
    history = read_context(reader, head, frozenset(root.context.left_out))
    return history


def _turns(reader: EventReader, head: Prefix, left_out: frozenset[RunId]) -> Iterator[tuple[Prefix, ...]]:
    """Turns from the newest to the oldest that the recorded contexts reach."""
    newest: Prefix | None = head
    cuts: list[RunId] = []
    while newest is not None:
        lineage = read_lineage(reader, newest)
        root = root_of(lineage)
        runs = [prefix.ref.run_id for prefix in lineage]
        if left_out.isdisjoint(runs):
            yield lineage
        if root.context is not None:
            left_out |= frozenset(root.context.left_out)
            if root.context.cut_before is not None:
                cuts.append(root.context.cut_before)
        previous = older_turn(root, runs, cuts)
        newest = None
        if previous is not None:
            newest = read_prefix(reader, previous.run_id, previous.high_water)
            if newest is None or newest.ref != previous:
                raise LineageBroken(previous.run_id, "is not what the turn's context names")


__all__ = [
    "DamagedEvent",
    "LineageBroken",
    "Prefix",
    "read_context",
    "read_earlier",
    "read_lineage",
    "read_prefix",
    "root_of",
]
