"""The session's own events for runs that are imported: their admissions, and the effects that are not certain.

Effects are watched like those of our own runs, so that no later call repeats one unseen (F9). Here the operations that
no dispatch names count, too: in a history that promised nothing, a call without answer may have been carried out.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..domain import canonical
from ..domain.events.derived import Derived, derived_id
from ..domain.events.event import Event
from ..domain.events.run import RunEnded
from ..domain.events.session import EffectWatched, RunAdmitted, RunKind, SessionOpened, WatchStatus
from ..domain.events.tool import Effect, RecoveryMode, ToolCalled
from ..domain.identifiers import EventId, OperationId, ToolCallId, derive_id
from ..domain.operation.repeat_guard import arguments_only_hash
from ..domain.recovery.verdict import Verdict, VerdictStatus
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, seal
from ..ports.history_format import History, ReadRun
from .judged_lineage import judged

_STATUS = {VerdictStatus.INDETERMINATE: WatchStatus.INDETERMINATE, VerdictStatus.PARKED: WatchStatus.PARKED}


def session_events(history: History) -> Iterator[SealedEvent]:
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
        yield from _watched_effects(run)


def _watched_effects(run: ReadRun) -> Iterator[EffectWatched]:
    """The facts that a session gets about an imported run's calls without certain outcome."""
    events = run.events
    calls = {event.call_id: event for event in events if isinstance(event, ToolCalled)}
    ended = next(event for event in events if isinstance(event, RunEnded))
    position = 0
    for verdict in judged(run, foreign=True).resolution.verdicts:
        status, call = _status(verdict), calls.get(ToolCallId(verdict.call_id))
        if status is None or call is None or verdict.mode == RecoveryMode.REPLAY_SAFE or call.args_text is not None:
            continue
        yield _watched(ended, verdict, call, status, position)
        position += 1


def _status(verdict: Verdict) -> WatchStatus | None:
    """Why the outcome is not certain; an error says that of dispatched operations alone, as in our own runs."""
    if verdict.status is VerdictStatus.COMPLETED and verdict.effect is Effect.UNKNOWN and verdict.dispatch_event_id:
        return WatchStatus.UNKNOWN
    return _STATUS.get(verdict.status)


def _watched(ended: RunEnded, verdict: Verdict, call: ToolCalled, status: WatchStatus, position: int) -> EffectWatched:
    operation_id = verdict.operation_id or derive_id(ended.run_id, "imported", verdict.call_id)
    return EffectWatched(
        event_id=derived_id(ended, Derived.EFFECT_WATCHED, position),
        session_id=ended.session_id,
        occurred_at=ended.occurred_at,
        operation_id=OperationId(operation_id),
        run_id=ended.run_id,
        tool_name=call.tool_name,
        args_hash=canonical.args_hash(call.tool_name, call.args),
        arguments_only_hash=arguments_only_hash(call.args),
        has_arguments=bool(call.args),
        mode=RecoveryMode.OUTCOME_UNKNOWN if verdict.mode is None else RecoveryMode(verdict.mode),
        status=status,
    )
