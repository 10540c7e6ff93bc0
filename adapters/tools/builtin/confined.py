"""Files inside the workspace and nowhere else: every folder on the way is opened by itself, and no link is followed.

What was checked is what is used: a folder that is exchanged for a link meanwhile is noticed, because the open folder is
what counts.
"""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ....domain.errors import RefusedWithoutEffect

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ConfinedPath(NamedTuple):
    """A path below the workspace, as names; none of them is empty, `.` or `..`."""

    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        """As it is told to the model."""
        return "/".join(self.names) or "."


def confined(path: str, workspace: Path) -> ConfinedPath:
    """Read a path as the model gave it: relative to the workspace, or absolute and below it.

    Raises:
        RefusedWithoutEffect: it leaves the workspace, or is no path at all.
    """
    if not path or "\0" in path:
        raise RefusedWithoutEffect("the path is empty or holds a NUL character")
    pure = PurePosixPath(path)
    if ".." in pure.parts:
        raise RefusedWithoutEffect(f"{path!r} has '..' in it; name paths from the workspace down")
    if pure.is_absolute():
        if not pure.is_relative_to(workspace):
            raise RefusedWithoutEffect(f"{path!r} is outside the workspace")
        pure = pure.relative_to(workspace)
    return ConfinedPath(pure.parts)


def confined_file(path: str, workspace: Path) -> ConfinedPath:
    """As `confined`, for a path that must not be the workspace itself."""
    found = confined(path, workspace)
    if not found.names or path.endswith("/"):
        raise RefusedWithoutEffect(f"{path!r} names a folder, not a file")
    return found


def folded(name: str) -> str:
    """Spell a name as file systems compare it that tell neither case nor the composition of letters apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@contextlib.contextmanager
def opened_folder(workspace: Path, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """Open a folder below the workspace.

    Args:
        workspace: absolute, without links.
        names: the way down.
        make: make the folders that are missing, durably.

    Raises:
        RefusedWithoutEffect: there is no such folder, or a link or something else stands in its place; nothing was
            made.
        OSError: a folder could not be made after another one had been.
    """
    with contextlib.ExitStack() as opened:
        try:
            folder = os.open(workspace, _FOLDER)
        except OSError as error:
            raise _refusal(".", error) from error
        opened.callback(os.close, folder)
        made: list[tuple[int, str]] = []
        for depth, name in enumerate(names, start=1):
            way = "/".join(names[:depth])
            try:
                if make and _make_missing(folder, name, way):
                    made.append((folder, name))
                folder = _open_below(folder, name, way, _FOLDER)
            except RefusedWithoutEffect as refusal:
                if made:  # then it is not true that nothing was done
                    raise OSError(f"folders were made, and then: {refusal}") from refusal
                raise
            opened.callback(os.close, folder)
        try:
            yield folder
        except RefusedWithoutEffect:
            for above, name in reversed(made):
                with contextlib.suppress(OSError):  # somebody else uses it by now
                    os.rmdir(name, dir_fd=above)
            raise


@contextlib.contextmanager
def opened_below(folder: int, name: str) -> Iterator[int | None]:
    """Open one folder inside an open one; None where that is not possible, or where it is a link by now."""
    try:
        below = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        yield None
        return
    try:
        yield below
    finally:
        os.close(below)


def open_file(folder: int, name: str, shown: str) -> int:
    """Open a regular file for reading; the caller closes it.

    Raises:
        RefusedWithoutEffect: there is none, or it is a link or something else.
    """
    file = _open_below(folder, name, shown, _FILE)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise RefusedWithoutEffect(f"{shown!r} is no regular file")
    return file


def _open_below(folder: int, name: str, shown: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        found = _entry(folder, name, shown)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise RefusedWithoutEffect(f"{shown!r} is a symbolic link; name the place that it points to") from error
        raise _refusal(shown, error) from error


def _make_missing(folder: int, name: str, way: str) -> bool:
    if _entry(folder, name, way) is not None:
        return False
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        return False
    except OSError as error:
        raise _refusal(way, error) from error
    os.fsync(folder)
    return True


def _entry(folder: int, name: str, shown: str) -> os.stat_result | None:
    """Look at a name in an open folder; not being able to look is not the same as finding nothing (F1)."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _refusal(shown, error) from error


def _refusal(shown: str, error: Exception) -> RefusedWithoutEffect:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return RefusedWithoutEffect(f"{shown!r} cannot be opened: {reason}")
