"""What the world says for a plan: who owns the session, what still runs, and how the workspace stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..domain.identifiers import SessionId
from ..domain.planning.facts import SegmentFacts, SegmentReading
from ..domain.planning.observations import (
    Authority,
    Busy,
    CheckpointFacts,
    NotOver,
    RunningProcess,
    WorkspaceFound,
    WorkspaceUnknown,
)
from ..domain.reasons import ParkReason
from ..ports.checkpoints import Checkpoints
from ..ports.incarnations import Liveness
from ..ports.supervised import Overness
from ..ports.workspace import (
    Absent,
    CouldNotLook,
    WorkspaceIdentity,
    WorkspaceMissing,
    WorkspaceObservation,
    WorkspaceRefused,
    WorkspaceSeen,
)
from .copied_folders import CopiedFolders
from .expected_content import Expected, LookAtFile, facts_of
from .over import OverJudge
from .ownership import SessionOwnership


@dataclass(slots=True)
class WorldSeen:
    """What was seen beside the workspace.

    Attributes:
        checkpoint: the content that the lineage is bound to, and how it stands; None where it is bound to none.
    """

    busy: Busy | None = None
    authority: Authority = Authority.HELD_OR_FREE
    not_over: tuple[NotOver, ...] = ()
    checkpoint: CheckpointFacts | None = None


class PlanWorld:
    """Looks, and changes nothing.

    Args:
        copied: finds other folders with the marker of one.
        look_at_file: says what stands at a path, where a settled operation left something since the last checkpoint.
    """

    def __init__(
        self,
        ownership: SessionOwnership,
        over: OverJudge,
        workspaces: WorkspaceIdentity,
        copied: CopiedFolders,
        look_at_file: LookAtFile,
    ) -> None:
        self._ownership = ownership
        self._over = over
        self._workspaces = workspaces
        self._copied = copied
        self._look_at_file = look_at_file

    def owner(self, session_id: SessionId, *, owned: bool) -> tuple[Busy | None, Authority]:
        """Who works on a session now, and whether that could be seen.

        Args:
            owned: whoever asks owns it for this.
        """
        row, owner, liveness = self._ownership.owner_of(session_id)
        if row is None or row.incarnation_id is None:
            return None, Authority.HELD_OR_FREE
        if self._ownership.is_mine(row.incarnation_id):
            if owned or owner is None or not self._ownership.in_use(session_id):
                return None, Authority.HELD_OR_FREE
            return Busy(owner.pid, "this process works on it"), Authority.HELD_OR_FREE
        if liveness is Liveness.DEAD:
            return None, Authority.HELD_OR_FREE
        if liveness is Liveness.ALIVE and owner is not None:
            return Busy(owner.pid, f"process {owner.pid} on {owner.host} owns it"), Authority.HELD_OR_FREE
        return None, Authority.COULD_NOT_LOOK

    def not_over(self, lineage: Sequence[SegmentReading]) -> tuple[NotOver, ...]:
        """The operations of a lineage that may still run."""
        states = (
            state
            for segment in lineage
            if isinstance(segment, SegmentFacts)
            for state in self._over.not_over(segment.survey, segment.resolution)
        )
        return tuple(
            NotOver(
                state.operation_id,
                state.overness is Overness.COULD_NOT_LOOK,
                tuple(RunningProcess(process.pid, process.name) for process in state.processes),
            )
            for state in states
        )

    def checkpoint(
        self,
        expected: Expected,
        lineage: Sequence[SegmentFacts],
        checkpoints: Checkpoints | None,
        workspace: WorkspaceFound | WorkspaceUnknown,
    ) -> CheckpointFacts:
        """What is bound to content is compared where it is the same workspace; elsewhere that is the reason to park."""
        same = isinstance(workspace, WorkspaceFound) and workspace.identity == lineage[-1].survey.workspace_identity
        folder = workspace.path if same and isinstance(workspace, WorkspaceFound) else None
        return facts_of(expected, lineage, checkpoints, folder, self._look_at_file)

    def workspace(self, path: str, recorded: str | None) -> WorkspaceFound | WorkspaceUnknown:
        """Which workspace a folder is, where it is no copy and has none.

        Args:
            recorded: where the run in question is by its facts.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        seen = self._workspaces.observe(path)
        if isinstance(seen, WorkspaceSeen) and (other := self._copied.other(seen, recorded)) is not None:
            detail = "two folders have this identity: one is a copy of the other"
            return WorkspaceUnknown(ParkReason.WORKSPACE_COPY_AMBIGUOUS, (other, seen.canonical_path), detail)
        return _found(path, seen)

    def folder_alone(self, path: str) -> WorkspaceFound | WorkspaceUnknown:
        """As `workspace`, where the store cannot be asked for other folders."""
        return _found(path, self._workspaces.observe(path))


def _found(path: str, seen: WorkspaceObservation) -> WorkspaceFound | WorkspaceUnknown:
    match seen:
        case WorkspaceSeen(identity=identity, canonical_path=canonical):
            return WorkspaceFound(identity, canonical)
        case WorkspaceMissing(what=what):
            detail = f"the {what.value} is not there"
            no_folder = what is Absent.FOLDER
            return WorkspaceUnknown(ParkReason.WORKSPACE_IDENTITY_MISSING, (path,), detail, no_folder)
        case WorkspaceRefused(detail=detail):
            return WorkspaceUnknown(ParkReason.WORKSPACE_IDENTITY_MISSING, (path,), detail)
        case CouldNotLook(detail=detail):
            return WorkspaceUnknown(ParkReason.SAFETY_OBSERVATION_UNAVAILABLE, (path,), detail)
