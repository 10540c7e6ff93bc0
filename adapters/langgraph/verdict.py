"""Is a thread safe to go on? SPEC sections 13 and 14."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...application.inspect_sessions import SessionState
from ...domain.explanations import explain
from ...domain.next_steps import with_names
from ...domain.planning.outcome import Park, Reason
from ...domain.reasons import ParkReason
from ...ports.views import OperationRow
from ..embedding.session import Session

_NOTHING_OPEN: Final = frozenset({SessionState.EMPTY, SessionState.COMPLETED, SessionState.ABANDONED})


@dataclass(frozen=True, slots=True)
class ThreadVerdict:
    """What is known of a thread, which is a session of the store.

    Attributes:
        thread_id: of the graph's configuration.
        to_resume: whether a turn of it was interrupted and waits to be resumed; else there is nothing to resume.
        reasons: why it may not go on: that turn may not be resumed, another process is at it, or its record is damaged.
        unsettled: operations whose effect is not certain, with `operation_id` and `tool_name`.
        store: the database file, for commands that people are told.
    """

    thread_id: str
    to_resume: bool
    reasons: tuple[Reason, ...] = ()
    unsettled: Sequence[OperationRow] = ()
    store: Path | None = None

    @property
    def safe(self) -> bool:
        """True where the thread may go on: its interrupted turn is resumed, or there is none."""
        return not self.reasons

    @property
    def codes(self) -> tuple[ParkReason, ...]:
        """Each reason's code once, in order."""
        return tuple(dict.fromkeys(reason.code for reason in self.reasons))

    def explained(self) -> str:
        """Say it for people: the reasons, the operations, and what to do next."""
        if self.safe:
            todo = "resume its interrupted turn" if self.to_resume else "take a new turn"
            said = [f"thread {self.thread_id!r} is safe to go on: {todo}."]
        else:
            said = [f"thread {self.thread_id!r} is not safe to go on: {', '.join(self.codes)}."]
        for code in self.codes:
            known = explain(code)
            store = None if self.store is None else str(self.store)
            said += [known.sentence, with_names(known.next_step, self.thread_id, store)]
        if any("safepoint run " in one for one in said):
            said.append("Take a new turn of a thread with `threads.turn`: the graph sees no other.")
        said += [f"Not certain: operation {one.operation_id} ({one.tool_name})." for one in self.unsettled]
        return " ".join(said)


async def verdict_of(session: Session) -> ThreadVerdict:
    """Look, and change nothing.

    Raises:
        StoreUnavailable: it could not be looked at, which is no answer.
    """
    summary = await session.summary()
    if summary is None:
        return ThreadVerdict(session.session_id, to_resume=False, store=session.store)
    unsettled = await session.unsettled()
    if summary.state in _NOTHING_OPEN:
        return ThreadVerdict(session.session_id, False, (), unsettled, session.store)
    plan = await session.plan()
    reasons = plan.reasons if isinstance(plan, Park) else ()
    return ThreadVerdict(session.session_id, summary.state.may_be_resumed, reasons, unsettled, session.store)
