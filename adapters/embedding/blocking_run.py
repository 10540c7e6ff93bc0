"""The synchronous twin of a recorded run. SPEC section 17."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, overload

from ...application.agent_loop import RunOutcome
from ...application.call_answers import Answer
from ...application.intake import Step
from ...application.open_call import OpenCall
from ...domain.events.tool import ToolCalled
from ...domain.identifiers import RunId, SessionId
from ...domain.replay.items import Item
from .happenings import ContentNotBound
from .messages import Format
from .portal import Portal
from .recorded import RecordedRun


class SyncRecordedRun:
    """As `RecordedRun`, for a synchronous loop; from any thread."""

    def __init__(self, run: RecordedRun, portal: Portal) -> None:
        self._run = run
        self._portal = portal

    @property
    def session_id(self) -> SessionId:
        """See `RecordedRun.session_id`."""
        return self._run.session_id

    @property
    def run_id(self) -> RunId:
        """See `RecordedRun.run_id`."""
        return self._run.run_id

    @property
    def outcome(self) -> RunOutcome | None:
        """See `RecordedRun.outcome`."""
        return self._run.outcome

    @property
    def not_bound(self) -> ContentNotBound | None:
        """See `RecordedRun.not_bound`."""
        return self._run.not_bound

    @property
    def stopped_by(self) -> str | None:
        """See `RecordedRun.stopped_by`."""
        return self._run.stopped_by

    @property
    def tool_names(self) -> frozenset[str]:
        """See `RecordedRun.tool_names`."""
        return self._run.tool_names

    @overload
    def history(self) -> tuple[Item, ...]: ...

    @overload
    def history(self, format: Format) -> list[Any]: ...

    def history(self, format: Format | None = None) -> tuple[Item, ...] | list[Any]:  # noqa: A002 (it is the word for it)
        """See `RecordedRun.history`."""
        if format is None:
            return self._portal.call(self._run.history)
        return self._portal.call(self._run.history, format)

    def check(self) -> None:
        """See `RecordedRun.check`."""
        self._portal.call(self._run.check)

    def model_step(self, answer: object, format: Format | None = None) -> Step:  # noqa: A002 (it is the word for it)
        """See `RecordedRun.model_step`."""
        return self._portal.call(self._run.model_step, answer, format)

    def needs_no_answer(self) -> None:
        """See `RecordedRun.needs_no_answer`."""
        self._portal.call(self._run.needs_no_answer)

    def steer(self, text: str) -> None:
        """See `RecordedRun.steer`."""
        self._portal.call(self._run.steer, text)

    @contextmanager
    def tool_call(self, call: ToolCalled | str) -> Iterator[OpenCall]:
        """See `RecordedRun.tool_call`: `with run.tool_call(call) as operation`."""
        opened = self._portal.call(self._run.tool_call, call)
        with self._portal.block(opened) as operation:
            yield operation

    def call(self, call: ToolCalled | str, function: Callable[..., Any] | None = None) -> Answer:
        """See `RecordedRun.call`."""
        return self._portal.call(partial(self._run.call, call, function))

    def decline(self, call: ToolCalled | str, why: str) -> Answer:
        """See `RecordedRun.decline`."""
        return self._portal.call(self._run.decline, call, why)

    def answer(self, call: ToolCalled | str) -> Answer | None:
        """See `RecordedRun.answer`."""
        return self._portal.call(self._run.answer, call)
