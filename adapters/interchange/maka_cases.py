"""Judges ledgers of Maka by the line: `{"id", "events"}` in, one JSON object out. SPEC section 19.

Words are those of the recorded cases: `recovery_bundle` where we say `recovered`, and items are `tool_call:<event id>`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from ...domain.reasons import ParkReason, ReplayBlock
from ...domain.recovery.facts import Decided, Reconciled
from ...domain.recovery.operation_record import OperationRecord
from ...domain.recovery.resolver import resolve
from ...domain.recovery.scanner import Scanner
from ...domain.recovery.verdict import Resolution, SettlementOrigin, Verdict
from ...domain.replay.segment import Segment, project_segment
from . import maka_facts, maka_json
from .maka_digests import manifest_digest, segment_of
from .maka_envelope import MakaFormatError, canonical_text
from .maka_history import history_of

_KINDS = {
    "user": "text",
    "host": "text",
    "text": "text",
    "thinking": "thinking",
    "call": "tool_call",
    "result": "tool_result",
}
_IDENTITY = ("sessionId", "invocationId", "runId", "turnId")

Answer = dict[str, Any]


def answer_case(line: str) -> tuple[Answer, bool]:
    """Judge one case; whatever is wrong with it, there is an answer.

    Returns:
        The answer, and whether the case could be judged; where not, the answer has an `error`.
    """
    try:
        case = maka_json.parse(line)
    except maka_json.MakaJsonError as error:
        return {"id": None, "error": str(error)}, False
    if not isinstance(case, dict):
        return {"id": None, "error": "a case is an object"}, False
    case_id, events = case.get("id"), case.get("events")
    if not isinstance(events, list):
        return {"id": case_id, "error": "a case has an array of events"}, False
    try:
        return {"id": case_id, **judged(events)}, True
    except Exception as error:  # noqa: BLE001 (the other cases are to be answered, too)
        return {"id": case_id, "error": f"{type(error).__name__}: it could not be judged"}, False


def judged(events: Sequence[JsonValue]) -> Answer:
    """What scanner, resolver, replay and the encodings say of a ledger, taken for the whole truth of its run."""
    scanner = maka_facts.scan(events)
    resolution = resolve(scanner, foreign=False)
    return {
        "scan": _scan(scanner),
        "operations": [
            _operation(verdict, record)
            for verdict, record in zip(resolution.verdicts, scanner.operations(), strict=True)
        ],
        "protocol": resolution.protocol,
        "has_corruption": resolution.has_corruption,
        "requires_reconciliation": resolution.requires_reconciliation,
        "replay": _replay(events, resolution),
        "maka": _encodings(events),
    }


def written(answer: Answer) -> str:
    """An answer as one line; what has no UTF-8 form is escaped."""
    return json.dumps(answer, separators=(",", ":"))


def _scan(scanner: Scanner) -> Answer:
    """Marker issues are the resolver's there, not the scanner's."""
    issues = [issue for issue in scanner.issues if issue.code is not ParkReason.PROTOCOL_MARKER_INVALID]
    return {
        "issues": [
            {
                "code": issue.code.value,
                "event_id": issue.event_id,
                "operation_id": issue.operation_id,
                "tool_call_id": issue.call_id,
            }
            for issue in issues
        ],
        "has_corruption": bool(issues),
    }


def _operation(verdict: Verdict, record: OperationRecord) -> Answer:
    recovered = verdict.origin is SettlementOrigin.RECOVERED
    recovery = [fact for _, fact in record.recovery or ()]
    return {
        "tool_call_id": verdict.call_id,
        "tool_name": verdict.tool_name,
        "operation_id": verdict.operation_id,
        "verdict": verdict.status.value,
        "reason": verdict.reason.value,
        "settlement_origin": "recovery_bundle" if recovered else verdict.origin and verdict.origin.value,
        "broken_rule": verdict.broken_rule,
        "response_is_error": verdict.is_error,
        "call_event_id": verdict.call_event_id,
        "dispatch_event_id": verdict.dispatch_event_id,
        "response_event_id": verdict.response_event_id,
        "reconcile_event_ids": [fact.event_id for fact in recovery if isinstance(fact, Reconciled)],
        "decision_event_ids": [fact.event_id for fact in recovery if isinstance(fact, Decided)],
        "issue_codes": [code.value for code in record.codes],
    }


def _replay(events: Sequence[JsonValue], resolution: Resolution) -> Answer:
    segment = segment_of_ledger(events, resolution)
    return {
        "kind": "replayable" if segment.blocked is None else "blocked",
        "reason": None if segment.blocked is None else segment.blocked.value,
        "items": [f"{_KINDS[item.kind]}:{item.event_id}" for item in segment.items],
        "trimmed": [*segment.trimmed],
        "left_out": [*segment.left_out],
    }


def segment_of_ledger(events: Sequence[JsonValue], resolution: Resolution) -> Segment:
    """The history that a continuation of a ledger would begin with, or why there is none."""
    history = history_of(events)
    segment = project_segment(history.events, resolution, resumed=True)
    if segment.blocked is None and history.refused:
        return Segment(blocked=ReplayBlock.PROVIDER_REPLAY_UNSUPPORTED)
    return segment


def _encodings(events: Sequence[JsonValue]) -> Answer:
    texts, without = list[str](), list[int]()
    for position, envelope in enumerate(events, 1):
        try:
            texts.append(canonical_text(envelope))
        except MakaFormatError:
            without.append(position)  # the scanner judges it all the same
    canonical = maka_json.sha256_hex("\n".join(texts))
    said: Answer = {"canonical_sha256": canonical, "encoded_events": len(texts), "not_encoded": without}
    first = events[0] if events else None
    identity = {key: first.get(key) for key in _IDENTITY} if isinstance(first, dict) else None
    try:
        segment = segment_of(identity, enumerate(events, 1))
        return {**said, "prefix_digest": segment.prefix_digest, "manifest_digest": manifest_digest([segment])}
    except MakaFormatError:
        return {**said, "prefix_digest": None, "manifest_digest": None}
