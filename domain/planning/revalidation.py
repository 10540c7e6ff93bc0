"""Right before execution everything is planned again; any difference is a code, not a retry. SPEC section 14, R14."""

from __future__ import annotations

from collections.abc import Mapping

from ..reasons import ParkReason, RevalidationCode
from .outcome import Continue, Park, Plan, Reason

_CLAIM = RevalidationCode.CONTINUATION_CLAIM_CONFLICT
_LEDGER = RevalidationCode.SOURCE_LEDGER_IDENTITY_CHANGED
_REPLAY = RevalidationCode.SOURCE_REPLAY_CHANGED
_WORKSPACE = RevalidationCode.WORKSPACE_IDENTITY_CHANGED
_CHECKPOINT = RevalidationCode.WORKSPACE_CHECKPOINT_CHANGED
_TOOLS = RevalidationCode.TOOL_CATALOG_CHANGED
_PROFILE = RevalidationCode.EXECUTION_PROFILE_CHANGED

CODE_OF_REASON: Mapping[ParkReason, RevalidationCode] = {
    ParkReason.RESUME_FEATURE_DISABLED: _PROFILE,
    ParkReason.RESUME_CANDIDATE_MISSING: RevalidationCode.SOURCE_TERMINAL_CHANGED,
    ParkReason.SOURCE_SUPERSEDED: _CLAIM,
    ParkReason.SESSION_BUSY: _CLAIM,
    ParkReason.STORE_UNAVAILABLE: _LEDGER,
    ParkReason.SOURCE_RUN_UNREADABLE: _LEDGER,
    ParkReason.RUNTIME_LEDGER_UNREADABLE: _LEDGER,
    ParkReason.RUNTIME_LEDGER_EMPTY: _LEDGER,
    ParkReason.LEDGER_BEHIND_ANCHOR: _LEDGER,
    ParkReason.FOREIGN_RUN_NOT_ADOPTED: _LEDGER,
    ParkReason.RUNTIME_OFFSET_MISMATCH: RevalidationCode.SOURCE_HIGH_WATER_CHANGED,
    ParkReason.RUNTIME_IDENTITY_MISMATCH: RevalidationCode.SOURCE_IDENTITY_CHANGED,
    ParkReason.PROTOCOL_MARKER_INVALID: _LEDGER,
    ParkReason.TERMINAL_REPAIR_FAILED: RevalidationCode.SOURCE_TERMINAL_CHANGED,
    ParkReason.DANGLING_TOOL_STATE: _REPLAY,
    ParkReason.EFFECT_MAY_BE_RUNNING: RevalidationCode.BACKGROUND_OPERATION_STARTED,
    ParkReason.TOOL_RECOVERY_PARKED: _REPLAY,
    ParkReason.TOOL_RECOVERY_CORRUPTION: _REPLAY,
    ParkReason.PENDING_PERMISSION: _REPLAY,
    ParkReason.BACKGROUND_OPERATION_PENDING: RevalidationCode.BACKGROUND_OPERATION_STARTED,
    ParkReason.WORKSPACE_IDENTITY_MISSING: _WORKSPACE,
    ParkReason.WORKSPACE_IDENTITY_MISMATCH: _WORKSPACE,
    ParkReason.WORKSPACE_COPY_AMBIGUOUS: _WORKSPACE,
    ParkReason.WORKSPACE_DRIFT: _CHECKPOINT,
    ParkReason.WORKSPACE_REF_MISSING: _CHECKPOINT,
    ParkReason.CHECKPOINT_RESTORE_FAILED: _CHECKPOINT,
    ParkReason.CHECKPOINT_DOES_NOT_COVER: _CHECKPOINT,
    ParkReason.MODE_MISMATCH: _PROFILE,
    ParkReason.TOOL_CATALOG_MISMATCH: _TOOLS,
    ParkReason.EXECUTION_PROFILE_MISMATCH: _PROFILE,
    ParkReason.SAFETY_OBSERVATION_UNAVAILABLE: _PROFILE,
    ParkReason.PROVIDER_RESUME_HEAD_UNSUPPORTED: _REPLAY,
    ParkReason.PROVIDER_RESUME_BOUNDARY_UNSUPPORTED: _REPLAY,
    ParkReason.PROVIDER_REPLAY_NON_SUFFIX_GAP: _REPLAY,
    ParkReason.PROVIDER_REPLAY_UNSUPPORTED: _REPLAY,
    ParkReason.HISTORY_TOO_LARGE: _REPLAY,
    ParkReason.RUNTIME_LINEAGE_CYCLE: _LEDGER,
    ParkReason.RUNTIME_LINEAGE_DEPTH_EXCEEDED: _LEDGER,
    ParkReason.RUNTIME_LINEAGE_MISSING: _LEDGER,
    ParkReason.RUNTIME_LINEAGE_START_MISMATCH: _LEDGER,
    ParkReason.RUNTIME_LINEAGE_REPLAY_MISMATCH: _LEDGER,
    ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH: _LEDGER,
    ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH: _LEDGER,
    ParkReason.CONTINUATION_ALREADY_EXISTS: _CLAIM,
    ParkReason.CONTINUATION_CLAIM_REPAIR_REQUIRED: _CLAIM,
    ParkReason.CONTINUATION_STARTED_INDETERMINATE: _CLAIM,
    ParkReason.CONTINUATION_AUTHORITY_UNAVAILABLE: _CLAIM,
    ParkReason.CONTINUATION_IDENTITY_REUSED: RevalidationCode.TARGET_RUN_CONFLICT,
    ParkReason.OWNER_FENCED: _CLAIM,
    ParkReason.AUTO_RESUME_SPENT: _CLAIM,
}
"""What it means for a plan that a gate which it had passed fails now."""

_ABOUT = {
    ParkReason.SAFETY_OBSERVATION_UNAVAILABLE: (
        "what",
        {"workspace": _WORKSPACE, "catalog": _TOOLS, "checkpoint": _CHECKPOINT},
    ),
    ParkReason.MODE_MISMATCH: ("mode", {"checkpoint": _CHECKPOINT}),
}
"""Reasons whose detail says what they are about."""


def compare(planned: Continue, now: Plan) -> tuple[RevalidationCode, ...]:
    """Everything that differs between a plan and the one made right before execution, in the order of the codes.

    Args:
        planned: what is about to be executed.
        now: made again from fresh facts, with the same ids for the continuation.
    """
    found = {_code_of(reason) for reason in now.reasons} if isinstance(now, Park) else _differences(planned, now)
    return tuple(code for code in RevalidationCode if code in found)


def _code_of(reason: Reason) -> RevalidationCode:
    field, codes = _ABOUT.get(reason.code, ("", {}))
    return codes.get(str(reason.detail.get(field)), CODE_OF_REASON[reason.code])


def _differences(planned: Continue, now: Continue) -> set[RevalidationCode]:
    before, after = planned.safety, now.safety
    source, found = planned.source, now.source
    identities = [(ref.session_id, ref.run_id, ref.turn_id, ref.invocation_id) for ref in (source, found)]
    terminals = [(seen.terminal_event_id, seen.terminal_status) for seen in (before, after)]
    profiles = [seen.profile.model_copy(update={"tools": ()}) for seen in (before, after)]
    compared = {
        RevalidationCode.TARGET_RUN_CONFLICT: planned.target.run_id == now.target.run_id,
        RevalidationCode.SOURCE_IDENTITY_CHANGED: identities[0] == identities[1],
        RevalidationCode.SOURCE_TERMINAL_CHANGED: terminals[0] == terminals[1],
        RevalidationCode.SOURCE_HIGH_WATER_CHANGED: source.high_water == found.high_water,
        _LEDGER: planned.segments[:-1] == now.segments[:-1]
        and (source.high_water != found.high_water or source.digest == found.digest),
        _REPLAY: planned.replay.digest == now.replay.digest,
        _WORKSPACE: before.workspace_identity == after.workspace_identity,
        _CHECKPOINT: before.checkpoint_ref == after.checkpoint_ref,
        _TOOLS: before.catalog_digest == after.catalog_digest,
        RevalidationCode.EXECUTION_PROFILE_CHANGED: profiles[0] == profiles[1]
        and planned.target.protocol == now.target.protocol,
    }
    return {code for code, same in compared.items() if not same}
