"""What the record says for a plan: the run to continue, its lineage, the turns before, and what continues it already.

Where repair has not been done yet, it is read as repair would leave it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.errors import StoreDamaged, StoreError
from ..domain.events.run import RunOpened, RunStatus
from ..domain.identifiers import RunId, SessionId, session_stream
from ..domain.planning.facts import (
    Candidate,
    ExistingContinuation,
    SegmentFacts,
    SegmentReading,
    Standing,
    Unreadable,
)
from ..domain.reasons import ParkReason
from ..domain.replay.context import ContextHistory
from ..domain.sealing import DamagedEvent
from ..domain.session.state import Session
from ..ports.event_store import EventReader
from ..ports.incarnations import Liveness
from .lineage import LineageBroken, broken_at, read_ancestors, read_earlier, reading_of
from .ownership import SessionOwnership
from .repair_preview import RepairPreview
from .states import load


@dataclass(slots=True)
class PlanRecord:
    """What was read of the store.

    Attributes:
        session_unreadable: why nothing else was read.
        lineage: oldest first; what could not be read of it, or of the turns before it, stands first.
        existing: the continuation that has claimed the boundary.
        copied: the store is a copy, which nobody has adopted.
        repair_pending: the run is read as repair would leave it.
        is_id_taken: what the continuation would be called is the id of another run.
    """

    candidate: Candidate | None = None
    session_unreadable: Unreadable | None = None
    lineage: tuple[SegmentReading, ...] = ()
    earlier: ContextHistory | None = None
    existing: ExistingContinuation | None = None
    behind_anchor: bool = False
    copied: bool = False
    repair_pending: bool = False
    is_id_taken: bool = False

    @property
    def recorded_folder(self) -> str | None:
        """The folder that the run to continue worked in, None where it cannot be read."""
        source = self.lineage[-1] if self.lineage else None
        return source.survey.cwd if isinstance(source, SegmentFacts) else None

    @property
    def whole(self) -> list[SegmentFacts]:
        """The lineage; empty where not all of it could be read: it does not say what its files should be."""
        segments = [segment for segment in self.lineage if isinstance(segment, SegmentFacts)]
        return segments if len(segments) == len(self.lineage) else []


class ReadPlanRecord:
    """Reads it.

    Args:
        ownership: says whether whoever started a continuation is dead.
        preview: makes what repair would write.
    """

    def __init__(self, ownership: SessionOwnership, preview: RepairPreview) -> None:
        self._ownership = ownership
        self._preview = preview

    def __call__(
        self, reader: EventReader, session_id: SessionId, run_id: RunId | None, *, repairable: bool
    ) -> PlanRecord:
        """Read what a plan for a run is made of.

        Args:
            run_id: the run to continue; None for the session's head.
            repairable: whether its head is read as repair would leave it: nobody works on it.

        Raises:
            StoreError: it could not be read.
        """
        seen = PlanRecord()
        try:
            session = load(reader, session_stream(session_id)).session()
        except DamagedEvent as damage:
            head = RunId(session_id)
            seen.session_unreadable = Unreadable(ParkReason.SOURCE_RUN_UNREADABLE, head, damage.detail, damage.sequence)
            return seen
        if session.head is None:
            return seen
        run_id = run_id or session.head.run_id
        standing = reader.standing(run_id)
        seen.behind_anchor, seen.copied = standing.behind_anchor, standing.copied
        source = self._source(reader, session, run_id, seen, repairable=repairable)
        status = _status(source)
        seen.candidate = Candidate(run_id, status, session.head.run_id, run_id in session.abandoned)
        if not isinstance(source, Unreadable):
            seen.lineage = read_ancestors(reader, source)
        elif repairable or source.code is not ParkReason.RUNTIME_LEDGER_EMPTY:
            seen.lineage = (source,)  # else somebody begins it just now, which is what busy means
        if isinstance(source, SegmentFacts) and source.claimed is not None:
            seen.existing = self._existing(reader, source)
        seen.earlier = _earlier(reader, seen)
        if standing.behind_anchor or standing.copied:
            seen.repair_pending = False  # nobody may write the store: what repair would do is shown, and not done
        return seen

    def _source(
        self, reader: EventReader, session: Session, run_id: RunId, seen: PlanRecord, *, repairable: bool
    ) -> SegmentReading:
        """The run to continue, as repair would leave it."""
        source = reading_of(reader, run_id)
        is_head = session.head is not None and session.head.run_id == run_id
        open_run = isinstance(source, SegmentFacts) and (_status(source) is None or _has_open_jobs(source))
        unstarted = isinstance(source, Unreadable) and source.code is ParkReason.RUNTIME_LEDGER_EMPTY
        if repairable and is_head and (open_run or unstarted) and run_id not in session.abandoned:
            repaired = self._preview.repaired(reader, session)
            if repaired is not None:
                seen.repair_pending = True
                return repaired
        return source

    def _existing(self, reader: EventReader, source: SegmentFacts) -> ExistingContinuation:
        """How far the continuation of a boundary came, from the first and terminal events of its target."""
        claimed = source.claimed
        assert claimed is not None
        target = reading_of(reader, claimed.target.run_id)
        if isinstance(target, Unreadable) and target.code is ParkReason.RUNTIME_LEDGER_EMPTY:
            standing = Standing.UNSTARTED
        elif _status(target) is not None:
            standing = Standing.ENDED
        else:
            starter = claimed.incarnation_id
            if isinstance(target, SegmentFacts) and target.opening is not None:
                starter = target.opening.incarnation_id
            dead = self._ownership.liveness_of(starter) is Liveness.DEAD
            standing = Standing.STARTED_BY_THE_DEAD if dead else Standing.STARTED
        return ExistingContinuation(claimed.claim_id, claimed.target.run_id, standing)


def _has_open_jobs(source: SegmentFacts) -> bool:
    return source.claimed is None and bool(source.survey.open_jobs)


def _status(source: SegmentReading) -> RunStatus | None:
    if isinstance(source, Unreadable):
        return None
    ended = source.survey.terminals
    return ended[-1].status if ended else None


def _earlier(reader: EventReader, seen: PlanRecord) -> ContextHistory | None:
    """The turns before the lineage; what cannot be read of them stands in the lineage's place, first."""
    chain = seen.whole
    if not chain or not isinstance(chain[0].opening, RunOpened):
        return None  # a chain that breaks, or whose root is no opening event: the planner reports it
    try:
        return read_earlier(reader, chain)
    except LineageBroken as broken:
        damage: SegmentReading = Unreadable(ParkReason.RUNTIME_LINEAGE_MISSING, broken.run_id, broken.detail)
    except DamagedEvent as error:
        code = ParkReason.RUNTIME_LEDGER_UNREADABLE
        damage = Unreadable(code, broken_at(error), error.detail, error.sequence)
    seen.lineage = (damage, *seen.lineage)
    return None


def unreadable(session_id: SessionId, error: StoreError) -> Unreadable:
    """Why nothing can be said of a session."""
    damaged = isinstance(error, StoreDamaged)
    code = ParkReason.SOURCE_RUN_UNREADABLE if damaged else ParkReason.STORE_UNAVAILABLE
    return Unreadable(code, RunId(session_id), error.detail)
