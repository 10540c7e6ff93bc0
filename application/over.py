"""Whether anything that an operation started can still run. SPEC section 15.

Asked only of operations without T2, or whose T2 left work running; any other T2 means over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from ..domain.events.outside import BackgroundStarted
from ..domain.events.tool import Life, ToolDispatched, ToolRedeliveryStarted
from ..domain.identifiers import OperationId
from ..domain.operation.state import Operation, Phase
from ..domain.run.state import Run
from ..ports.incarnations import Liveness
from ..ports.supervised import Overness, ProcessInfo
from ..ports.supervisor import Supervisor
from .ownership import SessionOwnership


@dataclass(frozen=True, slots=True)
class OverState:
    """What was seen of one operation."""

    operation_id: OperationId
    overness: Overness
    processes: tuple[ProcessInfo, ...] = ()


class LiveOperations:
    """Operations of this process whose task, thread or uncommitted result is still there. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[OperationId] = set()

    def began(self, operation_id: OperationId) -> None:
        """The implementation is about to be called."""
        with self._lock:
            self._live.add(operation_id)

    def ended(self, operation_id: OperationId) -> None:
        """Nothing of it is left in this process: the implementation returned and its outcome is committed or given up."""
        with self._lock:
            self._live.discard(operation_id)

    def __contains__(self, operation_id: OperationId) -> bool:
        with self._lock:
            return operation_id in self._live

    def __len__(self) -> int:
        with self._lock:
            return len(self._live)


class OverJudge:
    """Looks at locks and lives.

    Args:
        ownership: knows incarnations.
        supervisor: knows the locks of supervised operations.
        live: what still runs in this process.
    """

    def __init__(self, ownership: SessionOwnership, supervisor: Supervisor, live: LiveOperations) -> None:
        self._ownership = ownership
        self._supervisor = supervisor
        self._live = live

    def not_over(self, run: Run, operations: Iterable[Operation]) -> tuple[OverState, ...]:
        """The operations of a run that are asked about and are not proven over."""
        left_running = {job.operation_id for job in run.jobs.values() if not job.detached}
        states = (self.judge(o) for o in operations if _asked(o, left_running))
        return tuple(state for state in states if state.overness is not Overness.OVER)

    def judge(self, operation: Operation) -> OverState:
        """Over when the recorded life of every delivery has ended; could-not-look outweighs over, running outweighs both."""
        assert operation.operation_id is not None
        seen = [self._life_of(delivery) for delivery in operation.deliveries]
        for worst in (Overness.RUNNING, Overness.COULD_NOT_LOOK):
            if worst in seen:
                return OverState(operation.operation_id, worst, self._supervisor.who_holds(operation.operation_id))
        return OverState(operation.operation_id, Overness.OVER)

    def _life_of(self, delivery: ToolDispatched | ToolRedeliveryStarted) -> Overness:
        if delivery.operation_id in self._live:
            return Overness.RUNNING
        if delivery.life is Life.SUPERVISED:
            return self._supervisor.probe_over(delivery.operation_id)
        if self._ownership.is_mine(delivery.incarnation_id):
            return Overness.OVER
        match self._ownership.liveness_of(delivery.incarnation_id):
            case Liveness.DEAD:
                return Overness.OVER
            case Liveness.ALIVE:
                return Overness.RUNNING
            case Liveness.COULD_NOT_LOOK:
                return Overness.COULD_NOT_LOOK


def _asked(operation: Operation, left_running: set[OperationId | None]) -> bool:
    if operation.operation_id is None:
        return False
    return operation.phase is not Phase.SETTLED or operation.operation_id in left_running


def attached_jobs(run: Run) -> tuple[BackgroundStarted, ...]:
    """Work of a run that goes on and belongs to it."""
    return tuple(job for job in run.jobs.values() if not job.detached)
