"""Repair: bring what a dead owner left open to a clear end. SPEC section 11. Calls no provider and no tool; idempotent.

It is not reconciling (looking at the world) and not resuming (a new run): those are other use cases, later.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..domain.commands import EndRun, RepairContinuation
from ..domain.errors import StoreDamaged, WriteRefused
from ..domain.events.run import ContinuationStarted, RunClaimed, RunEnded, RunOpened, RunStatus, StartKind
from ..domain.identifiers import ExecutionIdentity, RunId, SessionId
from ..domain.reasons import FailureClass, ParkReason, WriteRefusal
from ..domain.run.state import Run
from ..domain.session.state import Session
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from .ledger import CommandLedger
from .ownership import Owned
from .spines import Spines


class RepairKind(StrEnum):
    """What repair found and did."""

    NOTHING_OPEN = "nothing_open"
    RUN_CLOSED = "run_closed"
    CLAIM_REPAIRED = "claim_repaired"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result for one session; `code` and `detail` say why a session is quarantined."""

    session_id: SessionId
    kind: RepairKind
    run_id: RunId | None = None
    status: RunStatus | None = None
    code: ParkReason | None = None
    detail: str = ""


class RepairSession:
    """Closes the head run of one session, under ownership."""

    def __init__(self, ledger: CommandLedger, spines: Spines, sink: LifecycleSink) -> None:
        self._ledger = ledger
        self._spines = spines
        self._sink = sink

    def __call__(self, owned: Owned, *, cancelled_by: str | None = None) -> Repaired:
        """Repair one session: an unstarted claim first, else its open run.

        Args:
            owned: the right to write it; its former owner is dead, fenced, or this process with its task ended.
            cancelled_by: a person who stops what is open; otherwise it ends as interrupted.

        Raises:
            StoreUnavailable, StoreFull: nothing can be said; try again.
        """
        try:
            session = self._ledger.session(owned.session_id)
            head = session.head
            if head is None or head.run_id in session.abandoned:
                return Repaired(owned.session_id, RepairKind.NOTHING_OPEN)
            run = self._ledger.run(head.run_id)
        except StoreDamaged as damage:
            return Repaired(
                owned.session_id,
                RepairKind.QUARANTINED,
                code=ParkReason.RUNTIME_LEDGER_UNREADABLE,
                detail=damage.detail,
            )
        if run.ended is not None:
            return Repaired(owned.session_id, RepairKind.NOTHING_OPEN, head.run_id, run.ended.status)
        done = self._claim(owned, session, cancelled_by) if run.opening is None else self._run(owned, run, cancelled_by)
        kind = (
            LifecycleKind.CLAIM_REPAIRED if done.kind is RepairKind.CLAIM_REPAIRED else LifecycleKind.REPAIR_COMPLETED
        )
        self._sink.record(LifecycleEvent(kind=kind, session_id=owned.session_id, run_id=done.run_id))
        return done

    def _run(self, owned: Owned, run: Run, cancelled_by: str | None) -> Repaired:
        """Close undispatched calls and append the recovered terminal event, in one commit."""
        opening = run.opening
        assert opening is not None
        stopped_by = run.cancel_requested.by if run.cancel_requested is not None else cancelled_by
        status = RunStatus.FAILED if stopped_by is None else RunStatus.CANCELLED
        failure = FailureClass.APP_RESTARTED if stopped_by is None else None
        ended = self._ended(owned, opening, status, failure)
        self._execute(EndRun(owned.session_id, owned.incarnation_id, owned.epoch, opening.run_id, ended, stopped_by))
        return Repaired(owned.session_id, RepairKind.RUN_CLOSED, opening.run_id, status)

    def _claim(self, owned: Owned, session: Session, cancelled_by: str | None) -> Repaired:
        """Make the target of an unstarted claim a run that failed before any provider call. SPEC section 14."""
        assert session.head is not None
        target = session.head.run_id
        source = None if session.previous is None else self._ledger.run(session.previous.run_id)
        if source is None or source.claimed is None or source.claimed.target.run_id != target:
            detail = f"run {target} was admitted and never opened, and no claim names it"
            return Repaired(
                owned.session_id, RepairKind.QUARANTINED, target, code=ParkReason.SOURCE_RUN_UNREADABLE, detail=detail
            )
        started = started_from(source.claimed, StartKind.CLAIM_REPAIR, owned, self._spines)
        status = RunStatus.FAILED if cancelled_by is None else RunStatus.CANCELLED
        failure = FailureClass.CONTINUATION_ABANDONED_BEFORE_PROVIDER_DISPATCH if cancelled_by is None else None
        ended = self._ended(owned, started, status, failure)
        guard = (owned.session_id, owned.incarnation_id, owned.epoch)
        self._execute(RepairContinuation(*guard, target, source.claimed.run_id, started, ended))
        return Repaired(owned.session_id, RepairKind.CLAIM_REPAIRED, target, status)

    def _execute(self, command: EndRun | RepairContinuation) -> None:
        try:
            self._ledger.execute(command)
        except WriteRefused as refused:
            if refused.code is not WriteRefusal.RUN_SEALED:  # somebody else repaired it meanwhile: the same end
                raise

    def _ended(
        self, owned: Owned, run: RunOpened | ContinuationStarted, status: RunStatus, failure: FailureClass | None
    ) -> RunEnded:
        return RunEnded(
            **self._spines.run(run.identity),
            status=status,
            failure_class=failure,
            recovered=True,
            incarnation_id=owned.incarnation_id,
            epoch=owned.epoch,
        )


def started_from(claimed: RunClaimed, kind: StartKind, owned: Owned, spines: Spines) -> ContinuationStarted:
    """The first event of a claim's target: exactly the header that the claim froze."""
    target = claimed.target
    identity = ExecutionIdentity(claimed.session_id, target.run_id, target.turn_id, target.invocation_id)
    return ContinuationStarted(
        **spines.run(identity),
        claim_id=claimed.claim_id,
        boundary_digest=claimed.boundary_digest,
        source=claimed.segments[-1],
        replay_digest=claimed.replay_digest,
        projection_version=claimed.projection_version,
        kind=kind,
        cwd=target.cwd,
        workspace_identity=target.workspace_identity,
        profile=target.profile,
        protocol=target.protocol,
        incarnation_id=owned.incarnation_id,
        epoch=owned.epoch,
    )
