"""What a turn may use, and what it has used: steps, tokens and seconds, over its whole lineage. ADR 0036."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Self

from .events.event import RunEvent, Timestamp
from .events.model import ModelStepCompleted
from .events.outside import PermissionClosed, PermissionDecided, PermissionRequested
from .events.run import Budgets, BudgetSet, ContinuationStarted, RunEnded, RunOpened
from .events.tool import ToolDispatched, ToolResponded


class Measure(StrEnum):
    """What a budget bounds."""

    STEPS = "steps"
    TOKENS = "tokens"
    SECONDS = "seconds"


class Spent(NamedTuple):
    """A budget that is used up; `have` is None where the provider did not report what was used."""

    measure: Measure
    have: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class Used:
    """What was used.

    Attributes:
        tokens: input and output of every step, as the provider reported them.
        unreported: how many steps came without a report.
        seconds: between a run's own events, from its first one on, without waiting for a person.
    """

    steps: int = 0
    tokens: int = 0
    unreported: int = 0
    seconds: float = 0.0

    def __add__(self, other: Used) -> Used:
        """Both together."""
        return Used(
            self.steps + other.steps,
            self.tokens + other.tokens,
            self.unreported + other.unreported,
            self.seconds + other.seconds,
        )

    def spent(self, budgets: Budgets | None) -> Spent | None:
        """The first budget that is used up, so that no further model step may be asked for; None where none is."""
        if budgets is None:
            return None
        if budgets.steps_max is not None and self.steps >= budgets.steps_max:
            return Spent(Measure.STEPS, self.steps, budgets.steps_max)
        if budgets.tokens_max is not None and (self.unreported or self.tokens >= budgets.tokens_max):
            return Spent(Measure.TOKENS, None if self.unreported else self.tokens, budgets.tokens_max)
        if budgets.seconds_max is not None and self.seconds >= budgets.seconds_max:
            return Spent(Measure.SECONDS, int(self.seconds), budgets.seconds_max)
        return None


NOTHING = Used()


def limits_of(budgets: Budgets | None) -> dict[Measure, int]:
    """What is bounded, and how much it may be."""
    if budgets is None:
        return {}
    limits = (budgets.steps_max, budgets.tokens_max, budgets.seconds_max)
    return {measure: limit for measure, limit in zip(Measure, limits, strict=True) if limit is not None}


class Spending:
    """Counts what one run uses. Events are fed in order, and not kept.

    Attributes:
        budgets: those that the run recorded, None where it recorded none.
    """

    __slots__ = ("_ended", "_executed", "_steps", "_tokens", "_unreported", "_waits", "budgets")

    def __init__(self) -> None:
        self.budgets: Budgets | None = None
        self._steps = self._tokens = self._unreported = 0
        self._ended = False
        self._waits: dict[str, str] = {}
        self._executed = _Executed()

    @classmethod
    def of(cls, events: Iterable[RunEvent]) -> Self:
        """Count a run whose events are at hand."""
        spending = cls()
        for event in events:
            spending.feed(event)
        return spending

    def feed(self, event: RunEvent) -> None:
        """Take in the next event; what follows the terminal one was not used by the run."""
        take = self._TAKE.get(type(event))
        if take is not None and not self._ended:
            take(self, event)

    def used(self, now: Timestamp | None = None) -> Used:
        """What was used up to a time, by default up to the last event."""
        seconds = self._executed.until(None if self._ended else now)
        return Used(self._steps, self._tokens, self._unreported, seconds)

    def _take_opening(self, event: RunOpened | ContinuationStarted) -> None:
        self._executed.go_on(event.occurred_at)

    def _take_budget(self, event: BudgetSet) -> None:
        self.budgets = event.budgets

    def _take_step(self, event: ModelStepCompleted) -> None:
        self._executed.go_on(event.occurred_at)
        self._steps += 1
        if event.usage is None:
            self._unreported += 1
        else:
            self._tokens += event.usage.input_tokens + event.usage.output_tokens

    def _take_dispatch(self, event: ToolDispatched) -> None:
        self._executed.go_on(event.occurred_at)

    def _take_response(self, event: ToolResponded) -> None:
        """Closings that repair writes, however long after a death, are of no operation."""
        if event.operation_id is not None:
            self._executed.go_on(event.occurred_at)
        if self._waits:  # nobody answered, and the run goes on
            self._answered([request for request, call in self._waits.items() if call == event.call_id], event)

    def _take_question(self, event: PermissionRequested) -> None:
        self._waits[event.request_id] = event.call_id
        self._executed.wait(event.occurred_at)

    def _take_answer(self, event: PermissionDecided | PermissionClosed) -> None:
        self._answered([event.request_id], event)

    def _answered(self, requests: Iterable[str], event: RunEvent) -> None:
        for request in requests:
            self._waits.pop(request, None)
        if not self._waits:
            self._executed.wait_no_more(event.occurred_at)

    def _take_end(self, event: RunEnded) -> None:
        self._ended = True
        if not event.recovered:
            self._executed.go_on(event.occurred_at)

    _TAKE: ClassVar[Mapping[type[RunEvent], Callable[[Any, Any], None]]] = {
        RunOpened: _take_opening,
        ContinuationStarted: _take_opening,
        BudgetSet: _take_budget,
        ModelStepCompleted: _take_step,
        ToolDispatched: _take_dispatch,
        ToolResponded: _take_response,
        PermissionRequested: _take_question,
        PermissionDecided: _take_answer,
        PermissionClosed: _take_answer,
        RunEnded: _take_end,
    }


class _Executed:
    """How long a run was executed: the sum of the times between its own events, but for those that a person took.

    A clock that is set back gives no time back, and goes on counting from where it then stands. Times are compared as
    the texts that they are, and read where a stretch of them ends: thousands of events pass here.
    """

    __slots__ = ("_at", "_seconds", "_since", "_waiting")

    def __init__(self) -> None:
        self._seconds = 0.0
        self._since: Timestamp | None = None
        self._at: Timestamp | None = None
        self._waiting = False

    def go_on(self, at: Timestamp) -> None:
        """Something of the run's own was recorded."""
        if self._waiting:
            return
        if self._since is None or self._at is None or at < self._at:
            self._seconds = self.until(None)
            self._since = at
        self._at = at

    def wait(self, at: Timestamp) -> None:
        """A person is waited for from now on."""
        self.go_on(at)
        self._waiting = True

    def wait_no_more(self, at: Timestamp) -> None:
        """No person is waited for any more."""
        if self._waiting:
            self._seconds = self.until(None)
            self._since = self._at = at
            self._waiting = False

    def until(self, at: Timestamp | None) -> float:
        """Seconds up to a time; None up to the newest event."""
        if self._since is None or self._at is None:
            return self._seconds
        end = self._at if at is None or self._waiting else max(self._at, at)
        return self._seconds + _seconds(self._since, end)


def _seconds(earlier: Timestamp, later: Timestamp) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
