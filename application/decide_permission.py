"""A person decides a question of a run: live, in this process or another, or after its process died. SPEC 7, 13, F6.

A live run goes on at once. After the end the decision is kept in the session as a grant, which the next run takes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from enum import StrEnum

from anyio import RunFinishedError

from ..domain.commands import AppendLate
from ..domain.errors import SafepointError, WriteRefused
from ..domain.events.outside import PermissionDecided, PermissionRequested
from ..domain.events.session import GrantPosted, NoticePosted
from ..domain.identifiers import ExecutionIdentity, RequestId, RunId, SessionId
from ..domain.reasons import WriteRefusal
from ..domain.run.kept_permissions import grant_of, notice_of
from ..domain.run.state import Permission
from ..domain.sentences import SentenceId
from ..ports.handover import Message
from ..ports.permission_gate import Allowed, Denied
from ..ports.views import PAGE_MAX, Views
from .commands_from_elsewhere import Announce, AtOwner, NotARequest, text_of
from .ledger import Ledger
from .live_runs import LiveRun, LiveRuns
from .ownership import Owned, SessionOwnership
from .paging import runs_of
from .repair_session import Repair, RepairKind
from .run_turn import SessionQuarantined
from .spines import Spines

COMMAND = "decide_permission"


class Decided(StrEnum):
    """What a decision came to."""

    ANSWERED = "answered"
    """The run that waits has it, and goes on."""
    KEPT = "kept"
    """The run has ended; the session keeps the decision for the next one."""
    ALREADY_DECIDED = "already_decided"
    """Somebody decided it before; that stands."""
    CLOSED = "closed"
    """The question no longer stands: its run was stopped, or continued without it."""
    NOT_WAITED_FOR = "not_waited_for"
    """The run goes on without an answer; once it has ended, the decision can be kept."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a decision.

    Attributes:
        approved, by: of the decision that stands; None where none does.
    """

    decided: Decided
    request_id: RequestId
    session_id: SessionId
    run_id: RunId
    tool_name: str
    approved: bool | None = None
    by: str | None = None


class UnknownQuestion(SafepointError):
    """No question of this id is known in the session, or in the store."""

    def __init__(self, request_id: RequestId, session_id: SessionId | None) -> None:
        where = "was asked" if session_id is None else f"was asked in session {session_id}"
        super().__init__(f"no question {request_id} {where}")
        self.request_id = request_id
        self.session_id = session_id


class DecidePermission:
    """Records a person's decision, once, where it counts."""

    def __init__(
        self,
        ledger: Ledger,
        ownership: SessionOwnership,
        repair: Repair,
        live_runs: LiveRuns,
        at_owner: AtOwner,
        spines: Spines,
        views: Views,
    ) -> None:
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._live_runs = live_runs
        self._at_owner = at_owner
        self._spines = spines
        self._views = views

    def __call__(
        self,
        request_id: RequestId,
        *,
        approved: bool,
        by: str,
        session_id: SessionId | None = None,
        announce: Announce = lambda owner, seconds: None,
    ) -> Decision:
        """Decide a question. Not for the event loop of a live run: use `LiveRun.questions` there.

        Args:
            by: who decides, for the record.
            session_id: where it was asked; by default found by the views.
            announce: told before a living owner is waited for.

        Raises:
            UnknownQuestion: there is none.
            SessionBusy: the session's owner lives and did not answer, or could not be looked at.
            SessionQuarantined: the session's open run is damaged.
            WriteRefused, FailedAtOwner: its living owner could not do it.
            StoreError: it could not be read or written.
        """
        session = self._session_of(request_id) if session_id is None else session_id
        parameters: Message = {"request_id": request_id, "approved": approved, "by": by}
        return self._at_owner(
            session,
            COMMAND,
            parameters,
            here=lambda: self._here(session, request_id, approved=approved, by=by),
            read=lambda told: _read(session, request_id, told),
            announce=announce,
        )

    def _session_of(self, request_id: RequestId) -> SessionId:
        row = self._views.permission(request_id)
        if row is None or row.session_id is None:
            raise UnknownQuestion(request_id, None)
        return row.session_id

    def _here(self, session_id: SessionId, request_id: RequestId, *, approved: bool, by: str) -> Decision:
        live = self._live_runs.get(session_id)
        if live is not None:
            try:
                return self._beside(live, request_id, approved=approved, by=by)
            except (RunFinishedError, CancelledError):
                pass  # its event loop is gone, and nobody executes it any more
            except WriteRefused as refused:
                if refused.code is not WriteRefusal.OWNER_FENCED:
                    raise  # else it has just ended and given its session up
        with self._ownership.held(session_id) as owned:
            repaired = self._repair(owned)
            if repaired.kind is RepairKind.QUARANTINED:
                raise SessionQuarantined(repaired)
            return self._late(owned, request_id, approved=approved, by=by)

    def _beside(self, live: LiveRun, request_id: RequestId, *, approved: bool, by: str) -> Decision:
        """Where a run of the session is driven in this process: the question is its own, or of an earlier run."""
        answer = Allowed(by) if approved else Denied(by, "")
        answered = live.decide_from_thread(request_id, answer)
        run = self._ledger.run(live.recorder.run_id)
        permission = run.permissions.get(request_id)
        if answered and permission is not None:  # it may have ended meanwhile
            return _of(Decided.ANSWERED, permission.requested, approved=approved, by=by)
        if permission is None or run.ended is not None:
            return self._late(live.recorder.owned, request_id, approved=approved, by=by)
        if run.cancel_requested is not None and permission.open:
            return _of(Decided.CLOSED, permission.requested)  # by its end, which is on its way
        return _standing(permission) or _of(Decided.NOT_WAITED_FOR, permission.requested)

    def _late(self, owned: Owned, request_id: RequestId, *, approved: bool, by: str) -> Decision:
        """Keep the decision for the next run, bound to exactly what was asked."""
        permission = self._asked(owned.session_id, request_id)
        asked = permission.requested
        if standing := _standing(permission):
            return standing
        if self._ledger.run(asked.run_id).claimed is not None:
            return _of(Decided.CLOSED, asked)  # it was dropped, and the run was continued without it
        grant_id = grant_of(request_id)
        identity = ExecutionIdentity(asked.session_id, asked.run_id, asked.turn_id, asked.invocation_id)
        decided = PermissionDecided(
            **self._spines.run(identity), request_id=request_id, approved=approved, decided_by=by, grant_id=grant_id
        )
        grant = GrantPosted(
            **self._spines.session(asked.session_id),
            grant_id=grant_id,
            request_id=request_id,
            tool_name=asked.tool_name,
            call_id=asked.call_id,
            args_hash=asked.args_hash,
            contract_digest=asked.contract_digest,
            approved=approved,
            decided_by=by,
            repeats=asked.repeats,
        )
        notice = self._notice(asked, by) if approved else None
        try:
            self._ledger.execute(AppendLate(*owned.guard, asked.run_id, decided, grant, notice))
        except WriteRefused:
            if standing := _standing(self._asked(owned.session_id, request_id)):
                return standing  # somebody was faster
            raise
        return _of(Decided.KEPT, asked, approved=approved, by=by)

    def _notice(self, asked: PermissionRequested, by: str) -> NoticePosted:
        """The model, which was told that the call was not executed, is told that it may make it again."""
        return NoticePosted(
            **self._spines.session(asked.session_id),
            notice_id=notice_of(asked.request_id),
            sentence_id=SentenceId.PERMISSION_GRANTED,
            parameters={"by": by, "tool": asked.tool_name},
        )

    def _asked(self, session_id: SessionId, request_id: RequestId) -> Permission:
        """The question as the events have it; a row beside them only says where to look first."""
        for run_id in dict.fromkeys(self._runs(session_id, request_id)):
            permission = self._ledger.run(run_id).permissions.get(request_id)
            if permission is not None and permission.requested.session_id == session_id:
                return permission
        raise UnknownQuestion(request_id, session_id)

    def _runs(self, session_id: SessionId, request_id: RequestId) -> Iterator[RunId]:
        open_ones = self._views.open_permissions(session_id, limit=PAGE_MAX)
        yield from (row.run_id for row in open_ones if row.request_id == request_id and row.run_id is not None)
        yield from (row.run_id for row in runs_of(self._views, session_id))

    def answer(self, session_id: SessionId, message: Message) -> Message:
        """Answer a request that another process handed over: the same use case, in the owner's process."""
        approved = message.get("approved")
        if not isinstance(approved, bool):
            raise NotARequest("the request does not say what is decided")
        request_id = RequestId(text_of(message, "request_id"))
        try:
            decision = self._here(session_id, request_id, approved=approved, by=text_of(message, "by"))
        except UnknownQuestion:
            return {"decided": None}
        return {
            "decided": decision.decided.value,
            "run_id": decision.run_id,
            "tool_name": decision.tool_name,
            "approved": decision.approved,
            "by": decision.by,
        }


def _standing(permission: Permission) -> Decision | None:
    """The decision or closing that stands already; None while the question is open."""
    if permission.decided is not None:
        decided = permission.decided
        return _of(Decided.ALREADY_DECIDED, permission.requested, approved=decided.approved, by=decided.decided_by)
    return _of(Decided.CLOSED, permission.requested) if permission.closed else None


def _of(
    decided: Decided, asked: PermissionRequested, *, approved: bool | None = None, by: str | None = None
) -> Decision:
    return Decision(decided, asked.request_id, asked.session_id, asked.run_id, asked.tool_name, approved, by)


def _read(session_id: SessionId, request_id: RequestId, told: Message) -> Decision:
    if told["decided"] is None:
        raise UnknownQuestion(request_id, session_id)
    approved, by = told["approved"], told["by"]
    return Decision(
        Decided(str(told["decided"])),
        request_id,
        session_id,
        RunId(str(told["run_id"])),
        str(told["tool_name"]),
        approved if isinstance(approved, bool) else None,
        by if isinstance(by, str) else None,
    )
