"""The use case of a new turn: own the session, repair what a dead owner left, open the run, drive it. SPEC 11, 12."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ..domain.errors import SafepointError
from ..domain.events.run import Budgets
from ..domain.identifiers import RunId, SessionId
from ..ports.checkpoints import Checkpoint
from .agent import Agent
from .agent_loop import RunOutcome
from .capture_content import NOWHERE, CaptureContent
from .child_runs import ChildRunExists, ChildRuns, Ended, ParentCall
from .copied_folders import CopiedFolders
from .drive_run import DriveRun
from .in_thread import in_thread
from .live_runs import LiveRun
from .ownership import SessionOwnership
from .repair_session import Repair, Repaired, RepairKind
from .run_agent import Screen
from .start_turn import Begun, BoundContent, StartTurn
from .taking import taken
from .turn_context import ALL, ContextChoice
from .user_text import check_said


class SessionQuarantined(SafepointError):
    """The session's head run is damaged: nothing goes on in it until a person abandons that run.

    Attributes:
        repaired: what repair found.
    """

    def __init__(self, repaired: Repaired) -> None:
        super().__init__(f"session {repaired.session_id} is quarantined: {repaired.detail}")
        self.repaired = repaired


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What became of a turn; `repaired` is what was closed before it began."""

    session_id: SessionId
    run_id: RunId
    outcome: RunOutcome
    repaired: Repaired


class RunTurn:
    """Runs one user message to its end.

    Args:
        children: knows which child runs were begun; None where none are.
    """

    def __init__(
        self,
        ownership: SessionOwnership,
        repair: Repair,
        start: StartTurn,
        drive: DriveRun,
        capture: CaptureContent = NOWHERE,
        copied: CopiedFolders | None = None,
        children: ChildRuns | None = None,
    ) -> None:
        self._ownership = ownership
        self._repair = repair
        self._start = start
        self._drive = drive
        self._capture = capture
        self._copied = copied
        self._children = children

    async def __call__(
        self,
        session_id: SessionId,
        text: str,
        agent: Agent,
        screen: Screen,
        started: Callable[[LiveRun], None] = lambda run: None,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ParentCall | None = None,
    ) -> TurnResult:
        """Run a turn.

        Args:
            session_id: an existing session, or the id of a new one.
            text: the user's message, not empty.
            started: told how to stop the run.
            context: what a person or the host says of the history; by default all of it is given.
            budgets: what the turn may use, its continuations included; by default it is not bounded.
            parent: the call that starts it as its child run. Begun by the same request before, and ended, it is not
                run again: what it came to is answered.

        Raises:
            ChildRunExists: the call has begun its child run, by another request, or it has not ended.
            ParentNotOpen: the call has its outcome.
            SessionBusy: another process owns the session.
            SessionQuarantined: its head run is damaged.
            HistoryUnusable, HistoryTooLarge: the earlier turns cannot be shown; nothing was begun.
            ValueError: the text is empty; nothing was begun.
            WorkspaceCopied: the folder is a copy, or has one, and nobody said which is which; nothing was begun.
            CheckpointsUnusable: the content of the workspace cannot be kept as was asked for; nothing was begun.
            StoreError, WriteRefused: the run was not begun, or could not be recorded any further.
        """
        try:
            begun, repaired = await self.begin(session_id, text, agent, context=context, budgets=budgets, parent=parent)
        except ChildRunExists as exists:
            if exists.same and isinstance(exists.found, Ended):
                repaired = Repaired(session_id, RepairKind.NOTHING_OPEN)
                return TurnResult(session_id, exists.found.run_id, exists.found.outcome, repaired)
            raise
        if begun.not_bound is not None:
            screen.say_not_bound(begun.not_bound)
        outcome = await self._drive(begun, agent, screen, started)
        return TurnResult(session_id, begun.identity.run_id, outcome, repaired)

    async def begin(
        self,
        session_id: SessionId,
        text: str,
        agent: Agent,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ParentCall | None = None,
    ) -> tuple[Begun, Repaired]:
        """Own the session, repair it and open the run, for whoever drives it; raises as running a turn does."""
        check_said(text)
        if parent is not None:
            if self._children is None:
                raise ValueError("no child run can be begun here: nobody knows which were")
            await in_thread(partial(self._children.require_new, parent, session_id, text))
        owned = await taken(self._ownership, session_id, partial(self._check_place, agent))
        try:
            repaired = await in_thread(partial(self._repair, owned))
            if repaired.kind is RepairKind.QUARANTINED:
                raise SessionQuarantined(repaired)
            captured = await self._capture.for_turn(agent)
            begun = await self._start(owned, agent, text, context, budgets, parent)
        except BaseException as error:
            await in_thread(partial(self._ownership.give_up_failed, owned, error))
            raise
        match captured:
            case None:
                return begun, repaired
            case Checkpoint():
                return replace(begun, content=BoundContent(captured)), repaired
            case _:
                return replace(begun, not_bound=captured), repaired

    def _check_place(self, agent: Agent) -> None:
        if self._copied is not None:
            self._copied.require_one(str(agent.workspace))
