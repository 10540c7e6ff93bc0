"""What `doctor` looks at that is not in the store: files, file system, locks, platform, versions, limits."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from ..process.containment import best_kind
from ..process.host_facts import read_host_facts
from .escaping import one_line

FREE_BYTES_MIN: Final = 100 * 1024 * 1024
FILES_MIN: Final = 256
NETWORK_FILE_SYSTEMS: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "fuse.sshfs",
        "fuse.rclone",
        "davfs",
        "lustre",
    }
)
_LIBRARIES: Final = ("pydantic", "eventsourcing", "dependency-injector", "anyio")


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, in plain words, with what to do about it."""

    name: str
    level: Level
    said: str
    next_step: str = ""


def host_checks(store: Path) -> Iterator[Check]:
    """Look at everything around a store, which need not be there."""
    yield from _files(store)
    yield _file_system(store)
    yield _space(store)
    yield _locks(store)
    yield _platform()
    yield _containment()
    yield _open_files()
    yield _versions()


def _files(store: Path) -> Iterator[Check]:
    """What is stored is for its user alone."""
    files = (store, Path(f"{store}-wal"), Path(f"{store}.anchor"))
    try:
        modes = {path: found.st_mode for path in files if (found := _found(path)) is not None}
    except OSError as error:
        said = f"Who may read the store's files could not be seen: {error.strerror}."
        yield Check("files", Level.NOTE, said, _WRITABLE)
        return
    there = list(modes)
    open_ones = [path.name for path, mode in modes.items() if mode & 0o077]
    if open_ones:
        hint = f"Close them: chmod go= {one_line(store, 1_000)}*"
        yield Check("files", Level.NOTE, f"Other users may read or write {', '.join(map(one_line, open_ones))}.", hint)
    elif there:
        yield Check("files", Level.OK, "The store's files are for their user alone.")


def _found(path: Path) -> os.stat_result | None:
    """What has that name, None where nothing has it.

    Raises:
        OSError: it may not be looked at.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _file_system(store: Path) -> Check:
    kind = file_system_of(store)
    if kind is None:
        return Check("file_system", Level.NOTE, "On which file system the store is could not be seen.", _LOCAL)
    if kind in NETWORK_FILE_SYSTEMS:
        said = f"The store is on a network file system ({kind}): its locks prove nothing between machines."
        return Check("file_system", Level.FAULT, said, _LOCAL)
    return Check("file_system", Level.OK, f"The store is on a local file system ({kind}).")


_LOCAL: Final = "Keep stores on local file systems."


def file_system_of(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """The kind of file system that a path is on, None where that could not be seen."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best, kind = "", None
    for line in lines:
        _, _, rest = line.partition(" ")
        where, _, more = rest.partition(" ")
        folder = where.encode().decode("unicode_escape", "replace") if "\\" in where else where
        inside = real == folder or real.startswith(folder.rstrip("/") + "/")
        if inside and len(folder) >= len(best):
            best, kind = folder, more.split(" ", 1)[0]
    return kind


def _space(store: Path) -> Check:
    folder = next((one for one in (store, *store.parents) if os.path.exists(one)), Path("/"))  # noqa: PTH110 (never raises)
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("space", Level.NOTE, f"How much room is left could not be seen: {error.strerror}.")
    said = f"{free // (1024 * 1024)} MiB are free beside the store."
    if free < FREE_BYTES_MIN:
        return Check("space", Level.NOTE, said, "Make room: without it no T1 is granted, and runs stop.")
    return Check("space", Level.OK, said)


def _locks(store: Path) -> Check:
    locks = Path(f"{os.path.realpath(store)}.locks")
    try:
        found, beside = _found(locks), _found(locks.parent)
    except OSError as error:
        said = f"The folder of lock files could not be looked at ({error.strerror}): nobody can be proven dead."
        return Check("locks", Level.FAULT, said, _WRITABLE)
    folder = locks if found else locks.parent
    if not found and not beside:
        return Check("locks", Level.OK, "The folder of lock files is made with the store.")
    if not locks.parent.is_dir() or (found and not locks.is_dir()):
        return Check(
            "locks", Level.FAULT, f"{one_line(folder, 1_000)} is no folder, so nothing can be owned.", _WRITABLE
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        said = f"The folder {one_line(folder, 1_000)} cannot be written: nothing can be owned, and nobody proven dead."
        return Check("locks", Level.FAULT, said, _WRITABLE)
    return Check("locks", Level.OK, "The folder of lock files can be written.")


_WRITABLE: Final = "Give this user the folder, or name another store with --store."


def _platform() -> Check:
    try:
        facts = read_host_facts()
    except OSError as error:
        hint = "Use Linux or macOS; in a container, let it see /proc."
        return Check("platform", Level.FAULT, f"This host does not tell what an owner must record: {error}.", hint)
    return Check("platform", Level.OK, f"{platform.system()}, host {one_line(facts.host.partition('/')[0], 200)}.")


def _containment() -> Check:
    match best_kind():
        case "subreaper":
            said = "Supervised tools are over when their last descendant has ended."
            return Check("supervision", Level.OK, said)
        case "process_group":
            said = "Supervised tools are followed by process group: what makes a session of its own escapes."
            return Check("supervision", Level.NOTE, said, "Declare such tools `reattach` or `outcome_unknown`.")
        case _:
            said = "This platform cannot supervise what a tool starts."
            return Check("supervision", Level.FAULT, said, "Declare tools `supervised=False`, or use Linux.")


def _open_files() -> Check:
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (ImportError, OSError):
        return Check("open_files", Level.NOTE, "How many files may be open could not be seen.")
    if 0 <= soft < FILES_MIN:
        hint = f"Raise it: ulimit -n {FILES_MIN * 4}"
        return Check("open_files", Level.NOTE, f"Only {soft} files may be open at once; many runs need more.", hint)
    return Check("open_files", Level.OK, f"{soft if soft >= 0 else 'Any number of'} files may be open at once.")


def _versions() -> Check:
    from ... import __version__

    named = [f"safepoint {__version__}", f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    named += [f"{name} {_version(name)}" for name in _LIBRARIES]
    return Check("versions", Level.OK, f"{', '.join(named)}.")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not found)"
