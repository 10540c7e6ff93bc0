"""What a graph is refused, each with what to do."""

from __future__ import annotations

from ...domain.errors import SafepointError
from ...domain.reasons import ParkReason
from .verdict import ThreadVerdict


class ThreadNotSafe(SafepointError):
    """The thread must not go on: something in it is not certain.

    Attributes:
        thread_id: which.
        verdict: every reason, the operations that are not settled, and the next steps.
    """

    def __init__(self, verdict: ThreadVerdict) -> None:
        super().__init__(verdict.explained())
        self.thread_id = verdict.thread_id
        self.verdict = verdict


class NothingToResume(SafepointError):
    """The thread has no interrupted turn: it is safe to go on, by a new turn. An expected state, and no failure.

    Attributes:
        thread_id: which.
        code: `resume_candidate_missing`.
        verdict: what `Threads.verdict` says of it: `safe`, and not `to_resume`.
    """

    def __init__(self, verdict: ThreadVerdict) -> None:
        super().__init__(
            f"thread {verdict.thread_id!r} has no interrupted turn to resume: take a new one,"
            " `threads.turn(graph, thread, text)`; `verdict(thread).to_resume` says beforehand which of both"
        )
        self.thread_id = verdict.thread_id
        self.code = ParkReason.RESUME_CANDIDATE_MISSING
        self.verdict = verdict


class NoOpenTurn(SafepointError):
    """A tool was called outside of a turn, so nobody would have recorded it: nothing was done.

    Attributes:
        thread_id: the thread whose turn was not open.
    """

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"no turn of thread {thread_id!r} is open, so the tool was not called:"
            " invoke the graph inside `async with threads.turn(...)` or `threads.resume(...)`"
        )
        self.thread_id = thread_id


class StateDiffers(SafepointError):
    """The messages of the graph's state are not those that are recorded of the turn.

    Attributes:
        thread_id: which.
    """

    def __init__(self, thread_id: str, detail: str) -> None:
        super().__init__(
            f"the state of thread {thread_id!r} is not what is recorded of its turn: {detail}. Take a new turn,"
            " or put the thread back to the checkpoint that the turn was at"
        )
        self.thread_id = thread_id


class InterruptInTool(SafepointError):
    """A tool asked for an interrupt or a jump: what it did before that is recorded as not certain.

    Attributes:
        tool_name: which.
    """

    def __init__(self, tool_name: str) -> None:
        super().__init__(
            f"{tool_name} left its call by an interrupt or a jump, so that its effect is not certain:"
            " ask in a node before the tools (`interrupt_before`), or with `permission='ask'`"
        )
        self.tool_name = tool_name
