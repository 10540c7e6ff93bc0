"""Repair: bring what a dead owner left open to a clear end. SPEC section 11. Calls no provider and no tool; idempotent.

It is not reconciling (looking at the world) and not resuming (a new run): those are other use cases, later.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from ..domain.commands import EndRun, RepairContinuation
from ..domain.errors import StoreDamaged, StoreNotAdopted, WriteRefused
from ..domain.events.assembling import assembled
from ..domain.events.run import ContinuationStarted, RunClaimed, RunEnded, RunOpened, RunStatus, StartKind
from ..domain.identifiers import ExecutionIdentity, RunId, SessionId
from ..domain.reasons import FailureClass, ParkReason, WriteRefusal
from ..domain.run.state import Run
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from ..ports.session_owners import Ownership
from .ledger import CommandLedger
from .open_ends import HeadRun, head_run
from .ownership import Owned
from .spines import Spines


class RepairKind(StrEnum):
    """What repair found and did."""

    NOTHING_OPEN = "nothing_open"
    RUN_CLOSED = "run_closed"
    CLAIM_REPAIRED = "claim_repaired"
    QUARANTINED = "quarantined"
    CLOSED_BEFORE = "closed_before"
    """A repair had closed the run as interrupted, and died with its process; nobody has begun anything since."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result for one session; `code` and `detail` say why a session is quarantined."""

    session_id: SessionId
    kind: RepairKind
    run_id: RunId | None = None
    status: RunStatus | None = None
    code: ParkReason | None = None
    detail: str = ""


RepairCommand: TypeAlias = EndRun | RepairContinuation


class Repair(Protocol):
    """What brings a session's open end to its own; of one session, or of its children's as well."""

    @abstractmethod
    def __call__(self, owned: Owned, *, cancelled_by: str | None = None) -> Repaired:
        """See `RepairSession`."""

    @abstractmethod
    def child_waits(self, session_id: SessionId) -> bool:
        """True where the session of a child run waits for repair, whatever its parent's waits for."""


class RepairSession(Repair):
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
            StoreNotAdopted: the whole store may not be written.
            WriteRefused: the session has another owner.
        """
        try:
            return self._repair(owned, cancelled_by)
        except StoreNotAdopted:
            raise  # about the whole store, not about this session
        except StoreDamaged as damage:
            return quarantined(owned.session_id, ParkReason.RUNTIME_LEDGER_UNREADABLE, damage.detail)

    def child_waits(self, session_id: SessionId) -> bool:
        """See `Repair`: it knows of no children."""
        return False

    def _repair(self, owned: Owned, cancelled_by: str | None) -> Repaired:
        command = self.decide(owned, cancelled_by)
        if isinstance(command, Repaired):
            return command
        try:
            self._ledger.execute(command)
        except WriteRefused as refused:
            if refused.code is not WriteRefusal.RUN_SEALED:
                raise
            return self._repair(owned, cancelled_by)  # it went on or ended meanwhile: look again
        return self.tell(owned, command)

    def decide(self, owned: Owned, cancelled_by: str | None = None) -> RepairCommand | Repaired:
        """What closes the session's open end, or why nothing does; writes nothing.

        Raises:
            StoreDamaged: its record is damaged.
            StoreUnavailable: it could not be read.
        """
        head = head_run(self._ledger, owned.session_id)
        if head is None:
            return Repaired(owned.session_id, RepairKind.NOTHING_OPEN)
        if head.run.ended is not None:
            return Repaired(owned.session_id, RepairKind.NOTHING_OPEN, head.admitted.run_id, head.run.ended.status)
        if head.unexplained:
            return _unexplained(head)
        if head.run.opening is not None:
            return self._end(owned, head.run.opening, head.run, cancelled_by)
        assert head.claimed is not None  # else it is unexplained
        return self._close(owned, head.claimed, cancelled_by)

    def left_as_it_is(self, row: Ownership, awaited: Callable[[Repaired], bool]) -> Repaired | None:
        """What is said of a session that is not taken at all; None where it is taken, and brought to an end.

        Args:
            row: as it is: of a dead owner, or of this process.
            awaited: of which closed runs something is to be begun, which nobody has begun.

        Raises:
            StoreDamaged, StoreUnavailable: as `decide`.
        """
        head = head_run(self._ledger, row.session_id)
        if head is None:
            return None
        if head.run.opening is None:
            return _unexplained(head) if head.unexplained else None
        before = _closed_before(head, row)
        return before if before is not None and awaited(before) else None

    def _end(
        self, owned: Owned, opening: RunOpened | ContinuationStarted, run: Run, cancelled_by: str | None
    ) -> EndRun:
        """Close undispatched calls and append the recovered terminal event, in one commit."""
        stopped_by = run.cancel_requested.by if run.cancel_requested is not None else cancelled_by
        ended = self._ended(owned, opening, FailureClass.APP_RESTARTED, stopped_by)
        return EndRun(*owned.guard, opening.run_id, ended, stopped_by)

    def _close(self, owned: Owned, claimed: RunClaimed, cancelled_by: str | None) -> RepairContinuation:
        """Make the target of an unstarted claim a run that failed before any provider call. SPEC section 14."""
        started = started_from(claimed, StartKind.CLAIM_REPAIR, owned, self._spines)
        failure = FailureClass.CONTINUATION_ABANDONED_BEFORE_PROVIDER_DISPATCH
        ended = self._ended(owned, started, failure, cancelled_by)
        return RepairContinuation(*owned.guard, claimed.target.run_id, claimed.run_id, started, ended)

    def tell(self, owned: Owned, command: RepairCommand) -> Repaired:
        """Tell operators of a command that is durable; answers what it came to."""
        done, kind = RepairKind.RUN_CLOSED, LifecycleKind.REPAIR_COMPLETED
        if isinstance(command, RepairContinuation):
            done, kind = RepairKind.CLAIM_REPAIRED, LifecycleKind.CLAIM_REPAIRED
        ended = command.ended
        codes = (ended.failure_class or ended.status.value,)
        event = LifecycleEvent(kind=kind, session_id=owned.session_id, run_id=command.run_id, codes=codes)
        self._sink.record(event)
        return Repaired(owned.session_id, done, command.run_id, command.ended.status)

    def _ended(
        self,
        owned: Owned,
        run: RunOpened | ContinuationStarted,
        failure: FailureClass,
        stopped_by: str | None,
    ) -> RunEnded:
        return assembled(
            RunEnded,
            {
                **self._spines.run(run.identity),
                "status": RunStatus.FAILED if stopped_by is None else RunStatus.CANCELLED,
                "failure_class": failure.value if stopped_by is None else None,
                "recovered": True,
                "incarnation_id": owned.incarnation_id,
                "epoch": owned.epoch,
            },
        )


def _unexplained(head: HeadRun) -> Repaired:
    detail = f"run {head.admitted.run_id} was admitted and never opened, and no claim names it"
    return quarantined(head.admitted.session_id, ParkReason.SOURCE_RUN_UNREADABLE, detail)


def _closed_before(head: HeadRun, row: Ownership) -> Repaired | None:
    """What an earlier repair closed whose process died before anybody began anything: the row is still as it was."""
    ended = head.run.ended
    if ended is None or not ended.recovered or head.run.claimed is not None:
        return None
    if (ended.incarnation_id, ended.epoch) != (row.incarnation_id, row.epoch):
        return None
    return Repaired(row.session_id, RepairKind.CLOSED_BEFORE, head.admitted.run_id, ended.status)


def quarantined(session_id: SessionId, code: ParkReason, detail: str) -> Repaired:
    """A session whose record is damaged: it is left as it is until a person looks."""
    return Repaired(session_id, RepairKind.QUARANTINED, code=code, detail=detail)


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
