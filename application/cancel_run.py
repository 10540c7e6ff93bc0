"""A person stops a run: live, in this process or another, or left behind by a dead one. SPEC section 7 and F4."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..domain.commands import Append
from ..domain.events.run import CancelRequested
from ..domain.identifiers import RunId, SessionId
from ..ports.handover import Handover, Message, Reply
from ..ports.incarnations import Liveness
from .ledger import Ledger
from .live_runs import LiveRuns
from .ownership import Owned, SessionBusy, SessionOwnership
from .repair_session import RepairKind, RepairSession
from .spines import Spines

ANSWER_SECONDS = 30.0


class Cancelled(StrEnum):
    """What a request to stop came to."""

    STOPPING = "stopping"
    """Its living owner was told; it ends the run when its live tools are done, within their bound."""
    CLOSED = "closed"
    """Its owner is dead; the run was ended as cancelled here."""
    NOTHING_OPEN = "nothing_open"
    """No run of the session is open. Stopping twice is stopping once."""


@dataclass(frozen=True, slots=True)
class CancelResult:
    """What became of the request, and of which run."""

    cancelled: Cancelled
    run_id: RunId | None = None


class CancelRun:
    """Stops the open run of a session."""

    def __init__(
        self,
        ledger: Ledger,
        ownership: SessionOwnership,
        repair: RepairSession,
        live_runs: LiveRuns,
        handover: Handover,
        spines: Spines,
    ) -> None:
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._live_runs = live_runs
        self._handover = handover
        self._spines = spines

    def __call__(self, session_id: SessionId, by: str) -> CancelResult:
        """Stop whatever is open in a session. Not for the event loop of a live run: use `LiveRun.cancel` there.

        Args:
            by: who stops it, for the record.

        Raises:
            SessionBusy: its owner lives and did not answer, or could not be looked at.
            StoreError: it could not be read or written.
        """
        if (live := self._live_runs.get(session_id)) is not None:
            live.cancel_from_thread(by)
            return CancelResult(Cancelled.STOPPING, live.recorder.run_id)
        row, owner, liveness = self._ownership.owner_of(session_id)
        elsewhere = (
            row is not None and row.incarnation_id is not None and not self._ownership.is_mine(row.incarnation_id)
        )
        if elsewhere and liveness is Liveness.ALIVE and owner is not None:
            request = {"command": "cancel", "session_id": session_id, "by": by}
            answer = self._handover.ask(owner, request, ANSWER_SECONDS)
            if isinstance(answer, Reply) and answer.message.get("cancelled") in set(Cancelled):
                run_id = answer.message.get("run_id")
                return CancelResult(
                    Cancelled(str(answer.message["cancelled"])), RunId(run_id) if isinstance(run_id, str) else None
                )
            raise SessionBusy(session_id, owner, Liveness.ALIVE)
        return self._close(session_id, by)

    def _close(self, session_id: SessionId, by: str) -> CancelResult:
        owned = self._ownership.own(session_id)
        try:
            self._record(owned, by)
            repaired = self._repair(owned, cancelled_by=by)
        finally:
            self._ownership.release(owned)
        if repaired.kind in (RepairKind.RUN_CLOSED, RepairKind.CLAIM_REPAIRED):
            return CancelResult(Cancelled.CLOSED, repaired.run_id)
        return CancelResult(Cancelled.NOTHING_OPEN, repaired.run_id)

    def _record(self, owned: Owned, by: str) -> None:
        head = self._ledger.session(owned.session_id).head
        run = None if head is None else self._ledger.run(head.run_id)
        if run is None or run.opening is None or not run.open or run.cancel_requested is not None:
            return
        fact = CancelRequested(**self._spines.run(run.opening.identity), by=by)
        self._ledger.execute(Append(owned.session_id, owned.incarnation_id, owned.epoch, run.opening.run_id, (fact,)))

    def answer(self, message: Message) -> Message:
        """Answer a request that another process handed over: only what concerns a run that is live here."""
        session_id, by = message.get("session_id"), message.get("by")
        if message.get("command") != "cancel" or not isinstance(session_id, str) or not isinstance(by, str):
            return {"error": "unknown_request"}
        live = self._live_runs.get(SessionId(session_id))
        if live is None:
            return {"cancelled": Cancelled.NOTHING_OPEN.value, "run_id": None}
        live.cancel_from_thread(by)
        return {"cancelled": Cancelled.STOPPING.value, "run_id": live.recorder.run_id}
