"""Every error that can reach a person: what is wrong, why, what to do next, and the exit status. No traceback."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Final

from ...application.adopt_store import AdoptionNotNeeded
from ...application.commands_from_elsewhere import FailedAtOwner, OwnerSilent
from ...application.copied_folders import WorkspaceCopied
from ...application.forget_session import FolderInUse, SessionUnknown, StillRunning
from ...application.forgotten_sessions import SessionForgotten
from ...application.give_up_run import NothingToGiveUp, SessionDamaged
from ...application.ownership import SessionBusy
from ...application.run_checkpoints import BoundToNothing, CheckpointsUnusable, why_not
from ...application.run_turn import SessionQuarantined
from ...application.settle_workspace import WorkspaceUnusable
from ...application.settlement import SettlementRefusal, SettlementRefused
from ...application.take_over import TakeoverRefused
from ...application.turn_context import HistoryTooLarge, HistoryUnusable
from ...domain.errors import (
    BackupDamaged,
    StoreBehindAnchor,
    StoreDamaged,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreGone,
    StoreMissing,
    StoreNotAdopted,
    StoreObstructed,
    StoreUnavailable,
    StoreUnreadable,
    StoreUnusable,
    StoreVersionNewer,
    StoreVersionOlder,
    ViewsDamaged,
    WriteRefused,
)
from ...domain.explanations import EXPLANATIONS, explain
from ...domain.reasons import ParkReason, WriteRefusal
from ...domain.sealing import DamagedEvent
from ...ports.incarnations import Liveness, OwnershipUnavailable
from ...ports.provider_failures import ProviderUnusable
from ...ports.store_backup import CopyTargetTaken, StoreInUse
from ...ports.workspace import WorkspaceSeen
from .agents import unusable
from .exit_codes import ExitCode
from .usage import UsageError

DEBUG_VARIABLE: Final = "SAFEPOINT_DEBUG"
CHECKPOINTS_UNUSABLE: Final = "checkpoints_unusable"


@dataclass(frozen=True, slots=True)
class Failure:
    """What a person and a program are told of an error."""

    exit_code: ExitCode
    code: str
    message: str
    next_step: str = ""
    session_id: str | None = None


def failure_of(error: BaseException) -> Failure:
    """What an error means here; anything unknown is a failure of the program itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    match error:
        case UsageError():
            return Failure(ExitCode.USAGE, error.code, error.message, error.next_step)
        case ProviderUnusable():
            return Failure(ExitCode.USAGE, "provider_unusable", error.detail, error.next_step)
        case OwnerSilent():
            return Failure(ExitCode.BUSY, ParkReason.SESSION_BUSY, str(error), _TAKE_OVER, error.session_id)
        case SessionBusy() if error.liveness is Liveness.COULD_NOT_LOOK:  # nor could a cancel or a takeover look at it
            return Failure(ExitCode.BUSY, ParkReason.SESSION_BUSY, str(error), _FENCE, error.session_id)
        case SessionBusy():
            return _explained(ExitCode.BUSY, ParkReason.SESSION_BUSY, str(error), error.session_id)
        case TakeoverRefused():
            alive = error.liveness is Liveness.ALIVE
            hint = _END_IT if alive else _FENCE
            return Failure(ExitCode.BUSY, "takeover_refused", str(error), hint, error.session_id)
        case FailedAtOwner():
            code = error.code if error.code in EXPLANATIONS else None
            return _explained(ExitCode.BUSY, code or ParkReason.SESSION_BUSY, str(error), error.session_id)
        case SettlementRefused():
            exit_code, hint = _SETTLEMENTS[error.code]
            return Failure(exit_code, error.code, f"Nothing was recorded: {error.detail}.", hint)
        case WorkspaceUnusable() if not isinstance(error.observed, WorkspaceSeen):
            return failure_of(unusable(error.observed))
        case CheckpointsUnusable():
            hint = "Give --checkpoints none, or work in a Git repository; nothing was begun."
            message = f"The workspace cannot be kept: {why_not(error.answer)}."
            return Failure(ExitCode.USAGE, CHECKPOINTS_UNUSABLE, message, hint)
        case WorkspaceCopied():
            return _explained(ExitCode.PARKED, ParkReason.WORKSPACE_COPY_AMBIGUOUS, f"Nothing was begun: {error}.")
        case BoundToNothing():
            message = "The run is bound to no checkpoint: whether its files changed is not known, and nothing was done."
            hint = (
                "Without --isolated and --rebaseline it goes on in its folder as that is; or start a new turn: "
                "`safepoint run MESSAGE --session SESSION`."
            )
            return Failure(ExitCode.PARKED, "bound_to_nothing", message, hint, error.session_id)
        case SessionForgotten():
            hint = "`safepoint list` shows the sessions of this store; its id can never be used again."
            return Failure(ExitCode.USAGE, "session_forgotten", f"{error}.", hint, error.session_id)
        case SessionUnknown():
            hint = "`safepoint list` shows the sessions of this store; --store names another."
            return Failure(ExitCode.USAGE, "unknown_session", f"{error} in this store.", hint)
        case FolderInUse():
            hint = "Forget that session first, or give its run up where it is damaged."
            return Failure(ExitCode.PARKED, "folder_in_use", f"{error}.", hint, error.session_id)
        case StillRunning():
            hint = "`safepoint status --session SESSION` names its processes; wait for them, or end them."
            return Failure(ExitCode.PARKED, WriteRefusal.OPERATION_NOT_OVER, f"{error}.", hint, error.session_id)
        case NothingToGiveUp():
            hint = "`safepoint status --session SESSION` shows how it stands."
            return Failure(
                ExitCode.USAGE, "nothing_to_abandon", f"Nothing is given up: {error}.", hint, error.session_id
            )
        case SessionDamaged():
            return _explained(ExitCode.CORRUPTION, WriteRefusal.STORE_DAMAGED, str(error), error.session_id)
        case SessionQuarantined():
            code = error.repaired.code or ParkReason.SOURCE_RUN_UNREADABLE
            return _explained(ExitCode.CORRUPTION, code, str(error), error.repaired.session_id)
        case HistoryUnusable():
            return Failure(ExitCode.CORRUPTION, "history_unusable", str(error), _LEAVE_OUT, error.session_id)
        case HistoryTooLarge():
            message = f"The turn was not begun: {error}."
            return Failure(ExitCode.PARKED, ParkReason.HISTORY_TOO_LARGE, message, _CUT, error.session_id)
        case OwnershipUnavailable() if getattr(error.__cause__, "errno", None) in _NOT_WRITABLE:
            return Failure(ExitCode.BUSY, "ownership_unavailable", str(error), _GIVE_FOLDER)
        case OwnershipUnavailable():
            return Failure(ExitCode.BUSY, "ownership_unavailable", str(error), "Use a store on a local file system.")
        case StoreInUse():
            return Failure(ExitCode.BUSY, "store_in_use", f"{error}; nothing was changed.", _WAIT_FOR_USERS)
        case CopyTargetTaken():
            return Failure(ExitCode.USAGE, "file_exists", f"{error}; it was left as it is.", "Name another file.")
        case AdoptionNotNeeded():
            message = f"Nothing needs to be adopted: {error}."
            return Failure(ExitCode.USAGE, "adoption_not_needed", message, "Go on with `safepoint list`.")
        case WriteRefused():
            if error.code is WriteRefusal.OWNER_FENCED:
                return _explained(ExitCode.BUSY, error.code, explain(error.code).sentence, error.session_id)
            busy = error.code is WriteRefusal.SESSION_BUSY
            return _explained(
                ExitCode.BUSY if busy else ExitCode.RUN_FAILED, error.code, error.detail, error.session_id
            )
        case DamagedEvent():
            return _explained(ExitCode.CORRUPTION, ParkReason.RUNTIME_LEDGER_UNREADABLE, str(error))
        case StoreError():
            return _of_store(error)
        case _:
            hint = f"This is a defect; please report it. {DEBUG_VARIABLE}=1 shows where it happened."
            return Failure(ExitCode.RUN_FAILED, "internal_error", f"{type(error).__name__}: {error}", hint)


_SETTLEMENTS: Final = {
    SettlementRefusal.UNKNOWN_OPERATION: (
        ExitCode.USAGE,
        "`safepoint status` lists every operation without a certain outcome.",
    ),
    SettlementRefusal.NOTHING_TO_SETTLE: (ExitCode.USAGE, "Nothing needs to be done."),
    SettlementRefusal.KNOWN_TO_BE_OVER: (
        ExitCode.USAGE,
        "What became of it is still to be said: settle it with --completed RESULT or with --not-executed.",
    ),
    SettlementRefusal.ALREADY_ATTESTED: (ExitCode.USAGE, "A statement is recorded once; `safepoint show` has it."),
    SettlementRefusal.OPERATION_NOT_OVER: (
        ExitCode.PARKED,
        (
            "Wait for it, or end it: `safepoint status` names its processes. Where nobody can look, and only there:"
            " `safepoint settle OPERATION --declare-over --note WHY`."
        ),
    ),
    SettlementRefusal.RUN_OPEN: (ExitCode.BUSY, "`safepoint status` names its session; `safepoint cancel` stops it."),
    SettlementRefusal.RUN_DAMAGED: (
        ExitCode.CORRUPTION,
        "Put a backup in the store's place, or give the run up: `safepoint abandon SESSION --note WHY`.",
    ),
    SettlementRefusal.RESULT_TOO_LARGE: (ExitCode.USAGE, "Give the part of the result that the model needs."),
}
_TAKE_OVER: Final = (
    "Look again with `safepoint status --session SESSION`; to end that process: `safepoint takeover SESSION`."
)
_END_IT: Final = (
    "End that process yourself, or leave it alone and only take its right to write: "
    "`safepoint takeover SESSION --fence-only`."
)
_FENCE: Final = (
    "Make sure there that it has ended; then take its right to write: `safepoint takeover SESSION --fence-only`."
)
_NOT_WRITABLE: Final = frozenset({errno.EACCES, errno.EROFS})
_GIVE_FOLDER: Final = "Give this user the right to write in the store's folder, or name another store with --store."
_WAIT_FOR_USERS: Final = "End the programs that use it (`safepoint status` names owners), then try again."
_BRING_FORWARD: Final = (
    "`safepoint rebuild` brings it forward, as every command does that writes to it; the events stay as they are."
)
_ASK_FOR_RIGHTS: Final = (
    "Get the right, or look at a copy: copy its files (the database, `-wal`, `.anchor`) into a folder of your own, and"
    " name it with --store."
)
_CLEAR: Final = (
    "Copy its files (the database, `-wal`, `-journal`, `.anchor`) before anything else. Then put there what belongs"
    " there, such as the file that a link leads to, and move away what does not; `safepoint verify` says whether all is"
    " whole."
)
_PUT_BACK: Final = (
    "No command reads it as it is. Copy its files (the database, `-wal`, `.anchor`) before anything else; then put a"
    " backup in its place: `safepoint restore FILE`."
)
_BRING_BACK: Final = (
    "Put its newest copy back, with its `-wal` file, or a backup: `safepoint restore FILE`. To begin anew without what"
    " it kept, move its `.anchor` file away."
)
_MAKE_AGAIN: Final = (
    "`safepoint rebuild` makes the views again from the events; then `safepoint verify` says whether all is whole."
)
_ADOPT_FORWARD: Final = "`safepoint adopt --note WHY` says that it is the one to go on with, and brings it forward."
_LEAVE_OUT: Final = "Start the turn without them: give the same command with --leave-out-damaged; the model is told."
_CUT: Final = (
    "Start the turn with the newest turns that fit: give the same command with --context-turns fit; the model is told "
    "what is missing."
)


def _of_store(error: StoreError) -> Failure:
    match error:
        case StoreMissing():
            hint = "Check --store; `safepoint run` makes a store where there is none."
            return Failure(ExitCode.USAGE, "store_missing", error.detail, hint)
        case StoreUnusable():
            return Failure(ExitCode.USAGE, "store_unusable", error.detail, "Name another file with --store.")
        case StoreForbidden():
            return Failure(ExitCode.BUSY, str(error.code), error.detail, _ASK_FOR_RIGHTS)
        case StoreObstructed():
            return Failure(ExitCode.BUSY, str(error.code), error.detail, _CLEAR)
        case StoreVersionOlder():
            next_step = _BRING_FORWARD if error.distrust is None else _ADOPT_FORWARD
            message = f"{error.detail}; it was left as it is."
            return Failure(ExitCode.USAGE, "store_version_older", message, next_step)
        case StoreVersionNewer():
            return _explained(ExitCode.USAGE, error.code, error.detail)
        case BackupDamaged():
            return Failure(ExitCode.CORRUPTION, str(error.code), error.detail, "Name another backup.")
        case StoreUnreadable():
            return Failure(ExitCode.CORRUPTION, str(error.code), error.detail, _PUT_BACK)
        case ViewsDamaged():
            return Failure(ExitCode.CORRUPTION, str(error.code), error.detail, _MAKE_AGAIN)
        case StoreGone():
            return Failure(ExitCode.CORRUPTION, str(ParkReason.LEDGER_BEHIND_ANCHOR), error.detail, _BRING_BACK)
        case StoreBehindAnchor():
            return _explained(ExitCode.CORRUPTION, ParkReason.LEDGER_BEHIND_ANCHOR, error.detail)
        case StoreNotAdopted():
            return _explained(ExitCode.PARKED, ParkReason.FOREIGN_RUN_NOT_ADOPTED, error.detail)
        case StoreDamaged():
            return _explained(ExitCode.CORRUPTION, error.code, error.detail)
        case StoreFull():
            return _explained(ExitCode.RUN_FAILED, error.code, error.detail)
        case StoreUnavailable() if error.no_room:
            return Failure(ExitCode.BUSY, str(error.code), error.detail, explain(WriteRefusal.STORE_FULL).next_step)
        case StoreUnavailable():
            return _explained(ExitCode.BUSY, error.code, error.detail)
        case _:
            return _explained(ExitCode.BUSY, error.code, error.detail)


def _explained(exit_code: ExitCode, code: str, detail: str, session_id: str | None = None) -> Failure:
    return Failure(exit_code, str(code), detail, explain(code).next_step, session_id)


def debugging() -> bool:
    """True when the user wants to see where an error happened."""
    return os.environ.get(DEBUG_VARIABLE) == "1"
