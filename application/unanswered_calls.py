"""What a loop of others left without an answer: calls of its model, or its user. SPEC sections 12 and 17."""

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


class NoStepRecorded(SafepointError):
    """The run was left as if it were done, and its record holds nothing of a model: it is not completed.

    Attributes:
        run_id: of which run.
    """

    def __init__(self, run_id: RunId) -> None:
        super().__init__(
            f"run {run_id} was left without a model's step: whatever was done in it is not recorded. Record each answer"
            " of the model (`await run.model_step(...)`; for an agent of a framework see the page of its adapter), or"
            " say `run.needs_no_answer()` where the model had nothing to say"
        )
        self.run_id = run_id
