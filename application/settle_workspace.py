"""A person says which of two folders with one marker is the workspace: this one, or that this one is another. SPEC 16.

Nothing is decided by looking: where both places are known and neither is named, runs are parked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ..domain.commands import AppendLate
from ..domain.errors import SafepointError
from ..domain.events.outside import WorkspaceRenewed, WorkspaceTransitioned
from ..domain.events.session import NoticePosted
from ..domain.identifiers import ExecutionIdentity, NoticeId, RunId, SessionId, derive_id
from ..domain.planning.facts import SegmentFacts
from ..domain.sentences import SentenceId
from ..ports.event_store import EventStore
from ..ports.views import RunRow, SessionViews
from ..ports.workspace import WorkspaceIdentity, WorkspaceObservation, WorkspaceSeen
from .copied_folders import twin_at
from .ledger import CommandLedger
from .lineage import reading_of
from .ownership import Owned, SessionOwnership
from .paging import every
from .repair_session import Repair
from .spines import Spines

PAGE = 100
NO_CHECKPOINT = ""
"""Stands in a transition for a checkpoint: a person named the folder, and nothing was made from one."""


class WorkspaceUnusable(SafepointError):
    """The folder has no marker that can be trusted, so nothing can be said of it; `observed` says what was seen."""

    def __init__(self, observed: WorkspaceObservation) -> None:
        super().__init__(f"{getattr(observed, 'path', 'the folder')} cannot be looked at as a workspace")
        self.observed = observed


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """A session's newest run, which may still be continued, and where it is recorded to be.

    Attributes:
        folder: where it was at its end, by its facts; `identity` and `epoch` are of that workspace.
        execution: the identity that its facts carry.
    """

    session_id: SessionId
    run_id: RunId
    folder: str
    identity: str
    epoch: int
    execution: ExecutionIdentity


@dataclass(frozen=True, slots=True)
class WorkspaceStanding:
    """A workspace as it is found, and what this store knows of it.

    Attributes:
        elsewhere: other folders that have the same marker now.
        runs: interrupted runs that are recorded in this workspace, under this identity or the one before.
    """

    seen: WorkspaceSeen
    elsewhere: tuple[str, ...]
    runs: tuple[InterruptedRun, ...]


@dataclass(frozen=True, slots=True)
class WorkspaceSettled:
    """What was written; `before` is the identity that the folder had."""

    seen: WorkspaceSeen
    before: str
    runs: tuple[InterruptedRun, ...]


class SettleWorkspace:
    """Looks at a workspace that may be a copy, and takes a person's word on it."""

    def __init__(
        self,
        store: EventStore,
        views: SessionViews,
        ledger: CommandLedger,
        ownership: SessionOwnership,
        repair: Repair,
        workspaces: WorkspaceIdentity,
        spines: Spines,
    ) -> None:
        self._store = store
        self._views = views
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._workspaces = workspaces
        self._spines = spines

    def look(self, folder: str) -> WorkspaceStanding:
        """Say which workspace a folder is, and where else its marker is seen. Changes nothing.

        Raises:
            WorkspaceUnusable: it has no marker that can be trusted.
            StoreError: the store could not be read.
        """
        seen = self._seen(folder)
        identities = {seen.identity} | ({seen.renewed_from} if seen.renewed_from else set())
        rows = [row for row in self._heads() if row.workspace_identity in identities]
        runs = [run for row in rows if (run := self._interrupted(row)) is not None and run.identity in identities]
        folders = {run.folder for run in runs}.union(*map(self._views.folders_of, identities))
        others = sorted(folder for folder in folders if twin_at(self._workspaces, seen, folder) is not None)
        return WorkspaceStanding(seen, tuple(others), tuple(runs))

    def adopt(self, folder: str, *, by: str) -> WorkspaceSettled:
        """Take a person's word that this folder is the workspace: its interrupted runs go on here.

        Its marker says so from then on, so that it is said once, and the markers of its copies that are known here say
        so no more: the last word counts.

        Args:
            by: who says so; told to the model of each continued run.

        Raises:
            WorkspaceUnusable: as `look`, or it could not be noted in the marker; adopting again is safe.
            SessionBusy: a process works in the workspace; nothing was written.
            StoreError: the store could not be read or written; saying it again is safe.
        """
        standing = self.look(folder)
        seen = standing.seen
        moved = [run for run in standing.runs if run.identity == seen.identity and run.folder != seen.canonical_path]
        with self._owned(moved) as owned:
            for run in moved:
                told = f"the work goes on in the folder {seen.canonical_path}, as {by} said."
                self._write(owned[run.session_id], run, self._transition(run, seen), told)
            for other in standing.elsewhere:  # where this cannot be noted, two say it, and nobody is believed
                self._workspaces.disown(other)
            adopted = self._workspaces.adopt(folder)
        if not isinstance(adopted, WorkspaceSeen):
            raise WorkspaceUnusable(adopted)
        return WorkspaceSettled(adopted, seen.identity, tuple(moved))

    def renew(self, folder: str, *, by: str) -> WorkspaceSettled:
        """Take a person's word that this folder is a workspace of its own: it gets another identity.

        Runs that are recorded in this very folder go with it. Where it was interrupted before they all had their fact,
        the identity is there already, and this only brings them along.

        Args:
            by: who says so.

        Raises:
            WorkspaceUnusable: as `look`, or the marker could not be replaced.
            SessionBusy: a process works in the folder; nothing was changed.
            StoreError: the store could not be read or written; renewing again is safe.
        """
        standing = self.look(folder)
        seen, before = standing.seen, standing.seen.identity
        here = [run for run in standing.runs if run.folder == seen.canonical_path]
        left = [run for run in here if run.identity != seen.identity]
        runs = left or here
        with self._owned(runs) as owned:
            if not left:
                renewed = self._workspaces.renew(folder)
                if not isinstance(renewed, WorkspaceSeen):
                    raise WorkspaceUnusable(renewed)
                seen = renewed
            for run in runs:
                told = f"{by} said that the folder {seen.canonical_path} is a workspace of its own, and no copy."
                self._write(owned[run.session_id], run, self._renewal(run, seen), told)
        return WorkspaceSettled(seen, runs[0].identity if left else before, tuple(runs))

    def _seen(self, folder: str) -> WorkspaceSeen:
        seen = self._workspaces.observe(folder)
        if not isinstance(seen, WorkspaceSeen):
            raise WorkspaceUnusable(seen)
        return seen

    def _heads(self) -> Iterator[RunRow]:
        rows = every(lambda after: self._views.sessions(after=after, limit=PAGE), None, lambda row: row.key)
        heads = (self._views.run(row.head_run_id) for row in rows if row.head_run_id is not None)
        return (head for head in heads if head is not None and head.abandoned_by is None)

    def _interrupted(self, row: RunRow) -> InterruptedRun | None:
        """Where a run is by its facts; None of one that has nothing to continue, or cannot be read."""
        if row.status == "completed" or row.claimed_by_run_id is not None or row.session_id is None:
            return None
        with self._store.snapshot() as reader:
            reading = reading_of(reader, row.run_id)
        if not isinstance(reading, SegmentFacts):
            return None  # whoever plans it is told why
        survey = reading.survey
        if survey.cwd is None or survey.workspace_identity is None or reading.opening is None:
            return None
        epoch = survey.workspace_epoch or 0
        where = (survey.cwd, survey.workspace_identity, epoch)
        return InterruptedRun(row.session_id, row.run_id, *where, reading.opening.identity)

    @contextmanager
    def _owned(self, runs: Sequence[InterruptedRun]) -> Iterator[dict[SessionId, Owned]]:
        """Own the sessions of all these runs, repaired; nothing is done where one of them is busy."""
        owned: dict[SessionId, Owned] = {}
        with ExitStack() as held:
            for run in runs:
                owned[run.session_id] = held.enter_context(self._ownership.held(run.session_id))
                self._repair(owned[run.session_id])
            yield owned

    def _write(
        self, owned: Owned, run: InterruptedRun, fact: WorkspaceTransitioned | WorkspaceRenewed, told: str
    ) -> None:
        notice = NoticePosted(
            **self._spines.session(run.session_id),
            notice_id=NoticeId(derive_id(fact.event_id, "workspace")),
            sentence_id=SentenceId.HOST_NOTE,
            parameters={"text": told},
        )
        self._ledger.execute(AppendLate(*owned.guard, run.run_id, fact, notice=notice))

    def _transition(self, run: InterruptedRun, seen: WorkspaceSeen) -> WorkspaceTransitioned:
        return WorkspaceTransitioned(
            **self._spines.run(run.execution),
            from_identity=run.identity,
            to_identity=seen.identity,
            workspace_epoch=run.epoch,
            path=seen.canonical_path,
            checkpoint_ref=NO_CHECKPOINT,
        )

    def _renewal(self, run: InterruptedRun, seen: WorkspaceSeen) -> WorkspaceRenewed:
        spine = self._spines.run(run.execution)
        return WorkspaceRenewed(**spine, from_identity=run.identity, to_identity=seen.identity)
