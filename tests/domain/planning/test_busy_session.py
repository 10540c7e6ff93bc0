"""A session that somebody works on is busy; what that work has not written yet is no fault of its record. r3-078."""

from __future__ import annotations

from safepoint.domain.planning.observations import Busy
from safepoint.domain.reasons import ParkReason as P

from ..replay.story import Story, call
from .situation import facts_of, interrupted, parks

OPEN = Story("r1").user("U").step(call("A")).run_tool("A")


def test_a_run_that_has_not_ended_because_somebody_works_on_it_is_not_called_badly_repaired() -> None:
    assert parks(facts_of(OPEN, busy=Busy(1))).codes == (P.SESSION_BUSY,)
    assert parks(facts_of(OPEN)).codes == (P.TERMINAL_REPAIR_FAILED,)


def test_a_run_that_is_just_being_begun_is_not_called_empty() -> None:
    assert parks(facts_of(interrupted(), lineage=(), busy=Busy(1))).codes == (P.SESSION_BUSY,)
    assert parks(facts_of(interrupted(), lineage=())).codes == (P.RUNTIME_LEDGER_EMPTY,)


def test_two_terminal_events_are_a_fault_whoever_works_on_the_session() -> None:
    twice = interrupted().end()
    assert P.TERMINAL_REPAIR_FAILED in parks(facts_of(twice, busy=Busy(1))).codes
