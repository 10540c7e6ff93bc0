"""What may be written about one tool side effect: T1, T2, a second delivery, recovery, attestation. SPEC sections 7 to 10."""

from __future__ import annotations

from ..commands import CommitAttestation, CommitOutcome, CommitRecovery, PrepareTool, StartRedelivery
from ..decision import Decision, Refusal
from ..events.event import Event
from ..events.session import ClearedBy, EffectCleared
from ..events.tool import RecoveryMode, ToolDispatched
from ..identifiers import EventId, derive_id
from ..reasons import WriteRefusal
from ..recovery.bundle import judge_attestation, judge_bundle
from ..run.decisions import sealed
from ..run.state import Run
from ..session.state import Session
from .repeat_guard import repeated_effect
from .state import Phase, operation_by_id, operation_of_call


def prepare(session: Session, run: Run, command: PrepareTool) -> Decision:
    """T1: the call is recorded, undispatched and unanswered; its hash is recomputed; nothing forbids the effect."""
    if refusal := sealed(run):
        return refusal
    dispatch = command.dispatch
    if run.cancel_requested is not None:
        return Refusal(WriteRefusal.RUN_SEALED, "the run is being cancelled")
    call = operation_of_call(run, dispatch.call_id)
    if call is None:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"call {dispatch.call_id} was never recorded")
    if call.phase is not Phase.CALLED:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"call {dispatch.call_id} has its dispatch or answer")
    if call.tool_name != dispatch.tool_name or call.args_hash != dispatch.args_hash:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"the dispatch is not of call {dispatch.call_id}")
    if dispatch.incarnation_id != command.incarnation_id:
        return Refusal(WriteRefusal.OWNER_FENCED, "the dispatch names another incarnation")
    if refusal := _permitted(run, dispatch):
        return refusal
    watched = repeated_effect(session, dispatch.contract, dispatch.args_hash, dispatch.idempotency_key)
    if watched is not None and dispatch.repeats != watched.operation_id:
        return Refusal(
            WriteRefusal.TRANSITION_SHAPE_CONFLICT,
            f"it repeats operation {watched.operation_id}, whose outcome is not certain, without a person's permission",
        )
    if dispatch.repeats is not None and dispatch.repeats in session.watched:
        return (dispatch, _approved_repeat(dispatch))
    return (dispatch,)


def _permitted(run: Run, dispatch: ToolDispatched) -> Refusal | None:
    for permission in run.permissions.values():
        asked = permission.requested
        if asked.call_id != dispatch.call_id:
            continue
        approved = permission.decided is not None and permission.decided.approved
        if not approved or asked.args_hash != dispatch.args_hash or asked.contract_digest != dispatch.contract.digest:
            return Refusal(
                WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"permission {asked.request_id} was not given for this"
            )
    return None


def _approved_repeat(dispatch: ToolDispatched) -> EffectCleared:
    assert dispatch.repeats is not None
    return EffectCleared(
        event_id=EventId(derive_id(dispatch.event_id, "repeat", dispatch.repeats)),
        session_id=dispatch.session_id,
        occurred_at=dispatch.occurred_at,
        operation_id=dispatch.repeats,
        by=ClearedBy.APPROVED_REPEAT,
    )


def commit_outcome(run: Run, command: CommitOutcome) -> Decision:
    """T2: the operation is dispatched and has no outcome yet."""
    if refusal := sealed(run):
        return refusal
    response = command.response
    operation = None if response.operation_id is None else operation_by_id(run, response.operation_id)
    if operation is None or operation.call_id != response.call_id or operation.tool_name != response.tool_name:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "the outcome is of no dispatched operation")
    if operation.phase is not Phase.DISPATCHED:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"operation {operation.operation_id} has its outcome")
    return (response,) if command.left_running is None else (response, command.left_running)


def start_redelivery(run: Run, command: StartRedelivery) -> Decision:
    """A second delivery: an ended, unclaimed run's open `idempotent` operation with its recorded key."""
    if run.claimed is not None or run.ended is None:
        return Refusal(
            WriteRefusal.RUN_CLAIMED if run.claimed else WriteRefusal.TRANSITION_SHAPE_CONFLICT, "not after an end"
        )
    started = command.started
    operation = operation_by_id(run, started.operation_id)
    if operation is None or operation.phase is not Phase.DISPATCHED:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"operation {started.operation_id} is not open")
    if operation.mode is not RecoveryMode.IDEMPOTENT or operation.idempotency_key != started.idempotency_key:
        return Refusal(
            WriteRefusal.BUNDLE_INVALID, "only an idempotent operation is delivered again, with its recorded key"
        )
    return (started,)


def commit_recovery(run: Run, command: CommitRecovery) -> Decision:
    """A recovery bundle after the terminal event, at the expected version, valid in causal order. SPEC section 10."""
    facts = tuple(fact for fact in (command.reconciled, command.outcome, command.decided) if fact is not None)
    if refusal := _after_end(run, command.expected_sequence):
        return refusal
    if broken := judge_bundle(run.tools, facts, run.sequence):
        return Refusal(WriteRefusal.BUNDLE_INVALID, broken)
    return (*facts, *_inbox(command.cleared, command.notice))


def commit_attestation(run: Run, command: CommitAttestation) -> Decision:
    """A person's statement and the response that it makes, once. SPEC section 10."""
    if refusal := _after_end(run, command.expected_sequence):
        return refusal
    facts = tuple(fact for fact in (command.attested, command.response) if fact is not None)
    if broken := judge_attestation(run.tools, facts, run.sequence):
        return Refusal(WriteRefusal.BUNDLE_INVALID, broken)
    return (*facts, *_inbox(command.cleared, command.notice))


def _after_end(run: Run, expected_sequence: int) -> Refusal | None:
    if run.claimed is not None:
        return Refusal(WriteRefusal.RUN_CLAIMED, f"the run was claimed by continuation {run.claimed.target.run_id}")
    if run.ended is None:
        return Refusal(WriteRefusal.TRANSITION_SHAPE_CONFLICT, "the run has not ended")
    if run.sequence != expected_sequence:
        return Refusal(
            WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"the run is at {run.sequence}, not at {expected_sequence}"
        )
    return None


def _inbox(*events: Event | None) -> tuple[Event, ...]:
    return tuple(event for event in events if event is not None)
