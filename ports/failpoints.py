"""Where a crash can be provoked on purpose: the crash contract by stable ids. SPEC section 20."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol


class Failpoint(StrEnum):
    """The named instants of the crash contract. A hit means: everything before it has happened, nothing after it."""

    BEFORE_T1 = "P0"
    STEP_RECORDED = "P1"
    T1_COMMITTED = "P2"
    IMPLEMENTATION_RUNNING = "P3"
    EFFECT_DONE = "P4"
    RESPONSE_WRITTEN = "P5"
    T2_COMMITTED = "P6"
    RESULT_DELIVERED = "P7"
    BEFORE_TERMINAL = "P8"
    AFTER_TERMINAL = "P9"
    RECOVERY_DECIDED = "P10"
    CLAIM_COMMITTED = "P11.claim"
    START_COMMITTED = "P11.start"
    FIRST_STEP = "P11.step"
    CONTINUATION_ENDED = "P11.ended"


DESCRIPTIONS: Mapping[Failpoint, str] = MappingProxyType(
    {
        Failpoint.BEFORE_T1: "the model has asked for a tool; the step is not recorded",
        Failpoint.STEP_RECORDED: "the step is recorded, the dispatch is not",
        Failpoint.T1_COMMITTED: "T1 is committed, the implementation has not started",
        Failpoint.IMPLEMENTATION_RUNNING: "the implementation has started, its effect has not happened",
        Failpoint.EFFECT_DONE: "the effect has happened, T2 has not begun",
        Failpoint.RESPONSE_WRITTEN: "the response is written, its transaction is not committed",
        Failpoint.T2_COMMITTED: "T2 is committed, the result is not delivered",
        Failpoint.RESULT_DELIVERED: "the result is delivered, the next model step has not started",
        Failpoint.BEFORE_TERMINAL: "all is done but the terminal commit",
        Failpoint.AFTER_TERMINAL: "the terminal event is committed",
        Failpoint.RECOVERY_DECIDED: "the recovery decision is written, its transaction is not committed",
        Failpoint.CLAIM_COMMITTED: "the claim is committed, the target has no event",
        Failpoint.START_COMMITTED: "claim and start are committed, the provider has not been called",
        Failpoint.FIRST_STEP: "the continuation's first model step is recorded",
        Failpoint.CONTINUATION_ENDED: "the continuation has ended",
    }
)
"""What has and has not happened when a point is hit, for people and for the harness."""


class Failpoints(Protocol):
    """Told at each instant where a crash is interesting; in production it does nothing.

    Beside the named points there are free ones, `<part>.<instant>` in lower case: `store.statement` around every
    statement of every transaction, `tool.write_file.before_effect` inside an implementation. Hits come from any thread.
    """

    @abstractmethod
    def hit(self, point: str) -> None:
        """Say that this instant is reached. Either returns at once or the process dies; it never raises."""
