"""Foreign envelopes as whole events of ours, for an import: legacy stays legacy, and the protocol marker is not taken.

SPEC section 19. Ids of events are derived from theirs, so that two ledgers with the same ids go into one store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from pydantic import JsonValue

from ...domain import canonical
from ...domain.events.event import RunEvent
from ...domain.events.outside import PermissionClosed, PermissionDecided, PermissionRequested
from ...domain.events.run import RunEnded, RunError, RunStatus
from ...domain.events.tool import (
    Disposition,
    Life,
    Observation,
    RecordedContract,
    RecoveryMode,
    ToolCalled,
    ToolDispatched,
    ToolReconciled,
    ToolRecoveryDecided,
    ToolResponded,
)
from ...domain.identifiers import EventId, OperationId, RequestId, ToolCallId, derive_id
from ...domain.reasons import FailureClass
from ...domain.recovery.facts import Decided, Dispatched, Reconciled
from ...ports.history_format import FindingCode
from . import maka_facts
from .exact_json import has_changed_as_doubles
from .imported_run import IMPORTED
from .maka_envelope import is_terminal
from .maka_history import Stretches, is_shown, spine_of

Record: TypeAlias = dict[str, Any]

_CONTRACT = RecordedContract(
    mode=RecoveryMode.OUTCOME_UNKNOWN, contract_id="maka", version=1, digest=canonical.sha256_hex(b"maka")
)
_STATUS = {
    "completed": RunStatus.COMPLETED,
    "failed": RunStatus.FAILED,
    "aborted": RunStatus.CANCELLED,
    "cancelled": RunStatus.CANCELLED,
}


class NotExpressible(Exception):
    """No event of ours can say what an envelope says; `detail` tells why, without content."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Noted(NamedTuple):
    """What of an envelope is kept otherwise than it is, or was left out; no verdict rests on it."""

    code: FindingCode
    detail: str


class MakaEvents:
    """Makes the events of one run; it remembers calls and dispatches, which later envelopes only name."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._calls: dict[str, ToolCalled] = {}
        self._dispatched: dict[str, str] = {}
        self._stretches = Stretches()

    def event_id(self, foreign_id: str) -> EventId:
        """The id that an event of theirs gets here."""
        return EventId(derive_id(self._run_id, "maka", foreign_id))

    def events_of(self, envelope: Record) -> Iterator[RunEvent | Noted]:
        """The events of an envelope, none for one that says nothing of ours.

        Raises:
            NotExpressible: it says something that none of ours can.
        """
        try:
            yield from self._events(envelope)
        except (LookupError, TypeError, ValueError) as error:
            raise NotExpressible(f"{type(error).__name__} in an envelope of {_kind(envelope)}") from error

    def _events(self, envelope: Record) -> Iterator[RunEvent | Noted]:
        if not is_shown(envelope):
            self._stretches.pass_over(envelope)
        if envelope.get("partial") is True:
            yield Noted(FindingCode.NOT_CONVERSATION, "partial")
            return
        spine = {**spine_of(envelope), "event_id": self.event_id(envelope["id"])}
        lanes = maka_facts.lanes_of(envelope)
        content = _record(envelope.get("content"))
        if lanes and not is_shown(envelope) and content:
            raise NotExpressible("a call or an answer that the model was not shown")
        if is_shown(envelope):
            yield self._shown(envelope, spine)
            yield from _changed(content)
        elif content.get("kind") == "error":
            yield RunError(
                **spine, error_class=str(content.get("reason") or "error"), code=str(content.get("code") or "")
            )
        elif content:
            yield Noted(FindingCode.NOT_CONVERSATION, "system" if envelope.get("role") == "system" else "hidden")
        yield from self._actions(envelope, spine, lanes)

    def _shown(self, envelope: Record, spine: dict[str, Any]) -> RunEvent:
        event = self._stretches.shown(envelope).model_copy(update=spine)
        if isinstance(event, ToolCalled):
            self._calls.setdefault(event.call_id, event)
        if isinstance(event, ToolResponded):
            operation_id = _record(envelope.get("refs")).get("operationId")
            bound = operation_id if operation_id in self._dispatched else None
            event = event.model_copy(update={"operation_id": bound})
        return event

    def _actions(self, envelope: Record, spine: dict[str, Any], lanes: list[str]) -> Iterator[RunEvent | Noted]:
        actions = _record(envelope.get("actions"))
        if "tool_dispatch" in lanes:
            yield self._dispatch(maka_facts.dispatched_of(envelope), spine)
        if "reconcile_result" in lanes:
            yield _reconciled(maka_facts.reconciled_of(envelope), actions, spine)
        if "recovery_decision" in lanes:
            yield self._decided(maka_facts.decided_of(envelope), spine)
        yield from self._permissions(actions, spine)
        if "continuationStart" in actions:
            yield Noted(FindingCode.NOT_CONVERSATION, "continuationStart")
        if is_terminal(envelope):
            status = _STATUS.get(str(envelope.get("status")), RunStatus.COMPLETED)
            failure = FailureClass.PROVIDER_FAILED if status is RunStatus.FAILED else None
            ended = {**spine, "event_id": derive_id(spine["event_id"], "ended")}
            yield RunEnded(**ended, status=status, failure_class=failure, incarnation_id=IMPORTED, epoch=1)

    def _dispatch(self, fact: Dispatched, spine: dict[str, Any]) -> ToolDispatched:
        call = self._calls[fact.call_id]
        self._dispatched[fact.operation_id] = fact.call_id
        return ToolDispatched(
            **spine,
            operation_id=OperationId(fact.operation_id),
            call_id=ToolCallId(fact.call_id),
            tool_name=fact.tool_name,
            args_hash=canonical.args_hash(call.tool_name, call.args),
            contract=_CONTRACT.model_copy(update={"mode": RecoveryMode(fact.mode)}),
            incarnation_id=IMPORTED,
            life=Life.TASK,
        )

    def _decided(self, fact: Decided, spine: dict[str, Any]) -> ToolRecoveryDecided:
        outcome = fact.outcome_event_id
        return ToolRecoveryDecided(
            **spine,
            operation_id=OperationId(fact.operation_id),
            disposition=Disposition(fact.disposition),
            reason=fact.reason,
            evidence_event_ids=tuple(self.event_id(one) for one in fact.evidence),
            outcome_event_id=None if outcome is None else self.event_id(outcome),
        )

    def _permissions(self, actions: Record, spine: dict[str, Any]) -> Iterator[RunEvent]:
        requested = _record(actions.get("permissionRequest"))
        if requested:
            yield self._permission_requested(requested, spine)
        decided = _record(actions.get("permissionDecision"))
        if decided:
            approved = decided.get("decision") == "allow"
            yield PermissionDecided(
                **spine,
                request_id=self._request_id(decided),
                approved=approved,
                decided_by=str(decided.get("reviewer") or "maka"),
            )
        closed = _record(actions.get("permissionClosureAccepted"))
        if closed:
            yield PermissionClosed(**spine, request_id=self._request_id(closed), reason=str(closed.get("reason")))

    def _permission_requested(self, requested: Record, spine: dict[str, Any]) -> PermissionRequested:
        call = self._calls[requested["toolUseId"]]
        return PermissionRequested(
            **spine,
            request_id=self._request_id(requested),
            call_id=call.call_id,
            tool_name=call.tool_name,
            args_hash=canonical.args_hash(call.tool_name, call.args),
            contract_digest=_CONTRACT.digest,
            reason=str(requested.get("reason") or requested.get("kind")),
        )

    def _request_id(self, action: Record) -> RequestId:
        return RequestId(derive_id(self._run_id, "request", action["requestId"]))


def _reconciled(fact: Reconciled, actions: Record, spine: dict[str, Any]) -> ToolReconciled:
    payload = _record(_record(actions.get("toolRecovery")).get("payload"))
    return ToolReconciled(
        **spine,
        operation_id=OperationId(fact.operation_id),
        observation=Observation(fact.observation),
        evidence_digest=str(payload.get("observationDigest")).removeprefix("sha256:"),
        reconciler_id="maka",
        reconciler_version=1,
    )


def _changed(content: Record) -> Iterator[Noted]:
    """What the event of a shown content does not hold as it is."""
    for member in ("args", "result"):
        if has_changed_as_doubles(content.get(member)):
            yield Noted(FindingCode.NUMBER_CHANGED, f"in {member}: a double, as the original read it")
    if content.get("attachments"):
        yield Noted(FindingCode.ATTACHMENT_NOT_KEPT, "attachments")
    if content.get("quotes"):
        yield Noted(FindingCode.NOT_CONVERSATION, "quotes")


def _record(value: JsonValue | None) -> Record:
    return value if isinstance(value, dict) else {}


def _kind(envelope: Record) -> str:
    kind = _record(envelope.get("content")).get("kind")
    return kind[:40] if isinstance(kind, str) else "actions"
