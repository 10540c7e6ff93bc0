"""Looks up, after a crash, whether a file operation happened: the bytes are compared, and none is ever written.

SPEC section 10, F1, F8.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

from ....domain.errors import RefusedWithoutEffect
from ....domain.events.tool import Observation
from ....domain.file_evidence import (
    FileChange,
    FileEvidence,
    FileKind,
    FileState,
    digest_of,
    found_later,
    judge,
    read_evidence,
)
from ....domain.tool_results import prepare_result
from ....ports.reconciler import AskedOperation, Observed, Reconciler
from .atomic_write import temporary_name
from .confined import ConfinedPath, confined_file, opened_folder
from .file_plans import PLANNERS, VERSION
from .looking import look


class FileReconciler(Reconciler):
    """For the contracts of `write_file`, `edit_file`, `append_file`, `delete_file` and `move_file`."""

    reconciler_id = "safepoint.files"
    version = 1

    @property
    def contract_ids(self) -> Collection[str]:
        """The contracts whose evidence it understands."""
        return PLANNERS.keys()

    def observe(self, asked: AskedOperation) -> Observed:
        """Read each file that the evidence names, and say what it matches."""
        evidence = _understood(asked)
        if evidence is None:
            return _unreadable("T1 recorded no evidence that this version understands")
        if evidence.workspace is None or asked.workspace_identity is None:
            return _unreadable("the workspace has, or had, no identity: it may be another folder")
        if evidence.workspace != asked.workspace_identity:
            return _unreadable(f"{asked.workspace} is another workspace than the one of the call")
        later = _later(asked)
        if later is None:
            return Observed(Observation.DIVERGED, detail="a later file operation recorded what is not understood here")
        then = [found_later(change, evidence.workspace, later) for change in evidence.files]
        try:
            seen = [
                state or look(asked.workspace, _target(change, asked.workspace)).state
                for change, state in zip(evidence.files, then, strict=True)
            ]
        except (OSError, ValueError, RefusedWithoutEffect) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            return _unreadable(f"{_paths(evidence)} cannot be read: {said}")
        return _answer(evidence, seen, then)

    def tidy(self, asked: AskedOperation) -> None:
        """Remove the temporary file that the call may have left in the folder of its target."""
        evidence = _understood(asked)
        if evidence is None or evidence.workspace is None or evidence.workspace != asked.workspace_identity:
            return
        for change in evidence.files:
            with (
                contextlib.suppress(OSError, RefusedWithoutEffect),
                opened_folder(asked.workspace, _target(change, asked.workspace).names[:-1]) as folder,
            ):
                os.unlink(temporary_name(asked.operation_id), dir_fd=folder)


def _understood(asked: AskedOperation) -> FileEvidence | None:
    evidence = read_evidence(asked.evidence)
    if evidence is None or asked.contract.contract_id != f"file.{evidence.transform}":
        return None
    return evidence if evidence.transform_version <= VERSION else None


def _later(asked: AskedOperation) -> list[FileEvidence] | None:
    """What later file operations of the session recorded; None where one of them is not understood."""
    found = []
    for dispatch in asked.later:
        if dispatch.contract.contract_id not in PLANNERS:
            continue
        evidence = read_evidence(dispatch.evidence)
        if evidence is None or evidence.transform_version > VERSION:
            return None
        found.append(evidence)
    return found


def _target(change: FileChange, workspace: Path) -> ConfinedPath:
    return confined_file(change.path, workspace)


def _unreadable(detail: str) -> Observed:
    return Observed(Observation.UNREADABLE, detail=detail)


def _answer(evidence: FileEvidence, seen: list[FileState], then: list[FileState | None]) -> Observed:
    observation, digest = judge(evidence, seen), digest_of(evidence, seen)
    pairs = zip(evidence.files, seen, strict=True)
    detail = "; ".join(
        f"when a later call found it, {_said(change, state).replace(' is ', ' was ', 1)}"
        if at_that_time
        else _said(change, state)
        for (change, state), at_that_time in zip(pairs, then, strict=True)
    )
    match observation:
        case Observation.MATCHES_EXPECTED_STATE:
            return Observed(observation, prepare_result(evidence.result), digest, detail)
        case Observation.ALREADY_SATISFIED:
            return Observed(observation, prepare_result(evidence.already_so), digest, detail)
        case _:
            return Observed(observation, None, digest, detail)


def _paths(evidence: FileEvidence) -> str:
    return " or ".join(repr(one.path) for one in evidence.files)


def _said(change: FileChange, seen: FileState) -> str:
    """Say for people what a path looks like, without what it holds."""
    path = repr(change.path)
    if change.is_after(seen):
        return f"{path} is as the call was to leave it{_mode_note(change.after, seen)}"
    if change.is_before(seen):
        return f"{path} is as it was before the call{_mode_note(change.before, seen)}"
    match seen.kind:
        case FileKind.REGULAR:
            return f"{path} holds other bytes: {_bytes_said(change, seen)}"
        case FileKind.LINK:
            return f"{path} is reached through a symbolic link now"
        case FileKind.ABSENT | FileKind.NO_FOLDER:
            return f"{path} is not there{', nor is its folder' if seen.kind is FileKind.NO_FOLDER else ''}"
        case _:
            return f"{path} is no regular file now"


def _bytes_said(change: FileChange, seen: FileState) -> str:
    expected = change.before if change.after.absent else change.after
    said = [f"{seen.size_bytes} bytes instead of {expected.size_bytes}" if not expected.absent else "none was expected"]
    if seen.encoding is not None and expected.encoding is not None and seen.encoding is not expected.encoding:
        said.append(f"{seen.encoding} instead of {expected.encoding}")
    if seen.line_ends is not None and expected.line_ends is not None and seen.line_ends is not expected.line_ends:
        said.append(f"line ends {seen.line_ends} instead of {expected.line_ends}")
    return ", ".join(said)


def _mode_note(recorded: FileState, seen: FileState) -> str:
    if recorded.mode is None or seen.mode is None or recorded.mode == seen.mode:
        return ""
    return f", with permissions {seen.mode:04o} instead of {recorded.mode:04o}"
