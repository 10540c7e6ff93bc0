"""Where a store is, and whether it is still there: a copy or a restored file is another file. SPEC section 6."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ...domain.errors import StoreUnavailable, StoreUnusable
from .birth import birth_of

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BORN = "@"


class FileIdentity(NamedTuple):
    """Which file it is.

    Attributes:
        inode: its number and, where the file system tells it, the time of its birth: a file that takes the place of a
            removed one often gets the same number. Text, because inode numbers may exceed what SQLite counts to.
    """

    device: str
    inode: str
    boot_id: str | None

    def same_file_as(self, recorded: FileIdentity) -> bool:
        """Tell whether this is the recorded file, under whatever name.

        A file system may get another device number at the next boot, so devices are compared within one boot only.
        """
        number, _, born = self.inode.partition(_BORN)
        recorded_number, _, recorded_birth = recorded.inode.partition(_BORN)
        if number != recorded_number or (born and recorded_birth and born != recorded_birth):
            return False
        return self.device == recorded.device or self.boot_id is None or self.boot_id != recorded.boot_id


class Place:
    """The files of one store, by their real path.

    Raises:
        StoreUnusable: the path is a folder or another thing that cannot be a database, or its folder is missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.database = Path(os.path.realpath(path))
        self.anchor = Path(f"{self.database}.anchor")
        self.wal = Path(f"{self.database}-wal")
        self.boot_id = _boot_id()
        self._text = str(self.database)
        try:
            mode = self.database.stat().st_mode
        except FileNotFoundError:
            if not self.database.parent.is_dir():
                raise StoreUnusable(f"cannot keep a store at {self.database}: its folder does not exist") from None
        except OSError as error:
            raise StoreUnavailable(f"cannot look at {self.database}: {error}") from error
        else:
            if not stat.S_ISREG(mode):
                kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
                raise StoreUnusable(f"cannot use {self.database} as a store: it is {kind}")

    def identity(self) -> FileIdentity | None:
        """Which file is there now, or None when there is none.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        try:
            found = self.database.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreUnavailable(f"cannot look at {self.database}: {error}") from error
        return self.identity_of(self.database, found)

    def identity_of(self, file: Path, found: os.stat_result) -> FileIdentity:
        """Which file was found."""
        born = birth_of(file)
        inode = str(found.st_ino) if born is None else f"{found.st_ino}{_BORN}{born}"
        return FileIdentity(str(found.st_dev), inode, self.boot_id)

    def has_log(self) -> bool:
        """Tell whether there is a log (a WAL) that holds something.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        try:
            return self.wal.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreUnavailable(f"cannot look at {self.wal}: {error}") from error

    def is_still(self, device_and_inode: tuple[int, int]) -> bool:
        """Tell whether the database is the file that it was; cheap, because it is asked once per commit.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        try:
            found = os.stat(self._text)  # noqa: PTH116
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreUnavailable(f"cannot look at {self.database}: {error.strerror}") from error
        return (found.st_dev, found.st_ino) == device_and_inode

    def uri(self, mode: str) -> str:
        """The database as SQLite's URI with an opening mode (`ro` or `rw`)."""
        return f"file://{quote(os.fsencode(self._text))}?mode={mode}"


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return None
