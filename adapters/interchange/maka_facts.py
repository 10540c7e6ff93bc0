"""Foreign event envelopes as facts for the scanner. SPEC section 19.

An envelope may hold content and several actions at once. It is a tool fact only when it has exactly the form of one
lane; with two lanes, or another form, it is `Conflicted`. Any JSON value is taken: what is missing or of another type
reads as empty, so that a damaged ledger can be judged too.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from ...domain.events.tool import Effect
from ...domain.identifiers import ExecutionIdentity, InvocationId, RunId, SessionId, TurnId
from ...domain.recovery.facts import (
    Called,
    Conflicted,
    Decided,
    Dispatched,
    Ended,
    Fact,
    Flaw,
    Ordinary,
    Reconciled,
    Responded,
)
from ...domain.recovery.scanner import Scanner
from . import maka_json, maka_schema
from .maka_envelope import is_terminal

_RECONCILED = "maka.tool.reconcile_result"
_DECIDED = "maka.tool.recovery_decision"
_CALL_NOTES = frozenset({"activityKind", "displayName", "intent"})
_OPERATION_REFS = frozenset({"operationId", "toolCallId"})
_NESTED_REFS = _OPERATION_REFS | {"parentToolCallId", "parentOperationId"}


def scan(envelopes: Iterable[JsonValue]) -> Scanner:
    """Feed a whole foreign ledger to a scanner."""
    scanner = Scanner()
    for envelope in envelopes:
        scanner.feed(fact_of(envelope))
    return scanner


def fact_of(envelope: JsonValue) -> Fact:
    """The fact that an envelope is."""
    lanes = lanes_of(envelope)
    if not lanes:
        event_id, identity, marker = _text(envelope, "id"), identity_of(envelope), _marker(envelope)
        return (
            Ended(event_id, identity, marker) if is_terminal(envelope) else Ordinary(event_id, identity, False, marker)
        )
    if len(lanes) > 1 or not _has_form(envelope, lanes[0]):
        return Conflicted(_text(envelope, "id"), identity_of(envelope), _marker(envelope))
    return fact_in_lane(envelope, lanes[0])


def lanes_of(envelope: JsonValue) -> list[str]:
    """The tool lanes that an envelope claims, by what it holds and not by its form."""
    content, actions = _record(envelope, "content"), _record(envelope, "actions")
    recovery = _text(_record(actions, "toolRecovery"), "kind")
    claims = {
        "function_call": content.get("kind") == "function_call",
        "tool_dispatch": bool(actions.get("toolDispatch")),
        "function_response": content.get("kind") == "function_response",
        "reconcile_result": recovery == _RECONCILED,
        "recovery_decision": recovery == _DECIDED,
    }
    return [lane for lane, claimed in claims.items() if claimed]


def fact_in_lane(envelope: JsonValue, lane: str) -> Fact:
    """The fact of one lane that an envelope claims, whether or not its form is that lane's."""
    match lane:
        case "function_call":
            return called_of(envelope)
        case "tool_dispatch":
            return dispatched_of(envelope)
        case "function_response":
            return responded_of(envelope)
        case "reconcile_result":
            return reconciled_of(envelope)
        case _:
            return decided_of(envelope)


def identity_of(envelope: JsonValue) -> ExecutionIdentity:
    """The execution that an envelope belongs to."""
    return ExecutionIdentity(
        SessionId(_text(envelope, "sessionId")),
        RunId(_text(envelope, "runId")),
        TurnId(_text(envelope, "turnId")),
        InvocationId(_text(envelope, "invocationId")),
    )


def called_of(envelope: JsonValue) -> Called:
    """The call in an envelope, its hash recomputed as the original does."""
    content = _record(envelope, "content")
    call_id, tool_name = _text(content, "id"), _text(content, "name")
    try:
        args_hash = maka_json.args_hash(tool_name, content.get("args"))
    except maka_json.MakaJsonError:
        args_hash = None
    return Called(_text(envelope, "id"), identity_of(envelope), call_id, tool_name, args_hash)


def dispatched_of(envelope: JsonValue) -> Dispatched:
    """The dispatch in an envelope."""
    dispatch, refs = _record(_record(envelope, "actions"), "toolDispatch"), _record(envelope, "refs")
    operation_id, call_id = _text(dispatch, "operationId"), _text(dispatch, "providerToolCallId")
    return Dispatched(
        _text(envelope, "id"),
        identity_of(envelope),
        operation_id,
        call_id,
        _text(dispatch, "toolName"),
        _text(dispatch, "canonicalArgsHash"),
        _text(dispatch, "recoveryMode"),
        _references(refs, operation_id, call_id),
    )


def responded_of(envelope: JsonValue) -> Responded:
    """The response in an envelope. An error says nothing of its effect there, so it is unknown."""
    content, refs = _record(envelope, "content"), _record(envelope, "refs")
    call_id, is_error = _text(content, "id"), content.get("isError") is True
    operation_id = _text(refs, "operationId") if "operationId" in refs else None
    return Responded(
        _text(envelope, "id"),
        identity_of(envelope),
        call_id,
        _text(content, "name"),
        operation_id,
        is_error,
        Effect.UNKNOWN if is_error else Effect.DONE,
        None if refs.get("toolCallId") == call_id else Flaw.REFERENCES_DISAGREE,
    )


def reconciled_of(envelope: JsonValue) -> Reconciled:
    """The observation in an envelope."""
    recovery, refs = _record(_record(envelope, "actions"), "toolRecovery"), _record(envelope, "refs")
    payload = _record(recovery, "payload")
    operation_id = _text(payload, "operationId")
    flaw = Flaw.MALFORMED if not maka_schema.RECONCILED(recovery) else _references(refs, operation_id, None)
    return Reconciled(
        _text(envelope, "id"),
        identity_of(envelope),
        operation_id,
        _text(payload, "observation"),
        _text(refs, "toolCallId"),
        flaw,
    )


def decided_of(envelope: JsonValue) -> Decided:
    """The recovery decision in an envelope."""
    recovery, refs = _record(_record(envelope, "actions"), "toolRecovery"), _record(envelope, "refs")
    payload = _record(recovery, "payload")
    operation_id, evidence = _text(payload, "operationId"), payload.get("evidenceEventIds")
    flaw = Flaw.MALFORMED if not maka_schema.DECIDED(recovery) else _references(refs, operation_id, None)
    return Decided(
        _text(envelope, "id"),
        identity_of(envelope),
        operation_id,
        _text(payload, "disposition"),
        _text(payload, "reasonCode"),
        tuple(str(event_id) for event_id in evidence) if isinstance(evidence, list) else (),
        _text(payload, "outcomeEventId") or None,
        _text(refs, "toolCallId"),
        flaw,
    )


def _has_form(envelope: JsonValue, lane: str) -> bool:
    """Whether nothing but the one fact stands in the envelope."""
    if not isinstance(envelope, dict) or envelope.get("partial") or "status" in envelope or "branch" in envelope:
        return False
    speaker = (envelope.get("role"), envelope.get("author"))
    actions = envelope.get("actions")
    if lane == "function_call":
        return speaker == ("model", "agent") and (actions is None or _are_call_notes(actions))
    if lane == "function_response":
        return speaker == ("tool", "tool") and (actions is None or _is_duration(actions))
    if speaker != ("system", "system") or "content" in envelope:
        return False
    refs = _record(envelope, "refs").keys()
    if lane == "tool_dispatch":
        return _has_only(actions, "toolDispatch") and refs in (_OPERATION_REFS, _NESTED_REFS)
    return _has_only(actions, "toolRecovery") and refs == _OPERATION_REFS


def _are_call_notes(actions: JsonValue) -> bool:
    notes = _record(actions, "stateDelta")
    return (
        _has_only(actions, "stateDelta")
        and len(notes) > 0
        and notes.keys() <= _CALL_NOTES
        and all(isinstance(note, str) for note in notes.values())
    )


def _is_duration(actions: JsonValue) -> bool:
    notes = _record(actions, "stateDelta")
    duration = notes.get("durationMs")
    is_number = isinstance(duration, int | float) and not isinstance(duration, bool)
    return _has_only(actions, "stateDelta") and _has_only(notes, "durationMs") and is_number


def _has_only(value: JsonValue, key: str) -> bool:
    return isinstance(value, dict) and value.keys() == {key}


def _references(refs: dict[str, JsonValue], operation_id: str, call_id: str | None) -> Flaw | None:
    agrees = refs.get("operationId") == operation_id and (call_id is None or refs.get("toolCallId") == call_id)
    return None if agrees else Flaw.REFERENCES_DISAGREE


def _marker(envelope: JsonValue) -> str | None:
    actions = _record(envelope, "actions")
    return _text(_record(actions, "runtimeProtocol"), "toolBoundary") if "runtimeProtocol" in actions else None


def _record(value: JsonValue, key: str) -> dict[str, JsonValue]:
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else {}


def _text(value: JsonValue, key: str) -> str:
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, str) else ""
