"""Judges a history that somebody already has, without a store: verdicts, the legal replay, and whether it could go on.

SPEC section 19. The judging is that of everywhere else: one scanner, one resolver, one projection, one planner. What
only a host could say (workspace, tools, profile, whether effects still run) is taken as it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..domain.errors import SafepointError
from ..domain.identifiers import EventId, RunId, SessionId
from ..domain.planning.facts import PlanFacts
from ..domain.planning.outcome import Note, NoteCode, Park, Reason
from ..domain.planning.planner import plan
from ..domain.planning.view import view_of
from ..domain.reasons import ParkReason
from ..domain.replay.items import Item
from ..domain.replay.legality import Illegality, check_provider_legality
from ..ports.history_format import INEXPRESSIBLE, Finding, FindingCode, History, HistoryFormat
from .judged_facts import facts_of
from .judged_lineage import JudgedRun, judged


class FormatUnknown(SafepointError):
    """A file looks like none of the formats, or a format was named that there is not."""


class ReplayUnusable(SafepointError):
    """Messages were given on as a history, and no provider may be shown them.

    Attributes:
        why: `blocked` or `illegal`, and the code of it.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"no history can be made of these messages: {why}")
        self.why = why


@dataclass(frozen=True, slots=True)
class JudgedReplay:
    """The history that a continuation would begin with; iterated over, its items, where every provider takes them.

    Attributes:
        blocked: why none can be made; then there are no items.
        blocking: the facts that are in the way.
        trimmed: facts after the last stable item, and calls that were never dispatched.
        left_out: thinking that no provider would accept where it stands.
        illegal: what a strict provider would refuse in it, None where nothing, and where it is blocked.
    """

    items: tuple[Item, ...] = field(default=(), repr=False)
    blocked: str | None = None
    blocking: tuple[EventId, ...] = ()
    trimmed: tuple[EventId, ...] = ()
    left_out: tuple[EventId, ...] = ()
    digest: str | None = None
    illegal: Illegality | None = None

    def __iter__(self) -> Iterator[Item]:
        """Its items.

        Raises:
            ReplayUnusable: it is blocked, or illegal.
        """
        if self.blocked is not None:
            named = "".join(f", {event_id}" for event_id in self.blocking)
            raise ReplayUnusable(f"blocked ({self.blocked}{named})")
        if self.illegal is not None:
            raise ReplayUnusable(f"illegal ({self.illegal.code} at item {self.illegal.position})")
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is said of a file.

    Attributes:
        reasons: why it could not be continued on the host that recorded it; none where it could.
        notes: the planner's diagnostics.
    """

    history: History
    runs: tuple[JudgedRun, ...]
    replay: JudgedReplay
    reasons: tuple[Reason, ...]
    notes: tuple[Note, ...]

    @property
    def has_corruption(self) -> bool:
        """Whether facts contradict one another."""
        return any(run.resolution.has_corruption for run in self.runs)

    @property
    def requires_reconciliation(self) -> bool:
        """Whether an outcome is not known."""
        return any(run.resolution.requires_reconciliation for run in self.runs)


class HistoryReader:
    """Reads files by the name of a format, or by how they look.

    Args:
        formats: by name, the more particular ones first.
    """

    def __init__(self, formats: Mapping[str, HistoryFormat]) -> None:
        self.formats = formats

    def __call__(self, data: bytes, format_name: str, session_id: SessionId | None = None) -> History:
        """Read a file.

        Args:
            format_name: one of the formats, or `auto`.
            session_id: see `HistoryFormat.read`.

        Raises:
            FormatUnknown: there is no such format, or the file looks like none.
        """
        if format_name == "auto":
            if not data.strip():
                raise FormatUnknown("the file is empty")
            chosen = next((one for one in self.formats.values() if one.recognises(data)), None)
            if chosen is None:
                raise FormatUnknown("the file looks like none of the formats that are known here")
            return chosen.read(data, session_id)
        if format_name not in self.formats:
            raise FormatUnknown(f"there is no format {format_name!r}")
        return self.formats[format_name].read(data, session_id)


class JudgeHistory:
    """Judges files; touches nothing else."""

    def __init__(self, read: HistoryReader) -> None:
        self._read = read

    def __call__(self, data: bytes, format_name: str = "auto") -> Judgement:
        """Judge a file.

        Raises:
            FormatUnknown: as `HistoryReader`.
        """
        return judge(self._read(data, format_name))


def judge(history: History) -> Judgement:
    """Judge a history that was read."""
    foreign = history.foreign or bool(history.unreadable)  # a fact may stand where nothing could be read
    runs = {RunId(run.identity.run_id): judged(run, foreign=foreign) for run in history.runs}
    facts = facts_of(history, runs, foreign=foreign)
    planned = plan(facts)
    reasons = [*(planned.reasons if isinstance(planned, Park) else ()), *_unsayable(history.findings)]
    if history.redacted:  # what was replaced cannot have the digest that a claim recorded
        reasons = [reason for reason in reasons if reason.code is not ParkReason.RUNTIME_LINEAGE_REPLAY_MISMATCH]
    notes = tuple(note for note in planned.notes if note.code is not NoteCode.FOREIGN_ADOPTED)
    return Judgement(history, tuple(runs.values()), _replay(facts, history), tuple(reasons), notes)


def _unsayable(findings: Iterable[Finding]) -> Iterator[Reason]:
    """What was read and no event can hold: no history of ours would have it. A name is corruption, reported as such."""
    for finding in findings:
        if finding.code in INEXPRESSIBLE - {FindingCode.INVALID_TOOL_NAME}:
            about = {"line": finding.place.line, "offset": finding.place.offset, "finding": finding.code.value}
            yield Reason(ParkReason.PROVIDER_REPLAY_UNSUPPORTED, about)


def _replay(facts: PlanFacts, history: History) -> JudgedReplay:
    """The history that the planner would freeze, or the first thing that stands against one."""
    if history.unreadable:  # what was read is no history: nobody knows what stood between
        return JudgedReplay(blocked=ParkReason.SOURCE_RUN_UNREADABLE)
    view = view_of(facts)
    for run_id, earlier in () if facts.earlier is None else facts.earlier.blocked:
        return JudgedReplay(blocked=earlier.blocked, blocking=earlier.blocking or (EventId(run_id),))
    trimmed = tuple(event_id for segment in view.projected for event_id in segment.trimmed)
    left_out = tuple(event_id for segment in view.projected for event_id in segment.left_out)
    for segment in view.projected:
        if segment.blocked is not None:
            return JudgedReplay(blocked=segment.blocked, blocking=segment.blocking)
    made = view.replay()
    if made is None:
        code = ParkReason.RUNTIME_LINEAGE_MISSING if facts.lineage else ParkReason.RUNTIME_LEDGER_EMPTY
        return JudgedReplay(blocked=code)
    return JudgedReplay(
        made.items,
        trimmed=trimmed,
        left_out=left_out,
        digest=None if history.redacted else made.digest,
        illegal=check_provider_legality(made.items),
    )
