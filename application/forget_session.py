"""A person has a session forgotten: its content goes, with the checkpoints and isolated folders that only it names.

A tombstone stays, so that its ids and claims are never used again. The artifacts go first: killed in between,
forgetting again finishes the work, and nothing is left that no fact names.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from ..domain.errors import SafepointError
from ..domain.identifiers import OperationId, RunId, SessionId, session_stream
from ..domain.operation.state import unanswered_of
from ..ports.checkpoints import Checkpoints
from ..ports.clock import Clock
from ..ports.event_store import EventStore
from ..ports.failpoints import Failpoints
from ..ports.isolated_folders import IsolatedFolders
from ..ports.session_forgetting import Forgotten, SessionForgetting
from ..ports.store_keeping import StoreKeeping
from ..ports.views import Views
from .family import descendants_of
from .forgotten_sessions import require_not_forgotten
from .named_content import NamedContent, every_run
from .over import OverJudge
from .ownership import SessionOwnership
from .paging import runs_of
from .remove_content import RemoveContent
from .repair_session import Repair
from .states import readable
from .tidy_operations import TidyOperations

CONTENT_REMOVED: Final = "forget.content_removed"


class SessionUnknown(SafepointError):
    """No event names the session."""

    def __init__(self, session_id: SessionId) -> None:
        super().__init__(f"there is no session {session_id}")
        self.session_id = session_id


class StillRunning(SafepointError):
    """Something that the session started may still run, so nothing was forgotten; `operations` names it."""

    def __init__(self, session_id: SessionId, operations: tuple[OperationId, ...]) -> None:
        super().__init__(f"session {session_id} has work that may still run: {', '.join(operations)}")
        self.session_id = session_id
        self.operations = operations


class FolderInUse(SafepointError):
    """A run of another session works in a folder that was made for this one, and would lose it; nothing was forgotten.

    Attributes:
        path: the folder.
        run_id: the other run, or one that cannot be read, so that where it works is not known.
    """

    def __init__(self, session_id: SessionId, path: str, run_id: RunId) -> None:
        super().__init__(f"run {run_id} of another session may work in {path}, which goes with session {session_id}")
        self.session_id = session_id
        self.path = path
        self.run_id = run_id


@dataclass(frozen=True, slots=True)
class ToForget:
    """What goes with a session.

    Attributes:
        sessions: it, and the sessions of child runs that it started.
        checkpoints: refs that its facts name, each with a folder through which it is reached.
        folders: isolated folders that were made for its runs, with whatever stands there.
        not_looked: folders whose checkpoints cannot be reached, and why: what is kept there stays.
    """

    sessions: tuple[SessionId, ...]
    runs: tuple[RunId, ...]
    checkpoints: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    not_looked: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SessionsForgotten:
    """What was done; `left` is what could not be removed outside the store, with the reason."""

    forgotten: Forgotten
    checkpoints: int
    folders: int
    left: tuple[tuple[str, str], ...]


class ForgetSession:
    """Forgets one session and its children."""

    def __init__(
        self,
        store: EventStore,
        keeping: StoreKeeping,
        views: Views,
        ownership: SessionOwnership,
        repair: Repair,
        over: OverJudge,
        checkpoints: Checkpoints,
        isolated: IsolatedFolders,
        forgetting: SessionForgetting,
        clock: Clock,
        failpoints: Failpoints,
        tidy: TidyOperations,
    ) -> None:
        self._store = store
        self._keeping = keeping
        self._views = views
        self._ownership = ownership
        self._repair = repair
        self._over = over
        self._checkpoints = checkpoints
        self._isolated = isolated
        self._forgetting = forgetting
        self._clock = clock
        self._failpoints = failpoints
        self._tidy = tidy

    def look(self, session_id: SessionId) -> ToForget:
        """Say what would go. Changes nothing.

        Raises:
            SessionForgotten: it was forgotten before.
            SessionUnknown: there is none.
            StoreError: it could not be read.
            OSError: the isolated folders could not be looked at.
        """
        with self._store.snapshot() as reader:
            require_not_forgotten(reader, session_id)
            if reader.last(session_stream(session_id)) is None:
                raise SessionUnknown(session_id)
        sessions = (session_id, *descendants_of(self._views, session_id))
        runs = tuple(row.run_id for one in sessions for row in runs_of(self._views, one))
        named = NamedContent()
        with self._store.snapshot() as reader:
            for run_id in runs:
                named.add(reader, run_id)
        found, not_looked = named.artifacts(self._checkpoints)
        kept = tuple((ref, one.folder) for ref, one in found.items() if ref in named.refs)
        places = [one.path for one in self._isolated.folders()]
        made = tuple(path for path in places if path in named.made)
        return ToForget(sessions, runs, kept, made, not_looked)

    def __call__(self, session_id: SessionId, *, by: str) -> SessionsForgotten:
        """Forget it, for good.

        Args:
            by: who has it forgotten; that stays.

        Raises:
            SessionForgotten, SessionUnknown: as `look`.
            SessionBusy: a process works in it, or in one of its children; nothing was changed.
            StillRunning: something that it started may still run; nothing was changed.
            FolderInUse: another session works in a folder that would go; nothing was changed.
            StoreError: it could not be written; forgetting again is safe.
        """
        planned = self.look(session_id)
        with ExitStack() as held:
            for one in planned.sessions:  # damage does not keep them from being forgotten
                self._repair(held.enter_context(self._ownership.held(one)))
            self._require_over(session_id, planned.runs)
            planned = self.look(session_id)
            self._require_unused(session_id, planned)
            self._tidy_up(planned.runs)
            remove = RemoveContent(self._checkpoints, self._isolated)
            checkpoints = remove.checkpoints(planned.checkpoints)
            folders = remove.folders(planned.folders)
            self._failpoints.hit(CONTENT_REMOVED)
            done = self._forgetting.forget(planned.sessions, by=by, at=self._clock.now())
        return SessionsForgotten(done, checkpoints, folders, (*planned.not_looked, *remove.left))

    def _require_over(self, session_id: SessionId, runs: Sequence[RunId]) -> None:
        running: list[OperationId] = []
        with self._store.snapshot() as reader:
            for run_id in runs:
                suspected = readable(reader, run_id).suspected
                running += (state.operation_id for state in self._over.not_over_in(suspected))
        if running:
            raise StillRunning(session_id, tuple(running))

    def _tidy_up(self, runs: Sequence[RunId]) -> None:
        """What dead calls left beside their files holds content of the session, too."""
        for run_id in runs:
            with self._store.snapshot() as reader:
                run = readable(reader, run_id).suspected
            for operation in unanswered_of(run):
                self._tidy(run, operation)

    def _require_unused(self, session_id: SessionId, planned: ToForget) -> None:
        """Neither a folder nor the checkpoints that it came from go while somebody else works there."""
        if not planned.folders:
            return
        for run_id in every_run(self._keeping):
            if run_id in planned.runs:
                continue
            named = NamedContent()
            with self._store.snapshot() as reader:
                readable_whole = named.add(reader, run_id)
            for path in planned.folders:
                if not readable_whole or named.is_used(path):
                    raise FolderInUse(session_id, path, run_id)
