"""Replacing a file so that every reader, and every crash, sees either the old content or the new."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from ....domain import canonical
from ....domain.errors import RefusedWithoutEffect
from ....domain.identifiers import OperationId

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def temporary_name(operation_id: OperationId) -> str:
    """Name the temporary file of an operation, so that whoever cleans up after a crash can find it."""
    return f".safepoint-{canonical.sha256_hex(operation_id.encode())[:24]}.tmp"


def replace_file(
    folder: int,
    name: str,
    data: bytes,
    *,
    prior: os.stat_result | None,
    temporary: str,
    written: Callable[[], None],
    renamed: Callable[[], None],
) -> None:
    """Write a file beside its place, make it durable, and rename it into its place.

    Permissions and owner of the prior file are kept; other hard links of it keep the old content.

    Args:
        folder: the open folder that holds it.
        name: its name there.
        data: the new content.
        prior: what stood there when `data` was made, or None for nothing; compared again right before the rename.
        temporary: the name to write under.
        written, renamed: called at these instants.

    Raises:
        RefusedWithoutEffect: the new content could not be written, or something else stands there now; the file is as
            it was.
        OSError: the new content is in place, and it is not known whether durably.
    """
    try:
        _write(folder, temporary, data, prior)
        written()
        _check_unchanged(folder, name, prior)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        if isinstance(error, OSError):
            raise RefusedWithoutEffect(f"{name!r} cannot be written: {error.strerror}") from error
        raise
    renamed()
    os.fsync(folder)


def _write(folder: int, temporary: str, data: bytes, prior: os.stat_result | None) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)  # of an earlier delivery of this operation, which is over
    file = os.open(temporary, _NEW_FILE, 0o666, dir_fd=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        if prior is not None:
            if (prior.st_uid, prior.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(PermissionError):
                    os.fchown(file, prior.st_uid, prior.st_gid)
            os.fchmod(file, stat.S_IMODE(prior.st_mode))
        os.fsync(file)
    finally:
        os.close(file)


def _check_unchanged(folder: int, name: str, prior: os.stat_result | None) -> None:
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if (now is None) != (prior is None) or (now and prior and _fingerprint(now) != _fingerprint(prior)):
        raise RefusedWithoutEffect(f"{name!r} was changed by somebody else meanwhile; read it again")


def _fingerprint(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns
