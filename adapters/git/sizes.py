"""How much a capture would read and copy, told from names and sizes, before it does. ADR 0081."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Final

from ...ports.checkpoints import CaptureLimits, WhyUnsupported
from .raw_view import RawView
from .refusals import refused

MIB: Final = 1024 * 1024


def refuse_too_large(view: RawView, limits: CaptureLimits) -> None:
    """Refuse what is beyond the limits. It costs what a status does, and is an estimate: files may change meanwhile.

    Args:
        view: with an index of ours, if there is one: what that knows unchanged is not read.

    Raises:
        CannotAnswer: there is more than that, or it could not be looked at.
    """
    of_users_index = view.copy_of_users_index()
    to_read = _not_in(view, view.index)
    if of_users_index is None:
        _refuse_beyond(view, to_read, min(limits))
        return
    if not os.path.exists(view.index):  # files that are tracked although they are ignored are read for the first time
        tracked = view.ask("ls-files", "-z", "--full-name", cwd=view.repository.folder, GIT_INDEX_FILE=of_users_index)
        to_read |= _paths(tracked)
    _refuse_beyond(view, to_read, limits.read_bytes)
    if _size_of(view, to_read, limits.new_bytes) > limits.new_bytes:
        _refuse_beyond(view, to_read & _not_in(view, of_users_index), limits.new_bytes)


def _not_in(view: RawView, index: str) -> set[bytes]:
    """The paths, from the top of the working tree, that an index does not have as they are."""
    arguments = ("ls-files", "-m", "-o", "-z", "--exclude-standard", "--full-name")
    return _paths(view.ask(*arguments, cwd=view.repository.folder, GIT_INDEX_FILE=index))


def _paths(listing: bytes) -> set[bytes]:
    return set(listing.split(b"\0")) - {b""}


def _refuse_beyond(view: RawView, paths: set[bytes], limit_bytes: int) -> None:
    if _size_of(view, paths, limit_bytes) > limit_bytes:
        shown = f"{limit_bytes // MIB} MiB" if limit_bytes >= MIB else f"{limit_bytes} bytes"
        detail = f"more than {shown} of files would have to be read or copied first"
        raise refused(WhyUnsupported.CONTENT_TOO_LARGE, detail, [])


def _size_of(view: RawView, paths: Iterable[bytes], enough_bytes: int) -> int:
    """The bytes of the files, not counted any further once there are enough."""
    top, size = os.fsencode(view.repository.top), 0
    for path in paths:
        try:
            status = os.lstat(os.path.join(top, path))
        except OSError:
            continue  # it has just gone; what cannot be read is told by reading it
        size += status.st_size if stat.S_ISREG(status.st_mode) else 0
        if size > enough_bytes:
            break
    return size
