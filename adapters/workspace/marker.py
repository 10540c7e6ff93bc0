"""The marker file: reading it without trusting it, and making it so that it is whole or not there. SPEC section 16."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from hashlib import sha256
from typing import NamedTuple
from uuid import NAMESPACE_OID, uuid4, uuid5

from ...domain import canonical
from ...ports.workspace import MARKER_BYTES_MAX, MARKER_NAME, MARKER_SCHEMA_VERSION, MarkerFault

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_SUCH_WAY = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EISDIR, errno.EINVAL, errno.ENOENT})


class Marker(NamedTuple):
    """What a marker says: the UUID, the one that it replaced where a person renewed it, and the digest of the path that
    a person said to be the workspace.
    """

    uuid: str
    renewed_from: str | None = None
    adopted: str | None = None


class Fault(NamedTuple):
    """What is wrong with a marker that is there."""

    fault: MarkerFault
    detail: str


def read_marker(folder: int) -> Marker | Fault | None:
    """Return what the marker of an open folder says, what is wrong with it, or None when there is none.

    Raises:
        OSError: could not look.
    """
    try:
        file = os.open(MARKER_NAME, _READ_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK}:
            return Fault(MarkerFault.SYMLINKED, "the marker is a symbolic link")
        if error.errno == errno.ENXIO:
            return Fault(MarkerFault.NOT_A_FILE, "the marker is no regular file")
        raise
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return Fault(MarkerFault.NOT_A_FILE, "the marker is no regular file")
        data = os.read(file, MARKER_BYTES_MAX + 1)
    finally:
        os.close(file)
    if len(data) > MARKER_BYTES_MAX:
        return Fault(MarkerFault.OVERSIZED, f"the marker has more than {MARKER_BYTES_MAX} bytes")
    return _marker_in(data)


def as_uuid(text: str) -> str:
    """Return the text if it is a UUID in lower case, else the UUID that names it."""
    return text if _UUID.fullmatch(text) else str(uuid5(NAMESPACE_OID, text))


def create_marker(folder: int, uuid: str) -> None:
    """Make the marker of an open folder, durably, unless one is there by now: then that one stays and this returns all
    the same.

    Raises:
        OSError: it could not be made.
    """
    data = canonical.encode({"schema_version": MARKER_SCHEMA_VERSION, "uuid": uuid}) + b"\n"
    if not _link_unnamed(folder, data):
        _rename_locked(folder, data, f"{MARKER_NAME}.{uuid}.tmp")
    os.fsync(folder)


def path_digest(canonical_path: str) -> str:
    """Names a path in a marker, whatever its length and its bytes."""
    return sha256(os.fsencode(canonical_path)).hexdigest()


def replace_marker(folder: int, marker: Marker) -> None:
    """Give an open folder another marker, durably; it has the old one or the new one, whenever this is interrupted.

    Raises:
        OSError: it could not be replaced.
    """
    said = {name: value for name, value in marker._asdict().items() if value is not None}
    data = canonical.encode({**said, "schema_version": MARKER_SCHEMA_VERSION}) + b"\n"
    _rename_locked(folder, data, f"{MARKER_NAME}.{uuid4()}.tmp", replacing=True)
    os.fsync(folder)


def _marker_in(data: bytes) -> Marker | Fault:
    try:
        marker = canonical.decode(data)
    except canonical.CanonicalError as error:
        return Fault(MarkerFault.MALFORMED, f"the marker is damaged: {error.reason}")
    if not isinstance(marker, dict):
        return Fault(MarkerFault.MALFORMED, "the marker is damaged: no JSON object")
    version, uuid = marker.get("schema_version"), marker.get("uuid")
    if isinstance(version, int) and not isinstance(version, bool) and version > MARKER_SCHEMA_VERSION:
        return Fault(
            MarkerFault.NEWER, f"the marker has schema version {version}; this program knows {MARKER_SCHEMA_VERSION}"
        )
    if version is not True and version == MARKER_SCHEMA_VERSION and isinstance(uuid, str) and _UUID.fullmatch(uuid):
        before, adopted = marker.get("renewed_from"), marker.get("adopted")
        return Marker(
            uuid,
            before if isinstance(before, str) and _UUID.fullmatch(before) else None,
            adopted if isinstance(adopted, str) else None,
        )
    return Fault(MarkerFault.MALFORMED, "the marker is damaged: schema version or UUID is not one")


def _link_unnamed(folder: int, data: bytes) -> bool:
    """Give a finished file without a name its name: whoever is killed leaves nothing behind.

    False where that is impossible.
    """
    if not hasattr(os, "O_TMPFILE"):
        return False
    try:
        file = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_SUCH_WAY:
            return False
        raise
    try:
        os.write(file, data)
        os.fsync(file)
        os.link(f"/proc/self/fd/{file}", MARKER_NAME, dst_dir_fd=folder, follow_symlinks=True)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno in _NO_SUCH_WAY:
            return False
        raise
    finally:
        os.close(file)
    return True


def _rename_locked(folder: int, data: bytes, temporary: str, *, replacing: bool = False) -> None:
    """Rename a finished file over nothing, or over the old marker; a lock on the folder keeps two makers apart."""
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        os.write(file, data)
        os.fsync(file)
        fcntl.flock(folder, fcntl.LOCK_EX)
        if replacing or read_marker(folder) is None:
            os.rename(temporary, MARKER_NAME, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)
        os.close(file)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
