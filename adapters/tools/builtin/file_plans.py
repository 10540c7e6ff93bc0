"""What a call would do to which file: worked out for the evidence, and again to be carried out. SPEC section 10.

One function of the arguments and the prior content makes the new content for both, so they cannot differ by anything
but a change of the files in between, which is then noticed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from ....domain.errors import RefusedWithoutEffect
from ....domain.events.event import Json
from ....domain.file_evidence import ABSENT, FileChange, FileEvidence, FileKind
from ....ports.tool_catalog import Workspace
from ....ports.workspace import MARKER_NAME
from .confined import ConfinedPath, confined_file, folded
from .looking import HASHED_BYTES_MAX, KEPT_BYTES_MAX, Found, look, names_alike, state_of

_DRIVE: Final = re.compile(r"[A-Za-z]:(?:$|\\)")
VERSION: Final = 1
"""Of the transforms below; raised when one of them makes another content of the same arguments and prior content."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """One call, worked out.

    Attributes:
        targets: where each of `changes` is.
        content: of the file that is to be written, None where none is.
        result: what the tool answers when it has done this.
    """

    transform: str
    targets: tuple[ConfinedPath, ...]
    changes: tuple[FileChange, ...]
    result: dict[str, Json]
    content: bytes | None = None

    def evidence(self, workspace_identity: str | None) -> FileEvidence:
        """What T1 records of it."""
        return FileEvidence(
            workspace=workspace_identity,
            transform=self.transform,
            transform_version=VERSION,
            files=self.changes,
            result=self.result,
        )


Planner: TypeAlias = Callable[[Mapping[str, Any], Path], FilePlan]
"""Works a call out from its typed arguments and the workspace; reads only.

It raises RefusedWithoutEffect for what cannot be done.
"""


def evidence_by(plan: Planner) -> Callable[[Mapping[str, Any], Workspace], Json]:
    """Make the function that a tool declares as its `evidence`."""

    def evidence(arguments: Mapping[str, Any], workspace: Workspace) -> Json:
        return plan(arguments, workspace.path).evidence(workspace.identity).recorded()

    return evidence


def plan_write(arguments: Mapping[str, Any], workspace: Path) -> FilePlan:
    """Replace whatever a file held, or make it."""
    target = _writable(arguments["path"], workspace)
    prior = _prior(workspace, target)
    content = arguments["content"].encode()
    return _replacing("write", target, prior, content, {"created": prior.state.absent})


def plan_edit(arguments: Mapping[str, Any], workspace: Path) -> FilePlan:
    """Replace a text in a file by another one."""
    target = _writable(arguments["path"], workspace)
    prior, content = _present(workspace, target)
    old, new = arguments["old_text"].encode(), arguments["new_text"].encode()
    count = content.count(old)
    if count == 0:
        raise RefusedWithoutEffect(f"old_text does not occur in {target.shown!r}")
    if count > 1 and not arguments["replace_all"]:
        raise RefusedWithoutEffect(f"old_text occurs {count} times in {target.shown!r}; give more of its surroundings")
    return _replacing("edit", target, prior, content.replace(old, new), {"replaced": count})


def plan_append(arguments: Mapping[str, Any], workspace: Path) -> FilePlan:
    """Add a text at the end of a file, or make the file of it."""
    target = _writable(arguments["path"], workspace)
    added = arguments["text"].encode()
    prior = _prior(workspace, target)
    content = b"" if prior.state.absent else _content(target, prior)
    more: dict[str, Json] = {"appended_bytes": len(added), "created": prior.state.absent}
    return _replacing("append", target, prior, content + added, more)


def plan_delete(arguments: Mapping[str, Any], workspace: Path) -> FilePlan:
    """Remove a file."""
    target = _writable(arguments["path"], workspace)
    change = FileChange(path=target.shown, before=_regular(workspace, target).state, after=ABSENT)
    return FilePlan("delete", (target,), (change,), {"path": target.shown, "deleted": True})


def plan_move(arguments: Mapping[str, Any], workspace: Path) -> FilePlan:
    """Give a file another name, where nothing has it yet."""
    source, target = (_writable(arguments[name], workspace) for name in ("path", "new_path"))
    moved, prior = _regular(workspace, source), _prior(workspace, target)
    if prior.status is not None and moved.status is not None and os.path.samestat(prior.status, moved.status):
        raise RefusedWithoutEffect(f"{source.shown!r} and {target.shown!r} are one file here")
    if not prior.state.absent:
        raise RefusedWithoutEffect(f"{target.shown!r} is there already; delete it first, or choose another name")
    _check_portable(target)
    changes = (
        FileChange(path=source.shown, before=moved.state, after=ABSENT),
        FileChange(path=target.shown, before=ABSENT, after=moved.state),
    )
    result: dict[str, Json] = {"path": source.shown, "new_path": target.shown, "size_bytes": moved.state.size_bytes}
    return FilePlan("move", (source, target), changes, result)


PLANNERS: Final[Mapping[str, Planner]] = {
    "file.write": plan_write,
    "file.edit": plan_edit,
    "file.append": plan_append,
    "file.delete": plan_delete,
    "file.move": plan_move,
}
"""The planners by the id of the contract that their evidence belongs to."""


def _replacing(transform: str, target: ConfinedPath, prior: Found, content: bytes, more: dict[str, Json]) -> FilePlan:
    if len(content) > KEPT_BYTES_MAX:
        raise RefusedWithoutEffect(f"{target.shown!r} would have more than {KEPT_BYTES_MAX} bytes")
    before = ABSENT if prior.state.absent else prior.state
    if before.absent:
        _check_portable(target)
    change = FileChange(path=target.shown, before=before, after=state_of(content, before.mode))
    result: dict[str, Json] = {"path": target.shown, "size_bytes": len(content), **more}
    return FilePlan(transform, (target,), (change,), result, content)


def _writable(path: str, workspace: Path) -> ConfinedPath:
    target = confined_file(path, workspace)
    if tuple(map(folded, target.names)) == (folded(MARKER_NAME),):
        raise RefusedWithoutEffect(f"{MARKER_NAME} names this workspace; no tool may change it")
    return target


def _check_portable(target: ConfinedPath) -> None:
    """Refuse to make a file by a path of another system: here it would be one strange name, not a place."""
    if any("\\" in name for name in target.names) or _DRIVE.match(target.names[0]):
        raise RefusedWithoutEffect(f"{target.shown!r} looks like a path of Windows; separate its folders with '/'")


def _prior(workspace: Path, target: ConfinedPath) -> Found:
    """Look at what stands where something is to be changed."""
    try:
        found = look(workspace, target)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RefusedWithoutEffect(f"{target.shown!r} cannot be opened: {reason}") from error
    is_file = found.at == target.shown
    if found.state.kind is FileKind.LINK:
        place = "file" if is_file else "place"
        raise RefusedWithoutEffect(f"{found.at!r} is a symbolic link; name the {place} that it points to")
    if found.state.kind is FileKind.OTHER:
        raise RefusedWithoutEffect(f"{found.at!r} is no {'regular file' if is_file else 'folder'}")
    if found.state.kind is FileKind.REGULAR and found.state.sha256 is None:
        raise RefusedWithoutEffect(f"{target.shown!r} has more than {HASHED_BYTES_MAX} bytes")
    return found


def _regular(workspace: Path, target: ConfinedPath) -> Found:
    found = _prior(workspace, target)
    if found.state.absent:
        alike = [f"; {name!r} is" for name in names_alike(workspace, target)]
        raise RefusedWithoutEffect(f"{target.shown!r} is not there{''.join(alike)}")
    return found


def _present(workspace: Path, target: ConfinedPath) -> tuple[Found, bytes]:
    found = _regular(workspace, target)
    return found, _content(target, found)


def _content(target: ConfinedPath, found: Found) -> bytes:
    if found.content is None:
        raise RefusedWithoutEffect(f"{target.shown!r} has more than {KEPT_BYTES_MAX} bytes")
    return found.content
