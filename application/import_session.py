"""Imports a history into a store: whole or not at all, the same facts at every try, foreign for good. SPEC section 19.

One-way: after it only the store is read. What could not be read, contradicts itself or was redacted adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ..domain.errors import SafepointError, StoreError
from ..domain.events.event import Event
from ..domain.events.session import RunAdmitted, RunKind, SessionOpened
from ..domain.identifiers import EventId, RunId, SessionId, derive_id, session_stream
from ..domain.projections import rows_of
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, StoredRecord, seal
from ..ports.event_store import (
    Commit,
    CommitAnswer,
    Damaged,
    DuplicateId,
    EventReader,
    EventStore,
    Fenced,
    OwnerGuard,
    Stored,
)
from ..ports.history_format import INEXPRESSIBLE, History
from ..ports.run_importer import RunImporter
from .imported_effects import watched_effects
from .judge_history import HistoryReader, Judgement, judge
from .ownership import Owned, SessionOwnership


class ImportRefusal(StrEnum):
    """Why nothing was imported."""

    UNREADABLE = "unreadable"
    CORRUPT = "corrupt"
    NOT_EXPRESSIBLE = "not_expressible"
    REDACTED = "redacted"
    NO_RUNS = "no_runs"
    OTHER_SESSION = "other_session"
    DIFFERS = "differs"
    ID_TAKEN = "id_taken"


class ImportRefused(SafepointError):
    """Nothing was imported.

    Attributes:
        code: why.
        detail: the same for a person.
        judgement: what the file says, for the places.
    """

    def __init__(self, code: ImportRefusal, detail: str, judgement: Judgement) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.judgement = judgement


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Attributes:
        runs: all runs of the file, in order.
        events: how many events the file became.
        already_there: the store held all of it before; nothing was written.
    """

    session_id: SessionId
    runs: tuple[RunId, ...]
    events: int
    already_there: bool
    judgement: Judgement


class ImportSession:
    """Imports files into one store.

    Args:
        store: is looked at first.
        importer: keeps foreign runs in the same store.
        ownership: the session must not be another process's.
        read: reads the formats.
    """

    def __init__(
        self, store: EventStore, importer: RunImporter, ownership: SessionOwnership, read: HistoryReader
    ) -> None:
        self._store = store
        self._importer = importer
        self._ownership = ownership
        self._read = read

    def __call__(self, data: bytes, format_name: str = "auto", session_id: SessionId | None = None) -> Imported:
        """Import a file.

        Args:
            data: the file, which is not changed.
            format_name: one of the formats, or `auto`.
            session_id: the session that it becomes; by default the one that it names, or one made from its content.

        Raises:
            FormatUnknown: as `HistoryReader`.
            ImportRefused: nothing was imported.
            SessionBusy: another process owns the session.
            StoreError: nothing can be said (unavailable), or nothing was imported.
        """
        judgement = judge(self._read(data, format_name, session_id))
        _require_importable(judgement, session_id)
        history = judgement.history
        events = tuple(_session_of(history)) + tuple(one for run in history.runs for one in run.sealed)
        runs = tuple(RunId(run.identity.run_id) for run in history.runs)
        if not self._is_there(events, judgement):
            owned = self._ownership.own(history.session_id)
            try:
                self._keep(owned, events, judgement)
            except StoreError:
                self._ownership.keep(owned)
                raise
            except BaseException:
                self._ownership.release(owned)
                raise
            self._ownership.release(owned)
            return Imported(history.session_id, runs, len(events), False, judgement)
        return Imported(history.session_id, runs, len(events), True, judgement)

    def _is_there(self, events: Iterable[SealedEvent], judgement: Judgement) -> bool:
        """Whether the store holds every one of these events, at its place; it may hold more behind them.

        Raises:
            ImportRefused: the session is there, and says something else.
        """
        session_id = judgement.history.session_id
        with self._store.snapshot() as reader:
            if reader.last(session_stream(session_id)) is None:
                return False
            for stream, expected in _by_stream(events):
                if not _begins_with(reader, stream, expected):
                    detail = f"session {session_id} is in this store already, and {stream} is not what the file holds"
                    raise ImportRefused(ImportRefusal.DIFFERS, detail, judgement)
        return True

    def _keep(self, owned: Owned, events: tuple[SealedEvent, ...], judgement: Judgement) -> None:
        guard = OwnerGuard(owned.session_id, owned.incarnation_id, owned.epoch)
        rows = tuple(row for sealed in events for row in rows_of(sealed))
        answer = self._importer.import_runs(Commit(guard, events, rows))
        if not isinstance(answer, Stored):
            raise ImportRefused(*_refusal(answer), judgement)


def _require_importable(judgement: Judgement, session_id: SessionId | None) -> None:
    history = judgement.history

    def refused(code: ImportRefusal, detail: str) -> ImportRefused:
        return ImportRefused(code, detail, judgement)

    if history.unreadable:
        first = history.unreadable[0]
        where = f"line {first.place.line}, byte {first.place.offset}: {first.code.value}"
        more = f", and {len(history.unreadable) - 1} more" if len(history.unreadable) > 1 else ""
        raise refused(ImportRefusal.UNREADABLE, f"the file cannot be read as a whole ({where}{more})")
    if history.redacted:
        raise refused(ImportRefusal.REDACTED, "the export was redacted: what it holds is not what was recorded")
    if session_id not in {None, history.session_id}:
        raise refused(ImportRefusal.OTHER_SESSION, f"the export is of session {history.session_id}, and stays it")
    if not history.runs:
        raise refused(ImportRefusal.NO_RUNS, "the file holds no conversation")
    if judgement.has_corruption or any(len(_identities(run.read.events)) > 1 for run in judgement.runs):
        raise refused(ImportRefusal.CORRUPT, "the facts in the file contradict one another")
    unsayable = next((finding for finding in history.findings if finding.code in INEXPRESSIBLE), None)
    if unsayable is not None:
        where = f"line {unsayable.place.line}, byte {unsayable.place.offset}: {unsayable.code.value}"
        raise refused(ImportRefusal.NOT_EXPRESSIBLE, f"something in the file cannot be recorded ({where})")


def _identities(events: Iterable[Event]) -> set[object]:
    return {getattr(event, "identity", None) for event in events}


def _session_of(history: History) -> Iterator[SealedEvent]:
    """The session's own events: the file's, or made from its runs."""
    if history.session is not None:
        yield from history.session
        return
    sequence, digest = 0, FIRST_PREVIOUS_DIGEST
    for event in _admissions(history):
        sealed = seal(event, sequence + 1, digest)
        sequence, digest = sealed.sequence, sealed.digest
        yield sealed


def _admissions(history: History) -> Iterator[Event]:
    session_id = history.session_id
    for number, run in enumerate(history.runs):
        first = run.sealed[0].event
        if not number:
            event_id = EventId(derive_id(session_id, "session", "opened"))
            yield SessionOpened(event_id=event_id, session_id=session_id, occurred_at=first.occurred_at)
        yield RunAdmitted(
            event_id=EventId(derive_id(run.identity.run_id, "admitted")),
            session_id=session_id,
            occurred_at=first.occurred_at,
            run_id=run.identity.run_id,
            turn_id=run.identity.turn_id,
            invocation_id=run.identity.invocation_id,
            kind=RunKind.TURN,
        )
        yield from watched_effects(run)


def _by_stream(events: Iterable[SealedEvent]) -> Iterator[tuple[str, list[SealedEvent]]]:
    streams: dict[str, list[SealedEvent]] = {}
    for sealed in events:
        streams.setdefault(sealed.stream, []).append(sealed)
    yield from streams.items()


def _begins_with(reader: EventReader, stream: str, expected: list[SealedEvent]) -> bool:
    found: list[StoredRecord] = []
    while len(found) < len(expected) and (rows := reader.read(stream, after=len(found))):
        found += rows
    return [row.state for row in found[: len(expected)]] == [sealed.state for sealed in expected]


def _refusal(answer: CommitAnswer) -> tuple[ImportRefusal, str]:
    match answer:
        case DuplicateId(kind=kind, id=taken):
            return ImportRefusal.ID_TAKEN, f"the {kind} id {taken} stands elsewhere in this store; name another session"
        case Fenced():
            return ImportRefusal.DIFFERS, "the session was taken by another process meanwhile"
        case Damaged(detail=detail):
            return ImportRefusal.DIFFERS, detail
        case _:
            return ImportRefusal.DIFFERS, "the session was written by another process meanwhile"
