"""What was found out about the names in a workspace, which holds as long as no name comes or goes."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, Self

from .refusals import ATTRIBUTES
from .repository import Repository

CHECKSUM_BYTES = 32


class Names(NamedTuple):
    """The names that belong to a workspace, as far as they must be looked at each time.

    Attributes:
        users_index: what the user's index was like, by `users_index_of`.
        folders: all folders with files, without the top.
        untracked: what the user's index does not name: out as soon as it is ignored.
        absent: what it names and was not there: in as soon as it is.
        attributes: the files of attributes.
    """

    users_index: str
    folders: Collection[bytes]
    untracked: Collection[bytes]
    absent: Collection[bytes]
    attributes: Collection[bytes]

    @classmethod
    def of(cls, users_index: str, paths: set[bytes], tracked: set[bytes]) -> Self:
        """Of all names that belong to the workspace, and those of the user's index."""
        attributes = [path for path in paths if path.endswith(ATTRIBUTES)]
        return cls(users_index, folders_of(paths), paths - tracked, tracked - paths, attributes)

    def as_json(self) -> dict[str, str]:
        """For keeping. Names are bytes, of which each becomes one character."""
        lists = (self.folders, self.untracked, self.absent, self.attributes)
        joined = [b"\0".join(sorted(names)).decode("latin-1") for names in lists]
        return dict(zip(self._fields, (self.users_index, *joined), strict=True))

    @classmethod
    def from_json(cls, kept: Any) -> Self:
        """What was kept."""
        first, *joined = (str(kept[field]) for field in cls._fields)
        return cls(first, *(names.encode("latin-1").split(b"\0") if names else [] for names in joined))


def folders_of(paths: Iterable[bytes]) -> set[bytes]:
    """All folders on the way to the paths, without the top."""
    folders = {path.rpartition(b"/")[0] for path in paths}
    while parents := {folder.rpartition(b"/")[0] for folder in folders} - folders:
        folders |= parents
    return folders - {b""}


def users_index_of(repository: Repository) -> str:
    """Tell the user's index from any other, without reading it: which file, how old and large, and its checksum.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        with open(os.path.join(repository.git, "index"), "rb") as stream:
            status = os.fstat(stream.fileno())
            stream.seek(max(0, status.st_size - CHECKSUM_BYTES))
            checksum = stream.read().hex()
    except FileNotFoundError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {checksum}"
