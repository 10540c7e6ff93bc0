"""The one line that is written into a repository, beside a real git."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.workspace.marker_identity import MarkerWorkspaceIdentity
from safepoint.ports.workspace import MARKER_NAME, WorkspaceSeen

Git: TypeAlias = Callable[..., str]
LINE = f"{MARKER_NAME}\n"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }

    def run(folder: Path, *arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    return run


@pytest.fixture
def repository(tmp_path: Path, git: Git) -> Path:
    folder = tmp_path.resolve() / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def ensured(folder: Path) -> WorkspaceSeen:
    seen = MarkerWorkspaceIdentity(Uuid7Ids()).ensure(str(folder))
    assert isinstance(seen, WorkspaceSeen), seen
    return seen


def everything_in(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_git_does_not_see_the_marker_and_nothing_else_of_it_changes(repository: Path, git: Git) -> None:
    git(repository, "status")
    exclude = repository / ".git" / "info" / "exclude"
    before, text = everything_in(repository / ".git"), exclude.read_text()
    for _ in range(3):
        assert ensured(repository).notice is None
    after = everything_in(repository / ".git")
    assert after.keys() == before.keys()
    assert {path for path in after if after[path] != before[path]} == {"info/exclude"}
    assert exclude.read_text() == text + LINE
    assert git(repository, "status", "--porcelain") == ""
    assert MARKER_NAME in os.listdir(repository)  # noqa: PTH208


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, LINE),
        ("", LINE),
        ("*.log\n", f"*.log\n{LINE}"),
        ("*.log", f"*.log\n{LINE}"),
        ("*.log\r\n", f"*.log\r\n{LINE}"),
        (LINE, LINE),
        (f"{MARKER_NAME}\r\n*.log\r\n", f"{MARKER_NAME}\r\n*.log\r\n"),
        (MARKER_NAME, MARKER_NAME),
        (f"# {LINE}", f"# {LINE}{LINE}"),
    ],
)
def test_the_line_is_added_once_whatever_was_there(repository: Path, git: Git, before: str | None, after: str) -> None:
    exclude = repository / ".git" / "info" / "exclude"
    if before is None:
        exclude.unlink()
        exclude.parent.rmdir()
    else:
        exclude.write_bytes(before.encode())
    ensured(repository)
    ensured(repository)
    assert exclude.read_bytes() == after.encode()
    assert git(repository, "status", "--porcelain") == ""


def test_a_workspace_below_the_top_of_a_repository_is_named_there(repository: Path, git: Git) -> None:
    (repository / "a" / "b").mkdir(parents=True)
    ensured(repository / "a" / "b")
    assert git(repository, "status", "--porcelain") == ""


def test_a_worktree_is_another_workspace_and_shares_the_exclude_file(
    repository: Path, git: Git, tmp_path: Path
) -> None:
    """Field report r3-057: a session of the worktree is not one of the main checkout."""
    worktree = tmp_path.resolve() / "worktree"
    git(repository, "worktree", "add", "-q", "-b", "other", str(worktree))
    in_worktree, in_main = ensured(worktree), ensured(repository)
    assert in_worktree.identity != in_main.identity
    assert git(repository, "status", "--porcelain") == git(worktree, "status", "--porcelain") == ""
    assert (repository / ".git" / "info" / "exclude").read_text().count(LINE) == 1


def test_a_moved_repository_is_the_same_workspace(repository: Path, git: Git) -> None:
    """Field report r3-055."""
    before = ensured(repository)
    moved = repository.rename(repository.with_name("moved"))
    after = ensured(moved)
    assert after.identity == before.identity
    assert after.canonical_path == str(moved)
    assert git(moved, "status", "--porcelain") == ""


def test_a_clone_is_another_workspace(repository: Path, git: Git, tmp_path: Path) -> None:
    first = ensured(repository)
    git(tmp_path, "clone", "-q", str(repository), "clone")
    assert ensured(tmp_path / "clone").identity != first.identity


def test_a_submodule_has_an_exclude_file_of_its_own(repository: Path, git: Git, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repository), "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "inner"), "sub")
    ensured(repository / "sub")
    assert (repository / ".git" / "modules" / "sub" / "info" / "exclude").read_text().endswith(LINE)
    assert git(repository / "sub", "status", "--porcelain") == ""


def test_without_a_repository_nothing_but_the_marker_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    assert ensured(folder).notice is None
    assert [entry.name for entry in folder.iterdir()] == [MARKER_NAME]


def test_something_called_git_that_is_no_repository_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / ".git").mkdir(parents=True)
    assert ensured(folder).notice is None
    assert list((folder / ".git").iterdir()) == []


@pytest.mark.parametrize("damage", ["a link", "a folder", "a pointer to nothing", "a pointer that is none"])
def test_an_exclude_file_that_cannot_be_written_is_noticed_and_the_marker_is_made(
    repository: Path, tmp_path: Path, damage: str
) -> None:
    exclude = repository / ".git" / "info" / "exclude"
    workspace = repository
    if damage == "a link":
        exclude.unlink()
        exclude.symlink_to(tmp_path / "dotfiles")
        (tmp_path / "dotfiles").write_text("mine\n")
    elif damage == "a folder":
        exclude.unlink()
        exclude.mkdir()
    else:
        workspace = tmp_path / "worktree"
        workspace.mkdir()
        (workspace / ".git").write_text("gitdir: /nowhere\n" if damage == "a pointer to nothing" else "garbage")
    seen = ensured(workspace)
    if damage == "a pointer to nothing":
        assert seen.notice is None
    else:
        assert seen.notice is not None
        assert "info/exclude" in seen.notice
    assert (workspace / MARKER_NAME).exists()
    if damage == "a link":
        assert (tmp_path / "dotfiles").read_text() == "mine\n"
