"""What is said when a run has ended, and the exit status that it gives."""

from __future__ import annotations

import sys

from ...application.agent_loop import RunOutcome
from ...application.repair_session import Repaired, RepairKind
from ...application.run_turn import TurnResult
from ...domain.events.run import RunStatus
from ...domain.explanations import explain
from ...domain.identifiers import SessionId
from ...domain.planning.outcome import Reason
from ..opened_store import OpenedStore
from . import documents
from .agents import AgentOptions
from .command_lines import CommandLines
from .driving import Driving
from .escaping import one_line
from .exit_codes import ExitCode
from .output import Output
from .parking import say_parked
from .resumable import could_continue, parking_of
from .ways_on import WayOn, as_documents, ways_on


class Ending:
    """The end of a run, seen from the command that drove it.

    Attributes:
        reasons: why it could not be continued; None where it could, or where there is nothing to continue.
        resumable: True where the resume command may be offered.
    """

    def __init__(
        self, runtime: OpenedStore, session_id: SessionId, outcome: RunOutcome, driving: Driving, commands: CommandLines
    ) -> None:
        self.outcome = outcome
        self.commands = commands.once_started()
        self._runtime = runtime
        self._session_id = session_id
        self._driving = driving
        self.reasons: tuple[Reason, ...] | None = None
        self.resumable = False
        if outcome.status is not RunStatus.COMPLETED:
            again = AgentOptions(script=commands.script)
            self.reasons = could_continue(runtime, session_id, again)
            self.resumable = self.reasons is None

    @property
    def exit_code(self) -> int:
        """The exit status."""
        if self.outcome.status is RunStatus.COMPLETED:
            return ExitCode.DONE
        return self._driving.exit_code_of_signal or ExitCode.RUN_FAILED

    @property
    def ways(self) -> tuple[WayOn, ...]:
        """The commands that are open now."""
        if self.resumable:
            return (WayOn(self.commands.resuming(self._session_id), "continue it"),)
        if not self.reasons:
            return ()
        return ways_on(parking_of(self._runtime, self._session_id, self.reasons), self.commands)

    def members(self) -> dict[str, object]:
        """What the run and resume documents have in common."""
        return {
            "status": self.outcome.status.value,
            "failure_class": self.outcome.failure,
            "detail": self.outcome.detail,
            "text": self.outcome.text,
            "resumable": self.resumable,
            "reasons": documents.of_reasons(self.reasons or (), self.commands, self._session_id),
            "commands": as_documents(self.ways),
            "exit_code": int(self.exit_code),
        }

    def say(self, out: Output) -> None:
        """Tell a person: the model's last words on standard output, how it ended and the ways on beside it."""
        outcome = self.outcome
        shown_live = sys.stdout.isatty() and sys.stderr.isatty() and self._driving.live_screen.streamed == outcome.text
        if outcome.text and not shown_live:
            out.text(outcome.text)
        if outcome.status is RunStatus.COMPLETED:
            return
        why = "" if outcome.failure is None else f" {explain(outcome.failure).sentence} [{outcome.failure}]"
        detail = f" {one_line(outcome.detail, 500)}" if outcome.detail else ""
        out.tell(f"The run {_ENDED[outcome.status]}.{why}{detail}")
        if self.resumable:
            out.tell(f"Continue it with: {self.ways[0].command}")
        elif self.reasons:
            say_parked(out, parking_of(self._runtime, self._session_id, self.reasons), self.commands)


_ENDED = {RunStatus.COMPLETED: "completed", RunStatus.FAILED: "failed", RunStatus.CANCELLED: "was cancelled"}


def report_turn(out: Output, runtime: OpenedStore, result: TurnResult, driving: Driving, commands: CommandLines) -> int:
    """Tell how a turn ended; returns the exit status."""
    say_repaired(out, result.repaired)
    ending = Ending(runtime, result.session_id, result.outcome, driving, commands)
    ending.say(out)
    head = {
        "session_id": result.session_id,
        "run_id": result.run_id,
        "repaired": documents.of_repaired(result.repaired),
    }
    out.document(documents.RUN, documents.filled(documents.RUN, {**head, **ending.members()}))
    return ending.exit_code


def say_repaired(out: Output, repaired: Repaired | None) -> None:
    """Tell that something was closed first: once, and without blocking anything (F18)."""
    if repaired is None or repaired.kind in (RepairKind.NOTHING_OPEN, RepairKind.QUARANTINED):
        return
    status = "closed" if repaired.status is None else repaired.status.value
    what = "claim" if repaired.kind is RepairKind.CLAIM_REPAIRED else "run"
    out.tell(f"An interrupted {what} was closed first: run {repaired.run_id} ended {status}.")
