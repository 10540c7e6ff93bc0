"""Which files may be imported: those that are whole, contradict themselves nowhere, and that our events can say."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from ..domain.errors import SafepointError
from ..domain.events.event import Event
from ..domain.events.run import ContinuationStarted, RunOpened
from ..domain.events.session import RunAdmitted, SessionOpened
from ..domain.identifiers import SessionId
from ..domain.reasons import ParkReason
from ..ports.history_format import INEXPRESSIBLE, History
from .judge_history import Judgement


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


_LINEAGE = frozenset(
    {
        ParkReason.RUNTIME_LINEAGE_CYCLE,
        ParkReason.RUNTIME_LINEAGE_MISSING,
        ParkReason.RUNTIME_LINEAGE_START_MISMATCH,
        ParkReason.RUNTIME_LINEAGE_REPLAY_MISMATCH,
        ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH,
        ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH,
    }
)


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


def require_importable(judgement: Judgement, session_id: SessionId | None) -> None:
    """Refuse what must not get into a store.

    Args:
        judgement: what is said of the file.
        session_id: the session that was asked for, None for the file's own.

    Raises:
        ImportRefused: with the first reason.
    """
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
    if (wrong := _wrong_structure(history)) or (wrong := _wrong_lineage(judgement)):
        raise refused(ImportRefusal.CORRUPT, wrong)
    unsayable = next((finding for finding in history.findings if finding.code in INEXPRESSIBLE), None)
    if unsayable is not None:
        where = f"line {unsayable.place.line}, byte {unsayable.place.offset}: {unsayable.code.value}"
        raise refused(ImportRefusal.NOT_EXPRESSIBLE, f"something in the file cannot be recorded ({where})")


def _wrong_structure(history: History) -> str | None:
    """What no store could have exported although every digest is right; None where there is nothing."""
    if history.session is None:
        return None
    if not history.session or not isinstance(history.session[0].event, SessionOpened):
        return "the session does not begin with its opening event"
    admitted = {sealed.event.run_id for sealed in history.session if isinstance(sealed.event, RunAdmitted)}
    for run in history.runs:
        if run.identity.run_id not in admitted:
            return f"run {run.identity.run_id} was never admitted"
        if not isinstance(run.sealed[0].event, RunOpened | ContinuationStarted):
            return f"run {run.identity.run_id} does not begin with an opening event"
    return None


def _wrong_lineage(judgement: Judgement) -> str | None:
    wrong = next((reason for reason in judgement.reasons if reason.code in _LINEAGE), None)
    return None if wrong is None else f"its lineage does not hold: {wrong.code}"


def _identities(events: Iterable[Event]) -> set[object]:
    return {getattr(event, "identity", None) for event in events}
