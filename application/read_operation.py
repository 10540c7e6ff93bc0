"""One operation with everything that was said of it, read from its run as far as that verifies. SPEC sections 3, 10."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..domain.events.tool import Disposition, Statement, ToolAttested, ToolRecoveryDecided, ToolResponded
from ..domain.identifiers import EventId, OperationId, RunId
from ..domain.operation.state import Operation, operation_by_id
from ..domain.run.state import Run
from ..domain.sealing import SealedEvent
from ..ports.event_store import EventReader
from .states import readable


@dataclass(slots=True)
class OperationRead:
    """What a run's events say of one operation.

    Attributes:
        run: as far as its chain verifies, with what was dispatched behind a damage of it.
        damage: what is wrong with it, None where nothing is.
        attested: what a person said happened, None where nobody did; `attested_answer` is the answer that this made.
        declared_over: what was said of its end, in order.
        parked_by: the decision that parked it.
    """

    run_id: RunId
    operation_id: OperationId
    run: Run
    operation: Operation
    damage: str | None
    attested: ToolAttested | None = None
    attested_answer: ToolResponded | None = None
    declared_over: list[ToolAttested] = field(default_factory=list)
    parked_by: EventId | None = None


def read_operation(reader: EventReader, run_id: RunId, operation_id: OperationId) -> OperationRead | None:
    """Read a run and look for an operation in it; None when it has no such one.

    Raises:
        StoreUnavailable: it could not be read.
    """
    facts = list[ToolAttested | ToolRecoveryDecided | ToolResponded]()

    def take(sealed: SealedEvent) -> None:
        event = sealed.event
        if isinstance(event, ToolAttested | ToolRecoveryDecided | ToolResponded) and event.operation_id == operation_id:
            facts.append(event)

    _, damage, run = readable(reader, run_id, take)
    operation = operation_by_id(run, operation_id)
    if operation is None:
        return None
    read = OperationRead(run_id, operation_id, run, operation, damage)
    for fact in facts:
        match fact:
            case ToolAttested(statement=Statement.OVER):
                read.declared_over.append(fact)
            case ToolAttested():
                read.attested = fact
            case ToolRecoveryDecided(disposition=Disposition.PARKED):
                read.parked_by = fact.event_id
            case ToolResponded() if read.attested is not None:
                read.attested_answer = fact
            case _:
                pass
    return read
