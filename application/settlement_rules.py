"""When a person's word about an operation is called for, and when it was given before. SPEC sections 10 and 15."""

from __future__ import annotations

from ..domain.events.tool import Statement
from ..domain.operation.state import Operation, Phase
from ..domain.session.state import Session
from ..ports.supervised import Overness
from .over import OverState
from .read_operation import OperationRead
from .settlement import SaidBy, SettlementRefusal, SettlementRefused, refuse, refuse_running


def said_before(session: Session, seen: OperationRead, said: SaidBy) -> bool:
    """Tell whether the same was said before: then nothing is written again.

    Raises:
        SettlementRefused: something else was.
    """
    if said.statement is Statement.OVER:
        same = any((one.by, one.note) == (said.by, said.note) for one in seen.declared_over)
        return same and seen.operation.declared_over == len(seen.operation.deliveries)
    before = seen.attested or session.attested.get(said.operation_id)
    if before is None:
        return False
    same = (before.statement, before.by, before.note) == (said.statement, said.by, said.note)
    answer = seen.attested_answer
    if answer is not None and said.statement is Statement.COMPLETED:
        same = same and answer.result == said.result
    if same:
        return True
    words = str(before.statement).replace("_", " ")
    detail = f"{before.by} attested operation {said.operation_id} as {words} at {before.occurred_at}; that stands"
    raise SettlementRefused(SettlementRefusal.ALREADY_ATTESTED, detail)


def require_called_for(over: OverState, operation: Operation, said: SaidBy) -> None:
    """Make sure that the outcome is not certain and nothing of it runs; of a declared end, that nobody could look.

    Raises:
        SettlementRefused: it is otherwise.
    """
    if said.statement is Statement.OVER:
        if over.overness is Overness.OVER:
            detail = f"operation {said.operation_id} is known to be over: that needs no declaring"
            uncertain = operation.uncertainty is not None
            refuse(SettlementRefusal.KNOWN_TO_BE_OVER if uncertain else SettlementRefusal.NOTHING_TO_SETTLE, detail)
        if over.overness is Overness.RUNNING:
            refuse_running(over)
        return
    if operation.uncertainty is None:
        refuse(SettlementRefusal.NOTHING_TO_SETTLE, _certain(operation))
    if over.overness is Overness.RUNNING:
        refuse_running(over)
    if over.overness is Overness.COULD_NOT_LOOK:
        detail = f"whether operation {said.operation_id} still runs could not be seen; make sure, then declare it over"
        refuse(SettlementRefusal.OPERATION_NOT_OVER, detail)


def _certain(operation: Operation) -> str:
    if operation.phase is Phase.CALLED:
        return f"call {operation.call_id} was never dispatched"
    response = operation.record.response
    effect = "" if response is None else f", and its effect is known ({response.effect})"
    return f"operation {operation.operation_id} has its outcome{effect}"
