"""Histories that somebody already has, read into facts for the scanner and events for a store. SPEC section 19."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from ..domain.events.event import RunEvent
from ..domain.identifiers import EventId, ExecutionIdentity, SessionId
from ..domain.recovery.facts import Fact
from ..domain.sealing import SealedEvent


class Place(NamedTuple):
    """Where something stands in a file.

    Attributes:
        line: from 1.
        offset: in bytes, of the line or of the JSON object in it.
        path: where in the line's JSON, such as `content[2]`; empty for the whole.
        source_id: the id that the file itself gives it, None where it gives none.
    """

    line: int
    offset: int
    path: str = ""
    source_id: str | None = None


class FindingCode(StrEnum):
    """What was found while a file was read; ledger issues are found later, by the scanner.

    The first group could not be read: what stands there is not known, so nothing is built from the rest as if it were
    whole. The second was read and is told, because something was left out, made or changed.
    """

    NOT_UTF8 = "not_utf8"
    NUL_BYTES = "nul_bytes"
    TORN_LINE = "torn_line"
    NOT_JSON = "not_json"
    REPEATED_KEY = "repeated_key"
    NOT_AN_OBJECT = "not_an_object"
    UNKNOWN_SHAPE = "unknown_shape"
    UNKNOWN_TYPE = "unknown_type"
    EMPTY_FILE = "empty_file"
    SEVERAL_SESSIONS = "several_sessions"
    DIGEST_MISMATCH = "digest_mismatch"
    EVENTS_MISSING = "events_missing"
    INVALID_TOOL_NAME = "invalid_tool_name"
    NOT_EXPRESSIBLE = "not_expressible"
    TOO_LARGE = "too_large"

    BYTE_ORDER_MARK = "byte_order_mark"
    REPEATED_RECORD = "repeated_record"
    REPEATED_CALL = "repeated_call"
    REPEATED_RESULT = "repeated_result"
    REUSED_CALL_ID = "reused_call_id"
    MADE_CALL_ID = "made_call_id"
    TEXT_CHANGED = "text_changed"
    NUMBER_CHANGED = "number_changed"
    KEPT_AS_TEXT = "kept_as_text"
    CUT_SHORT = "cut_short"
    TIME_NOT_READ = "time_not_read"
    ATTACHMENT_NOT_KEPT = "attachment_not_kept"
    NOT_CONVERSATION = "not_conversation"
    OTHER_CONVERSATION = "other_conversation"
    OUTSIDE_PARENT_CHAIN = "outside_parent_chain"
    BROKEN_PARENT_LINK = "broken_parent_link"
    COMPACTED = "compacted"
    TERMINAL_ADDED = "terminal_added"


UNREADABLE = frozenset(
    {
        FindingCode.NOT_UTF8,
        FindingCode.NUL_BYTES,
        FindingCode.TORN_LINE,
        FindingCode.NOT_JSON,
        FindingCode.REPEATED_KEY,
        FindingCode.NOT_AN_OBJECT,
        FindingCode.UNKNOWN_SHAPE,
        FindingCode.UNKNOWN_TYPE,
        FindingCode.EMPTY_FILE,
        FindingCode.SEVERAL_SESSIONS,
        FindingCode.DIGEST_MISMATCH,
        FindingCode.EVENTS_MISSING,
    }
)
"""What could not be read: facts may be missing, so absence proves nothing in the rest."""

INEXPRESSIBLE = frozenset({FindingCode.INVALID_TOOL_NAME, FindingCode.NOT_EXPRESSIBLE, FindingCode.TOO_LARGE})
"""What was read and judged, and what no event of ours can hold: it can be judged, not imported."""


class Finding(NamedTuple):
    """One thing that a person must be told of a file.

    Attributes:
        detail: names and numbers, never a prompt, argument or result (R15).
        times: how many there are, where one entry stands for all that begin at `place`.
    """

    code: FindingCode
    place: Place
    detail: str = ""
    times: int = 1

    @property
    def unreadable(self) -> bool:
        """Whether something could not be read."""
        return self.code in UNREADABLE


@dataclass(frozen=True, slots=True)
class ReadRun:
    """One run of a history.

    Attributes:
        facts: what the scanner is fed, in the order of the file; also what no event of ours can hold.
        sealed: the run as a store would keep it: an opening event first, a terminal event where there is one.
        places: by the ids of facts and events; of an id that stands several times, the first.
        repetitions: the others, in order.
    """

    identity: ExecutionIdentity
    facts: tuple[Fact, ...]
    sealed: tuple[SealedEvent, ...]
    places: Mapping[str, Place] = field(default_factory=dict)
    repetitions: Mapping[str, Sequence[Place]] = field(default_factory=dict)

    @property
    def events(self) -> list[RunEvent]:
        """The events without their seals."""
        return [one.event for one in self.sealed if isinstance(one.event, RunEvent)]


@dataclass(frozen=True, slots=True)
class History:
    """A file as it was read; nothing of it was left out without a finding.

    Attributes:
        format: the name of its format.
        runs: in order; the last is the newest.
        session: the session's own events, None where the format has none and an import makes them.
        lines: how many lines that are not blank were looked at.
        redacted: texts were replaced, and digests are those of the original.
        foreign: whoever wrote the file could not vouch that no fact is missing.
    """

    format: str
    session_id: SessionId
    runs: tuple[ReadRun, ...]
    findings: tuple[Finding, ...] = ()
    session: tuple[SealedEvent, ...] | None = None
    lines: int = 0
    redacted: bool = False
    foreign: bool = False

    @property
    def unreadable(self) -> tuple[Finding, ...]:
        """What could not be read."""
        return tuple(finding for finding in self.findings if finding.unreadable)

    def place_of(self, event_id: EventId | str | None) -> Place | None:
        """Where a fact or event stands in the file; None for what the reader added."""
        if event_id is None:
            return None
        return next((run.places[event_id] for run in self.runs if event_id in run.places), None)


class HistoryFormat(Protocol):
    """Reads one format. It never raises on bad data: what does not fit becomes a finding or a fact."""

    name: str

    @abstractmethod
    def recognises(self, data: bytes) -> bool:
        """Tell whether a file looks like this format, by its beginning."""

    @abstractmethod
    def read(self, data: bytes, session_id: SessionId | None = None) -> History:
        """Read a whole file; the same bytes give the same facts, ids and times (F16).

        Args:
            data: the file.
            session_id: the session that it becomes; by default the one that it names, or one made from its content.
                A format with the session's own sealed events stays with the session that they name.
        """
