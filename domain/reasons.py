"""Every stable code, as one enumeration per kind. SPEC section 22.

Where one text stands in two kinds it means one thing: members compare equal as text, and `explanations` has one entry.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias


class ParkReason(StrEnum):
    """Why a run is kept and not continued: it waits for stronger evidence or a person."""

    RESUME_FEATURE_DISABLED = "resume_feature_disabled"
    RESUME_CANDIDATE_MISSING = "resume_candidate_missing"
    SOURCE_SUPERSEDED = "source_superseded"
    SESSION_BUSY = "session_busy"
    STORE_UNAVAILABLE = "store_unavailable"
    SOURCE_RUN_UNREADABLE = "source_run_unreadable"
    RUNTIME_LEDGER_UNREADABLE = "runtime_ledger_unreadable"
    RUNTIME_LEDGER_EMPTY = "runtime_ledger_empty"
    LEDGER_BEHIND_ANCHOR = "ledger_behind_anchor"
    FOREIGN_RUN_NOT_ADOPTED = "foreign_run_not_adopted"
    RUNTIME_OFFSET_MISMATCH = "runtime_offset_mismatch"
    RUNTIME_IDENTITY_MISMATCH = "runtime_identity_mismatch"
    PROTOCOL_MARKER_INVALID = "protocol_marker_invalid"
    TERMINAL_REPAIR_FAILED = "terminal_repair_failed"
    DANGLING_TOOL_STATE = "dangling_tool_state"
    EFFECT_MAY_BE_RUNNING = "effect_may_be_running"
    TOOL_RECOVERY_PARKED = "tool_recovery_parked"
    TOOL_RECOVERY_CORRUPTION = "tool_recovery_corruption"
    PENDING_PERMISSION = "pending_permission"
    BACKGROUND_OPERATION_PENDING = "background_operation_pending"
    WORKSPACE_IDENTITY_MISSING = "workspace_identity_missing"
    WORKSPACE_IDENTITY_MISMATCH = "workspace_identity_mismatch"
    WORKSPACE_COPY_AMBIGUOUS = "workspace_copy_ambiguous"
    WORKSPACE_DRIFT = "workspace_drift"
    WORKSPACE_REF_MISSING = "workspace_ref_missing"
    CHECKPOINT_RESTORE_FAILED = "checkpoint_restore_failed"
    CHECKPOINT_DOES_NOT_COVER = "checkpoint_does_not_cover"
    MODE_MISMATCH = "mode_mismatch"
    TOOL_CATALOG_MISMATCH = "tool_catalog_mismatch"
    EXECUTION_PROFILE_MISMATCH = "execution_profile_mismatch"
    SAFETY_OBSERVATION_UNAVAILABLE = "safety_observation_unavailable"
    PROVIDER_RESUME_HEAD_UNSUPPORTED = "provider_resume_head_unsupported"
    PROVIDER_RESUME_BOUNDARY_UNSUPPORTED = "provider_resume_boundary_unsupported"
    PROVIDER_REPLAY_NON_SUFFIX_GAP = "provider_replay_non_suffix_gap"
    PROVIDER_REPLAY_UNSUPPORTED = "provider_replay_unsupported"
    HISTORY_TOO_LARGE = "history_too_large"
    RUNTIME_LINEAGE_CYCLE = "runtime_lineage_cycle"
    RUNTIME_LINEAGE_DEPTH_EXCEEDED = "runtime_lineage_depth_exceeded"
    RUNTIME_LINEAGE_MISSING = "runtime_lineage_missing"
    RUNTIME_LINEAGE_START_MISMATCH = "runtime_lineage_start_mismatch"
    RUNTIME_LINEAGE_REPLAY_MISMATCH = "runtime_lineage_replay_mismatch"
    RUNTIME_LINEAGE_CLAIM_MISMATCH = "runtime_lineage_claim_mismatch"
    SOURCE_PREFIX_DIGEST_MISMATCH = "source_prefix_digest_mismatch"
    CONTINUATION_ALREADY_EXISTS = "continuation_already_exists"
    CONTINUATION_CLAIM_REPAIR_REQUIRED = "continuation_claim_repair_required"
    CONTINUATION_STARTED_INDETERMINATE = "continuation_started_indeterminate"
    CONTINUATION_AUTHORITY_UNAVAILABLE = "continuation_authority_unavailable"
    CONTINUATION_IDENTITY_REUSED = "continuation_identity_reused"
    OWNER_FENCED = "owner_fenced"
    AUTO_RESUME_SPENT = "auto_resume_spent"


class RevalidationCode(StrEnum):
    """What differed when a plan was compared with the world right before its execution."""

    CONTINUATION_CLAIM_CONFLICT = "continuation_claim_conflict"
    TARGET_RUN_CONFLICT = "target_run_conflict"
    SOURCE_IDENTITY_CHANGED = "source_identity_changed"
    SOURCE_TERMINAL_CHANGED = "source_terminal_changed"
    SOURCE_HIGH_WATER_CHANGED = "source_high_water_changed"
    SOURCE_LEDGER_IDENTITY_CHANGED = "source_ledger_identity_changed"
    SOURCE_REPLAY_CHANGED = "source_replay_changed"
    WORKSPACE_IDENTITY_CHANGED = "workspace_identity_changed"
    WORKSPACE_CHECKPOINT_CHANGED = "workspace_checkpoint_changed"
    BACKGROUND_OPERATION_STARTED = "background_operation_started"
    TOOL_CATALOG_CHANGED = "tool_catalog_changed"
    EXECUTION_PROFILE_CHANGED = "execution_profile_changed"


class LedgerIssue(StrEnum):
    """What the scanner found wrong in stored facts."""

    DUPLICATE_EVENT_ID = "duplicate_event_id"
    SEMANTIC_LANE_CONFLICT = "semantic_lane_conflict"
    DUPLICATE_CALL = "duplicate_call"
    DUPLICATE_OPERATION = "duplicate_operation"
    DUPLICATE_DISPATCH = "duplicate_dispatch"
    DUPLICATE_RESPONSE = "duplicate_response"
    ORPHAN_DISPATCH = "orphan_dispatch"
    ORPHAN_RESPONSE = "orphan_response"
    CANONICAL_ARGS_HASH_CONFLICT = "canonical_args_hash_conflict"
    INVOCATION_IDENTITY_CONFLICT = "invocation_identity_conflict"
    IDENTITY_CONFLICT = "identity_conflict"
    EVENT_ORDER_CONFLICT = "event_order_conflict"
    RECOVERY_FACT_CORRUPTION = "recovery_fact_corruption"
    CHAIN_BROKEN = "chain_broken"
    SEQUENCE_GAP = "sequence_gap"
    EVENT_AFTER_TERMINAL = "event_after_terminal"
    EVENT_AFTER_CLAIM = "event_after_claim"


class WriteRefusal(StrEnum):
    """Why the ledger or the event store wrote nothing."""

    RUN_SEALED = "run_sealed"
    RUN_CLAIMED = "run_claimed"
    OWNER_FENCED = "owner_fenced"
    SESSION_BUSY = "session_busy"
    DUPLICATE_EVENT_ID = "duplicate_event_id"
    RETRY_CONFLICT = "retry_conflict"
    TRANSITION_SHAPE_CONFLICT = "transition_shape_conflict"
    OPERATION_NOT_OVER = "operation_not_over"
    OPERATION_OPEN = "operation_open"
    BUNDLE_INVALID = "bundle_invalid"
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_FULL = "store_full"
    STORE_VERSION_NEWER = "store_version_newer"
    STORE_DAMAGED = "store_damaged"


class ResponseCode(StrEnum):
    """Why a call was answered with something other than its result."""

    UNKNOWN_TOOL = "unknown_tool"
    ARGS_NOT_STRICT_JSON = "args_not_strict_json"
    ARGS_SCHEMA_MISMATCH = "args_schema_mismatch"
    ARGS_TOO_LARGE = "args_too_large"
    RESULT_TOO_LARGE = "result_too_large"
    RESULT_NOT_STRICT_JSON = "result_not_strict_json"
    TOOL_RAISED = "tool_raised"
    TOOL_TIMED_OUT = "tool_timed_out"
    LOOP_LIMIT = "loop_limit"
    PERMISSION_DENIED = "permission_denied"
    REPEAT_OF_UNSETTLED_EFFECT = "repeat_of_unsettled_effect"
    NOT_EXECUTED_INTERRUPTED = "not_executed_interrupted"
    REFUSED_WITHOUT_EFFECT = "refused_without_effect"


class RecoveryReason(StrEnum):
    """Why recovery parked an operation."""

    RECONCILE_MATCHES_PRIOR_STATE = "reconcile_matches_prior_state"
    RECONCILE_DIVERGED = "reconcile_diverged"
    RECONCILE_UNREADABLE = "reconcile_unreadable"
    IDEMPOTENCY_KEY_EXPIRED = "idempotency_key_expired"
    HANDLE_UNKNOWN = "handle_unknown"
    CONTRACT_FORBIDS_RECOVERY = "contract_forbids_recovery"


class FailureClass(StrEnum):
    """Why a run ended as failed."""

    APP_RESTARTED = "app_restarted"
    CONTINUATION_ABANDONED_BEFORE_PROVIDER_DISPATCH = "continuation_abandoned_before_provider_dispatch"
    PROVIDER_FAILED = "provider_failed"
    PROVIDER_STREAM_INCOMPLETE = "provider_stream_incomplete"
    TOOL_NOT_OVER = "tool_not_over"
    STEP_LIMIT = "step_limit"
    IMPORTED_WITHOUT_TERMINAL = "imported_without_terminal"


class VerdictReason(StrEnum):
    """On what facts the resolver judged an operation; SPEC section 9."""

    MATCHING_RESPONSE = "matching_response"
    DISPATCH_WITHOUT_RESPONSE = "dispatch_without_response"
    NEW_PROTOCOL_BEFORE_DISPATCH = "new_protocol_before_dispatch"
    LEGACY_DISPATCH_UNKNOWN = "legacy_dispatch_unknown"
    RECOVERY_BUNDLE_COMPLETED = "recovery_bundle_completed"
    ATTESTED_COMPLETED = "attested_completed"
    ATTESTED_NOT_EXECUTED = "attested_not_executed"


class ReplayBlock(StrEnum):
    """Why no history can be made from a boundary; SPEC section 12."""

    TOOL_RECOVERY_CORRUPTION = "tool_recovery_corruption"
    TOOL_RECOVERY_UNSETTLED = "tool_recovery_unsettled"
    PROVIDER_REPLAY_NON_SUFFIX_GAP = "provider_replay_non_suffix_gap"
    PROVIDER_REPLAY_UNSUPPORTED = "provider_replay_unsupported"


Code: TypeAlias = (
    ParkReason
    | RevalidationCode
    | LedgerIssue
    | WriteRefusal
    | ResponseCode
    | RecoveryReason
    | FailureClass
    | VerdictReason
    | ReplayBlock
)
"""Any stable code."""
