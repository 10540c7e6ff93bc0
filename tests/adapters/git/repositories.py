"""Repositories as people have them, and what of them must stay as it is."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

from safepoint.adapters.git.checkpoints import GitCheckpoints
from safepoint.adapters.system.clock import SystemClock
from safepoint.ports.checkpoints import Checkpoint

OURS = ("refs/safepoint", "objects")
HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit"),
    *("post-index-change", "post-merge", "post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-push"),
    *("pre-merge-commit", "prepare-commit-msg", "reference-transaction"),
)
IDENTITY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgSign=false")


def git(folder: Path, *arguments: str, given: bytes = b"", status: int = 0) -> bytes:
    """Run Git as the user does."""
    ended = subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True, check=False)
    assert ended.returncode == status, ended.stderr.decode()
    return ended.stdout


def commit(folder: Path, message: str = "work") -> None:
    git(folder, "add", "-A")
    git(folder, *IDENTITY, "commit", "--quiet", "--no-verify", "--allow-empty", "-m", message)


def make_repository(folder: Path, *options: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main", *options)
    return folder


def write(folder: Path, path: str, content: bytes = b"content\n") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def checkpoints_of(place: Path) -> GitCheckpoints:
    return GitCheckpoints(place / "place", SystemClock())


def captured(answer: object) -> Checkpoint:
    assert isinstance(answer, Checkpoint), answer
    return answer


def write_odd(folder: Path, name: bytes, content: bytes) -> None:
    """Write a file whose name is any bytes."""
    Path(folder, os.fsdecode(name)).write_bytes(content)


def as_git_has_it(folder: Path, name: str) -> bytes:
    """The bytes of a blob."""
    return git(folder, "cat-file", "blob", name)


def tree_of(folder: Path, checkpoint: Checkpoint) -> dict[str, tuple[str, bytes]]:
    """Path -> mode and bytes, as the checkpoint has them."""
    listed = git(folder, "ls-tree", "-r", "-z", checkpoint.tree_id)
    entries = [entry.split(b"\t", 1) for entry in listed.split(b"\0") if entry]
    return {
        os.fsdecode(path): (head.split()[0].decode(), git(folder, "cat-file", "blob", head.split()[2].decode()))
        for head, path in entries
    }


class FileSeen(NamedTuple):
    mode: int
    mtime_ns: int
    content: bytes


def seen(path: Path) -> FileSeen:
    status = path.lstat()
    content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    return FileSeen(stat.S_IMODE(status.st_mode), status.st_mtime_ns, content)


def files_under(folder: Path) -> dict[str, FileSeen]:
    """Every file and link, `.git` left out."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in (*files, *links):
            path = Path(root, name)
            found[str(path.relative_to(folder))] = seen(path)
    return found


def git_files(git_folder: Path) -> dict[str, FileSeen]:
    """Every file of a Git folder that is the user's; of the objects, those that are there now."""
    found = {}
    for path in git_folder.rglob("*"):
        name = path.relative_to(git_folder).as_posix()
        if path.is_file() and not name.startswith(OURS):
            found[name] = seen(path)
    return found


def objects_in(git_folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (git_folder / "objects").rglob("*") if path.is_file()}


class Untouched:
    """What is the user's in a repository, to be compared with what it is later."""

    def __init__(self, folder: Path, git_folder: Path | None = None) -> None:
        self._folder, self._git = folder, git_folder or folder / ".git"
        self._status = self._as_git_sees_it()
        self._files, self._git_files = files_under(folder), git_files(self._git)
        self._objects = objects_in(self._git)

    def check(self) -> None:
        assert files_under(self._folder) == self._files
        assert git_files(self._git) == self._git_files
        objects = objects_in(self._git)
        assert {path: objects.get(path) for path in self._objects} == self._objects
        assert self._as_git_sees_it() == self._status

    def _as_git_sees_it(self) -> tuple[bytes, ...]:
        looks = (
            ("status", "--porcelain=v2", "--branch", "--show-stash", "--ignored"),
            ("stash", "list"),
            ("for-each-ref", "refs/heads", "refs/tags", "refs/stash"),
            ("rev-parse", "--symbolic-full-name", "HEAD"),
        )
        commands = [["git", "--no-optional-locks", *look] for look in looks]
        ended = [subprocess.run(one, cwd=self._folder, capture_output=True, check=False) for one in commands]
        return tuple(one.stdout for one in ended)


def repository_of_somebody(root: Path) -> Path:
    """A repository with all that a checkpoint could disturb: whatever of the user's runs leaves `root/ran`."""
    folder = make_repository(root / "project")
    write(folder, "README", b"read me\n")
    write(folder, "src/main.py", b"print(1)\n")
    write(folder, "kept.log", b"tracked, and ignored by now\n")
    write(folder, "lines.txt", b"one\r\ntwo\r\n")
    write(folder, "shout.up", b"SHOUT\n")
    commit(folder, "first")
    git(folder, "tag", "v1")
    git(folder, "branch", "other")
    write(folder, ".gitignore", b"*.log\nbuild/\n")
    write(folder, ".gitattributes", b"*.txt text\n*.up filter=upper\n")
    write(folder, "README", b"stashed\n")
    git(folder, *IDENTITY, "stash", "push", "--quiet")
    write(folder, ".gitignore", b"*.log\nbuild/\n")
    write(folder, ".gitattributes", b"*.txt text\n*.up filter=upper\n")
    commit(folder, "second")
    write(folder, "README", b"staged\n")
    git(folder, "add", "README")
    write(folder, "README", b"staged, then changed\n")
    write(folder, "notes", b"untracked\n")
    write(folder, "build/out", b"ignored\n")
    write(folder, "trace.log", b"ignored\n")
    write(folder, "shout.up", b"whisper\n")
    _with_programs_that_tell(folder, root / "ran")
    return folder


def _with_programs_that_tell(folder: Path, ran: Path) -> None:
    """Hooks, filters and helpers that leave a file when they run, and settings that would change bytes."""
    tell = f"#!/bin/sh\ntouch '{ran}'\nexit 1\n"
    for hook in HOOKS:
        file = write(folder, f".git/hooks/{hook}", tell.encode())
        file.chmod(0o755)
    program = write(folder.parent, "tell", tell.encode())
    program.chmod(0o755)
    settings = {
        "core.autocrlf": "true",
        "core.safecrlf": "true",
        "core.fsmonitor": str(program),
        "core.hooksPath": str(folder / ".git" / "hooks"),
        "core.logAllRefUpdates": "always",
        "core.editor": str(program),
        "filter.upper.clean": f"touch '{ran}'; tr a-z A-Z",
        "filter.upper.smudge": f"touch '{ran}'; tr A-Z a-z",
        "filter.upper.required": "true",
        "commit.gpgSign": "true",
        "gpg.program": str(program),
        "user.useConfigOnly": "true",
        "gc.auto": "1",
        "index.version": "4",
        "core.untrackedCache": "true",
    }
    for name, value in settings.items():
        git(folder, "config", name, value)
    ran.unlink(missing_ok=True)
