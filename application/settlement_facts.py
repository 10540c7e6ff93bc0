"""What is written when a person settles an operation. SPEC section 10."""

from __future__ import annotations

from ..domain.commands import AttestInSession, CommitAttestation
from ..domain.events.session import NoticePosted, OperationAttested
from ..domain.events.tool import Effect, Statement, ToolAttested
from ..domain.identifiers import ExecutionIdentity, NoticeId, derive_id
from ..domain.operation.state import Operation, Phase
from ..domain.sentences import SentenceId, render
from ..domain.session.state import Session
from ..domain.tool_results import PreparedResult, prepare_result
from .ownership import Owned
from .read_operation import OperationRead
from .recovery_bundle import quoted
from .settlement import SaidBy, SettlementRefusal, refuse
from .spines import Spines
from .tool_facts import response_of


def command_of(
    spines: Spines, owned: Owned, session: Session, seen: OperationRead, said: SaidBy
) -> CommitAttestation | AttestInSession:
    """What is written: in the run, with the answer that the statement makes, or where it is closed, in the session."""
    operation, run_id = seen.operation, seen.run_id
    over = said.statement is Statement.OVER
    if seen.run.claimed is not None or run_id in session.abandoned:
        stated = OperationAttested(
            **spines.session(owned.session_id),
            operation_id=said.operation_id,
            run_id=run_id,
            tool_name=operation.tool_name,
            statement=said.statement,
            by=said.by,
            note=said.note,
        )
        notice = None if over else _notice(spines, owned, operation, said, stated.event_id)
        return AttestInSession(*owned.guard, run_id, stated, notice)
    called, dispatch = operation.called, operation.dispatch
    assert dispatch is not None  # a record that lacks one is damaged
    identity = ExecutionIdentity(owned.session_id, run_id, dispatch.turn_id, dispatch.invocation_id)
    attested = ToolAttested(
        **spines.run(identity),
        operation_id=said.operation_id,
        statement=said.statement,
        by=said.by,
        note=said.note,
        supersedes=seen.parked_by if operation.phase is Phase.PARKED and not over else None,
    )
    answered = operation.phase is Phase.SETTLED
    response = None
    if not over and not answered:
        assert called is not None  # likewise
        response = response_of(spines.run(identity), called, said.operation_id, _prepared(said))
    moved_on = session.head is None or session.head.run_id != run_id
    told = not over and (answered or moved_on)
    notice = _notice(spines, owned, operation, said, attested.event_id) if told else None
    return CommitAttestation(*owned.guard, run_id, seen.run.sequence, attested, response, notice)


def _notice(spines: Spines, owned: Owned, operation: Operation, said: SaidBy, seed: str) -> NoticePosted:
    """What the model, which was shown this call as unknown, is told once."""
    return NoticePosted(
        **spines.session(owned.session_id),
        notice_id=NoticeId(derive_id(seed, "notice")),
        sentence_id=SentenceId.LATE_ATTESTATION,
        parameters={"tool": operation.tool_name, "by": said.by, "outcome": _outcome(said)},
    )


def _prepared(said: SaidBy) -> PreparedResult:
    if said.statement is Statement.NOT_EXECUTED:
        text = render(SentenceId.ATTESTED_NOT_EXECUTED, {"by": said.by})
        return PreparedResult(text, is_error=True, effect=Effect.NONE)
    prepared = prepare_result(said.result)
    if prepared.is_error or prepared.original_length is not None:
        refuse(SettlementRefusal.RESULT_TOO_LARGE, "the result is too large, or no strict JSON; give a shorter one")
    return prepared


def _outcome(said: SaidBy) -> str:
    if said.statement is Statement.NOT_EXECUTED:
        return "not executed"
    return f"completed{quoted(said.result)}"
