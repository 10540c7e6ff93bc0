"""Reads our own export and verifies it: every digest, every chain, every head, and the digest of the whole file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from ...application.export_session import ExportEnd, claim_of
from ...domain import canonical
from ...domain.events.catalogue import MalformedEvent, UnknownEventType, event_from
from ...domain.events.event import RunEvent
from ...domain.events.run import RunClaimed
from ...domain.identifiers import RunId, SessionId, run_stream, session_stream
from ...domain.recovery.event_facts import event_facts
from ...domain.recovery.facts import Called, Fact
from ...domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, digest_of
from ...ports.history_format import FindingCode, History, HistoryFormat, Place, ReadRun
from .contents import Members, members_of, text_in
from .exact_json import storable
from .export_lines import BEGIN, END, end_of
from .lines import Reading, objects_of
from .sniffing import first_objects
from .transcript import session_named, session_named_by

_ANY_VERSION = BEGIN.rpartition(".")[0] + "."
_HEADER = frozenset({"type", "session_id", "redacted", "heads"})
_EVENT_LINE = frozenset({"digest", "event", "sequence", "stream"})
_SEALS = frozenset({"type", "sequence", "previous_digest"})
_RUN = run_stream(RunId(""))


@dataclass(slots=True)
class _Stream:
    """One stream while it is read; nothing is taken in behind a place that does not fit."""

    sealed: list[SealedEvent] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    broken: bool = False

    @property
    def digest(self) -> str:
        return self.sealed[-1].digest if self.sealed else FIRST_PREVIOUS_DIGEST


class SafepointExport(HistoryFormat):
    """What `safepoint export` writes."""

    name = "safepoint"

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any(_begins_export(text_in(found, "type")) for found in first_objects(data)[:1])

    def read(self, data: bytes, session_id: SessionId | None = None) -> History:
        """See `HistoryFormat`; the session is the file's own, for its ids stand in what was sealed."""
        return _Export(data).read()


class _Export:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._reading = Reading()
        self._streams: dict[str, _Stream] = {}
        self._places: dict[str, Place] = {}
        self._header: Members = {}
        self._ended: Place | None = None
        self._is_other_version = False

    def read(self) -> History:
        for place, line in objects_of(self._data, self._reading):
            self._take(place, line)
        self._check_ends()
        session = session_named(text_in(self._header, "session_id")) or session_named_by(self._data)
        runs = [stream for stream in self._streams if stream.startswith(_RUN)]
        return History(
            SafepointExport.name,
            session,
            tuple(self._run(stream) for stream in runs if self._streams[stream].sealed),
            tuple(self._reading.findings),
            tuple(self._streams.get(session_stream(session), _Stream()).sealed),
            self._reading.lines,
            redacted=self._header.get("redacted") is True,
            foreign=self._header.get("foreign", False) is not False,
        )

    def _take(self, place: Place, line: Members) -> None:
        kind = line.get("type")
        if self._is_other_version:
            return  # which is told
        if self._ended is not None:
            self._tell(FindingCode.DIGEST_MISMATCH, place, "something stands behind the end")
        elif kind == BEGIN and not self._header:
            self._header = line
            if not _is_header(line):
                self._tell(FindingCode.UNKNOWN_SHAPE, place, "it is no header of an export")
        elif not self._header and _begins_export(text_in(line, "type")):
            self._is_other_version = True
            self._tell(FindingCode.UNKNOWN_TYPE, place, f"{storable(str(kind))[:80]!r}, where {BEGIN!r} is read here")
        elif kind == END:
            self._end(place, line)
        elif "event" in line and self._header:
            if not line.keys() - _EVENT_LINE <= ({"args_hash"} if self._header.get("redacted") is True else set()):
                self._tell(FindingCode.UNKNOWN_SHAPE, place, "a member that no export has beside an event")
            self._event(place, line)
        else:
            code = FindingCode.UNKNOWN_TYPE if isinstance(kind, str) else FindingCode.UNKNOWN_SHAPE
            self._tell(code, place, "no line of an export of this version")

    def _event(self, place: Place, line: Members) -> None:
        name, fields = text_in(line, "stream") or "", dict(members_of(line.get("event")))
        stream = self._streams.setdefault(name, _Stream())
        here = place._replace(source_id=text_in(fields, "event_id"))
        if stream.broken:
            self._tell(FindingCode.DIGEST_MISMATCH, here, f"it stands behind what is not as it was written in {name}")
            return
        try:
            sealed = self._sealed(line, fields, name, stream)
        except (UnknownEventType, MalformedEvent) as error:
            code = FindingCode.UNKNOWN_TYPE if isinstance(error, UnknownEventType) else FindingCode.UNKNOWN_SHAPE
            self._tell(code, here, str(error))
            stream.broken = True
            return
        if sealed is None:
            self._tell(FindingCode.DIGEST_MISMATCH, here, f"it is not event {len(stream.sealed) + 1} of {name}")
            stream.broken = True
            return
        stream.sealed.append(sealed)
        self._places.setdefault(sealed.event.event_id, here)
        if isinstance(sealed.event, RunEvent):
            fact = event_facts(sealed.event)
            hashed = text_in(line, "args_hash")
            stream.facts.append(fact._replace(args_hash=hashed) if isinstance(fact, Called) and hashed else fact)

    def _sealed(self, line: Members, fields: Members, name: str, stream: _Stream) -> SealedEvent | None:
        """The event with its seal, None where it is not the one that belongs here."""
        digest, sequence = text_in(line, "digest") or "", len(stream.sealed) + 1
        try:
            state = canonical.encode(fields)
        except canonical.CanonicalError:
            return None
        topic = text_in(fields, "type") or ""
        seals = (fields.get("sequence"), line.get("sequence"), fields.get("previous_digest"))
        event = event_from({key: value for key, value in fields.items() if key not in _SEALS}, topic)
        fits = seals == (sequence, sequence, stream.digest) and event.stream == name
        fits = fits and event.session_id == self._header.get("session_id")
        original = self._header.get("redacted") is True or digest_of(state) == digest
        return SealedEvent(name, sequence, event, state, digest, stream.digest) if fits and original else None

    def _end(self, place: Place, line: Members) -> None:
        """The last line is exactly what an export of the events before it ends with."""
        self._ended = place
        claims = [claim_of(one.event) for one in self._sealed_events() if isinstance(one.event, RunClaimed)]
        hashed = hashlib.sha256(self._data[: place.offset]).hexdigest()
        counted = sum(1 for _ in self._sealed_events())
        if line != end_of(ExportEnd(counted, tuple(claims)), hashed):
            self._tell(FindingCode.DIGEST_MISMATCH, place, f"it is no end of the {counted} events before it")

    def _sealed_events(self) -> Iterator[SealedEvent]:
        for stream in self._streams.values():
            yield from stream.sealed

    def _check_ends(self) -> None:
        """Every stream must come as far as the header says, and the file to its end."""
        last = Place(self._reading.lines or 1, len(self._data))
        heads = self._header.get("heads")
        named = [members_of(value) for value in heads] if isinstance(heads, list) else []
        for name in self._streams.keys() - {text_in(head, "stream") for head in named}:
            self._tell(FindingCode.EVENTS_MISSING, last, f"the header names no end of {name}")
        for head in named:
            name = text_in(head, "stream") or ""
            stream = self._streams.get(name, _Stream())
            if (len(stream.sealed), stream.digest) != (head.get("events"), head.get("digest")) and not stream.broken:
                self._tell(FindingCode.EVENTS_MISSING, last, f"{name} ends at event {len(stream.sealed)}")
        if self._ended is None and self._reading.lines and not self._is_other_version:
            self._tell(FindingCode.EVENTS_MISSING, last, "the end of the export is missing")

    def _run(self, name: str) -> ReadRun:
        stream = self._streams[name]
        first = stream.sealed[0].event
        assert isinstance(first, RunEvent)
        return ReadRun(first.identity, tuple(stream.facts), tuple(stream.sealed), self._places)

    def _tell(self, code: FindingCode, place: Place, detail: str) -> None:
        self._reading.tell(code, place, detail)


def _begins_export(kind: str | None) -> bool:
    """Whether a line begins an export of this or another version."""
    return kind is not None and kind.startswith(_ANY_VERSION) and kind != END


def _is_header(line: Members) -> bool:
    """Whether a first line is one as this program writes it; who adds or leaves out something may mean something."""
    heads, session_id = line.get("heads"), text_in(line, "session_id")
    if not isinstance(heads, list) or not all(map(_is_head, heads)) or session_id is None:
        return False
    own = [text_in(members_of(head), "stream") for head in heads[:1]]
    shaped = line.keys() - {"foreign"} == _HEADER and line.get("foreign", True) is True
    return shaped and isinstance(line.get("redacted"), bool) and own == [session_stream(SessionId(session_id))]


def _is_head(value: JsonValue) -> bool:
    head = members_of(value)
    kinds = {name: type(member) for name, member in head.items()}
    return kinds == {"stream": str, "events": int, "digest": str}
