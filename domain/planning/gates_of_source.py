"""Gates 1 to 3: is there something to resume, can it be read and believed, and does nobody continue it already."""

from __future__ import annotations

from collections.abc import Iterator

from ..budgets import limits_of
from ..events.event import Json
from ..events.run import RunStatus, Trigger
from ..reasons import LedgerIssue, ParkReason
from .facts import Standing, Unreadable
from .lineage import lineage_reasons, replay_reasons
from .observations import Authority
from .outcome import Note, NoteCode, Reason
from .view import View

BUDGET_SPENT = "budget_spent"
"""Why a run has nothing to resume until a person gives its turn a new budget."""

WHOLE_RUN_ISSUES = {
    ParkReason.PROTOCOL_MARKER_INVALID: ParkReason.PROTOCOL_MARKER_INVALID,
    LedgerIssue.CHAIN_BROKEN: ParkReason.RUNTIME_LEDGER_UNREADABLE,
    LedgerIssue.SEQUENCE_GAP: ParkReason.RUNTIME_LEDGER_UNREADABLE,
    LedgerIssue.INVOCATION_IDENTITY_CONFLICT: ParkReason.RUNTIME_IDENTITY_MISMATCH,
    LedgerIssue.EVENT_AFTER_TERMINAL: ParkReason.TERMINAL_REPAIR_FAILED,
    LedgerIssue.EVENT_AFTER_CLAIM: ParkReason.TERMINAL_REPAIR_FAILED,
}
"""Issues that are about the run as a whole; every other one is about a tool call."""


def feature_enabled(view: View) -> Iterator[Reason]:
    """Continuation is switched on."""
    if not view.facts.feature_enabled:
        yield Reason(ParkReason.RESUME_FEATURE_DISABLED, {})


def candidate_exists(view: View) -> Iterator[Reason]:
    """The session's head run, ended failed or cancelled."""
    facts, candidate = view.facts, view.facts.candidate
    if candidate is None:
        if facts.session_unreadable is None:
            yield Reason(ParkReason.RESUME_CANDIDATE_MISSING, {"session": facts.session_id})
        return
    about = {"run": candidate.run_id}
    if candidate.head_run_id != candidate.run_id:
        yield Reason(ParkReason.SOURCE_SUPERSEDED, {**about, "descendant": candidate.head_run_id})
    if candidate.abandoned:
        yield Reason(ParkReason.RESUME_CANDIDATE_MISSING, {**about, "why": "abandoned"})
    elif candidate.status is RunStatus.COMPLETED:
        yield Reason(ParkReason.RESUME_CANDIDATE_MISSING, {**about, "why": "completed"})
    elif candidate.status is RunStatus.CANCELLED and facts.trigger is Trigger.AUTO:
        yield Reason(ParkReason.RESUME_CANDIDATE_MISSING, {**about, "why": "cancelled_by_a_person"})


def one_automatic_try(view: View) -> Iterator[Reason]:
    """Auto-resume never continues what auto-resume started (F11)."""
    claim = view.lineage[-2].claimed if len(view.lineage) > 1 else None
    if view.facts.trigger is Trigger.AUTO and claim is not None and claim.trigger is Trigger.AUTO:
        yield Reason(ParkReason.AUTO_RESUME_SPENT, {"run": claim.target.run_id, "claim": claim.claim_id})


def budget_left(view: View) -> Iterator[Reason]:
    """The turn may ask for another model step: what it may use over its lineage is not used up (ADR 0036)."""
    candidate, budgets = view.facts.candidate, view.budgets()
    spent = view.used().spent(budgets)
    interrupted = candidate is not None and candidate.status in {RunStatus.FAILED, RunStatus.CANCELLED}
    if spent is not None and view.source is not None and interrupted:
        about: dict[str, Json] = {"run": view.source.ref.run_id, "why": BUDGET_SPENT, "what": spent.measure.value}
        limits: dict[str, Json] = {measure.value: limit for measure, limit in limits_of(budgets).items()}
        about |= {"have": spent.have, "limit": spent.limit, "limits": limits}
        yield Reason(ParkReason.RESUME_CANDIDATE_MISSING, about)


def session_free(view: View) -> Iterator[Reason]:
    """No open run and no living owner that works on it."""
    if view.facts.busy is not None:
        busy = view.facts.busy
        yield Reason(ParkReason.SESSION_BUSY, {"pid": busy.pid, "detail": busy.detail})


def lineage_readable(view: View) -> Iterator[Reason]:
    """Session, source and every ancestor could be read; an error while reading is never an answer (F1).

    A run that somebody begins just now may have no event yet: that is what busy means, and no fault.
    """
    facts = view.facts
    if facts.candidate is not None and not facts.lineage and facts.busy is None:
        yield Reason(ParkReason.RUNTIME_LEDGER_EMPTY, {"run": facts.candidate.run_id})
    readings = (facts.session_unreadable, *facts.lineage)
    for reading in readings:
        if isinstance(reading, Unreadable):
            yield Reason(reading.code, {"run": reading.run_id, "sequence": reading.sequence, "detail": reading.detail})
        elif reading is not None and not reading.survey.length and facts.busy is None:
            yield Reason(ParkReason.RUNTIME_LEDGER_EMPTY, {"run": reading.ref.run_id})
        elif reading is not None and reading.survey.length and reading.opening is None:
            yield Reason(ParkReason.SOURCE_RUN_UNREADABLE, {"run": reading.ref.run_id, "detail": "no opening event"})


def tail_vouched_for(view: View) -> Iterator[Reason]:
    """The store is not behind its anchor, and foreign runs are continued knowingly only."""
    if view.facts.behind_anchor:
        yield Reason(ParkReason.LEDGER_BEHIND_ANCHOR, {})
    for segment in view.lineage:
        if segment.foreign:
            about = {"run": segment.ref.run_id}
            if view.facts.adopt:
                view.notes.append(Note(NoteCode.FOREIGN_ADOPTED, about))
            else:
                yield Reason(ParkReason.FOREIGN_RUN_NOT_ADOPTED, about)


def high_water_expected(view: View) -> Iterator[Reason]:
    """The source is where the caller saw it."""
    expected, source = view.facts.expected_high_water, view.source
    if expected is not None and source is not None and source.ref.high_water != expected:
        found = source.ref.high_water
        yield Reason(
            ParkReason.RUNTIME_OFFSET_MISMATCH, {"run": source.ref.run_id, "expected": expected, "found": found}
        )


def ledgers_sound(view: View) -> Iterator[Reason]:
    """One execution identity, markers where they belong, one terminal event and nothing forbidden after it.

    A run that somebody works on has no terminal event yet: that is what busy means, and no fault.
    """
    for segment, seen in zip(view.lineage, view.surveys, strict=True):
        about = {"run": segment.ref.run_id}
        if len(seen.identities) > 1:
            yield Reason(ParkReason.RUNTIME_IDENTITY_MISMATCH, {**about, "identities": len(seen.identities)})
        for issue in segment.resolution.issues:
            if (code := WHOLE_RUN_ISSUES.get(issue.code)) is not None:
                yield Reason(code, {**about, "issue": issue.code, "sequence": issue.sequence, "event": issue.event_id})
        if len(seen.terminals) != 1 and (seen.terminals or view.facts.busy is None):
            yield Reason(ParkReason.TERMINAL_REPAIR_FAILED, {**about, "terminal_events": len(seen.terminals)})


def lineage_verifies(view: View) -> Iterator[Reason]:
    """Each edge is what its claim, its start event and both digests say."""
    if not view.lineage or not view.lineage[0].survey.length:
        return
    if len(view.lineage) == len(view.facts.lineage):
        yield from lineage_reasons(view.lineage, [segment.contributes for segment in view.projected])
    if view.histories is not None:
        yield from replay_reasons(view.lineage, view.histories)


def not_continued_yet(view: View) -> Iterator[Reason]:
    """Nobody holds this boundary, and this process may take it."""
    existing = view.facts.existing
    if existing is not None:
        about = {"claim": existing.claim_id, "descendant": existing.target_run_id}
        match existing.standing:
            case Standing.UNSTARTED:
                code = ParkReason.CONTINUATION_CLAIM_REPAIR_REQUIRED
            case Standing.STARTED:
                code = ParkReason.CONTINUATION_STARTED_INDETERMINATE
            case Standing.STARTED_BY_THE_DEAD | Standing.ENDED:
                code = ParkReason.CONTINUATION_ALREADY_EXISTS
        yield Reason(code, {**about, "standing": existing.standing})
    if view.facts.authority is Authority.FENCED:
        yield Reason(ParkReason.OWNER_FENCED, {})
    elif view.facts.authority is Authority.COULD_NOT_LOOK:
        yield Reason(ParkReason.CONTINUATION_AUTHORITY_UNAVAILABLE, {})
