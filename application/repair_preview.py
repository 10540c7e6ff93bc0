"""What repair would write, without writing it: the same decisions on the same facts, sealed in memory. SPEC section 13.

Ids and times are made from the run, so that two readings give the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..domain.commands import AnyCommand
from ..domain.decision import Refusal
from ..domain.errors import StoreDamaged, WriteRefused
from ..domain.events.event import Timestamp
from ..domain.identifiers import (
    ClaimId,
    InvocationId,
    RunId,
    SessionId,
    TurnId,
    derive_id,
    run_stream,
    session_stream,
)
from ..domain.planning.facts import FreshIds, SegmentFacts, SegmentReading
from ..domain.run.state import Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent, SealedEvent
from ..domain.session.state import Session
from ..ports.background_work import BackgroundWork
from ..ports.clock import Clock
from ..ports.event_store import EventReader
from ..ports.ids import Ids
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleSink
from .heads import Heads
from .ledger import CommandLedger, Receipt
from .lineage import segment_of
from .ownership import Owned
from .previewed import PREVIEW, previewed_id
from .record_settled_jobs import RecordSettledJobs
from .repair_session import RepairKind, RepairSession
from .spines import Spines
from .state_cache import StateCache
from .states import damage_of, events_after

IdT = TypeVar("IdT", bound=str)
ReadT = TypeVar("ReadT")


class RepairPreview:
    """Repairs in memory.

    Args:
        jobs: asked which background work has settled since.
    """

    def __init__(self, jobs: BackgroundWork) -> None:
        self._jobs = jobs

    def repaired(self, reader: EventReader, session: Session) -> SegmentFacts | None:
        """A session's head run as repair would leave it; None when there is nothing to repair, or it cannot be.

        Raises:
            StoreUnavailable: it could not be read.
        """
        assert session.head is not None
        events = self.events(reader, session)
        if events is None:
            return None
        return segment_of(events, foreign=reader.standing(session.head.run_id).foreign)

    def events(self, reader: EventReader, session: Session) -> list[SealedEvent] | None:
        """The events of that run, those that repair would write at their end."""
        assert session.head is not None
        session_id, run_id = session.head.session_id, session.head.run_id
        stored = list(events_after(reader, run_stream(run_id), 0, FIRST_PREVIOUS_DIGEST))
        at = stored[-1].event.occurred_at if stored else session.head.occurred_at
        ledger = _PreviewLedger(reader)
        spines = Spines(_StoppedClock(at), _DerivedIds(run_id))
        owned = Owned(session_id, PREVIEW, 1)
        try:
            repaired = RepairSession(ledger, spines, _NoSink())(owned)
            RecordSettledJobs(ledger, spines, self._jobs)(owned)
        except (StoreDamaged, WriteRefused):
            return None
        added = [sealed for sealed in ledger.sealed if sealed.stream == run_stream(run_id)]
        if repaired.kind is RepairKind.QUARANTINED or not added:
            return None
        return [*stored, *added]

    def ids(self, session_id: SessionId, lineage: Sequence[SegmentReading]) -> FreshIds:
        """What a continuation might be called: the same for the same boundary."""
        source = lineage[-1] if lineage else None
        seed = source.ref.digest if isinstance(source, SegmentFacts) else session_id
        made = (derive_id(seed, "preview", kind) for kind in ("claim", "run", "turn", "invocation"))
        claim, run, turn, invocation = made
        return FreshIds(ClaimId(claim), RunId(run), TurnId(turn), InvocationId(invocation))


class _PreviewLedger(CommandLedger):
    """Decides and seals as the ledger does, on what a snapshot shows, and keeps the result to itself."""

    def __init__(self, reader: EventReader) -> None:
        self.sealed: list[SealedEvent] = []
        self._reader = reader
        self._heads = Heads(StateCache(streams_max=16), self._look)

    def session(self, session_id: SessionId) -> Session:
        return self._read(lambda: self._heads.head(session_stream(session_id)).session())

    def run(self, run_id: RunId) -> Run:
        state = self._read(lambda: self._heads.head(run_stream(run_id)).shown())
        assert isinstance(state, Run)
        return state

    def damage_of(self, run: Run) -> str | None:
        return damage_of(self._reader, run)

    def execute(self, command: AnyCommand) -> Receipt:
        decided = self._read(lambda: self._heads.propose(command)).decided
        if isinstance(decided, Refusal):
            raise WriteRefused(decided.code, decided.detail)
        assert decided is not None  # nothing is waited for where all is kept at once
        self._heads.keep(except_streams=())
        self.sealed += decided
        return Receipt(decided)

    def _look(self, load: Callable[[EventReader], None]) -> None:
        load(self._reader)

    def _read(self, read: Callable[[], ReadT]) -> ReadT:
        try:
            return read()
        except DamagedEvent as damage:
            raise StoreDamaged(str(damage)) from damage


class _StoppedClock(Clock):
    def __init__(self, at: Timestamp) -> None:
        self._at = at

    def now(self) -> Timestamp:
        return self._at

    def monotonic_seconds(self) -> float:
        return 0.0


class _DerivedIds(Ids):
    def __init__(self, run_id: RunId) -> None:
        self._run_id = run_id
        self._made = 0

    def fresh(self, kind: Callable[[str], IdT]) -> IdT:
        self._made += 1
        return kind(previewed_id(self._run_id, self._made))


class _NoSink(LifecycleSink):
    def record(self, event: LifecycleEvent) -> None:
        """Nothing has happened."""
