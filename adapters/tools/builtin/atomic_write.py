"""Changing a file so that every reader, and every crash, sees either the old state or the new one.

Right before the one call that changes anything, the bytes are compared with those that the change was made for. Between
that and the change nothing can be compared: there is no compare-and-swap for files, so nothing here is ever done again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from ....domain import canonical
from ....domain.errors import RefusedWithoutEffect
from ....domain.file_evidence import FileState
from ....domain.identifiers import OperationId
from .confined import ConfinedPath
from .looking import Found, fingerprint, look_in

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def temporary_name(operation_id: OperationId) -> str:
    """Name the temporary file of an operation, so that whoever cleans up after a crash can find it."""
    return f".safepoint-{canonical.sha256_hex(operation_id.encode())[:24]}.tmp"


def replace_file(
    folder: int,
    target: ConfinedPath,
    data: bytes,
    *,
    prior: FileState,
    temporary: str,
    written: Callable[[], None],
    renamed: Callable[[], None],
) -> None:
    """Write a file beside its place, make it durable, and rename it into its place.

    Permissions and owner of the prior file are kept; other hard links of it keep the old content.

    Args:
        folder: the open folder that holds it.
        target: its path; the last name counts.
        data: the new content.
        prior: what stood there when `data` was made; compared again right before the rename.
        temporary: the name to write under.
        written, renamed: called at these instants.

    Raises:
        RefusedWithoutEffect: the new content could not be written, or something else stands there now; the file is as
            it was.
        OSError: the new content is in place, and it is not known whether durably.
    """
    name = target.names[-1]
    with _or_as_it_was(target, folder, temporary):
        _write(folder, temporary, data, prior, _status(folder, name))
        written()
        check_unchanged(folder, target, prior)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    renamed()
    os.fsync(folder)


def remove_file(folder: int, target: ConfinedPath, *, prior: FileState, removed: Callable[[], None]) -> None:
    """Remove a file, durably.

    Raises:
        RefusedWithoutEffect: it could not be removed, or something else stands there now; it is as it was.
        OSError: it is gone, and it is not known whether durably.
    """
    with _or_as_it_was(target):
        check_unchanged(folder, target, prior)
        os.unlink(target.names[-1], dir_fd=folder)
    removed()
    os.fsync(folder)


def move_file_to(
    from_folder: int,
    source: ConfinedPath,
    to_folder: int,
    target: ConfinedPath,
    *,
    prior: tuple[FileState, FileState],
    moved: Callable[[], None],
) -> None:
    """Rename a file, durably, where nothing has the new name.

    Args:
        prior: what stood at both names.

    Raises:
        RefusedWithoutEffect: it could not be renamed, or something else stands at one of the names now; both are as
            they were.
        OSError: it is renamed, and it is not known whether durably.
    """
    with _or_as_it_was(source):
        check_unchanged(from_folder, source, prior[0])
        check_unchanged(to_folder, target, prior[1])
        os.rename(source.names[-1], target.names[-1], src_dir_fd=from_folder, dst_dir_fd=to_folder)
    moved()
    os.fsync(to_folder)
    os.fsync(from_folder)


def check_unchanged(folder: int, target: ConfinedPath, prior: FileState) -> None:
    """Compare what stands at a name with what a change was made for: kind, bytes and permissions.

    Raises:
        RefusedWithoutEffect: it is something else.
        OSError: could not look.
    """
    found = look_in(folder, target)
    same = found.state.absent if prior.absent else (found.state.holds(prior) and found.state.mode == prior.mode)
    if not (same and _stands_still(folder, target.names[-1], found)):
        raise changed_meanwhile(target)


def changed_meanwhile(target: ConfinedPath) -> RefusedWithoutEffect:
    """Say that a file is not the one that the call was admitted for."""
    return RefusedWithoutEffect(f"{target.shown!r} was changed by somebody else meanwhile; read it again")


def _stands_still(folder: int, name: str, found: Found) -> bool:
    """Whether the file that was read is still the one that has the name; reading a large one takes its time."""
    now = _status(folder, name)
    if found.status is None or now is None:
        return found.status is now
    return fingerprint(found.status) == fingerprint(now)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _or_as_it_was(target: ConfinedPath, folder: int | None = None, temporary: str = "") -> Iterator[None]:
    """Whatever goes wrong inside has changed nothing, and leaves no temporary file."""
    try:
        yield
    except BaseException as error:
        if folder is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
        if isinstance(error, OSError):
            raise RefusedWithoutEffect(f"{target.shown!r} cannot be changed: {error.strerror}") from error
        raise


def _write(folder: int, temporary: str, data: bytes, prior: FileState, status: os.stat_result | None) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)  # of an earlier delivery of this operation, which is over
    # A file that is replaced may be for its owner's eyes alone: so is its new content, until it has its permissions.
    file = os.open(temporary, _NEW_FILE, 0o666 if prior.mode is None else 0o600, dir_fd=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        if status is not None and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            with contextlib.suppress(PermissionError):
                os.fchown(file, status.st_uid, status.st_gid)
        if prior.mode is not None:
            os.fchmod(file, prior.mode)
        os.fsync(file)
    finally:
        os.close(file)
