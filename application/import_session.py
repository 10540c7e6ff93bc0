"""Imports a history into a store: whole or not at all, the same facts at every try, foreign for good. SPEC section 19.

One-way: after it only the store is read. What could not be read, contradicts itself or was redacted adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..domain.identifiers import RunId, SessionId, session_stream
from ..domain.sealing import SealedEvent, StoredRecord
from ..ports.event_store import (
    Commit,
    CommitAnswer,
    Damaged,
    DuplicateId,
    EventReader,
    EventStore,
    Fenced,
    Stored,
)
from ..ports.run_importer import RunImporter
from .importable import ImportRefusal, ImportRefused, require_importable
from .imported_session import session_events
from .judge_history import HistoryReader, Judgement, judge
from .ownership import Owned, SessionOwnership


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
        require_importable(judgement, session_id)
        history = judgement.history
        events = tuple(session_events(history)) + tuple(one for run in history.runs for one in run.sealed)
        runs = tuple(RunId(run.identity.run_id) for run in history.runs)
        if not self._is_there(events, judgement):
            with self._ownership.held(history.session_id) as owned:
                self._keep(owned, events, judgement)
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
        answer = self._importer.import_runs(Commit(owned.guard, events))
        if not isinstance(answer, Stored):
            raise ImportRefused(*_refusal(answer), judgement)


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
