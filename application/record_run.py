"""Records a run that somebody else's loop drives: begun like a turn or a resume, ended whatever happens. SPEC 17.

It stands on the use cases of our own loop: who may begin, what is repaired first, what parks and what is claimed is
decided there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from anyio.abc import TaskGroup

from ..domain.errors import SafepointError
from ..domain.events.run import Budgets
from ..domain.explanations import explain
from ..domain.identifiers import SessionId
from ..domain.next_steps import with_names
from .agent import Agent
from .child_runs import ParentCall
from .drive_run import DriveRun
from .plan_resume import PlanRequest
from .reconcile_operations import Hands
from .recorded_run import RecordedRun
from .resume_run import Parked, ResumeRun
from .run_agent import RunAgent
from .run_turn import RunTurn
from .start_turn import Begun
from .turn_context import ALL, ContextChoice


class ResumeParked(SafepointError):
    """The interrupted run is kept as it is: it cannot be proven safe to go on.

    Attributes:
        parked: every reason, in the order of the gates.
    """

    def __init__(self, parked: Parked, store: Path | None = None) -> None:
        named = None if store is None else str(store)

        def todo(code: str) -> str:
            return with_names(explain(code).next_step, parked.session_id, named)

        codes = parked.codes or parked.changed
        said = "; ".join(f"{code}: {explain(code).sentence}{_named(parked, code)} {todo(code)}" for code in codes)
        super().__init__(f"session {parked.session_id} is parked ({said})")
        self.parked = parked


def _named(parked: Parked, code: str) -> str:
    """What a reason names: tools and operations, by their names and ids alone (R15)."""
    named = (
        f"{name} {value if isinstance(value, str) else ', '.join(map(str, value))}"
        for reason in parked.reasons
        if reason.code == code
        for name, value in reason.detail.items()
        if isinstance(value, str | list) and value
    )
    said = "; ".join(named)
    return f" ({said})" if said else ""


class RecordRun:
    """Begins and ends runs for loops of others.

    Args:
        run_turn: begins turns.
        resume_run: begins continuations.
        drive_run: holds a run while it is driven.
        run_agent: puts the parts of a run together.
        store: the database file, for commands that people are told; None where it is none.
    """

    def __init__(
        self,
        run_turn: RunTurn,
        resume_run: ResumeRun,
        drive_run: DriveRun,
        run_agent: RunAgent,
        store: Path | None = None,
    ) -> None:
        self._store = store
        self._run_turn = run_turn
        self._resume_run = resume_run
        self._drive = drive_run
        self._run_agent = run_agent

    @asynccontextmanager
    async def turn(
        self,
        session_id: SessionId,
        text: str,
        agent: Agent,
        tasks: TaskGroup,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ParentCall | None = None,
    ) -> AsyncIterator[RecordedRun]:
        """A new turn, open inside the block.

        Left normally it ends completed; by an exception, failed; cancelled, it stays as it is until it is repaired.

        Args:
            session_id: an existing session, or the id of a new one.
            text: the user's message, not empty.
            agent: what the run is executed with; its provider is asked who it is, and nothing else.
            tasks: outlives the block, in the same event loop.
            context: what of the earlier turns the model is shown.
            budgets: what the turn may use, its continuations included.
            parent: the call that starts it as its child run.

        Raises:
            ChildRunExists: the call has begun its child run already.
            ParentNotOpen: the call has its outcome.
            SessionBusy, SessionQuarantined, HistoryUnusable, HistoryTooLarge: nothing was begun.
            CallsUnanswered, NoStepRecorded: on leaving: the loop was done, and calls of its last step have no answer,
                or nothing of its model is recorded; the end is recorded, as failed.
            StoreError, WriteRefused: it was not begun, or could not be recorded any further.
        """
        begun, _ = await self._run_turn.begin(session_id, text, agent, context=context, budgets=budgets, parent=parent)
        async with self._driven(begun, agent, tasks) as run:
            yield run

    @asynccontextmanager
    async def resume(
        self,
        session_id: SessionId,
        agent: Agent,
        tasks: TaskGroup,
        request: PlanRequest | None = None,
        hands: Hands | None = None,
    ) -> AsyncIterator[RecordedRun]:
        """The continuation of a session's interrupted run, open inside the block and ended as a turn is.

        Args:
            hands: to look at operations without outcome with, before the plan is made; None leaves them as they are.

        Raises:
            CallsUnanswered, NoStepRecorded: as `turn`.
            ResumeParked: it is not continued; nothing was claimed, or another got the claim.
            StoreError, WriteRefused: it was not begun, or could not be recorded any further.
        """
        beginning = await self._resume_run.begin(session_id, agent, request, hands)
        if isinstance(beginning, Parked):
            raise ResumeParked(beginning, self._store)
        async with self._driven(beginning.begun, agent, tasks) as run:
            yield run

    @asynccontextmanager
    async def _driven(self, begun: Begun, agent: Agent, tasks: TaskGroup) -> AsyncIterator[RecordedRun]:
        async with self._drive.driving(begun) as live:
            run = RecordedRun(self._run_agent.recording(begun, live, agent), tasks)
            try:
                await run.begin()
                yield run
            except Exception as error:
                await run.failed(error)
                raise
            forgotten = run.forgotten
            outcome = await run.done()
        self._drive.tell_outcome(begun, outcome)
        if forgotten is not None:
            raise forgotten
