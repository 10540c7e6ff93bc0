"""Which effects a session watches, so that a repeat of one does not go unnoticed. SPEC F9.

The facts are derived from the one that makes an outcome uncertain or certain, and so are their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..events.assembling import assembled
from ..events.derived import Derived, derived_id
from ..events.event import Event, SessionEvent, Timestamp
from ..events.session import ClearedBy, EffectCleared, EffectWatched, OperationAttested, WatchStatus
from ..events.tool import Effect, RecoveryMode, Statement, ToolAttested, ToolRecoveryDecided, ToolResponded
from ..identifiers import OperationId, RunId
from ..session.state import Session
from .repeat_guard import arguments_only_hash
from .state import Operation, Phase

_OF_THE_TURN = frozenset({WatchStatus.RECOVERED, WatchStatus.ATTESTED})
"""An effect that is certain is watched for the continuation of its turn only, else until the model is told of it."""


def is_certain(watched: EffectWatched) -> bool:
    """Whether the outcome of what is watched is known, so that it is watched for its turn alone."""
    return watched.status in _OF_THE_TURN


def uncertain(session: Session, operations: Iterable[Operation], seed: Event) -> tuple[EffectWatched, ...]:
    """Watch each operation whose outcome is not certain when its run ends, or is given up.

    Args:
        session: what it watches already.
        operations: of the run.
        seed: the terminal event, or the one that gives the run up.
    """
    operations = tuple(operations)
    found = [
        (operation, status)
        for operation in operations
        if (status := operation.uncertainty) is not None  # of most operations it is certain: nothing else is asked
        and operation.mode is not RecoveryMode.REPLAY_SAFE
        and operation.operation_id not in session.watched
        and not _delivered_once_more(operation, operations)
    ]
    return tuple(_watched(seed, operation, status, position) for position, (operation, status) in enumerate(found))


def unsettled_delivery(operations: Iterable[Operation], args_hash: str) -> EffectWatched | None:
    """The newest idempotent call of a run with these arguments, where its outcome is not known: its key is used again.

    Within the run nothing is on the session's watch list yet, and a model's equal call is its own decision; but of an
    idempotent one the recorded key is what makes it harmless.
    """
    equal = [
        one
        for one in operations
        if one.dispatch is not None
        and one.dispatch.args_hash == args_hash
        and one.mode is RecoveryMode.IDEMPOTENT
        and one.phase is Phase.SETTLED
    ]
    if not equal or equal[-1].uncertainty is None or equal[-1].dispatch is None:
        return None
    return _watched(equal[-1].dispatch, equal[-1], WatchStatus.UNKNOWN)


def _delivered_once_more(operation: Operation, operations: tuple[Operation, ...]) -> bool:
    """Whether a later call of the run delivered the same key: the later outcome counts."""
    key = operation.idempotency_key if operation.mode is RecoveryMode.IDEMPOTENT else None
    if key is None:
        return False
    last = next(one for one in reversed(operations) if one.idempotency_key == key)
    return last.operation_id != operation.operation_id


def settled(
    session: Session, operation: Operation, outcome: ToolResponded, decided: ToolRecoveryDecided
) -> tuple[SessionEvent, ...]:
    """What becomes of a watched effect when a recovery bundle completed its operation."""
    if outcome.effect is Effect.UNKNOWN:
        return ()
    status = WatchStatus.RECOVERED if outcome.effect is Effect.DONE else None
    return _certain(session, operation, decided, status, ClearedBy.SETTLED)


def attested(session: Session, operation: Operation, statement: ToolAttested) -> tuple[SessionEvent, ...]:
    """What becomes of a watched effect when a person said what happened."""
    if statement.statement is Statement.OVER:
        return ()
    status = WatchStatus.ATTESTED if statement.statement is Statement.COMPLETED else None
    return _certain(session, operation, statement, status, ClearedBy.ATTESTED)


def attested_in_session(session: Session, operation: Operation, said: OperationAttested) -> tuple[SessionEvent, ...]:
    """As `attested`, of a statement that the session takes, since the run takes no more facts."""
    if said.statement is Statement.OVER or said.operation_id not in session.watched:
        return ()
    status = WatchStatus.ATTESTED if said.statement is Statement.COMPLETED else None
    return _certain(session, operation, said, status, ClearedBy.ATTESTED)


def _certain(
    session: Session, operation: Operation, seed: Event, status: WatchStatus | None, by: ClearedBy
) -> tuple[SessionEvent, ...]:
    dispatch = operation.dispatch
    if dispatch is None or dispatch.contract.mode is RecoveryMode.REPLAY_SAFE:
        return ()
    may_be_continued = session.head is not None and session.head.run_id == dispatch.run_id
    watched = dispatch.operation_id in session.watched
    if status is not None and (watched or may_be_continued):  # a run that goes on was shown it as unknown: ADR 0014
        return (_watched(seed, operation, status),)
    if watched:
        return cleared(seed, (dispatch.operation_id,), by)
    return ()


def of_ended_turn(session: Session, seed: Event) -> tuple[EffectCleared, ...]:
    """Stop watching what was watched for the turn that `seed` leaves behind."""
    of_the_turn = [effect.operation_id for effect in session.watched.values() if effect.status in _OF_THE_TURN]
    return cleared(seed, of_the_turn, ClearedBy.TURN_ENDED)


def of_other_turns(session: Session, seed: Event, lineage: Collection[RunId]) -> tuple[EffectCleared, ...]:
    """Stop watching what became certain of turns that are not continued here: the first commit tells the model."""
    told = [effect.operation_id for effect in session.watched.values() if is_certain(effect)]
    others = [one for one in told if session.watched[one].run_id not in lineage]
    return cleared(seed, others, ClearedBy.TURN_ENDED)


def cleared(
    seed: Event, operation_ids: Iterable[OperationId], by: ClearedBy, first: int = 0
) -> tuple[EffectCleared, ...]:
    """The facts that these effects are watched no more; `first` is how many such facts the seed has already."""
    return tuple(
        EffectCleared(
            event_id=derived_id(seed, Derived.EFFECT_CLEARED, position),
            session_id=seed.session_id,
            occurred_at=seed.occurred_at,
            operation_id=operation_id,
            by=by,
        )
        for position, operation_id in enumerate(operation_ids, first)
    )


def _known_to_be_valid_until(operation: Operation, now: Timestamp) -> Timestamp | None:
    """Of a key whose age cannot be known: no longer than to the moment at which that was seen."""
    until = operation.key_valid_until
    return until if until is None or operation.why_key_is_invalid(now) is None else min(until, now)


def _watched(seed: Event, operation: Operation, status: WatchStatus, position: int = 0) -> EffectWatched:
    dispatch = operation.dispatch
    assert dispatch is not None  # what was not dispatched has no uncertain effect
    args = operation.args
    return assembled(
        EffectWatched,
        {
            "event_id": derived_id(seed, Derived.EFFECT_WATCHED, position),
            "session_id": seed.session_id,
            "occurred_at": seed.occurred_at,
            "operation_id": dispatch.operation_id,
            "run_id": dispatch.run_id,
            "tool_name": dispatch.tool_name,
            "args_hash": dispatch.args_hash,
            "arguments_only_hash": arguments_only_hash(args),
            "has_arguments": bool(args),
            "mode": dispatch.contract.mode,
            "status": status,
            "idempotency_key": dispatch.idempotency_key,
            "key_valid_until": _known_to_be_valid_until(operation, seed.occurred_at),
        },
    )
