"""The one table that tells people what each code means and what to do next. SPEC section 22.

Sentences may change; codes may not. `SESSION` in a command stands for the session's id.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from .reasons import (
    FailureClass,
    LedgerIssue,
    ParkReason,
    RecoveryReason,
    ReplayBlock,
    ResponseCode,
    RevalidationCode,
    VerdictReason,
    WriteRefusal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class Explanation(NamedTuple):
    """What one code means to a person.

    Attributes:
        sentence: what is the case, for somebody who does not know the code.
        next_step: what to do, with the exact command where there is one.
        expected: an ordinary state, shown as a hint; otherwise a failure, shown in red.
    """

    sentence: str
    next_step: str
    expected: bool = False


_PLAN_AGAIN: Final = "Plan again with `safepoint plan --session SESSION`, then resume; nothing was done."
_SHOW: Final = "Look at the timeline with `safepoint show --session SESSION`."
_NEW_TURN: Final = "Start a new turn with `safepoint run --session SESSION`; the old one stays as it is."
_VERIFY: Final = (
    "Find the damaged place with `safepoint verify`. Then put a backup in its place: `safepoint restore FILE`; or give "
    "the run up and go on without it: `safepoint abandon SESSION --note WHY`."
)
_REPORT: Final = (
    "Keep the store as it is, find the place with `safepoint verify`, and report it: a program wrote this wrongly."
)
_LOOK_OUTSIDE: Final = (
    "Find out whether it happened (`safepoint show --session SESSION` names the operation), then say so with "
    "`safepoint settle OPERATION`. It is never repeated for you."
)
_NOTHING: Final = "Nothing needs to be done."
_MODEL_TOLD: Final = "Nothing needs to be done: the model was told and may call again."

_TABLE: Final[dict[str, Explanation]] = {
    # Park reasons.
    ParkReason.RESUME_FEATURE_DISABLED: Explanation(
        "Resuming is switched off here.", "Unset SAFEPOINT_RESUME or set it to 1 to allow it; nothing was lost.", True
    ),
    ParkReason.RESUME_CANDIDATE_MISSING: Explanation(
        "No interrupted run waits to be continued in this session.",
        "Start a new turn with `safepoint run --session SESSION`, or find another session with `safepoint list`.",
        True,
    ),
    ParkReason.SOURCE_SUPERSEDED: Explanation(
        "A later run of this session has taken this run's place.",
        "Continue the session's latest run: `safepoint plan --session SESSION` shows it.",
    ),
    ParkReason.SESSION_BUSY: Explanation(
        "This session has an open run, or another process owns it.",
        "Wait for it to end, or stop it with `safepoint cancel --session SESSION`; a process that does not answer is "
        "ended with `safepoint takeover SESSION`.",
        True,
    ),
    ParkReason.STORE_UNAVAILABLE: Explanation(
        "The store could not be read or written just now, so nothing is known about what it holds.",
        "Check that the file is there, readable and not locked, then try again.",
    ),
    ParkReason.SOURCE_RUN_UNREADABLE: Explanation("The interrupted run, or its first event, is damaged.", _VERIFY),
    ParkReason.RUNTIME_LEDGER_UNREADABLE: Explanation(
        "The run's record is damaged: its chain of digests does not verify.", _VERIFY
    ),
    ParkReason.RUNTIME_LEDGER_EMPTY: Explanation(
        "The run has no recorded events, so there is nothing to continue.", _NEW_TURN
    ),
    ParkReason.LEDGER_BEHIND_ANCHOR: Explanation(
        "The store cannot vouch for its end: it is shorter than it was, or has no anchor that tells how long it was.",
        "Bring back the newest copy of the store with its `-wal` file. If there is none, go on with what is there: "
        "`safepoint adopt --note WHY`; what is missing then never counts as not done.",
    ),
    ParkReason.FOREIGN_RUN_NOT_ADOPTED: Explanation(
        "This store was copied, restored or imported, so what it does not hold may still have happened.",
        "Work on the original store, or say that this is the one to go on with: `safepoint adopt --note WHY`. In "
        "an adopted store, `safepoint resume --session SESSION --adopt` continues such a run knowingly.",
    ),
    ParkReason.RUNTIME_OFFSET_MISMATCH: Explanation(
        "The run does not end where the caller expected it to end.", _PLAN_AGAIN
    ),
    ParkReason.RUNTIME_IDENTITY_MISMATCH: Explanation(
        "The run's events name more than one run, turn or invocation.", _REPORT
    ),
    ParkReason.PROTOCOL_MARKER_INVALID: Explanation(
        "A mark that only a run's first event may carry stands somewhere else, or is not known.", _REPORT
    ),
    ParkReason.TERMINAL_REPAIR_FAILED: Explanation(
        "The run has no end, or more than one, after repair.",
        "Try `safepoint resume --session SESSION` again; if it stays, report it.",
    ),
    ParkReason.DANGLING_TOOL_STATE: Explanation(
        "A tool call was started and its outcome was never recorded: it may or may not have happened.",
        "Let it be looked at again, where its tool promised something and is here: `safepoint reconcile SESSION`; or "
        "look yourself, and settle it: `safepoint settle OPERATION`.",
    ),
    ParkReason.EFFECT_MAY_BE_RUNNING: Explanation(
        "Something that an interrupted tool call started may still be running.",
        "Wait until it ends, or end it yourself; `safepoint show --session SESSION` names it. Where nobody can look: "
        "`safepoint settle OPERATION --declare-over --note WHY`.",
    ),
    ParkReason.TOOL_RECOVERY_PARKED: Explanation(
        "Recovery looked at an interrupted tool call and could not prove what happened.", _LOOK_OUTSIDE
    ),
    ParkReason.TOOL_RECOVERY_CORRUPTION: Explanation("The record of a tool call contradicts itself.", _REPORT),
    ParkReason.PENDING_PERMISSION: Explanation(
        "The run waits for a person's permission that was asked and not answered.",
        "Answer the question; `safepoint show --session SESSION` shows it.",
    ),
    ParkReason.BACKGROUND_OPERATION_PENDING: Explanation(
        "A background job of this run has not ended.", "Wait for the job; `safepoint show --session SESSION` names it."
    ),
    ParkReason.WORKSPACE_IDENTITY_MISSING: Explanation(
        "The workspace has no identity, so it cannot be shown to be the same one.",
        "Check the path given with `--workspace`: the folder may be another one, or its marker was removed.",
    ),
    ParkReason.WORKSPACE_IDENTITY_MISMATCH: Explanation(
        "This is not the workspace that the run worked in.",
        "Give the right folder with `--workspace`, then plan again.",
    ),
    ParkReason.WORKSPACE_COPY_AMBIGUOUS: Explanation(
        "More than one folder carries this workspace's identity: one is a copy.",
        "Say which is the workspace: `safepoint workspace adopt FOLDER`; or that a copy is another one: "
        "`safepoint workspace renew FOLDER`.",
    ),
    ParkReason.WORKSPACE_DRIFT: Explanation(
        "Files in the workspace are not as the run is known to have left them.",
        "Look at the listed paths; then `safepoint resume SESSION --isolated` leaves them alone, and "
        "`safepoint resume SESSION --rebaseline` accepts them.",
    ),
    ParkReason.WORKSPACE_REF_MISSING: Explanation(
        "The accepted checkpoint of the workspace is gone.",
        "Bring the checkpoint's store back, or accept the files as they are: `safepoint resume SESSION --rebaseline`.",
    ),
    ParkReason.CHECKPOINT_RESTORE_FAILED: Explanation(
        "The checkpoint of the workspace could not be restored.",
        "Read the error, make room or access for it, and try again; your own folder was not touched.",
    ),
    ParkReason.CHECKPOINT_DOES_NOT_COVER: Explanation(
        "The checkpoint is older than the point from which the run would continue.",
        "Look at the files; accept them as they are: `safepoint resume SESSION --rebaseline`, or start a new turn.",
    ),
    ParkReason.MODE_MISMATCH: Explanation(
        "The run was promised a safety mode that is not available now.",
        "Make the mode that the detail names available again, then plan again.",
    ),
    ParkReason.TOOL_CATALOG_MISMATCH: Explanation(
        "A tool that this run used is missing, or now has other arguments or another recovery contract.",
        "Provide the tools as they were, or start a new turn with `safepoint run --session SESSION`.",
    ),
    ParkReason.EXECUTION_PROFILE_MISMATCH: Explanation(
        "The provider, model, account, system prompt or permission policy differs from the run's.",
        "Start with the same settings, as `safepoint show --session SESSION` lists them, then plan again.",
    ),
    ParkReason.SAFETY_OBSERVATION_UNAVAILABLE: Explanation(
        "A fact about this machine that the decision needs could not be had.",
        "Read the diagnostic, mend it, then plan again.",
    ),
    ParkReason.PROVIDER_RESUME_HEAD_UNSUPPORTED: Explanation(
        "The run's history does not start at a user message.", _NEW_TURN
    ),
    ParkReason.PROVIDER_RESUME_BOUNDARY_UNSUPPORTED: Explanation(
        "The run's history does not end at a user message or a tool result.", _NEW_TURN
    ),
    ParkReason.PROVIDER_REPLAY_NON_SUFFIX_GAP: Explanation(
        "A tool call in the middle of the history has no result, so no provider would accept it.", _NEW_TURN
    ),
    ParkReason.PROVIDER_REPLAY_UNSUPPORTED: Explanation(
        "This version cannot make the history that the provider would have to see.",
        "Use the version that wrote the run, or start a new turn with `safepoint run --session SESSION`.",
    ),
    ParkReason.HISTORY_TOO_LARGE: Explanation(
        "The history is larger than the model's window.",
        "Start a turn with the newest turns that fit: `safepoint run MESSAGE --session SESSION --context-turns fit`.",
    ),
    ParkReason.RUNTIME_LINEAGE_CYCLE: Explanation("The run descends from itself.", _REPORT),
    ParkReason.RUNTIME_LINEAGE_DEPTH_EXCEEDED: Explanation(
        "The run was continued more often than is allowed.", _NEW_TURN
    ),
    ParkReason.RUNTIME_LINEAGE_MISSING: Explanation("A run that this one continues is not in the store.", _VERIFY),
    ParkReason.RUNTIME_LINEAGE_START_MISMATCH: Explanation(
        "The run's first event does not agree with the run that it continues.", _REPORT
    ),
    ParkReason.RUNTIME_LINEAGE_REPLAY_MISMATCH: Explanation(
        "The history that the run was started with cannot be made again from the record.", _VERIFY
    ),
    ParkReason.RUNTIME_LINEAGE_CLAIM_MISMATCH: Explanation(
        "The claim and the run that was started from it do not agree.", _REPORT
    ),
    ParkReason.SOURCE_PREFIX_DIGEST_MISMATCH: Explanation(
        "The continued part of the record is not what it was when it was claimed.", _VERIFY
    ),
    ParkReason.CONTINUATION_ALREADY_EXISTS: Explanation(
        "This run has already been continued.", "Look at its continuation: `safepoint status --session SESSION`."
    ),
    ParkReason.CONTINUATION_CLAIM_REPAIR_REQUIRED: Explanation(
        "A continuation was claimed and its process died before it started; the provider was not called.",
        "Run `safepoint resume --session SESSION` again: it repairs the claim first.",
    ),
    ParkReason.CONTINUATION_STARTED_INDETERMINATE: Explanation(
        "A continuation was started, and whether its process still lives is not known.",
        "Wait for it, or end its process, then plan again with `safepoint plan --session SESSION`.",
    ),
    ParkReason.CONTINUATION_AUTHORITY_UNAVAILABLE: Explanation(
        "Whether the session's owner still lives could not be seen, so nobody has the right to continue it.",
        "Make sure that its process has ended; then take its right to write: "
        "`safepoint takeover SESSION --fence-only`.",
    ),
    ParkReason.CONTINUATION_IDENTITY_REUSED: Explanation(
        "An id for the new run is already in use.", "Try again: new ids are made each time."
    ),
    ParkReason.OWNER_FENCED: Explanation(
        "Another process has taken this session over; this one may no longer write to it. What its tools did since "
        "then is not recorded.",
        "Look at how the session stands now: `safepoint status --session SESSION`.",
    ),
    ParkReason.AUTO_RESUME_SPENT: Explanation(
        "The run was already continued automatically once and was interrupted again.",
        "Find out why it dies, then continue it yourself: `safepoint resume --session SESSION`.",
    ),
    # Revalidation.
    RevalidationCode.CONTINUATION_CLAIM_CONFLICT: Explanation(
        "Another process claimed this run in the meantime.",
        "Look at its continuation: `safepoint status --session SESSION`.",
    ),
    RevalidationCode.TARGET_RUN_CONFLICT: Explanation("The planned new run exists already.", _PLAN_AGAIN),
    RevalidationCode.SOURCE_IDENTITY_CHANGED: Explanation(
        "The run to continue is not the one that was planned.", _PLAN_AGAIN
    ),
    RevalidationCode.SOURCE_TERMINAL_CHANGED: Explanation(
        "The run's end changed after the plan was made.", _PLAN_AGAIN
    ),
    RevalidationCode.SOURCE_HIGH_WATER_CHANGED: Explanation(
        "The run got new events after the plan was made.", _PLAN_AGAIN
    ),
    RevalidationCode.SOURCE_LEDGER_IDENTITY_CHANGED: Explanation(
        "The run's record is no longer the one that was planned on.", _PLAN_AGAIN
    ),
    RevalidationCode.SOURCE_REPLAY_CHANGED: Explanation(
        "The history to be shown to the model changed after the plan was made.", _PLAN_AGAIN
    ),
    RevalidationCode.WORKSPACE_IDENTITY_CHANGED: Explanation(
        "The workspace is another one than when the plan was made.", _PLAN_AGAIN
    ),
    RevalidationCode.WORKSPACE_CHECKPOINT_CHANGED: Explanation(
        "The workspace or its checkpoint changed after the plan was made.", _PLAN_AGAIN
    ),
    RevalidationCode.BACKGROUND_OPERATION_STARTED: Explanation(
        "A background job was started after the plan was made.", _PLAN_AGAIN
    ),
    RevalidationCode.TOOL_CATALOG_CHANGED: Explanation("The tools changed after the plan was made.", _PLAN_AGAIN),
    RevalidationCode.EXECUTION_PROFILE_CHANGED: Explanation(
        "The provider, model or policy changed after the plan was made.", _PLAN_AGAIN
    ),
    # Ledger issues.
    LedgerIssue.DUPLICATE_EVENT_ID: Explanation(
        "Two events carry the same id with different content.", "Retry with the unchanged event, or give it a fresh id."
    ),
    LedgerIssue.SEMANTIC_LANE_CONFLICT: Explanation("One imported fact claims to be two things at once.", _REPORT),
    LedgerIssue.DUPLICATE_CALL: Explanation("A tool call was recorded twice.", _REPORT),
    LedgerIssue.DUPLICATE_OPERATION: Explanation("Two tool calls carry the same operation id.", _REPORT),
    LedgerIssue.DUPLICATE_DISPATCH: Explanation("A tool call was recorded as started twice.", _REPORT),
    LedgerIssue.DUPLICATE_RESPONSE: Explanation("A tool call has two results.", _REPORT),
    LedgerIssue.ORPHAN_DISPATCH: Explanation("A tool was started for a call that is not recorded.", _REPORT),
    LedgerIssue.ORPHAN_RESPONSE: Explanation("A result answers a call that is not recorded.", _REPORT),
    LedgerIssue.CANONICAL_ARGS_HASH_CONFLICT: Explanation(
        "A tool was started with other arguments than the model gave.", _REPORT
    ),
    LedgerIssue.INVOCATION_IDENTITY_CONFLICT: Explanation(
        "One invocation is recorded under more than one session, run or turn.", _REPORT
    ),
    LedgerIssue.IDENTITY_CONFLICT: Explanation("Facts of one tool call disagree about which call it is.", _REPORT),
    LedgerIssue.EVENT_ORDER_CONFLICT: Explanation("Facts of one tool call stand in an impossible order.", _REPORT),
    LedgerIssue.RECOVERY_FACT_CORRUPTION: Explanation(
        "The recorded recovery of a tool call is incomplete or contradicts its evidence.", _REPORT
    ),
    LedgerIssue.CHAIN_BROKEN: Explanation("A recorded event was changed after it was written.", _VERIFY),
    LedgerIssue.SEQUENCE_GAP: Explanation("Events are missing in the middle of the record.", _VERIFY),
    LedgerIssue.EVENT_AFTER_TERMINAL: Explanation("The run goes on after its own end.", _REPORT),
    LedgerIssue.EVENT_AFTER_CLAIM: Explanation("The run goes on after it was handed to its continuation.", _REPORT),
    # Refusals of a write.
    WriteRefusal.RUN_SEALED: Explanation(
        "The run has ended, so it takes no more events.", "Nothing needs to be done: this is how a race ends normally."
    ),
    WriteRefusal.RUN_CLAIMED: Explanation(
        "The run has been handed to its continuation, so it takes no more events.",
        "Write to the continuation: `safepoint status --session SESSION` names it.",
    ),
    WriteRefusal.RETRY_CONFLICT: Explanation(
        "The same command was sent again with other content.", "Send exactly the same content, or a new command."
    ),
    WriteRefusal.TRANSITION_SHAPE_CONFLICT: Explanation("The run's present state does not allow this event.", _SHOW),
    WriteRefusal.OPERATION_NOT_OVER: Explanation(
        "What a tool call started may still be running, so nothing can be decided about it.",
        "Wait until it ends, then try again; `safepoint show --session SESSION` names it.",
    ),
    WriteRefusal.OPERATION_OPEN: Explanation(
        "A run cannot end as completed while one of its tool calls is unfinished.", _SHOW
    ),
    WriteRefusal.BUNDLE_INVALID: Explanation(
        "The facts offered for the recovery of a tool call do not prove it.",
        "Read which rule was broken; the operation stays as it was.",
    ),
    WriteRefusal.STORE_FULL: Explanation(
        "There is no room left to write; nothing was written.", "Make room on the disk, then try again."
    ),
    WriteRefusal.STORE_VERSION_NEWER: Explanation(
        "The store was written by a newer version; it was left untouched.", "Upgrade Safepoint, then try again."
    ),
    WriteRefusal.STORE_DAMAGED: Explanation("The store is damaged; nothing was written.", _VERIFY),
    # Preflight and responses.
    ResponseCode.UNKNOWN_TOOL: Explanation("The model called a tool that does not exist; nothing ran.", _MODEL_TOLD),
    ResponseCode.ARGS_NOT_STRICT_JSON: Explanation(
        "The arguments of a tool call were no strict JSON; nothing ran.", _MODEL_TOLD
    ),
    ResponseCode.ARGS_SCHEMA_MISMATCH: Explanation(
        "The arguments of a tool call do not fit the tool; nothing ran.", _MODEL_TOLD
    ),
    ResponseCode.ARGS_TOO_LARGE: Explanation(
        "The arguments of a tool call are larger than allowed; nothing ran.", _MODEL_TOLD
    ),
    ResponseCode.RESULT_TOO_LARGE: Explanation(
        "The tool ran, and its result was cut because it is larger than allowed.",
        "Nothing needs to be done: the original length and digest are recorded.",
    ),
    ResponseCode.RESULT_NOT_STRICT_JSON: Explanation(
        "The tool ran, and its result could not be kept.", "Look at what it changed, and mend the tool's result."
    ),
    ResponseCode.TOOL_RAISED: Explanation(
        "The tool raised an error; its effect may have happened.", "Look at what it was to change before repeating it."
    ),
    ResponseCode.TOOL_TIMED_OUT: Explanation(
        "The tool took longer than it may, or than its run, which a person stopped; its effect may have happened.",
        "Look at what it was to change before repeating it, or give it more time.",
    ),
    ResponseCode.LOOP_LIMIT: Explanation(
        "The same call was made too often; nothing ran.",
        "Look at why the model repeats it: `safepoint show --session SESSION`.",
    ),
    ResponseCode.PERMISSION_DENIED: Explanation("The call was not permitted; nothing ran.", _MODEL_TOLD),
    ResponseCode.REPEAT_OF_UNSETTLED_EFFECT: Explanation(
        "The model tried to repeat a call whose first outcome is not known; nothing ran.",
        "Find out whether the first one happened, then permit the repeat or settle the first.",
    ),
    ResponseCode.NOT_EXECUTED_INTERRUPTED: Explanation(
        "The run was interrupted before this tool call started; nothing ran.", _MODEL_TOLD
    ),
    ResponseCode.REFUSED_WITHOUT_EFFECT: Explanation("The tool itself refused before doing anything.", _MODEL_TOLD),
    # Recovery.
    RecoveryReason.RECONCILE_MATCHES_PRIOR_STATE: Explanation(
        "The target looks as it did before the call; redo is disabled, as another writer could be overwritten.",
        _LOOK_OUTSIDE,
    ),
    RecoveryReason.RECONCILE_DIVERGED: Explanation(
        "The target was changed by somebody else; it is not overwritten.", _LOOK_OUTSIDE
    ),
    RecoveryReason.RECONCILE_UNREADABLE: Explanation(
        "The target could not be read, so nothing is known about the call's effect.",
        "Make the target readable, then look whether the effect happened.",
    ),
    RecoveryReason.IDEMPOTENCY_KEY_EXPIRED: Explanation(
        "The key that made a second delivery harmless is no longer valid.", _LOOK_OUTSIDE
    ),
    RecoveryReason.HANDLE_UNKNOWN: Explanation(
        "The job that the call started cannot be found by its handle.", _LOOK_OUTSIDE
    ),
    RecoveryReason.CONTRACT_FORBIDS_RECOVERY: Explanation(
        "The tool promises nothing about a second call, so only a person can tell what happened.", _LOOK_OUTSIDE
    ),
    # Failure classes.
    FailureClass.APP_RESTARTED: Explanation(
        "The process died, or the program failed, while the run was open.",
        "Continue it with `safepoint resume --session SESSION`.",
    ),
    FailureClass.CONTINUATION_ABANDONED_BEFORE_PROVIDER_DISPATCH: Explanation(
        "A continuation was claimed and never started; the provider was not called.",
        "Continue it with `safepoint resume --session SESSION`.",
    ),
    FailureClass.PROVIDER_FAILED: Explanation(
        "The model provider refused or failed.",
        "Check its key, address and state, then continue with `safepoint resume --session SESSION`.",
    ),
    FailureClass.PROVIDER_STREAM_INCOMPLETE: Explanation(
        "The provider's answer broke off before its end, so none of it counts.",
        "Continue it with `safepoint resume --session SESSION`.",
    ),
    FailureClass.TOOL_NOT_OVER: Explanation(
        "A tool did not stop in time, and what it does is not known.",
        "End what it started; `safepoint show --session SESSION` names it.",
    ),
    FailureClass.STEP_LIMIT: Explanation(
        "The run was ended before its model was done: a bound or budget was used up, or a program's own loop left it.",
        "Look at what it did with `safepoint show --session SESSION`, then continue it with `safepoint resume --session"
        " SESSION`, or start a new turn.",
    ),
    FailureClass.IMPORTED_WITHOUT_TERMINAL: Explanation(
        "The imported run had no recorded end, so it counts as failed.", _SHOW
    ),
    # Verdicts and replay.
    VerdictReason.MATCHING_RESPONSE: Explanation("The tool call has its recorded result.", _NOTHING),
    VerdictReason.DISPATCH_WITHOUT_RESPONSE: Explanation(
        "The tool was started and its outcome was never recorded: it may or may not have happened.", _LOOK_OUTSIDE
    ),
    VerdictReason.NEW_PROTOCOL_BEFORE_DISPATCH: Explanation(
        "The tool was never started: its start would have been recorded first.", _NOTHING
    ),
    VerdictReason.LEGACY_DISPATCH_UNKNOWN: Explanation(
        "This run did not record when tools start, or its record may be incomplete: the tool may have run.",
        "Find out whether it happened, then start a new turn with `safepoint run --session SESSION`: its model is told "
        "that the outcome is not known.",
    ),
    VerdictReason.RECOVERY_BUNDLE_COMPLETED: Explanation(
        "Recovery proved afterwards what the tool call did.", _NOTHING
    ),
    VerdictReason.ATTESTED_COMPLETED: Explanation("A person stated that the tool call happened.", _NOTHING),
    VerdictReason.ATTESTED_NOT_EXECUTED: Explanation("A person stated that the tool call did not happen.", _NOTHING),
    ReplayBlock.TOOL_RECOVERY_UNSETTLED: Explanation(
        "A tool call in this history has no known outcome yet.", _LOOK_OUTSIDE
    ),
}

EXPLANATIONS: Final[Mapping[str, Explanation]] = MappingProxyType(_TABLE)
"""Every code with its explanation; one code text has one entry, whatever kinds it stands in."""


def explain(code: str) -> Explanation:
    """Explain a code (a member or its text) to a person; SPEC section 22.

    Raises:
        KeyError: this version does not know the code; never take that for "nothing to do".
    """
    return EXPLANATIONS[code]
