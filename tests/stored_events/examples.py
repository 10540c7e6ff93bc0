"""One event of every type with all that it can carry, and one with nothing that it may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from safepoint.domain.events import model, outside, run, session, tool
from safepoint.domain.events.event import Event, RunEvent

AT = "2026-11-29T18:07:05.000123Z"
SHA = "0123456789abcdef" * 4


class Examples(NamedTuple):
    """`full` sets every optional field; `bare` sets none."""

    full: Event
    bare: Event


def _examples(cls: type[Event], required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Examples:
    spine = {"event_id": "event-1", "session_id": "session-1", "occurred_at": AT}
    if issubclass(cls, RunEvent):
        spine |= {"run_id": "run-1", "turn_id": "turn-1", "invocation_id": "invocation-1"}
    bare = {**spine, **required}
    return Examples(cls.model_validate({**bare, **(optional or {})}), cls.model_validate(bare))


TOOL_PROFILE = {"name": "write_file", "schema_digest": SHA, "contract_digest": SHA}
PROFILE = {"provider": "openai", "model": "m", "system_prompt_digest": SHA, "permission_policy": "ask"}
FULL_PROFILE = {**PROFILE, "account": "team", "tools": [TOOL_PROFILE]}
PREFIX = {
    "session_id": "session-1",
    "run_id": "run-0",
    "turn_id": "turn-0",
    "invocation_id": "invocation-0",
    "high_water": 7,
    "digest": SHA,
}
CONTEXT = {
    "previous": PREFIX,
    "left_out": ["run-l"],
    "cut_before": "run-c",
    "unsettled": [{"run_id": "run-0", "operation_id": "operation-0", "sentence_id": "outcome_unknown"}],
}
TARGET = {"run_id": "run-2", "turn_id": "turn-2", "invocation_id": "invocation-2", "cwd": "/w", "profile": PROFILE}
OWNER = {"incarnation_id": "incarnation-1", "epoch": 3}
PROTOCOL = "t1_after_preflight_v1"
WORKSPACE = "workspace:v1:5d2c1f0e-0000-4000-8000-000000000000"
CONTRACT = {"mode": "reconcile", "contract_id": "safepoint.write_file", "version": 1, "digest": SHA}
FULL_CONTRACT = {**CONTRACT, "key_valid_seconds": 86400, "repeat_free": True, "parameters": {"limit": 1.5}}
CHECKPOINT = {"workspace_identity": WORKSPACE, "workspace_epoch": 1, "carrier": "git", "ref": "refs/safepoint/1"}
TREE = {"tree_id": "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "policy_hash": SHA}
# Text that a careless encoder spells in another way: beyond the basic plane, a control character, numbers at a limit.
AWKWARD = {"päth": "\ufb01le\u0007.txt", "\U0001d4b3": [1e21, -0.5, 9007199254740991, True, None], "a": {"b": []}}

_ALL = (
    _examples(session.SessionOpened, {}),
    _examples(
        session.RunAdmitted,
        {"run_id": "run-1", "turn_id": "turn-1", "invocation_id": "invocation-1", "kind": "continuation"},
        {"claim_id": "claim-1"},
    ),
    _examples(
        session.NoticePosted,
        {"notice_id": "notice-1", "sentence_id": "host_note", "parameters": {"text": "look again"}},
    ),
    _examples(session.NoticesTaken, {"run_id": "run-1", "notice_ids": ["notice-1", "notice-2"]}),
    _examples(
        session.GrantPosted,
        {
            "grant_id": "grant-1",
            "request_id": "request-1",
            "tool_name": "write_file",
            "call_id": "call-1",
            "args_hash": SHA,
            "contract_digest": SHA,
            "approved": True,
            "decided_by": "Ada",
        },
        {"repeats": "operation-0"},
    ),
    _examples(session.GrantsTaken, {"run_id": "run-1", "grant_ids": ["grant-1"]}),
    _examples(
        session.EffectWatched,
        {
            "operation_id": "operation-1",
            "run_id": "run-1",
            "tool_name": "write_file",
            "args_hash": SHA,
            "arguments_only_hash": SHA,
            "has_arguments": True,
            "mode": "idempotent",
            "status": "indeterminate",
        },
        {"idempotency_key": "key-1", "key_valid_until": AT},
    ),
    _examples(session.EffectCleared, {"operation_id": "operation-1", "by": "approved_repeat"}),
    _examples(
        session.OperationAttested,
        {
            "operation_id": "operation-1",
            "run_id": "run-1",
            "tool_name": "pay",
            "statement": "completed",
            "by": "Ada",
            "note": "seen at the bank",
        },
    ),
    _examples(
        session.RunAbandoned, {"run_id": "run-1", "by": "Ada", "note": "the disk failed", "last_good_sequence": 0}
    ),
    _examples(
        run.RunOpened,
        {"cwd": "/w", "profile": PROFILE, **OWNER},
        {
            "workspace_identity": WORKSPACE,
            "profile": FULL_PROFILE,
            "protocol": PROTOCOL,
            "parent_session_id": "session-0",
            "parent_run_id": "run-0",
            "parent_operation_id": "operation-0",
            "context": CONTEXT,
        },
    ),
    _examples(
        run.ContinuationStarted,
        {
            "claim_id": "claim-1",
            "boundary_digest": SHA,
            "source": PREFIX,
            "replay_digest": SHA,
            "projection_version": 1,
            "kind": "claim_repair",
            "cwd": "/w",
            "profile": PROFILE,
            **OWNER,
        },
        {"workspace_identity": WORKSPACE, "profile": FULL_PROFILE, "protocol": PROTOCOL},
    ),
    _examples(run.BudgetSet, {"budgets": {}}, {"budgets": {"steps_max": 9, "tokens_max": 1000, "seconds_max": 60}}),
    _examples(run.CancelRequested, {"by": "Ada"}),
    _examples(run.RunError, {"error_class": "ProviderFailed", "code": "provider_failed"}),
    _examples(run.RunEnded, {"status": "failed", **OWNER}, {"failure_class": "app_restarted", "recovered": True}),
    _examples(
        run.RunClaimed,
        {
            "claim_id": "claim-1",
            "segments": [PREFIX],
            "boundary_digest": SHA,
            "replay_digest": SHA,
            "projection_version": 1,
            "target": TARGET,
            "trigger": "person",
            **OWNER,
        },
        {
            "accepted_drift": ["tools", "model"],
            "target": {**TARGET, "workspace_identity": WORKSPACE, "profile": FULL_PROFILE, "protocol": PROTOCOL},
        },
    ),
    _examples(
        model.UserMessage,
        {"text": "do it"},
        {
            "attachments": [{"name": "a.png", "media_type": "image/png", "uri": "file:///a.png", "digest": SHA}],
            "steering": True,
        },
    ),
    _examples(
        model.HostMessage,
        {"sentence_id": "host_note", "text": "Note from the host: look again"},
        {"parameters": {"text": "look again"}},
    ),
    _examples(model.ModelText, {"step_id": "step-1", "text": "hi"}, {"provider_options": AWKWARD}),
    _examples(
        model.ModelThinking, {"step_id": "step-1", "text": "hm"}, {"signature": "c2ln", "provider_options": AWKWARD}
    ),
    _examples(
        model.ModelStepCompleted,
        {"step_id": "step-1", "finish_reason": "tool_calls"},
        {"model": "m-1", "provider_response_id": "r-1", "usage": {"input_tokens": 5, "output_tokens": 7}},
    ),
    _examples(model.ProviderAttempted, {"attempt": 1, "failure": "rate_limited"}, {"status_code": 429}),
    _examples(
        tool.ToolCalled,
        {"step_id": "step-1", "call_id": "call-1", "tool_name": "write_file"},
        {
            "provider_call_id": "toolu_1",
            "args": AWKWARD,
            "provider_text": '{"a":{"b":[]}}',
            "provider_options": AWKWARD,
        },
    ),
    _examples(
        tool.ToolDispatched,
        {
            "operation_id": "operation-1",
            "call_id": "call-1",
            "tool_name": "write_file",
            "args_hash": SHA,
            "contract": CONTRACT,
            "incarnation_id": "incarnation-1",
            "life": "supervised",
        },
        {
            "contract": FULL_CONTRACT,
            "idempotency_key": "key-1",
            "evidence": AWKWARD,
            "grant_id": "grant-1",
            "repeats": "operation-0",
        },
    ),
    _examples(
        tool.ToolResponded,
        {"call_id": "call-1", "tool_name": "write_file", "result": None, "is_error": True, "effect": "unknown"},
        {
            "operation_id": "operation-1",
            "result": AWKWARD,
            "code": "result_too_large",
            "original_length": 600000,
            "original_digest": SHA,
        },
    ),
    _examples(
        tool.ToolRedeliveryStarted,
        {
            "operation_id": "operation-1",
            "idempotency_key": "key-1",
            "incarnation_id": "incarnation-1",
            "life": "task",
        },
    ),
    _examples(
        tool.ToolReconciled,
        {
            "operation_id": "operation-1",
            "observation": "matches_expected_state",
            "reconciler_id": "safepoint.file",
            "reconciler_version": 1,
        },
        {"evidence_digest": SHA},
    ),
    _examples(
        tool.ToolRecoveryDecided,
        {
            "operation_id": "operation-1",
            "disposition": "completed",
            "reason": "matches_expected_state",
            "evidence_event_ids": ["event-3", "event-4", "event-8"],
        },
        {"outcome_event_id": "event-9"},
    ),
    _examples(
        tool.ToolAttested,
        {"operation_id": "operation-1", "statement": "not_executed", "by": "Ada", "note": "I looked"},
        {"supersedes": "event-8"},
    ),
    _examples(
        outside.PermissionRequested,
        {
            "request_id": "request-1",
            "call_id": "call-1",
            "tool_name": "write_file",
            "args_hash": SHA,
            "contract_digest": SHA,
            "reason": "policy",
        },
        {"repeats": "operation-0"},
    ),
    _examples(
        outside.PermissionDecided,
        {"request_id": "request-1", "approved": False, "decided_by": "Ada"},
        {"grant_id": "grant-1"},
    ),
    _examples(outside.PermissionClosed, {"request_id": "request-1", "reason": "run_stopped"}),
    _examples(
        outside.BackgroundStarted,
        {"handle_id": "handle-1", "kind": "shell", "handle": {"pid": 7}},
        {"operation_id": "operation-1", "detached": True},
    ),
    _examples(outside.BackgroundSettled, {"handle_id": "handle-1", "status": "ended"}, {"exit_code": -1, "signal": 9}),
    _examples(outside.CheckpointAccepted, {**CHECKPOINT, **TREE, "high_water": 4, "digest": SHA}),
    _examples(
        outside.WorkspaceTransitioned,
        {
            "from_identity": WORKSPACE,
            "to_identity": WORKSPACE,
            "workspace_epoch": 1,
            "path": "/w2",
            "checkpoint_ref": "refs/safepoint/1",
        },
    ),
    _examples(outside.WorkspaceRebaselined, {**CHECKPOINT, **TREE}, {"changed_paths": ["a.txt", "b.txt"]}),
    _examples(outside.WorkspaceRenewed, {"from_identity": WORKSPACE, "to_identity": WORKSPACE}),
)
EXAMPLES: Mapping[str, Examples] = {examples.full.topic: examples for examples in _ALL}
