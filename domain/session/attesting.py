"""What a person says of an operation whose run takes no more facts: claimed, or given up. SPEC section 10.

History is not rewritten: the session remembers the statement, watches the effect no more, and tells the next run.
"""

from __future__ import annotations

from ..commands import AttestInSession
from ..decision import Decision, Refusal, misfit
from ..events.event import Event
from ..events.tool import Statement
from ..operation.state import Operation, operation_by_id
from ..operation.watch_list import attested_in_session
from ..reasons import WriteRefusal
from ..recovery.bundle_rules import BundleRule
from ..run.state import Run
from .decisions import unsayable
from .state import Session


def attest(session: Session, suspected: Run, command: AttestInSession) -> Decision:
    """Take a statement into the session, once.

    Args:
        session: the session's state.
        suspected: the run of the operation, with what was dispatched behind a damage of it.
        command: what to write.
    """
    attested = command.attested
    if attested.run_id != command.run_id:
        return misfit(f"the statement is about run {attested.run_id}")
    if suspected.claimed is None and command.run_id not in session.abandoned:
        return misfit(f"what is said of an operation of run {command.run_id} is written into that run")
    operation = operation_by_id(suspected, attested.operation_id)
    if operation is None or operation.tool_name != attested.tool_name:
        return misfit(f"run {command.run_id} has no such operation {attested.operation_id}")
    if refusal := unsayable(command.notice) or _uncalled_for(session, operation, command):
        return refusal
    facts: tuple[Event, ...] = (attested,)
    facts += attested_in_session(session, operation, attested)
    return facts if command.notice is None else (*facts, command.notice)


def _uncalled_for(session: Session, operation: Operation, command: AttestInSession) -> Refusal | None:
    over = command.attested.statement is Statement.OVER
    known = session.declared_over if over else session.attested
    if command.attested.operation_id in known or (not over and operation.attested):
        return Refusal(WriteRefusal.BUNDLE_INVALID, BundleRule.ATTESTED_ONCE)
    if operation.uncertainty is None:
        return Refusal(WriteRefusal.BUNDLE_INVALID, BundleRule.ATTESTATION_IS_CALLED_FOR)
    return None
