"""Calls of a model that a loop of others has not answered. SPEC sections 12 and 17."""

from __future__ import annotations

from collections.abc import Sequence

from ..domain.errors import SafepointError
from ..domain.events.tool import ToolCalled
from ..domain.identifiers import RunId


class CallsUnanswered(SafepointError):
    """The model asked for calls that have no answer: it cannot be asked again, and its run is not completed.

    Attributes:
        run_id: of which run.
        calls: those without an answer, as they were recorded.
    """

    def __init__(self, run_id: RunId, calls: Sequence[ToolCalled]) -> None:
        named = ", ".join(f"{call.call_id} of {call.tool_name}" for call in calls)
        super().__init__(
            f"run {run_id} has calls without an answer: {named}. Answer each of them before the model is asked again,"
            " and before the run is left: `await run.call(call, function)` (is an await missing?), a block of"
            " `run.tool_call(call)`, or `run.decline(call, why)`"
        )
        self.run_id = run_id
        self.calls = tuple(calls)
