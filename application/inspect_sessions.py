"""What there is in a store, session by session, for people and programs that only look. SPEC section 17, F12, F13.

Nothing here decides or changes anything: states are shown from projections, and whatever acts reads the events again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..domain.errors import StoreDamaged
from ..domain.events.run import RunStatus
from ..domain.identifiers import RunId, SessionId, session_stream
from ..domain.reasons import WriteRefusal
from ..domain.sealing import DamagedEvent
from ..ports.event_store import EventReader, EventStore
from ..ports.incarnations import Incarnation, Liveness
from ..ports.views import PermissionRow, RunRow, SessionKey, SessionRow, Views
from .forgotten_sessions import require_not_forgotten
from .ownership import SessionOwnership
from .paging import runs_of
from .session_health import NO_ROW, Damage, damage_of
from .states import load


class SessionState(StrEnum):
    """How a session stands, as far as can be seen without planning."""

    EMPTY = "empty"
    """No run was admitted."""
    RUNNING = "running"
    """Its head run is open and its owner lives."""
    INTERRUPTED = "interrupted"
    """Its head run is open and its owner is dead, or nobody owns it."""
    OWNER_NOT_SEEN = "owner_not_seen"
    """Its head run is open, and whether its owner lives could not be seen."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    """A person gave its damaged head run up."""
    UNREADABLE = "unreadable"
    """Its record is damaged; `damage` says where."""

    @property
    def may_be_resumed(self) -> bool:
        """True where there is something that a plan could continue."""
        return self in _RESUMABLE


_RESUMABLE = {
    SessionState.INTERRUPTED,
    SessionState.OWNER_NOT_SEEN,
    SessionState.FAILED,
    SessionState.CANCELLED,
}
_ENDED = {status.value: SessionState(status.value) for status in RunStatus}


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session: how it stands, and the row that it was read from.

    Attributes:
        unsettled: operations whose outcome is missing or says that the effect is unknown.
        owner: the recorded process that owns it now, None where none does or none is recorded.
        owner_liveness: None where nobody owns it, or where it was not looked at because its head has ended.
    """

    row: SessionRow
    state: SessionState
    owner: Incarnation | None = None
    owner_liveness: Liveness | None = None
    damage: Damage | None = None

    @property
    def session_id(self) -> SessionId:
        """The session."""
        return self.row.session_id

    @property
    def head_run_id(self) -> RunId | None:
        """Its newest run."""
        return self.row.head_run_id

    @property
    def unsettled(self) -> int:
        """How many operations have no certain outcome."""
        return self.row.unsettled


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions, the one that was used last first; `after` is where the next page begins, None at the end."""

    sessions: tuple[SessionSummary, ...]
    after: SessionKey | None


class InspectSessions:
    """Looks at sessions.

    Args:
        store: the events.
        views: the projections that are listed.
        ownership: tells whether owners live; nothing is owned through it here.
    """

    def __init__(self, store: EventStore, views: Views, ownership: SessionOwnership) -> None:
        self._store = store
        self._views = views
        self._ownership = ownership

    def page(self, *, after: SessionKey | None = None, limit: int = 50) -> SessionPage:
        """List sessions, the one that was used last first; a damaged one is listed as unreadable, with its code.

        Args:
            after: where the page before ended.
            limit: how many, 1 to 999.

        Raises:
            StoreUnavailable: it could not be looked at.
            StoreDamaged: the list itself cannot be read.
        """
        rows = self._views.sessions(after=after, limit=limit + 1)
        with self._store.snapshot() as reader:
            shown = tuple(self._summary(reader, row) for row in rows[:limit])
        return SessionPage(shown, shown[-1].row.key if len(rows) > limit else None)

    def one(self, session_id: SessionId) -> SessionSummary | None:
        """Look at one session; None when no event names it. One that its view has lost is unreadable, not unknown.

        Raises:
            SessionForgotten: its content was forgotten.
        """
        row = self._views.session(session_id)
        with self._store.snapshot() as reader:
            if row is not None:
                return self._summary(reader, row)
            if not _has_events(reader, session_id):
                return None
            require_not_forgotten(reader, session_id)
        row = self._views.session(session_id)  # it may have been opened between the two
        if row is None:
            lost = SessionRow(session_id, None, None, None, None, None, None, None, None, None, unsettled=0)
            return SessionSummary(
                lost, SessionState.UNREADABLE, damage=Damage(WriteRefusal.STORE_DAMAGED, NO_ROW, of_view=True)
            )
        with self._store.snapshot() as reader:
            return self._summary(reader, row)

    def waiting(self, session_id: SessionId | None = None, *, limit: int = 50) -> Sequence[PermissionRow]:
        """The questions that a person may still decide, of one session or of all, at most `limit`.

        One that a run was continued without stays undecided for good, and waits no more.
        """
        rows = self._views.open_permissions(session_id, limit=limit)
        return [row for row in rows if row.run_id is not None and not self._is_claimed(row.run_id)]

    def _is_claimed(self, run_id: RunId) -> bool:
        row = self._views.run(run_id)
        return row is not None and row.claimed_by_run_id is not None

    def every(self, *, page_size: int = 100) -> Iterator[SessionSummary]:
        """All sessions, page by page, the one that was used last first."""
        after: SessionKey | None = None
        while True:
            page = self.page(after=after, limit=page_size)
            yield from page.sessions
            if page.after is None:
                return
            after = page.after

    def runs(self, session_id: SessionId, *, limit: int = 50) -> tuple[RunRow, ...]:
        """The newest runs of a session, in order of admission."""
        return tuple(deque(runs_of(self._views, session_id), limit))

    def head_of(self, session_id: SessionId) -> RunId | None:
        """The newest run of a session by its events, whatever its row says; None where it has none, or is damaged.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        try:
            with self._store.snapshot() as reader:
                head = load(reader, session_stream(session_id)).session().head
        except (DamagedEvent, StoreDamaged):
            return None
        return None if head is None else head.run_id

    def _summary(self, reader: EventReader, row: SessionRow) -> SessionSummary:
        if (damage := damage_of(reader, row)) is not None:
            return SessionSummary(row, SessionState.UNREADABLE, damage=damage)
        if row.head_run_id is None:
            return SessionSummary(row, SessionState.EMPTY)
        if row.head_abandoned_by is not None:
            return SessionSummary(row, SessionState.ABANDONED)
        if row.head_status is not None:
            return SessionSummary(row, _ENDED.get(row.head_status, SessionState.FAILED))
        _, owner, liveness = self._ownership.owner_of(row.session_id)
        match liveness:
            case Liveness.ALIVE:
                state = SessionState.RUNNING
            case Liveness.COULD_NOT_LOOK:
                state = SessionState.OWNER_NOT_SEEN
            case _:
                state = SessionState.INTERRUPTED
        return SessionSummary(row, state, owner, liveness)


def _has_events(reader: EventReader, session_id: SessionId) -> bool:
    """Whether there are any; some that cannot be read are some."""
    try:
        return reader.last(session_stream(session_id)) is not None
    except StoreDamaged:
        return True
