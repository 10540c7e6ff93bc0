"""Whether anything that an operation started can still run. SPEC section 15.

Asked only of operations without T2, or whose T2 left work running; any other T2 means over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ..domain.events.outside import BackgroundStarted
from ..domain.events.tool import Life, ToolDispatched, ToolRedeliveryStarted
from ..domain.identifiers import OperationId
from ..domain.operation.state import operation_by_id, unanswered_of
from ..domain.planning.survey import Delivery, Survey
from ..domain.recovery.verdict import Resolution
from ..domain.run.state import Run
from ..ports.incarnations import Liveness
from ..ports.supervised import Overness, ProcessInfo
from ..ports.supervisor import Supervisor
from .live_operations import LiveOperations
from .ownership import SessionOwnership

Delivered: TypeAlias = Delivery | ToolDispatched | ToolRedeliveryStarted


@dataclass(frozen=True, slots=True)
class OverState:
    """What was seen of one operation."""

    operation_id: OperationId
    overness: Overness
    processes: tuple[ProcessInfo, ...] = ()


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

    def not_over(self, survey: Survey, resolution: Resolution) -> tuple[OverState, ...]:
        """The operations of a run that are asked about and are not proven over.

        Args:
            survey: of the run's events.
            resolution: the verdicts on them.
        """
        settled = {v.operation_id for v in resolution.verdicts if v.response_event_id is not None}
        jobs = {job.operation_id for job in survey.open_jobs.values()}
        deliveries = survey.deliveries
        asked = (one for one in deliveries if one not in settled or one in jobs)
        states = (self.judge(one, deliveries[one], survey.declared_over.get(one, 0)) for one in asked)
        return tuple(state for state in states if state.overness is not Overness.OVER)

    def not_over_in(self, run: Run) -> tuple[OverState, ...]:
        """As `not_over`, of a run's state."""
        jobs = {job.operation_id for job in run.jobs.values() if not job.detached}
        with_jobs = (operation_by_id(run, job) for job in jobs if job is not None)
        asked = {one.operation_id: one for one in (*unanswered_of(run), *with_jobs) if one is not None}
        states = (self.judge(key, one.deliveries, one.declared_over) for key, one in asked.items() if key is not None)
        return tuple(state for state in states if state.overness is not Overness.OVER)

    def judge(self, operation_id: OperationId, deliveries: Iterable[Delivered], declared: int = 0) -> OverState:
        """Over when the life of every delivery has ended; could-not-look outweighs over, running outweighs both.

        Args:
            deliveries: in order.
            declared: how many of them, from the first, a person has said to be over: believed only where it could not
                be looked. What is seen to run runs, whatever was said (ADR 0016).
        """
        deliveries = tuple(deliveries)
        seen = [self._life_of(delivery) for delivery in deliveries]
        seen = [
            Overness.OVER if position < declared and life is Overness.COULD_NOT_LOOK else life
            for position, life in enumerate(seen)
        ]
        for worst in (Overness.RUNNING, Overness.COULD_NOT_LOOK):
            if worst in seen:
                holders = (*self._supervisor.who_holds(operation_id), *self._living_owners(deliveries))
                return OverState(operation_id, worst, holders)
        return OverState(operation_id, Overness.OVER)

    def _living_owners(self, deliveries: Iterable[Delivered]) -> Iterator[ProcessInfo]:
        """The processes in which a task may go on: those of owners that live, fenced or not."""
        lives = dict.fromkeys(one.incarnation_id for one in deliveries if one.life is Life.TASK)
        for incarnation_id in lives:
            process = self._ownership.living_process(incarnation_id)
            if process is not None:
                yield process

    def _life_of(self, delivery: Delivered) -> Overness:
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


def attached_jobs(run: Run) -> tuple[BackgroundStarted, ...]:
    """Work of a run that goes on and belongs to it."""
    return tuple(job for job in run.jobs.values() if not job.detached)
