"""Two ways on where the files of a workspace changed while a run was interrupted: accept what is there, or go on in a
folder of its own that is made from the checkpoint. SPEC section 16, *Drift*.

Nothing is executed here: each is a fact of the interrupted run, and resuming goes on from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, TypeVar

from ..domain.file_evidence import FileChange
from ..domain.identifiers import ClaimId, SessionId
from ..domain.planning.facts import SegmentFacts
from ..domain.planning.outcome import Park, Reason
from ..domain.reasons import ParkReason
from ..ports.checkpoints import Capture, Checkpoint, Checkpoints, Materialized
from ..ports.event_store import EventStore
from ..ports.failpoints import Failpoints
from ..ports.ids import Ids
from ..ports.workspace import WorkspaceIdentity, WorkspaceSeen
from .agent import Agent
from .drift_facts import DriftFacts
from .expected_content import checkpoint_of
from .ledger import CommandLedger
from .ownership import Owned, SessionBusy, SessionOwnership
from .plan_resume import Planned, PlanRequest, PlanResume, fresh_ids
from .repair_session import Repair
from .resume_run import Parked, busy_reason
from .run_checkpoints import BoundToNothing, why_not
from .spines import Spines

DoneT = TypeVar("DoneT")

MATERIALIZED: Final = "workspace.materialized"
_REBASELINED: Final = frozenset(
    {
        ParkReason.WORKSPACE_DRIFT,
        ParkReason.CHECKPOINT_DOES_NOT_COVER,
        ParkReason.WORKSPACE_REF_MISSING,
        ParkReason.CHECKPOINT_RESTORE_FAILED,
    }
)
_ISOLATED: Final = frozenset({ParkReason.WORKSPACE_DRIFT})

CarryOver: TypeAlias = Callable[[str, str, Sequence[FileChange]], str | None]
"""Brings into a new folder what settled operations left in the old one; says why it could not."""


class NothingHasDrifted:
    """The files are what they should be: there is nothing to accept, and no folder was made."""


@dataclass(frozen=True, slots=True)
class Rebaselined:
    """The present content is the baseline from now on.

    Attributes:
        paths: those that differed, not always all; `total` is how many there are.
    """

    paths: tuple[str, ...]
    total: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Isolated:
    """The run goes on in a folder of its own.

    Attributes:
        folder: the user's, which was not touched.
        base: the checkpoint of what the new folder began with, in its own store.
    """

    path: str
    folder: str
    base: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one of the two is decided on."""

    owned: Owned
    planned: Planned
    source: SegmentFacts
    checkpoints: Checkpoints


class AcceptDrift:
    """Writes what a person decided about drift into the interrupted run, in sessions that this process comes to own.

    Args:
        new_key: names a new checkpoint.
        new_folder: a path for an isolated folder, whose parent is there.
        is_apart: whether a folder is such a one.
        carry_over: brings files into such a folder.
    """

    def __init__(
        self,
        store: EventStore,
        ledger: CommandLedger,
        ownership: SessionOwnership,
        repair: Repair,
        plan: PlanResume,
        workspaces: WorkspaceIdentity,
        spines: Spines,
        ids: Ids,
        failpoints: Failpoints,
        new_key: Callable[[], str],
        new_folder: Callable[[], str],
        carry_over: CarryOver,
        is_apart: Callable[[str], bool],
    ) -> None:
        self._facts = DriftFacts(store, ledger, spines, failpoints)
        self._ownership = ownership
        self._repair = repair
        self._plan = plan
        self._workspaces = workspaces
        self._spines = spines
        self._ids = ids
        self._failpoints = failpoints
        self._new_key = new_key
        self._new_folder = new_folder
        self._carry_over = carry_over
        self._is_apart = is_apart

    def rebaseline(
        self, session_id: SessionId, agent: Agent, request: PlanRequest, *, by: str
    ) -> Rebaselined | NothingHasDrifted | Parked:
        """Accept the present content: captured now, epoch one higher, and the model is told what to read again.

        Args:
            agent: as it is going to resume; its folder is the workspace.
            by: who accepts it.

        Returns:
            Parked where anything else stands in the way of resuming, too: then nothing was accepted.

        Raises:
            BoundToNothing: nobody can look; nothing was done.
            StoreError, WriteRefused: it could not be recorded; accepting again is safe.
        """
        return self._decided(session_id, agent, request, _REBASELINED, partial(self._rebaseline, agent, by))

    def isolate(
        self, session_id: SessionId, agent: Agent, request: PlanRequest, *, by: str
    ) -> Isolated | NothingHasDrifted | Parked:
        """Make a folder of its own from what is expected, and let the run go on there; the user's is not touched.

        It is made where nothing has drifted, too, unless the run has a folder of its own already. Takes, returns and
        raises what `rebaseline` does; where the folder could not be made, the reason says why.
        """
        anyway = not self._is_apart(str(agent.workspace))
        return self._decided(session_id, agent, request, _ISOLATED, partial(self._isolate, agent, by), anyway=anyway)

    def require_bound(self, session_id: SessionId, agent: Agent, request: PlanRequest) -> None:
        """Look whether anything can be decided about drift, before anything else is done.

        Raises:
            BoundToNothing: nobody looks at the files of this run.
        """
        if self._plan(session_id, agent, request).bound_to_nothing:
            raise BoundToNothing(session_id)

    def _decided(
        self,
        session_id: SessionId,
        agent: Agent,
        request: PlanRequest,
        resolvable: frozenset[ParkReason],
        write: Callable[[_Seen], DoneT | Parked],
        *,
        anyway: bool = False,
    ) -> DoneT | NothingHasDrifted | Parked:
        with ExitStack() as held:
            try:
                owned = held.enter_context(self._ownership.held(session_id))
            except SessionBusy as busy:
                return Parked(session_id, (busy_reason(busy),))
            repaired = self._repair(owned)
            fresh = fresh_ids(self._ids.fresh(ClaimId), self._spines.identity(session_id))
            planned = self._plan(session_id, agent, request, fresh)
            plan = planned.plan
            if planned.bound_to_nothing:
                raise BoundToNothing(session_id)
            source = self._facts.source(session_id)
            if isinstance(plan, Park):
                if not resolvable.issuperset(plan.codes) or source is None or agent.checkpoints is None:
                    return Parked(session_id, plan.reasons, plan.notes, (), repaired)
            elif not anyway or source is None or agent.checkpoints is None:
                return NothingHasDrifted()
            return write(_Seen(owned, planned, source, agent.checkpoints))

    def _rebaseline(self, agent: Agent, by: str, seen: _Seen) -> Rebaselined | Parked:
        captured: Capture = seen.checkpoints.capture(str(agent.workspace), self._new_key())
        if not isinstance(captured, Checkpoint):
            return _failed(seen, why_not(captured))
        paths, total, epoch = _paths(seen.planned), _total(seen.planned), _epoch(seen) + 1
        identity = str(agent.workspace_identity)
        self._facts.rebaselined(
            seen.owned, seen.source, identity, captured, epoch=epoch, paths=paths, total=total, by=by
        )
        return Rebaselined(paths, total, epoch)

    def _isolate(self, agent: Agent, by: str, seen: _Seen) -> Isolated | Parked:
        folder, baseline = str(agent.workspace), seen.planned.checkpoint
        if baseline is None or baseline.baseline is None:
            return _failed(seen, "no checkpoint was accepted")
        made = seen.checkpoints.materialize(folder, checkpoint_of(baseline.baseline), self._new_folder())
        if not isinstance(made, Materialized):
            return _failed(seen, str(getattr(made, "detail", made)))
        wrong = self._carry_over(folder, made.path, seen.planned.changes)
        if wrong is not None:
            return _failed(seen, wrong)
        self._failpoints.hit(MATERIALIZED)
        workspace = self._workspaces.ensure(made.path)
        captured: Capture = seen.checkpoints.capture(made.path, self._new_key())
        if not isinstance(workspace, WorkspaceSeen):
            return _failed(seen, "the new folder could not be marked as a workspace")
        if not isinstance(captured, Checkpoint):
            return _failed(seen, why_not(captured))
        if not seen.planned.changes and captured.tree_id != baseline.baseline.tree_id:
            return _failed(seen, "what was written out is not what was kept")
        identity = str(agent.workspace_identity)
        self._facts.transitioned(seen.owned, seen.source, identity, workspace, captured, epoch=_epoch(seen), by=by)
        return Isolated(workspace.canonical_path, folder, captured.ref)


def _epoch(seen: _Seen) -> int:
    return 0 if seen.planned.checkpoint is None else seen.planned.checkpoint.epoch


def _paths(planned: Planned) -> tuple[str, ...]:
    return () if planned.checkpoint is None else planned.checkpoint.drifted_paths


def _total(planned: Planned) -> int:
    return 0 if planned.checkpoint is None else max(planned.checkpoint.drifted, len(planned.checkpoint.drifted_paths))


def _failed(seen: _Seen, detail: str) -> Parked:
    reason = Reason(ParkReason.CHECKPOINT_RESTORE_FAILED, {"detail": detail})
    return Parked(seen.owned.session_id, (reason,))
