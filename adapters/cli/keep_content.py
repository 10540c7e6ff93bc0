"""Lists, compares, makes, writes out and removes checkpoints of a workspace. What a run makes of one, others decide."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Final
from uuid import uuid4

from ...domain.reasons import ParkReason
from ...ports.checkpoints import (
    CheckpointMissing,
    Checkpoints,
    Compared,
    Difference,
    Kept,
    KeptCheckpoint,
    Materialized,
    NotKept,
    Removed,
    TargetTaken,
    TargetUnusable,
    Unsupported,
)
from ...ports.workspace import CouldNotLook
from . import documents, places
from .command_lines import CommandLines
from .content import UNREAD
from .escaping import one_line
from .exit_codes import ExitCode
from .failures import CHECKPOINTS_UNUSABLE, Failure
from .output import Output
from .parking import say_ways
from .persons import require_person_beside
from .runtimes import report, unopened
from .usage import UsageError
from .ways_on import WayOn, as_documents

BY_HAND: Final = "by-hand-"
"""What the names of those begin with that no run made: no collection takes them away."""
SHOWN_MAX: Final = 100


class _Ended(Exception):
    """There is no answer; carries what is said of it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class KeepContent:
    """The actions on the checkpoints of one folder.

    Args:
        store: what is remembered of the folder stands beside it; it need not be there, and is not opened.
        folder: the workspace, absolute.
    """

    def __init__(self, out: Output, store: Path, folder: str) -> None:
        self._out, self._store, self._folder = out, store, folder
        places.prepare_folder(store)
        self._parts = unopened(store)
        self._checkpoints: Checkpoints = self._parts.checkpoints()
        self._commands = CommandLines(store)

    def __call__(self, action: str, ref: str | None, into: Path | None) -> int:
        """Do it; returns the exit status."""
        if action == "remove":
            require_person_beside(self._parts)
        if action == "restore" and into is None:
            raise UsageError("`checkpoint restore` needs a new folder.", "Name it with --into.")
        if action != "restore" and into is not None:
            raise UsageError("--into names the new folder of `checkpoint restore`, and of nothing else.")
        if (ref is not None) != (action in {"show", "restore", "remove"}):
            raise UsageError(f"`checkpoint {action}` {'takes no' if ref else 'needs a'} checkpoint to be named.")
        if not Path(self._folder).is_dir():
            what = "is no folder" if os.path.lexists(self._folder) else "is not there"
            raise UsageError(f"The workspace {one_line(self._folder)} {what}.", "Name it with --workspace.")
        try:
            if action == "capture":
                return self._capture()
            if ref is None:
                return self._list()
            kept = self._named(ref)
            if action == "remove":
                return self._remove(kept)
            return self._show(kept) if into is None else self._restore(kept, into)
        except _Ended as ended:
            return report(ended.failure, self._out, self._store)

    def _list(self) -> int:
        listed = self._kept()
        rows = [(one.checkpoint.ref, one.made_at, one.checkpoint.tree_id[:12], one.folder) for one in listed]
        self._out.table(("checkpoint", "made at", "content", "workspace"), rows)
        if not listed:
            self._out.say(f"No checkpoint is kept where {one_line(self._folder)} keeps its own.")
        return self._done("list", listed)

    def _capture(self) -> int:
        captured = self._checkpoints.capture(self._folder, f"{BY_HAND}{uuid4().hex}")
        if isinstance(captured, Unsupported | CouldNotLook):
            raise _no_answer(captured)
        made = [one for one in self._kept() if one.checkpoint.ref == captured.ref]
        self._out.say(f"{one_line(self._folder)} is kept as {captured.ref}")
        self._out.say(f"  content {captured.tree_id}; no file was changed, and it stays until you remove it")
        return self._done("capture", made, ways=self._ways(captured.ref))

    def _show(self, kept: KeptCheckpoint) -> int:
        seen = self._checkpoints.verify(self._folder, kept.checkpoint)
        if not isinstance(seen, Compared):
            raise _no_answer(seen)
        self._out.say(f"{kept.checkpoint.ref}, made at {kept.made_at} of {one_line(kept.folder)}")
        for difference in seen.differences[:SHOWN_MAX]:
            self._out.say(f"  {difference.how}: {one_line(difference.shown)}")
        if seen.total > SHOWN_MAX:
            self._out.say(f"  and {seen.total - SHOWN_MAX} more")
        if not seen.total:
            self._out.say(f"  {one_line(self._folder)} has the same content")
        if not seen.same_policy:
            self._out.say("  what is ignored is not what it was then: a difference may come from there")
        ways = self._ways(kept.checkpoint.ref)[1:] if seen.total else []
        return self._done("show", [kept], compared=seen, ways=ways)

    def _restore(self, kept: KeptCheckpoint, into: Path) -> int:
        made = self._checkpoints.materialize(self._folder, kept.checkpoint, str(into))
        if isinstance(made, TargetTaken):
            message = f"{made.path} is there already, and was left as it is."
            raise UsageError(message, "Name a new folder with --into: nothing is ever restored over files.")
        if isinstance(made, TargetUnusable):
            message = f"Nothing can be written out at {one_line(made.path)}: {one_line(made.detail)}."
            raise UsageError(message, "Name with --into a new folder that lies outside, in one that is there.")
        if not isinstance(made, Materialized):
            raise _no_answer(made)
        self._out.say(f"{kept.checkpoint.ref} stands in {one_line(made.path)}, a repository of its own.")
        self._out.say(f"  {one_line(self._folder)} was not touched; what is ignored there is not in the copy.")
        return self._done("restore", [kept], target=made.path)

    def _remove(self, kept: KeptCheckpoint) -> int:
        ref = kept.checkpoint.ref
        if not ref.rpartition("/")[2].startswith(BY_HAND):
            message = f"{ref} was made for a run, and may be what proves its content."
            raise UsageError(message, "Only what was captured by hand is removed by hand.", code="checkpoint_of_run")
        removed = self._checkpoints.remove(self._folder, ref)
        if not isinstance(removed, Removed):
            raise _no_answer(removed)
        self._out.say(f"{ref} is removed; its content goes when Git next collects garbage.")
        return self._done("remove", [kept])

    def _kept(self) -> tuple[KeptCheckpoint, ...]:
        kept = self._checkpoints.kept(self._folder)
        if not isinstance(kept, Kept):
            raise _no_answer(kept)
        return kept.checkpoints

    def _named(self, ref: str) -> KeptCheckpoint:
        found = [one for one in self._kept() if ref in {one.checkpoint.ref, one.checkpoint.ref.rpartition("/")[2]}]
        if not found:
            message = f"There is no checkpoint {one_line(ref)} where {one_line(self._folder)} keeps its own."
            listing = f"safepoint checkpoint list --workspace {quote(self._folder)}"  # whoever says it adds the store
            raise UsageError(message, f"`{listing}` names those that are there.", code="checkpoint_missing")
        return found[0]

    def _ways(self, ref: str) -> list[WayOn]:
        where = ("--workspace", self._folder)
        into = ("--into", f"{self._folder}-restored")
        return [
            WayOn(self._commands.about("checkpoint", "show", ref, *where), "compare it with the files"),
            WayOn(self._commands.about("checkpoint", "restore", ref, *where, *into), "write it into a new folder"),
        ]

    def _done(
        self,
        action: str,
        kept: Sequence[KeptCheckpoint],
        *,
        compared: Compared | None = None,
        target: str | None = None,
        ways: Sequence[WayOn] = (),
    ) -> int:
        say_ways(self._out, ways)
        code = ExitCode.PARKED if compared is not None and compared.total else ExitCode.DONE
        members = {
            "action": action,
            "workspace": self._folder,
            "checkpoints": [_of_checkpoint(one) for one in kept],
            "differences": [] if compared is None else [_of_difference(one) for one in compared.differences],
            "differences_total": None if compared is None else compared.total,
            "same_policy": None if compared is None else compared.same_policy,
            "target": target,
            "commands": as_documents(ways),
            "exit_code": int(code),
        }
        self._out.document(documents.CHECKPOINT, members)
        return code


def _no_answer(answer: CheckpointMissing | NotKept) -> _Ended:
    match answer:
        case Unsupported():
            paths = f" ({', '.join(answer.paths)})" if answer.paths else ""
            message = f"This folder cannot have checkpoints ({answer.why}): {answer.detail}{paths}."
            return _Ended(Failure(ExitCode.USAGE, CHECKPOINTS_UNUSABLE, message))
        case CheckpointMissing():
            message = f"The checkpoint {answer.ref} cannot be had: {answer.detail}."
            return _Ended(Failure(ExitCode.CORRUPTION, ParkReason.WORKSPACE_REF_MISSING, message))
        case CouldNotLook():
            message = f"{answer.path} could not be looked at: {answer.detail}."
            return _Ended(Failure(ExitCode.BUSY, UNREAD, message, "Nothing is known; try again."))


def _of_checkpoint(kept: KeptCheckpoint) -> documents.Json:
    return {**kept.checkpoint._asdict(), "made_at": kept.made_at, "folder": kept.folder}


def _of_difference(difference: Difference) -> documents.Json:
    return {"path": difference.shown, "how": difference.how.value}
