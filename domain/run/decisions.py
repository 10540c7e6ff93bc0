"""What may be written into a run by its own execution, decided on its state. SPEC sections 7 and 8.

The order of checks is one for all: sealed, then legality. Retry and epoch are asked by the ledger before. How a run
ends stands in `ending`.
"""

from __future__ import annotations

from ..commands import Append, AppendLate, OpenRun, OrdinaryFact, RecordStep, RefuseCall
from ..decision import Decision, Refusal, misfit
from ..events.event import Event
from ..events.model import ModelStepCompleted, UserMessage
from ..events.outside import BackgroundSettled, CheckpointAccepted, PermissionDecided, PermissionRequested
from ..events.run import RunOpened
from ..events.session import GrantPosted, RunAdmitted, RunKind
from ..events.tool import Effect, ToolCalled
from ..operation.state import Phase, operation_of_call, unanswered_of
from ..operation.watch_list import of_ended_turn
from ..reasons import WriteRefusal
from ..session.decisions import admit_turn, take_inbox, unsayable
from ..session.state import Session
from .seals import not_ended, sealed
from .state import Run


def open_run(session: Session, head: Run | None, head_digest: str, run: Run, command: OpenRun) -> Decision:
    """Admit and open an ordinary run with its user message, taking the session's inbox over. SPEC section 5.

    Args:
        session: the session's state.
        head: the state of its head run; None where it has none, or where a person gave that up.
        head_digest: digest of the head run's newest event.
        run: the state of the run to open, which must be empty.
        command: what to write.
    """
    opened = command.opened
    if run.opening is not None:
        return Refusal(WriteRefusal.DUPLICATE_EVENT_ID, f"run {opened.run_id} exists")
    admission = admit_turn(session, head, command.session_opened, command.admitted)
    if isinstance(admission, Refusal):
        return admission
    if not _admits(command.admitted, opened):
        return misfit(f"the admission is not of run {opened.run_id}")
    if command.message.steering:
        return misfit("the message that opens a run does not steer one")
    if refusal := _outdated(session, head, head_digest, opened):
        return refusal
    taken, messages = take_inbox(session, opened)
    budget = () if command.budget is None else (command.budget,)
    facts = (opened, command.message, *budget, *command.host_messages, *messages)
    return (*admission, *of_ended_turn(session, opened), *taken, *facts)


def _admits(admitted: RunAdmitted, opened: RunOpened) -> bool:
    ids = (admitted.run_id, admitted.turn_id, admitted.invocation_id)
    kind = RunKind.TURN if opened.parent_run_id is None else RunKind.CHILD
    return (
        ids == (opened.run_id, opened.turn_id, opened.invocation_id)
        and admitted.kind is kind
        and admitted.claim_id is None
    )


def _outdated(session: Session, head: Run | None, head_digest: str, opened: RunOpened) -> Refusal | None:
    """The history that a turn is given ends with all that the session holds: what is settled later gets a notice."""
    if opened.context is None or head is None or session.head is None:
        return None
    previous = opened.context.previous
    if (previous.run_id, previous.high_water, previous.digest) == (session.head.run_id, head.sequence, head_digest):
        return None
    return misfit("the session has moved on since its history was read")


def append(run: Run, command: Append) -> Decision:
    """Write ordinary facts: each as the state allows that has those before it."""
    if refusal := sealed(run):
        return refusal
    if not command.facts:
        return misfit("there is nothing to write")
    if len(command.facts) > 1:
        run = run.fork()
    for position, fact in enumerate(command.facts, 1):
        if refusal := _ordinary(run, fact):
            return refusal
        if position < len(command.facts):
            run.take(fact)
    return command.facts


def _ordinary(run: Run, fact: OrdinaryFact) -> Refusal | None:
    match fact:
        case PermissionRequested():
            return _requested(run, fact)
        case PermissionDecided():
            return _decided(run, fact)
        case BackgroundSettled():
            return _job_settled(run, fact)
        case CheckpointAccepted():
            return _checkpoint_accepted(run, fact)
        case UserMessage(steering=False):
            return misfit("a message of the user begins a turn, or steers the one that runs")
        case _:
            return None


def _requested(run: Run, fact: PermissionRequested) -> Refusal | None:
    """A question is about a recorded call that waits, with exactly its arguments. F6."""
    if run.permissions.get(fact.request_id) is not None:
        return misfit(f"permission {fact.request_id} exists")
    call = operation_of_call(run, fact.call_id)
    if call is None or call.phase is not Phase.CALLED:
        return misfit(f"call {fact.call_id} does not wait for its dispatch")
    if (call.tool_name, call.args_hash) != (fact.tool_name, fact.args_hash):
        return misfit(f"permission {fact.request_id} is not about call {fact.call_id} as it was recorded")
    return None


def _decided(run: Run, fact: PermissionDecided) -> Refusal | None:
    known = run.permissions.get(fact.request_id)
    return misfit(f"permission {fact.request_id} is not open") if known is None or not known.open else None


def _checkpoint_accepted(run: Run, fact: CheckpointAccepted) -> Refusal | None:
    """A checkpoint is of the very point at which it is accepted, with nothing under way. SPEC section 16."""
    if refusal := _of_another_point(run, fact):
        return refusal
    if any(one.phase is Phase.DISPATCHED for one in unanswered_of(run)) or run.jobs:
        return Refusal(WriteRefusal.OPERATION_OPEN, "a checkpoint is taken while nothing is under way")
    return None


def _of_another_point(run: Run, fact: CheckpointAccepted) -> Refusal | None:
    if fact.high_water == run.sequence:
        return None
    return misfit(f"the checkpoint is of event {fact.high_water}, and the run is at {run.sequence}")


def _job_settled(run: Run, fact: BackgroundSettled) -> Refusal | None:
    return None if fact.handle_id in run.jobs else misfit(f"background job {fact.handle_id} does not run")


def record_step(run: Run, command: RecordStep) -> Decision:
    """Write one completed model step: it ends with its completion, and its call ids are fresh in the run."""
    if refusal := sealed(run):
        return refusal
    if not command.facts or not isinstance(command.facts[-1], ModelStepCompleted):
        return misfit("a model step ends with its completion")
    step_id, seen = command.facts[-1].step_id, set[str]()
    for fact in command.facts:
        if fact.step_id != step_id:
            return misfit("facts of two model steps in one commit")
        if isinstance(fact, ToolCalled):
            if fact.call_id in seen or operation_of_call(run, fact.call_id) is not None:
                return misfit(f"call id {fact.call_id} is used already")
            seen.add(fact.call_id)
    return command.facts


def refuse_call(run: Run, command: RefuseCall) -> Decision:
    """Answer a recorded call before T1: an error response, no dispatch, and the effect is none. F2."""
    if refusal := sealed(run):
        return refusal
    response = command.response
    operation = operation_of_call(run, response.call_id)
    if operation is None or operation.phase is not Phase.CALLED:
        what = "was never recorded" if operation is None else "has its dispatch or answer"
        return misfit(f"call {response.call_id} {what}")
    if response.operation_id is not None or response.effect is not Effect.NONE or not response.is_error:
        return misfit("a refusal before T1 is an error with no operation and no effect")
    return (response,)


def append_late(run: Run, command: AppendLate) -> Decision:
    """Write what may follow the terminal event: run ended, not claimed."""
    if refusal := not_ended(run):
        return refusal
    fact = command.fact
    if isinstance(fact, PermissionDecided):
        if refusal := _decided(run, fact) or _not_granted(run, fact, command.grant):
            return refusal
    elif command.grant is not None:
        return misfit("a grant comes with the decision that it is")
    if isinstance(fact, BackgroundSettled) and (refusal := _job_settled(run, fact)):
        return refusal
    if isinstance(fact, CheckpointAccepted) and (refusal := _of_another_point(run, fact)):
        return refusal
    if refusal := unsayable(command.notice):
        return refusal
    inbox: tuple[Event, ...] = tuple(event for event in (command.grant, command.notice) if event is not None)
    return (fact, *inbox)


def _not_granted(run: Run, fact: PermissionDecided, grant: GrantPosted | None) -> Refusal | None:
    """A late decision is carried to the next run by a grant, bound to exactly what was asked. SPEC section 13."""
    permission = run.permissions.get(fact.request_id)
    if permission is None or grant is None:
        return misfit("a decision after the end comes with its grant")
    asked = permission.requested
    bound = (
        (grant.grant_id, grant.request_id, grant.approved, grant.decided_by)
        == (fact.grant_id, fact.request_id, fact.approved, fact.decided_by)
        and (grant.tool_name, grant.call_id) == (asked.tool_name, asked.call_id)
        and (grant.args_hash, grant.contract_digest, grant.repeats)
        == (asked.args_hash, asked.contract_digest, asked.repeats)
    )
    return None if bound else misfit(f"the grant is not what permission {fact.request_id} asked")
