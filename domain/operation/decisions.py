"""What may be written about a side effect: T1, T2, a second delivery, recovery, attestation. SPEC sections 7 to 10."""

from __future__ import annotations

from ..commands import CommitAttestation, CommitOutcome, CommitRecovery, PrepareTool, StartRedelivery
from ..decision import Decision, Refusal, misfit
from ..events.event import Event, SessionEvent, after
from ..events.session import ClearedBy, NoticePosted
from ..events.tool import RecoveryMode, ToolDispatched
from ..identifiers import OperationId
from ..reasons import RecoveryReason, WriteRefusal
from ..recovery.bundle import broken_attestation, broken_bundle
from ..recovery.event_facts import event_facts
from ..run.seals import not_ended, sealed
from ..run.state import Run
from ..session.decisions import unsayable
from ..session.state import Session
from . import watch_list
from .repeat_guard import delivered_again, freely_repeated, renamed_effect, repeated_effects
from .state import Operation, Phase, operation_by_id, operation_of_call


def prepare(session: Session, run: Run, command: PrepareTool) -> Decision:
    """T1: the call is recorded, undispatched and unanswered; its hash is recomputed; nothing forbids the effect."""
    if refusal := sealed(run):
        return refusal
    dispatch = command.dispatch
    if run.cancel_requested is not None:
        return Refusal(WriteRefusal.RUN_SEALED, f"the run is being stopped by {run.cancel_requested.by}")
    fields = dispatch.__dict__  # much quicker than attributes of a pydantic model
    call_id = fields["call_id"]
    call = operation_of_call(run, call_id)
    if call is None:
        return misfit(f"call {call_id} was never recorded")
    if call.phase is not Phase.CALLED:
        return misfit(f"call {call_id} has its dispatch or answer")
    if call.tool_name != fields["tool_name"] or call.args_hash != fields["args_hash"]:
        return misfit(f"the dispatch is not of call {call_id} as it was recorded")
    if fields["idempotency_key"] is None and fields["contract"].mode is RecoveryMode.IDEMPOTENT:
        return misfit("an idempotent call is dispatched with the key of its delivery")
    asked = run.permissions_of(call_id)
    if (asked or fields["grant_id"] is not None) and (refusal := _unpermitted(session, run, dispatch)):
        return refusal
    if not session.watched:
        return (dispatch,)
    again = _delivered_again(session, dispatch)
    if isinstance(again, Refusal):
        return again
    repeated = _repeated(session, run, dispatch, call, again)
    if isinstance(repeated, Refusal):
        return repeated
    by_key = ClearedBy.DELIVERED_AGAIN
    return (
        dispatch,
        *watch_list.cleared(dispatch, repeated, ClearedBy.APPROVED_REPEAT),
        *watch_list.cleared(dispatch, [one for one in again if one not in repeated], by_key, len(repeated)),
    )


def _unpermitted(session: Session, run: Run, dispatch: ToolDispatched) -> Refusal | None:
    """Whatever was asked about the call was answered with yes, for exactly this; a grant is used once. F6."""
    for permission in run.permissions_of(dispatch.call_id):
        asked = permission.requested
        approved = permission.decided is not None and permission.decided.approved
        if not approved or asked.args_hash != dispatch.args_hash or asked.contract_digest != dispatch.contract.digest:
            return misfit(f"permission {asked.request_id} was not given for this")
    if dispatch.grant_id is None:
        return None
    grant = session.granted.get(dispatch.grant_id)
    if (
        grant is None
        or not grant.approved
        or dispatch.grant_id in run.grants_used
        or (grant.tool_name, grant.args_hash, grant.contract_digest)
        != (dispatch.tool_name, dispatch.args_hash, dispatch.contract.digest)
    ):
        return misfit(f"grant {dispatch.grant_id} was not given for this, or was used")
    return None


def _repeated(
    session: Session, run: Run, dispatch: ToolDispatched, call: Operation, again: tuple[OperationId, ...]
) -> tuple[OperationId, ...] | Refusal:
    """The watched effects that this dispatch may repeat: a person said so, or its contract says so for all. F9."""
    if not session.watched:
        return ()
    key, at, named = dispatch.idempotency_key, dispatch.occurred_at, dispatch.repeats
    free = tuple(o.operation_id for o in freely_repeated(session, dispatch.contract, dispatch.args_hash))
    if free:
        return free
    equal = [o.operation_id for o in repeated_effects(session, dispatch.contract, dispatch.args_hash, key, at)]
    renamed = None if equal or again else _renamed(session, run, dispatch, call)
    must_be_asked = equal or ([] if renamed is None else [renamed])
    if must_be_asked and named not in must_be_asked:
        return misfit(f"it repeats operation {must_be_asked[0]}, whose outcome is not certain, unasked")
    if named is None or named not in session.watched:
        return ()
    grant = None if dispatch.grant_id is None else session.granted.get(dispatch.grant_id)
    allowed = [permission.requested.repeats for permission in run.permissions_of(dispatch.call_id)]
    if named not in (*allowed, None if grant is None else grant.repeats):
        return () if named in again else misfit(f"nobody was asked whether it may repeat operation {named}")
    return tuple(dict.fromkeys((named, *equal)))


def _renamed(session: Session, run: Run, dispatch: ToolDispatched, call: Operation) -> OperationId | None:
    """A watched effect of a tool that the run was not offered, with equal arguments: the tool may have been renamed."""
    offered = () if run.opening is None else run.opening.profile.tools
    if not offered or dispatch.contract.mode is RecoveryMode.REPLAY_SAFE or dispatch.contract.repeat_free:
        return None
    watched = renamed_effect(session, call.args, {tool.name for tool in offered})
    return None if watched is None else watched.operation_id


def _delivered_again(session: Session, dispatch: ToolDispatched) -> tuple[OperationId, ...] | Refusal:
    """The watched effects of which this is one more delivery: its own outcome is theirs. Their key gets no younger."""
    contract, at = dispatch.contract, dispatch.occurred_at
    again = tuple(delivered_again(session, contract, dispatch.args_hash, dispatch.idempotency_key, at))
    until = None if contract.key_valid_seconds is None else after(at, contract.key_valid_seconds)
    for one in again:
        if one.key_valid_until is not None and (until is None or until > one.key_valid_until):
            return misfit(f"the key of operation {one.operation_id} is valid until {one.key_valid_until} and no longer")
    return tuple(one.operation_id for one in again)


def commit_outcome(run: Run, command: CommitOutcome) -> Decision:
    """T2: the operation is dispatched and has no outcome yet."""
    if refusal := sealed(run):
        return refusal
    response, left = command.response, command.left_running
    fields = response.__dict__  # much quicker than attributes of a pydantic model
    operation = None if fields["operation_id"] is None else operation_by_id(run, fields["operation_id"])
    if (
        operation is None
        or operation.record.call_id != fields["call_id"]
        or operation.record.tool_name != fields["tool_name"]
    ):
        return misfit(f"the outcome of call {response.call_id} is of no dispatched operation")
    if operation.phase is not Phase.DISPATCHED:
        return misfit(f"operation {operation.operation_id} has its outcome")
    if left is None:
        return (response,)
    if left.operation_id != response.operation_id or left.handle_id in run.jobs:
        return misfit(f"background job {left.handle_id} is not what operation {operation.operation_id} left running")
    return (response, left)


def start_redelivery(run: Run, command: StartRedelivery) -> Decision:
    """A second delivery: an ended, unclaimed run's open `idempotent` operation with its recorded, valid key."""
    if refusal := not_ended(run):
        return refusal
    started = command.started
    operation = operation_by_id(run, started.operation_id)
    if operation is None or operation.phase is not Phase.DISPATCHED:
        return misfit(f"operation {started.operation_id} is not open")
    if operation.mode is not RecoveryMode.IDEMPOTENT or operation.idempotency_key != started.idempotency_key:
        detail = "only an idempotent operation is delivered again, with its recorded key"
        return Refusal(WriteRefusal.BUNDLE_INVALID, detail)
    if (invalid := operation.why_key_is_invalid(command.now)) is not None:
        return Refusal(WriteRefusal.BUNDLE_INVALID, f"{RecoveryReason.IDEMPOTENCY_KEY_EXPIRED}: {invalid}")
    return (started,)


def commit_recovery(session: Session, run: Run, command: CommitRecovery) -> Decision:
    """A recovery bundle after the terminal event, at the expected version, valid in causal order. SPEC section 10."""
    facts = tuple(fact for fact in (command.reconciled, command.outcome, command.decided) if fact is not None)
    if refusal := _out_of_place(run, command.expected_sequence, command.notice):
        return refusal
    if broken := broken_bundle(run.tools, [event_facts(fact) for fact in facts]):
        return Refusal(WriteRefusal.BUNDLE_INVALID, broken)
    operation, outcome = _known(run, command.decided.operation_id), command.outcome
    watched = () if outcome is None else watch_list.settled(session, operation, outcome, command.decided)
    return (*facts, *_inbox(watched, command.notice))


def commit_attestation(session: Session, run: Run, command: CommitAttestation) -> Decision:
    """A person's statement and the response that it makes, once. SPEC section 10."""
    facts = tuple(fact for fact in (command.attested, command.response) if fact is not None)
    if refusal := _out_of_place(run, command.expected_sequence, command.notice):
        return refusal
    if broken := broken_attestation(run.tools, [event_facts(fact) for fact in facts]):
        return Refusal(WriteRefusal.BUNDLE_INVALID, broken)
    watched = watch_list.attested(session, _known(run, command.attested.operation_id), command.attested)
    return (*facts, *_inbox(watched, command.notice))


def _out_of_place(run: Run, expected_sequence: int, notice: NoticePosted | None) -> Refusal | None:
    if refusal := not_ended(run):
        return refusal
    if run.sequence != expected_sequence:
        return misfit(f"the run is at {run.sequence}, not at {expected_sequence}")
    return unsayable(notice)


def _known(run: Run, operation_id: OperationId) -> Operation:
    operation = operation_by_id(run, operation_id)
    assert operation is not None  # the bundle was judged, and that it has one is its first rule
    return operation


def _inbox(watched: tuple[SessionEvent, ...], notice: NoticePosted | None) -> tuple[Event, ...]:
    return watched if notice is None else (*watched, notice)
