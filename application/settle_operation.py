"""A person settles an operation whose outcome is not certain, or declares it over. SPEC sections 10 and 15.

Never available to a tool or a model. History is not rewritten: where a run takes no more facts, or has its answer, the
session is told.
"""

from __future__ import annotations

from typing import Final

from ..domain.commands import AttestInSession, CommitAttestation
from ..domain.errors import WriteRefused
from ..domain.events.tool import Statement
from ..domain.identifiers import OperationId, RunId, SessionId
from ..domain.reasons import WriteRefusal
from ..domain.session.state import Session
from ..ports.event_store import EventStore
from ..ports.handover import Message
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from ..ports.supervised import Overness
from ..ports.supervisor import Supervisor
from ..ports.views import OperationViews
from .commands_from_elsewhere import Announce, AtOwner, NotARequest, text_of
from .ledger import Ledger
from .live_runs import LiveRuns
from .over import OverJudge, OverState
from .ownership import Owned, SessionOwnership
from .read_operation import OperationRead, read_operation
from .repair_session import RepairSession
from .settlement import Recorded, SaidBy, Settlement, SettlementRefusal, SettlementRefused, refuse
from .settlement_facts import command_of
from .settlement_rules import require_called_for, said_before
from .spines import Spines
from .tidy_operations import TidyOperations

COMMAND: Final = "settle"
TRIES_MAX: Final = 8
"""How often it is looked again while other facts of the run come first."""


class SettleOperation:
    """Records what a person says, once, where the session's owner is."""

    def __init__(
        self,
        store: EventStore,
        views: OperationViews,
        ledger: Ledger,
        ownership: SessionOwnership,
        repair: RepairSession,
        live_runs: LiveRuns,
        over: OverJudge,
        supervisor: Supervisor,
        at_owner: AtOwner,
        spines: Spines,
        sink: LifecycleSink,
        tidy: TidyOperations,
    ) -> None:
        self._store = store
        self._views = views
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._live_runs = live_runs
        self._over = over
        self._supervisor = supervisor
        self._at_owner = at_owner
        self._spines = spines
        self._sink = sink
        self._tidy = tidy

    def __call__(self, said: SaidBy, announce: Announce = lambda owner, seconds: None) -> Settlement:
        """Record a statement. Not for the event loop of a live run.

        Args:
            announce: told before a living owner is waited for.

        Raises:
            SettlementRefused: it does not fit what is known; nothing was written.
            SessionBusy: the session's owner lives and did not answer, or could not be looked at.
            WriteRefused, FailedAtOwner: its living owner could not do it.
            StoreError: it could not be read or written; saying the same again is safe.
        """
        session_id, _ = self._place(said.operation_id)
        parameters: Message = {
            "operation_id": said.operation_id,
            "statement": said.statement.value,
            "by": said.by,
            "note": said.note,
            "result": said.result,
        }
        return self._at_owner(
            session_id, COMMAND, parameters, here=lambda: self._here(session_id, said), read=_read, announce=announce
        )

    def answer(self, session_id: SessionId, message: Message) -> Message:
        """Answer a request that another process handed over: the same use case, in the owner's process."""
        try:
            statement = Statement(text_of(message, "statement"))
        except ValueError as error:
            raise NotARequest(str(error)) from error
        operation_id = OperationId(text_of(message, "operation_id"))
        by, note = text_of(message, "by"), text_of(message, "note")
        try:
            settled = self._here(session_id, SaidBy(operation_id, statement, by, note, message.get("result")))
        except SettlementRefused as refused:
            return {"refused": refused.code.value, "detail": refused.detail}
        return {
            "recorded": settled.recorded.value,
            "session_id": settled.session_id,
            "run_id": settled.run_id,
            "tool_name": settled.tool_name,
            "told_later": settled.told_later,
        }

    def _place(self, operation_id: OperationId) -> tuple[SessionId, RunId]:
        """The session and run of an operation; a row beside the events only says where to look."""
        row = self._views.operation(operation_id)
        if row is None or row.session_id is None or row.run_id is None:
            refuse(SettlementRefusal.UNKNOWN_OPERATION, f"no operation {operation_id} is known in this store")
        return row.session_id, row.run_id

    def _here(self, session_id: SessionId, said: SaidBy) -> Settlement:
        live = self._live_runs.get(session_id)
        if live is not None:
            try:
                return self._settle(live.recorder.owned, said)
            except WriteRefused as refused:
                if refused.code is not WriteRefusal.OWNER_FENCED:  # the run ended, and gave the session up
                    raise
        with self._ownership.held(session_id) as owned:
            self._repair(owned)  # an operation of a run that a dead owner left open is settled after the run's end
            return self._settle(owned, said)

    def _settle(self, owned: Owned, said: SaidBy) -> Settlement:
        _, run_id = self._place(said.operation_id)
        for _ in range(TRIES_MAX):
            seen = self._read_operation(run_id, said.operation_id)
            session = self._ledger.session(owned.session_id)
            self._require_readable(session, seen)
            if seen.run.ended is None and run_id not in session.abandoned:
                refuse(SettlementRefusal.RUN_OPEN, f"run {run_id} has not ended; stop it first")
            if said_before(session, seen, said):
                return _settlement(Recorded.BEFORE, owned, seen, told_later=False)
            require_called_for(self._overness(session, seen), seen.operation, said)
            command = command_of(self._spines, owned, session, seen, said)
            try:
                self._ledger.execute(command)
            except WriteRefused as refused:
                if refused.code in _MOVED_ON:
                    continue
                raise
            return self._recorded(owned, seen, command)
        raise WriteRefused(WriteRefusal.TRANSITION_SHAPE_CONFLICT, f"run {run_id} does not stand still")

    def _read_operation(self, run_id: RunId, operation_id: OperationId) -> OperationRead:
        with self._store.snapshot() as reader:
            seen = read_operation(reader, run_id, operation_id)
        if seen is None:
            refuse(SettlementRefusal.UNKNOWN_OPERATION, f"run {run_id} has no operation {operation_id}")
        return seen

    def _require_readable(self, session: Session, seen: OperationRead) -> None:
        if seen.damage is not None and seen.run_id not in session.abandoned:
            detail = f"run {seen.run_id} is damaged ({seen.damage}); while it is not given up, nothing is written of it"
            refuse(SettlementRefusal.RUN_DAMAGED, detail)

    def _overness(self, session: Session, seen: OperationRead) -> OverState:
        found = {state.operation_id: state for state in self._over.not_over_in(seen.run)}
        state = found.get(seen.operation_id, OverState(seen.operation_id, Overness.OVER))
        declared = seen.operation_id in session.declared_over and state.overness is Overness.COULD_NOT_LOOK
        return OverState(seen.operation_id, Overness.OVER) if declared else state

    def _recorded(self, owned: Owned, seen: OperationRead, command: CommitAttestation | AttestInSession) -> Settlement:
        event = LifecycleEvent(
            kind=LifecycleKind.OPERATION_ATTESTED,
            session_id=owned.session_id,
            run_id=seen.run_id,
            operation_id=seen.operation_id,
            codes=(command.attested.statement.value,),
        )
        self._sink.record(event)
        if isinstance(command, CommitAttestation) and command.response is not None:
            self._supervisor.forget(seen.operation_id)  # its lock was the proof that is not needed any more
        if command.attested.statement is not Statement.OVER:
            self._tidy(seen.run, seen.operation)
        where = Recorded.IN_SESSION if isinstance(command, AttestInSession) else Recorded.IN_RUN
        return _settlement(where, owned, seen, told_later=command.notice is not None)


_MOVED_ON: Final = frozenset(
    {WriteRefusal.TRANSITION_SHAPE_CONFLICT, WriteRefusal.RUN_CLAIMED, WriteRefusal.BUNDLE_INVALID}
)
"""What the ledger says when somebody was faster: it is looked again."""


def _settlement(recorded: Recorded, owned: Owned, seen: OperationRead, *, told_later: bool) -> Settlement:
    return Settlement(recorded, owned.session_id, seen.run_id, seen.operation.tool_name, told_later)


def _read(told: Message) -> Settlement:
    if "refused" in told:
        raise SettlementRefused(SettlementRefusal(str(told["refused"])), str(told["detail"]))
    return Settlement(
        Recorded(str(told["recorded"])),
        SessionId(str(told["session_id"])),
        RunId(str(told["run_id"])),
        str(told["tool_name"]),
        told["told_later"] is True,
    )
