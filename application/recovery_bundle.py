"""Makes recovery bundles: observation, outcome where there is one, decision; one commit. SPEC section 10."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..domain import canonical
from ..domain.commands import CommitRecovery
from ..domain.events.event import Json
from ..domain.events.session import NoticePosted
from ..domain.events.tool import (
    Disposition,
    Effect,
    Observation,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolResponded,
)
from ..domain.identifiers import NoticeId, derive_id
from ..domain.reasons import VerdictReason
from ..domain.recovery.bundle_rules import PARKED_BY
from ..domain.sentences import SentenceId
from ..domain.session.state import Session
from ..domain.tool_results import PreparedResult
from .ownership import Owned
from .spines import Spines
from .tool_facts import response_of

RESULT_CHARS_TOLD_MAX: Final = 2_000
"""How much of a result that became known late a notice quotes to the model."""

_OUTCOMES: Final = {
    Effect.DONE: "it was done",
    Effect.NONE: "it had no effect",
    Effect.UNKNOWN: "it failed, and its effect may have happened",
}


class Seen(NamedTuple):
    """What was seen, and by whom."""

    observation: Observation
    reconciler_id: str
    reconciler_version: int = 1
    evidence_digest: str | None = None


class Attempt(NamedTuple):
    """The operation that is settled: what was asked, and T1."""

    call: ToolCalled
    dispatch: ToolDispatched


def bundle_of(
    spines: Spines,
    owned: Owned,
    session: Session,
    sequence: int,
    attempt: Attempt,
    seen: Seen,
    prepared: PreparedResult | None,
) -> CommitRecovery:
    """Make the bundle that settles an operation.

    Args:
        sequence: of the run's newest event: the bundle is decided on exactly that.
        prepared: the outcome; None parks, for the reason that the observation gives.

    Raises:
        KeyError: nothing is parked on this observation.
    """
    call, dispatch = attempt
    reconciled = ToolReconciled(
        **spines.run(dispatch.identity),
        operation_id=dispatch.operation_id,
        observation=seen.observation,
        evidence_digest=seen.evidence_digest,
        reconciler_id=seen.reconciler_id,
        reconciler_version=seen.reconciler_version,
    )
    outcome, reason = None, str(VerdictReason.RECOVERY_BUNDLE_COMPLETED)
    if prepared is None:
        reason = PARKED_BY[dispatch.contract.mode][seen.observation]
    else:
        outcome = response_of(spines.run(dispatch.identity), call, dispatch.operation_id, prepared)
    evidence = (call.event_id, dispatch.event_id, reconciled.event_id)
    decided = ToolRecoveryDecided(
        **spines.run(dispatch.identity),
        operation_id=dispatch.operation_id,
        disposition=Disposition.PARKED if outcome is None else Disposition.COMPLETED,
        reason=reason,
        evidence_event_ids=evidence if outcome is None else (*evidence, outcome.event_id),
        outcome_event_id=None if outcome is None else outcome.event_id,
    )
    notice = None if outcome is None else _notice(spines, session, dispatch, outcome, decided)
    return CommitRecovery(*owned.guard, dispatch.run_id, sequence, reconciled, outcome, decided, notice)


def _notice(
    spines: Spines, session: Session, dispatch: ToolDispatched, outcome: ToolResponded, decided: ToolRecoveryDecided
) -> NoticePosted | None:
    """What the next turn must be told when the session went on without knowing."""
    if session.head is None or session.head.run_id == dispatch.run_id:
        return None
    return NoticePosted(
        **spines.session(dispatch.session_id),
        notice_id=NoticeId(derive_id(decided.event_id, "notice")),
        sentence_id=SentenceId.LATE_SETTLEMENT,
        parameters={"tool": dispatch.tool_name, "outcome": f"{_OUTCOMES[outcome.effect]}{quoted(outcome.result)}"},
    )


def quoted(result: Json) -> str:
    """A result as a notice quotes it to the model, which was never shown it; nothing where there is none."""
    if result in (None, ""):
        return ""
    shown = result if isinstance(result, str) else canonical.encode(result).decode()
    more = "…" if len(shown) > RESULT_CHARS_TOLD_MAX else ""
    return f", with this result: {shown[:RESULT_CHARS_TOLD_MAX]}{more}"
