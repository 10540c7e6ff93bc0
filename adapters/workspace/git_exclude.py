"""The one line that is written into a repository: the marker's name in `info/exclude`. SPEC section 16.

Git itself is not run: no hook, no configuration, no lock of it is touched.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

GIT_FILE_BYTES_MAX = 64 * 1024
EXCLUDE_BYTES_MAX = 4 * 1024 * 1024


def exclude_from_git(workspace: Path, name: str) -> str | None:
    """Name a file in the exclude file of the repository that holds `workspace`, once; nothing without a repository.

    One append under a lock, so that whoever is killed leaves either no line or the whole line.

    Returns:
        None when it is named now or there is no repository, else why it could not be named.
    """
    try:
        git = _common_folder(workspace)
        if git is None:
            return None
        _append_once(git / "info", name.encode())
    except (OSError, ValueError) as error:
        return f"{name} could not be named in Git's info/exclude: {error}"
    return None


def _common_folder(workspace: Path) -> Path | None:
    """Find the folder that the worktrees of the repository share, or None where there is no repository."""
    for folder in (workspace, *workspace.parents):
        entry = folder / ".git"
        if not os.path.lexists(entry):
            continue
        git = entry if entry.is_dir() else folder / _pointer(entry, b"gitdir: ")
        if not (git / "HEAD").is_file():
            continue  # Git goes on looking, too
        common = git / "commondir"
        return git / _pointer(common, b"") if common.is_file() else git
    return None


def _pointer(file: Path, prefix: bytes) -> str:
    """Read the path in a `.git` file or a `commondir` file."""
    with file.open("rb") as stream:
        data = stream.read(GIT_FILE_BYTES_MAX)
    if not data.startswith(prefix) or not data.removeprefix(prefix).strip():
        raise ValueError(f"{file} does not point to a repository")
    return os.fsdecode(data.removeprefix(prefix).rstrip(b"\r\n"))


def _append_once(info: Path, line: bytes) -> None:
    info.mkdir(exist_ok=True)
    path = info / "exclude"
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, 0o644)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > EXCLUDE_BYTES_MAX:
            raise ValueError(f"{path} is no ordinary exclude file")
        fcntl.flock(file, fcntl.LOCK_EX)  # let go by closing
        present = os.pread(file, EXCLUDE_BYTES_MAX, 0)
        if line in (entry.strip() for entry in present.splitlines()):
            return
        os.write(file, (b"" if not present or present.endswith(b"\n") else b"\n") + line + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
