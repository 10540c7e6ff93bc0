"""Finds the operations of a session that have no outcome, and makes sure that they may be looked at again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..domain import canonical
from ..domain.errors import StoreDamaged, StoreNotAdopted
from ..domain.events.event import Json
from ..domain.events.session import WatchStatus
from ..domain.events.tool import RecoveryMode, ToolCalled, ToolDispatched
from ..domain.identifiers import OperationId, RunId, SessionId
from ..domain.operation.state import Operation, Phase, operation_by_id, unanswered_of
from ..domain.recovery.facts import Decided
from ..domain.run.state import Run
from ..domain.sealing import DamagedEvent
from ..domain.session.state import Session
from ..ports.event_store import EventStore
from ..ports.supervised import Overness
from ..ports.workspace import WorkspaceIdentity, WorkspaceSeen
from .copied_folders import CopiedFolders, RunsPlace, place_of_operations
from .later_operations import dispatched_after
from .ledger import CommandLedger
from .over import OverJudge
from .reconciliation import Left, LeftAlone, OperationReconciled
from .states import gap_behind

_NO_OUTCOME: Final = frozenset({WatchStatus.INDETERMINATE, WatchStatus.PARKED})


@dataclass(frozen=True, slots=True)
class Uncertain:
    """An operation that is over and has no outcome.

    Attributes:
        later: what the session dispatched after it, in order, where evidence is to be compared.
        workspace: the run's folder, or the one that was named instead; `workspace_identity` as it was just observed.
        foreign: the store cannot vouch that its outcome is missing.
    """

    run: Run
    operation: Operation
    call: ToolCalled
    dispatch: ToolDispatched
    workspace: Path
    workspace_identity: str | None
    unusable_workspace: LeftAlone | None
    foreign: bool
    later: tuple[ToolDispatched, ...] = ()

    @property
    def arguments(self) -> dict[str, Json]:
        """As they are stored, so that what was hashed is what is used. SPEC section 6."""
        stored = canonical.decode_canonical(canonical.encode(self.call.args))
        return stored if isinstance(stored, dict) else {}

    def became(self, what: LeftAlone) -> OperationReconciled:
        """Say why it was left alone."""
        return left_alone(self.operation, self.dispatch.run_id, what)


def left_alone(operation: Operation, run_id: RunId, what: LeftAlone) -> OperationReconciled:
    """Say why an operation was left alone."""
    operation_id = operation.operation_id or OperationId(operation.call_id)
    return OperationReconciled(operation_id, run_id, operation.tool_name, operation.mode, what)


def _parked(operation: Operation) -> LeftAlone:
    decided = (fact.reason for _, fact in operation.record.recovery or () if isinstance(fact, Decided))
    return LeftAlone(Left.PARKED, next(decided, ""))


class UncertainOperations:
    """Looks, and changes nothing."""

    def __init__(
        self,
        store: EventStore,
        ledger: CommandLedger,
        over: OverJudge,
        workspaces: WorkspaceIdentity,
        copied: CopiedFolders,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._over = over
        self._workspaces = workspaces
        self._copied = copied

    def of(self, session_id: SessionId) -> Iterator[tuple[RunId, OperationId]]:
        """What a session watches as indeterminate, run by run, and what its head run left without outcome.

        Raises:
            StoreDamaged: the session cannot be read.
            StoreUnavailable: it could not be looked at.
        """
        for run_id, operation in self._without_outcome(session_id):
            if isinstance(operation, str):
                yield run_id, operation
            elif operation.operation_id is not None and operation.phase is Phase.DISPATCHED:
                yield run_id, operation.operation_id

    def parked(self, session_id: SessionId) -> Iterator[OperationReconciled]:
        """What was parked before, of the same runs: nothing can be learned of it, and it has no outcome.

        Raises:
            StoreDamaged: the session cannot be read.
            StoreUnavailable: it could not be looked at.
        """
        for run_id, operation in self._without_outcome(session_id):
            if not isinstance(operation, str) and operation.phase is Phase.PARKED:
                yield left_alone(operation, run_id, _parked(operation))

    def _without_outcome(self, session_id: SessionId) -> Iterator[tuple[RunId, Operation | OperationId]]:
        """The unanswered operations that a session watches or its head run left; only an id of what cannot be read."""
        session = self._ledger.session(session_id)
        watched = [one for one in session.watched.values() if one.status in _NO_OUTCOME]
        named: dict[RunId, list[OperationId]] = {one.run_id: [] for one in watched}
        for one in watched:
            named[one.run_id].append(one.operation_id)
        if session.head is not None:
            named.setdefault(session.head.run_id, [])
        for run_id, watched_of_run in named.items():
            run = self._readable(run_id)
            if run is None:  # whoever looks at it is told
                yield from ((run_id, operation_id) for operation_id in watched_of_run)
                continue
            head = session.head is not None and session.head.run_id == run_id
            for operation in unanswered_of(run):
                if operation.operation_id is not None and (head or operation.operation_id in watched_of_run):
                    yield run_id, operation

    def look(
        self, session_id: SessionId, run_id: RunId, operation_id: OperationId, folder: Path | None
    ) -> Uncertain | OperationReconciled:
        """Look at one operation, or say why it is left alone.

        Args:
            folder: where the run's workspace is now, if it was moved.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        session, run = self._ledger.session(session_id), self._readable(run_id)
        if run is None:
            unreadable = LeftAlone(Left.RUN_UNREADABLE, f"run {run_id} is damaged")
            return OperationReconciled(operation_id, run_id, "", None, unreadable)
        operation = operation_by_id(run, operation_id)
        if operation is None:
            return OperationReconciled(operation_id, run_id, "", None, LeftAlone(Left.NOT_RECONCILABLE))
        why = self._why_not(session, run_id, run, operation)
        call, dispatch = operation.called, operation.dispatch
        if why is not None or call is None or dispatch is None:
            return left_alone(operation, run_id, why or LeftAlone(Left.RUN_UNREADABLE))
        with self._store.snapshot() as reader:
            standing = reader.standing(run_id)
            if standing.gap:
                return left_alone(operation, run_id, LeftAlone(Left.RUN_UNREADABLE, gap_behind(run_id)))
            later: tuple[ToolDispatched, ...] = ()
            if dispatch.contract.mode is RecoveryMode.RECONCILE:
                try:
                    later = dispatched_after(reader, session_id, run_id, operation_id)
                except DamagedEvent:
                    detail = "a later run is damaged, and may have changed the same"
                    return left_alone(operation, run_id, LeftAlone(Left.RUN_UNREADABLE, detail))
        where, identity, unusable = self._workspace(run, folder)
        return Uncertain(run, operation, call, dispatch, where, identity, unusable, standing.foreign, later)

    def _why_not(self, session: Session, run_id: RunId, run: Run, operation: Operation) -> LeftAlone | None:
        if operation.phase is Phase.PARKED:
            return _parked(operation)
        if operation.phase is not Phase.DISPATCHED:
            return LeftAlone(Left.NOT_RECONCILABLE)
        if run_id in session.abandoned:
            return LeftAlone(Left.RUN_UNREADABLE)
        if run.ended is None:
            return LeftAlone(Left.RUN_OPEN)
        behind = session.head is not None and session.head.run_id != run_id
        watched = operation.operation_id in session.watched or operation.mode is RecoveryMode.REPLAY_SAFE
        if behind and not watched:
            return LeftAlone(Left.REPEATED)
        states = (one for one in self._over.not_over_in(run) if one.operation_id == operation.operation_id)
        running = next(states, None)
        if running is not None:
            unseen = running.overness is Overness.COULD_NOT_LOOK
            return LeftAlone(Left.COULD_NOT_LOOK if unseen else Left.MAY_BE_RUNNING, processes=running.processes)
        return None

    def _readable(self, run_id: RunId) -> Run | None:
        try:
            run = self._ledger.run(run_id)
        except StoreNotAdopted:
            raise  # about the whole store
        except StoreDamaged:
            return None
        return None if run.tools.issues else run

    def _workspace(self, run: Run, folder: Path | None) -> tuple[Path, str | None, LeftAlone | None]:
        """Where a run's tools worked, what that folder is now, and why nothing may be done there."""
        place = self._place(run)
        recorded = place.identity
        where = folder or Path(place.folder or "")
        seen = self._workspaces.observe(str(where))
        if not isinstance(seen, WorkspaceSeen):
            unusable = None if recorded is None else LeftAlone(Left.WORKSPACE_UNSEEN, f"{where} is not as it was")
            return where, None, unusable
        where = Path(seen.canonical_path)
        if recorded is not None and seen.identity != recorded:
            other = LeftAlone(Left.OTHER_WORKSPACE, f"{where} is another workspace than the run worked in")
            return where, seen.identity, other
        twin = self._copied.other(seen, place.folder)
        if twin is not None:
            detail = f"{twin} and {where} have one identity: one is a copy"
            copied = LeftAlone(Left.COPY_AMBIGUOUS, detail, folders=(twin, str(where)))
            return where, seen.identity, copied
        return where, seen.identity, None

    def _place(self, run: Run) -> RunsPlace:
        if run.opening is None:
            return RunsPlace(None, None)
        with self._store.snapshot() as reader:
            return place_of_operations(reader, run.opening.run_id, run.opening)
