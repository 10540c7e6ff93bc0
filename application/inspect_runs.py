"""One run as it stands: operations with verdicts, whether they are over, and facts. SPEC R11, sections 9 and 15."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..domain.errors import StoreDamaged
from ..domain.events.outside import CheckpointAccepted, WorkspaceRebaselined, WorkspaceTransitioned
from ..domain.events.run import ExecutionProfile
from ..domain.events.session import OperationAttested
from ..domain.events.tool import Statement, ToolAttested
from ..domain.identifiers import OperationId, RunId, SessionId, run_stream, session_stream
from ..domain.reasons import ParkReason, WriteRefusal
from ..domain.recovery.resolver import resolve
from ..domain.recovery.verdict import Resolution, Verdict
from ..domain.run.state import Permission, Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent
from ..ports.event_store import EventReader, EventStore
from ..ports.supervised import Overness
from ..ports.views import RunRow, Views
from .over import OverJudge, OverState
from .session_health import Damage
from .states import Head, events_after, gap_behind
from .timeline import TimelineFact, fact_of

Attestation: TypeAlias = ToolAttested | OperationAttested


@dataclass(frozen=True, slots=True)
class OperationSeen:
    """One tool call: the resolver's verdict, and whether anything that it started may still run.

    Attributes:
        attested: what a person said happened, in the run or, where that takes no more facts, in the session.
        declared_over: that a person said that nothing of it runs any more; believed only where nobody could look.
    """

    verdict: Verdict
    over: OverState
    attested: Attestation | None = None
    declared_over: Attestation | None = None

    @property
    def unsettled(self) -> bool:
        """True where a resume may not go past it."""
        return not self.verdict.is_settled or self.over.overness is not Overness.OVER


@dataclass(frozen=True, slots=True)
class RunSeen:
    """One run.

    Attributes:
        row: the projection's row.
        high_water: how many events verify, and `digest` names them.
        resolution: the verdicts on these events.
        facts: the newest of its facts, oldest first; `facts_left_out` older ones are not among them.
        damage: why what follows the verified events cannot be read; None where nothing does.
        foreign: the store cannot vouch for what is absent in it.
        cwd: the folder that it worked in, or that it is to go on in, by its facts.
        checkpoints: what keeps the content that it is bound to, such as `git`; None where it is bound to none.
    """

    row: RunRow
    high_water: int
    digest: str
    profile: ExecutionProfile | None
    resolution: Resolution
    operations: tuple[OperationSeen, ...]
    open_permissions: tuple[Permission, ...]
    jobs_running: int
    facts: tuple[TimelineFact, ...]
    facts_left_out: int
    damage: Damage | None
    foreign: bool
    cwd: str | None = None
    checkpoints: str | None = None

    @property
    def unsettled(self) -> tuple[OperationSeen, ...]:
        """The operations that a resume may not go past."""
        return tuple(seen for seen in self.operations if seen.unsettled)


class _Place(NamedTuple):
    """Where a run is to go on, if not where it began, and what keeps the content that it is bound to."""

    folder: str | None = None
    checkpoints: str | None = None

    def after(self, event: object) -> _Place:
        """What a further fact makes of it."""
        match event:
            case WorkspaceTransitioned():
                return self._replace(folder=event.path)
            case CheckpointAccepted() | WorkspaceRebaselined():
                return self._replace(checkpoints=event.carrier)
            case _:
                return self


class InspectRuns:
    """Looks at runs.

    Args:
        store: the events.
        views: the projections.
        over: tells whether operations are over.
    """

    def __init__(self, store: EventStore, views: Views, over: OverJudge) -> None:
        self._store = store
        self._views = views
        self._over = over

    def __call__(self, run_id: RunId, *, facts_max: int = 0, full: bool = False) -> RunSeen | None:
        """Read and judge a run; None when no event names it.

        Args:
            facts_max: how many of its newest facts are told, 0 or more.
            full: with arguments and results.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        row = self._views.run(run_id)
        if row is None:
            return None
        facts: deque[TimelineFact] = deque(maxlen=facts_max)
        with self._store.snapshot() as reader:
            head, damage, said, place = _read(reader, run_id, facts, full=full)
            standing = reader.standing(run_id)
            foreign = standing.foreign
            if standing.gap and damage is None:
                damage = Damage(ParkReason.RUNTIME_LEDGER_UNREADABLE, gap_behind(run_id))
            said += _said_in_session(reader, row.session_id, run_id)
        run = head.run()
        # Behind a damaged place facts are missing, so a missing dispatch proves nothing, as in a foreign run.
        resolution = resolve(run.tools, foreign=foreign or damage is not None)
        return RunSeen(
            row,
            head.sequence,
            head.digest,
            None if run.opening is None else run.opening.profile,
            resolution,
            self._operations(run, resolution, said),
            run.open_permissions,
            len(run.jobs),
            tuple(facts),
            head.sequence - len(facts),
            damage,
            foreign,
            place.folder or row.cwd,
            place.checkpoints,
        )

    def _operations(self, run: Run, resolution: Resolution, said: Sequence[Attestation]) -> tuple[OperationSeen, ...]:
        running = {state.operation_id: state for state in self._over.not_over_in(run)}
        attested = {one.operation_id: one for one in said if one.statement is not Statement.OVER}
        over = {one.operation_id: one for one in said if one.statement is Statement.OVER}
        return tuple(
            OperationSeen(verdict, _over(verdict, running), attested.get(operation_id), over.get(operation_id))
            for verdict in resolution.verdicts
            for operation_id in (OperationId(verdict.operation_id or ""),)
        )


def _over(verdict: Verdict, running: dict[OperationId, OverState]) -> OverState:
    operation_id = OperationId(verdict.operation_id or "")
    return running.get(operation_id) or OverState(operation_id, Overness.OVER)


def _said_in_session(reader: EventReader, session_id: SessionId | None, run_id: RunId) -> list[Attestation]:
    """What a person said of a run's operations where that went to the session; nothing where that is damaged."""
    said: list[Attestation] = []
    try:
        if session_id is not None:
            for sealed in events_after(reader, session_stream(session_id), 0, FIRST_PREVIOUS_DIGEST):
                event = sealed.event
                if isinstance(event, OperationAttested) and event.run_id == run_id:
                    said.append(event)
    except (DamagedEvent, StoreDamaged):
        pass  # whoever looks at the session is told
    return said


def _read(
    reader: EventReader, run_id: RunId, facts: deque[TimelineFact], *, full: bool
) -> tuple[Head, Damage | None, list[Attestation], _Place]:
    """Fold a run as far as it verifies, and find what a person said of its operations, and where it is to go on."""
    head, said, place = Head(run_stream(run_id)), list[Attestation](), _Place()
    try:
        for sealed in events_after(reader, run_stream(run_id), 0, FIRST_PREVIOUS_DIGEST):
            head.advance(sealed)
            if isinstance(sealed.event, ToolAttested):
                said.append(sealed.event)
            place = place.after(sealed.event)
            if facts.maxlen:
                facts.append(fact_of(sealed, full=full))
    except DamagedEvent as error:
        return head, Damage(ParkReason.RUNTIME_LEDGER_UNREADABLE, str(error)), said, place
    except StoreDamaged as error:
        return head, Damage(WriteRefusal.STORE_DAMAGED, error.detail), said, place
    return head, None, said, place
