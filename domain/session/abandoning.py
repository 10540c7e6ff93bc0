"""How a person gives up a run whose record is damaged, so that its session may go on. SPEC section 11."""

from __future__ import annotations

from ..commands import AbandonRun
from ..decision import Decision, misfit
from ..operation.state import operations_of
from ..operation.watch_list import uncertain
from ..run.state import Run
from .state import Session


def abandon(session: Session, readable: Run, suspected: Run, damage: str | None, command: AbandonRun) -> Decision:
    """Let go of the session's head run, and watch what it had dispatched.

    Args:
        session: the session's state.
        readable: the run as far as its chain verifies.
        suspected: the same with what was dispatched behind that, as far as anything can be read.
        damage: what is wrong behind that; None where nothing is.
        command: what to write.
    """
    abandoned = command.abandoned
    if session.head is None or session.head.run_id != command.run_id or command.run_id in session.abandoned:
        return misfit(f"run {command.run_id} does not stand in the way of its session")
    if damage is None:
        return misfit(f"the record of run {command.run_id} is not damaged")
    if abandoned.run_id != command.run_id or abandoned.last_good_sequence != readable.sequence:
        return misfit(f"run {command.run_id} can be read up to {readable.sequence}")
    return (abandoned, *uncertain(session, operations_of(suspected), abandoned))
