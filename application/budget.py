"""Watches what a turn may use while one of its runs is driven. ADR 0036."""

from __future__ import annotations

from ..domain.budgets import Measure, Spending, Spent, Used
from ..domain.errors import SafepointError
from ..domain.events.run import Budgets
from .run_recorder import RunRecorder


class BudgetSpent(SafepointError):
    """No further model step may be asked for. The name of the class is what the run records.

    Attributes:
        spent: which budget, how much was used, and how much it is.
    """

    def __init__(self, spent: Spent) -> None:
        have = "an unknown number" if spent.have is None else str(spent.have)
        super().__init__(f"the turn has used {have} of the {spent.limit} {spent.measure} that it may use")
        self.spent = spent


class StepsSpent(BudgetSpent):
    """The turn has made as many model steps as it may."""


class TokensSpent(BudgetSpent):
    """The turn has used as many tokens as it may, or the provider did not report how many."""


class SecondsSpent(BudgetSpent):
    """The turn has been executed for as long as it may."""


_ERRORS = {Measure.STEPS: StepsSpent, Measure.TOKENS: TokensSpent, Measure.SECONDS: SecondsSpent}


class Budget:
    """Asked before each model step of one run.

    Args:
        budgets: what the turn may use.
        used: what its lineage used before this run.
    """

    def __init__(self, recorder: RunRecorder, budgets: Budgets | None, used: Used) -> None:
        self._recorder = recorder
        self._budgets = budgets
        self._used = used
        self._spending = Spending()
        self._fed = 0

    def check(self) -> None:
        """Do nothing while another model step may be asked for.

        Raises:
            BudgetSpent: one of the budgets is used up.
        """
        if self._budgets is None:
            return
        events = self._recorder.events
        for event in events[self._fed :]:
            self._spending.feed(event)
        self._fed = len(events)
        now = self._recorder.spine()["occurred_at"]
        spent = (self._used + self._spending.used(now)).spent(self._budgets)
        if spent is not None:
            raise _ERRORS[spent.measure](spent)
