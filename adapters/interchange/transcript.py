"""What the readers of provider transcripts share: items with places from a document or from lines, then assembly."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

from ...domain.identifiers import SessionId
from ...ports.history_format import History, HistoryFormat, Place
from .assembly import assembled
from .contents import Members
from .document_places import Document, document_of, is_document
from .lines import Reading, objects_of
from .pairing import is_id
from .parts import Part, Setting


class TranscriptFormat(HistoryFormat):
    """A format whose files are lists of messages or items, one JSON document or one object a line."""

    provider: ClassVar[str]
    wrappers: ClassVar[frozenset[str]] = frozenset()
    """Members by which one object is known to hold the others."""

    def read(self, data: bytes, session_id: SessionId | None = None) -> History:
        """See `HistoryFormat`."""
        reading, setting = Reading(), Setting(self.provider)
        items = self.items(data, setting, reading)
        parts = list(self.parts(items, setting, reading))
        session = session_id or session_named(setting.session) or session_named_by(data)
        runs = assembled(parts, session, setting, reading)
        return History(self.name, session, runs, tuple(reading.findings), lines=reading.lines)

    def items(self, data: bytes, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """The messages or items of a file, in order."""
        if is_document(data, self.wrappers):
            document = document_of(data, reading)
            if document is not None:
                yield from self.items_of(document, setting, reading)
        else:
            yield from objects_of(data, reading)

    @abstractmethod
    def items_of(self, document: Document, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """The messages or items of a document, in order."""

    @abstractmethod
    def parts(self, items: Iterable[tuple[Place, Members]], setting: Setting, reading: Reading) -> Iterator[Part]:
        """What each message or item consists of."""


def session_named_by(data: bytes) -> SessionId:
    """The session of a file that names none: made from its content, so that a second import finds the first."""
    return SessionId(f"imported-{hashlib.sha256(data).hexdigest()[:32]}")


def session_named(text: str | None) -> SessionId | None:
    """The session that a file names, where that can be an id of ours."""
    return SessionId(text) if text is not None and is_id(text) else None
