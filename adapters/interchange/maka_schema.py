"""The closed shape of Maka's event envelope. SPEC section 19."""

from __future__ import annotations

from pydantic import JsonValue

from ...domain.events.run import TOOL_BOUNDARY_PROTOCOL
from .maka_shapes import (
    anything,
    digest,
    either,
    flag,
    integer_from,
    list_of,
    name,
    number,
    one_of,
    record,
    shape,
    text,
)

_INTERACTION_ID_BYTES_MAX = 256


def _interaction_id(value: JsonValue) -> bool:
    return isinstance(value, str) and 0 < len(value.encode("utf-8", "surrogatepass")) <= _INTERACTION_ID_BYTES_MAX


def _distinct_names(value: JsonValue) -> bool:
    if not isinstance(value, list) or not value or not all(map(name, value)):
        return False
    return len({str(item) for item in value}) == len(value)


_STORED_FILE = either(
    shape({"kind": one_of("session_file"), "sessionId": text, "relativePath": text}),
    shape({"kind": one_of("workspace_file"), "relativePath": text}),
    shape({"kind": one_of("external_file"), "absolutePath": text}),
)
_ATTACHMENT = shape(
    {
        "kind": one_of("image", "pdf", "doc", "code", "other"),
        "name": text,
        "mimeType": text,
        "bytes": integer_from(0),
        "ref": _STORED_FILE,
    }
)
_QUOTE = shape({"text": text}, {"label": text, "sourceTurnId": text})
_INLINE_REFERENCE = shape(
    {"kind": one_of("skill", "workspace_file"), "value": name, "label": name, "start": integer_from(0)}
)
_ORIGIN = either(
    shape({"kind": one_of("automation", "legacy_automation"), "automationId": text}),
    shape({"kind": one_of("scheduled_task"), "scheduledTaskId": text}),
    shape({"kind": one_of("goal"), "goalId": text}),
    shape({"kind": one_of("agent_graph"), "graphId": text, "wakeId": text, "attemptId": text}),
)

_TEXT_SHAPE = shape(
    {"kind": one_of("text"), "text": text},
    {
        "displayText": text,
        "attachments": list_of(_ATTACHMENT),
        "quotes": list_of(_QUOTE),
        "inlineReferences": list_of(_INLINE_REFERENCE),
        "steering": one_of(True),
        "origin": _ORIGIN,
        "providerOptions": record,
    },
)


def _text_content(value: JsonValue) -> bool:
    """Inline references must stand where they say, one after the other."""
    if not isinstance(value, dict) or not _TEXT_SHAPE(value):
        return False
    written, references, free_from = value["text"], value.get("inlineReferences", []), 0
    if not isinstance(written, str) or not isinstance(references, list):
        return False
    for reference in references:
        if not isinstance(reference, dict):
            return False
        start, named = reference["start"], reference["value"]
        if not isinstance(start, int | float) or not isinstance(named, str):
            return False
        units = written.encode("utf-16-le", "surrogatepass")
        wanted = named.encode("utf-16-le", "surrogatepass")
        place = 2 * int(start)
        if place < free_from or units[place : place + len(wanted)] != wanted:
            return False
        free_from = place + len(wanted)
    return True


_CONTENT = either(
    _text_content,
    shape({"kind": one_of("thinking"), "text": text}, {"signature": text, "providerOptions": record}),
    shape(
        {"kind": one_of("function_call"), "id": text, "name": text, "args": anything},
        {"providerExecuted": flag, "providerOptions": record},
    ),
    shape(
        {"kind": one_of("function_response"), "id": text, "name": text, "result": anything},
        {"isError": flag, "providerExecuted": flag, "providerOptions": record, "providerOutput": anything},
    ),
    shape(
        {"kind": one_of("error"), "message": text},
        {"code": text, "reason": text, "details": either(list_of(text), record)},
    ),
)

RECONCILED = shape(
    {
        "kind": one_of("maka.tool.reconcile_result"),
        "version": one_of(1),
        "payload": shape(
            {
                "protocol": one_of("tool_reconcile_v1"),
                "operationId": name,
                "observation": one_of("matches_expected_state", "matches_prior_state", "diverged", "unreadable"),
                "observationSchema": one_of("state_identity_v1"),
                "observationDigest": digest,
            }
        ),
    }
)
_DECISION = {"protocol": one_of("tool_recovery_v1"), "operationId": name, "evidenceEventIds": _distinct_names}
DECIDED = shape(
    {
        "kind": one_of("maka.tool.recovery_decision"),
        "version": one_of(1),
        "payload": either(
            shape(
                {
                    **_DECISION,
                    "disposition": one_of("completed"),
                    "reasonCode": one_of("reconcile_matches_expected_state"),
                    "outcomeEventId": name,
                }
            ),
            shape(
                {
                    **_DECISION,
                    "disposition": one_of("parked"),
                    "reasonCode": one_of("reconcile_matches_prior_state", "reconcile_diverged", "reconcile_unreadable"),
                }
            ),
        ),
    }
)
_DISPATCH = shape(
    {
        "protocol": one_of(TOOL_BOUNDARY_PROTOCOL),
        "operationId": text,
        "providerToolCallId": text,
        "toolName": text,
        "canonicalArgsHash": text,
        "recoveryMode": one_of(
            "replay_safe", "idempotent", "reconcile", "reattach", "outcome_unknown", "never_auto_retry"
        ),
    }
)
_PERMISSION_REQUEST = shape(
    {
        "kind": one_of("tool_permission"),
        "requestId": _interaction_id,
        "toolUseId": text,
        "toolName": text,
        "category": name,
        "reason": one_of(
            "shell_dangerous",
            "file_write",
            "fs_destructive",
            "network",
            "git_destructive",
            "privileged",
            "browser",
            "computer_use",
            "custom",
        ),
        "args": anything,
        "rememberForTurnAllowed": flag,
    },
    {"hint": text},
)
_OTHER_PERMISSION_REQUEST = shape(
    {"kind": one_of("additional_permissions", "sandbox_escalation"), "requestId": _interaction_id, "toolUseId": text},
    dict.fromkeys(
        [
            "toolName",
            "category",
            "reason",
            "additionalPermissions",
            "command",
            "cwd",
            "justification",
            "intentHash",
            "permissionsHash",
            "commandHash",
            "trigger",
            "risk",
            "alsoApprovesToolExecution",
            "availableDecisions",
            "hint",
        ],
        anything,
    ),
)
_QUESTION = shape({"question": text, "options": list_of(shape({"label": text}, {"description": text}))})
_TOKEN_USAGE = shape(
    {"input": number, "output": number},
    {
        **dict.fromkeys(
            [
                "cacheHitInput",
                "cacheMissInput",
                "cacheWriteInput",
                "reasoning",
                "total",
                "runtimeSteps",
                "cacheRead",
                "cacheCreation",
                "costUsd",
                "contextRemaining",
            ],
            number,
        ),
        **dict.fromkeys(
            [
                "cacheMissInputSource",
                "rawFinishReason",
                "systemPromptHash",
                "prefixHash",
                "prefixChangeReason",
                "requestShapeHash",
                "requestShapeChangeReason",
                "providerRequestTraceId",
            ],
            text,
        ),
        "promptSegments": list_of(record),
        "contextBudget": record,
    },
)
_SOURCE = {"sessionId": name, "invocationId": name, "runId": name, "turnId": name}
_CONTINUATION_START = shape(
    {
        "protocol": one_of("continuation_start_v2"),
        "provenance": one_of("runtime_admission", "claim_repair"),
        "claimId": name,
        "boundaryDigest": digest,
        "immediateSource": shape({**_SOURCE, "highWater": integer_from(1), "prefixDigest": digest}),
        "replayManifestDigest": digest,
        "providerProjectionVersion": one_of(1),
        "providerReplayDigest": digest,
    }
)
_ACCEPTED = shape({"requestId": _interaction_id})
_ACTIONS_SHAPE = shape(
    {},
    {
        "stateDelta": record,
        "artifactDelta": lambda value: (
            isinstance(value, dict) and all(text(item) or flag(item) or number(item) for item in value.values())
        ),
        "permissionRequest": either(_PERMISSION_REQUEST, _OTHER_PERMISSION_REQUEST),
        "permissionDecision": shape(
            {"requestId": _interaction_id, "decision": one_of("allow", "deny")},
            {"rememberForTurn": flag, "reviewer": text, "rationale": text, "riskLevel": text, "toolName": name},
        ),
        "permissionAnswerAccepted": _ACCEPTED,
        "permissionClosureAccepted": shape({"requestId": _interaction_id, "reason": one_of("timed_out")}),
        "userQuestionRequest": shape({"requestId": text, "toolUseId": text, "questions": list_of(_QUESTION)}),
        "userQuestionAnswerAccepted": _ACCEPTED,
        "transferToAgent": text,
        "endInvocation": flag,
        "tokenUsage": _TOKEN_USAGE,
        "toolDispatch": _DISPATCH,
        "toolRecovery": either(RECONCILED, DECIDED),
        "runtimeProtocol": shape({"toolBoundary": one_of(TOOL_BOUNDARY_PROTOCOL)}),
        "continuationStart": _CONTINUATION_START,
    },
)


def _actions(value: JsonValue) -> bool:
    """A closure that was accepted by time-out stands alone."""
    if not isinstance(value, dict) or not _ACTIONS_SHAPE(value):
        return False
    return "permissionClosureAccepted" not in value or len(value) == 1


_REFS = shape(
    {},
    {
        **dict.fromkeys(
            [
                "storedMessageId",
                "traceEventId",
                "toolCallId",
                "providerEventId",
                "providerRequestTraceId",
                "artifactId",
                "operationId",
                "stepId",
                "parentToolCallId",
                "parentOperationId",
                "sourceInvocationId",
                "sourceRunId",
                "sourceTurnId",
            ],
            text,
        ),
        "sourceRuntimeEventHighWater": integer_from(0),
        "sourceMessageDigest": digest,
    },
)
_ENVELOPE_SHAPE = shape(
    {
        "id": name,
        **_SOURCE,
        "ts": number,
        "partial": flag,
        "role": one_of("user", "model", "tool", "system"),
        "author": one_of("user", "host", "agent", "tool", "system"),
    },
    {
        "origin": one_of("provider", "code_mode"),
        "modelVisibility": one_of("visible", "hidden"),
        "branch": text,
        "status": one_of("streaming", "completed", "failed", "aborted", "cancelled"),
        "content": _CONTENT,
        "actions": _actions,
        "refs": _REFS,
    },
)


def envelope(value: JsonValue) -> bool:
    """Whether a value is an envelope that the original's strict decoder takes."""
    return _ENVELOPE_SHAPE(value)
