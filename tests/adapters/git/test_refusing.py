"""What cannot have checkpoints says so, by a closed list of reasons. SPEC section 16, F1."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.git.checkpoints import GitCheckpoints
from safepoint.adapters.system.clock import SystemClock
from safepoint.ports.checkpoints import Capture, Materialized, TargetUnusable, Unsupported, WhyUnsupported
from safepoint.ports.workspace import CouldNotLook

from .repositories import IDENTITY, Untouched, captured, checkpoints_of, commit, git, make_repository, write, write_odd

W = WhyUnsupported
Build = Callable[[Path], Path]


def plain(root: Path) -> Path:
    write(root, "plain/a")
    return root / "plain"


def bare(root: Path) -> Path:
    return make_repository(root / "bare", "--bare")


def inside_git_folder(root: Path) -> Path:
    return make_repository(root / "project") / ".git"


def sparse(root: Path) -> Path:
    folder = make_repository(root / "project")
    write(folder, "a/b")
    write(folder, "c/d")
    commit(folder)
    git(folder, "sparse-checkout", "set", "a")
    return folder


def with_submodule(root: Path) -> Path:
    library = make_repository(root / "library")
    write(library, "code")
    commit(library)
    folder = make_repository(root / "project")
    write(folder, "a")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    commit(folder)
    return folder


def submodule_that_is_not_there(root: Path) -> Path:
    folder = with_submodule(root)
    git(folder, "submodule", "--quiet", "deinit", "--all")
    return folder


def nested(root: Path) -> Path:
    folder = make_repository(root / "project")
    write(folder, "a")
    commit(folder)
    inner = make_repository(folder / "deep" / "inner")
    write(inner, "b")
    commit(inner)
    return folder


def nested_without_commit(root: Path) -> Path:
    folder = make_repository(root / "project")
    write(folder, "a")
    write(make_repository(folder / "inner"), "b")
    return folder


def lfs(root: Path) -> Path:
    folder = make_repository(root / "project")
    write(folder, "art/.gitattributes", b"*.psd filter=lfs diff=lfs merge=lfs -text\n")
    write(folder, "art/picture.psd", b"pixels")
    return folder


def collision(root: Path) -> Path:
    folder = make_repository(root / "project")
    write(folder, "Docs/read")
    write(folder, "docs/write")
    return folder


def collision_of_letters(root: Path) -> Path:
    folder = make_repository(root / "project")
    write_odd(folder, "\u00c4".encode(), b"composed")
    write_odd(folder, "a\u0308".encode(), b"not composed")
    return folder


def files_elsewhere(root: Path) -> Path:
    folder = make_repository(root / "project")
    (root / "files").mkdir()
    git(folder, "config", "core.worktree", str(root / "files"))
    return folder


def ignored_folder(root: Path) -> Path:
    top = make_repository(root / "project")
    write(top, ".gitignore", b"build/\n")
    return write(top, "build/deep/a").parent


def all_ignored(root: Path) -> Path:
    folder = make_repository(root / "project")
    write(folder, ".gitignore", b"*\n")
    write(folder, "a")
    return folder


def unknown_format(root: Path) -> Path:
    folder = make_repository(root / "project")
    git(folder, "config", "core.repositoryFormatVersion", "1")
    git(folder, "config", "extensions.fromTheFuture", "true")
    return folder


CASES: dict[Build, tuple[WhyUnsupported, tuple[str, ...]]] = {
    plain: (W.NOT_A_REPOSITORY, ()),
    files_elsewhere: (W.NOT_A_REPOSITORY, ()),
    bare: (W.BARE_REPOSITORY, ()),
    inside_git_folder: (W.INSIDE_GIT_FOLDER, ()),
    sparse: (W.SPARSE_CHECKOUT, ()),
    with_submodule: (W.SUBMODULES, ("lib",)),
    submodule_that_is_not_there: (W.SUBMODULES, ("lib",)),
    nested: (W.NESTED_REPOSITORY, ("deep/inner",)),
    nested_without_commit: (W.NESTED_REPOSITORY, ("inner",)),
    lfs: (W.LFS, ("art/picture.psd",)),
    collision: (W.CASE_COLLISION, ("Docs", "docs")),
    collision_of_letters: (W.CASE_COLLISION, ("a\u0308", "\u00c4")),
    ignored_folder: (W.FOLDER_IGNORED, ()),
    all_ignored: (W.EVERYTHING_IGNORED, (".gitignore", "a")),
    unknown_format: (W.REPOSITORY_FORMAT, ()),
}


def refused(answer: Capture) -> Unsupported:
    assert isinstance(answer, Unsupported), answer
    return answer


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_what_cannot_be_captured_is_refused_with_its_reason_and_leaves_no_ref(tmp_path: Path, build: Build) -> None:
    folder = build(tmp_path)
    checkpoints = checkpoints_of(tmp_path)
    answer = refused(checkpoints.capture(str(folder), "one"))
    assert (answer.why, answer.paths) == CASES[build]
    assert answer.detail
    assert not list(tmp_path.rglob("refs/safepoint"))
    assert refused(checkpoints.capture(str(folder), "one")) == answer


def test_every_reason_is_met_by_a_test() -> None:
    elsewhere = {W.NO_GIT, W.GIT_TOO_OLD, W.REPOSITORY_NOT_TRUSTED, W.CONTENT_TOO_LARGE}
    assert {why for why, _ in CASES.values()} == set(WhyUnsupported) - elsewhere


def test_every_reason_is_told_on_the_page_of_workspaces() -> None:
    page = (Path(__file__).parents[3] / "docs" / "workspace.md").read_text()
    assert [why for why in WhyUnsupported if f"`{why}`" not in page] == []


def test_without_the_program_there_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_repository(tmp_path / "project")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert refused(checkpoints_of(tmp_path).capture(str(folder), "one")).why is W.NO_GIT


def test_an_old_program_is_refused_with_both_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_repository(tmp_path / "project")
    program = write(tmp_path, "old/git", b"#!/bin/sh\necho git version 2.11.4\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))
    answer = refused(checkpoints_of(tmp_path).capture(str(folder), "one"))
    assert (answer.why, answer.detail) == (W.GIT_TOO_OLD, "git 2.11 is there, 2.30 is needed")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_somebody_else_is_refused_as_git_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    for path in (folder, folder / ".git"):
        os.chown(path, 12345, 12345)
    assert refused(checkpoints_of(tmp_path).capture(str(folder), "one")).why is W.REPOSITORY_NOT_TRUSTED


def test_a_repository_that_cannot_be_read_is_not_one_that_is_not_there(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    (folder / ".git" / "HEAD").write_bytes(bytes(40))
    answer = checkpoints_of(tmp_path).capture(str(folder), "one")
    assert isinstance(answer, CouldNotLook), answer
    tree = tmp_path / "tree"
    write(tree, ".git", b"gitdir: /nowhere/at/all\n")
    assert isinstance(checkpoints_of(tmp_path).capture(str(tree), "one"), CouldNotLook)


def test_a_folder_that_git_could_not_open_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git only warns, and goes on as if nothing were in it."""
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    real = shutil.which("git")
    warning = "warning: could not open directory 'closed/': Permission denied"
    script = f'#!/bin/sh\n[ "$1" = add ] && echo "{warning}" >&2\nexec {real} "$@"\n'
    write(tmp_path, "warning/git", script.encode()).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/warning{os.pathsep}{os.environ['PATH']}")
    answer = checkpoints_of(tmp_path).capture(str(folder), "one")
    assert isinstance(answer, CouldNotLook)
    assert "closed/" in answer.detail


def test_attributes_for_lfs_that_no_file_has_refuse_nothing(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, ".gitattributes", b"*.psd filter=lfs diff=lfs merge=lfs -text\n")
    write(folder, "a")
    captured(checkpoints_of(tmp_path).capture(str(folder), "one"))


def test_an_ignored_repository_inside_refuses_nothing(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, ".gitignore", b"vendor/\n")
    write(make_repository(folder / "vendor" / "x"), "b")
    captured(checkpoints_of(tmp_path).capture(str(folder), "one"))


def test_what_became_a_repository_of_its_own_is_refused_as_if_it_had_always_been_one(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "inner/a")
    checkpoints = checkpoints_of(tmp_path)
    captured(checkpoints.capture(str(folder), "one"))
    make_repository(folder / "inner")
    commit(folder / "inner")
    answers = [one.capture(str(folder), "two") for one in (checkpoints, checkpoints_of(tmp_path / "elsewhere"))]
    assert [refused(answer).why for answer in answers] == [W.NESTED_REPOSITORY] * 2


def test_a_submodule_and_a_linked_git_folder_are_workspaces_themselves(tmp_path: Path) -> None:
    inside = with_submodule(tmp_path) / "lib"
    captured(checkpoints_of(tmp_path).capture(str(inside), "one"))
    folder = make_repository(tmp_path / "linked")
    write(folder, "a")
    (folder / ".git").rename(tmp_path / "git-folder")
    (folder / ".git").symlink_to(tmp_path / "git-folder")
    captured(checkpoints_of(tmp_path).capture(str(folder), "one"))


def test_only_what_lies_in_the_workspace_refuses(tmp_path: Path) -> None:
    top = with_submodule(tmp_path)
    write(top, "part/a")
    git(top, *IDENTITY, "commit", "--quiet", "--allow-empty", "-m", "more")
    captured(checkpoints_of(tmp_path).capture(str(top / "part"), "one"))


@pytest.mark.parametrize("inside", ["new", "deep/new", ".git/new", ".git/refs/new"])
def test_nothing_is_written_out_into_a_workspace_or_a_git_folder(tmp_path: Path, inside: str) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "deep/a")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    untouched = Untouched(folder)
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(folder / inside)), TargetUnusable)
    untouched.check()
    assert captured(checkpoints.capture(str(folder), "two")).tree_id == checkpoint.tree_id


@pytest.mark.parametrize("kind", ["another", "bare", "worktree"])
def test_nothing_is_written_out_into_the_git_folder_of_another_repository(tmp_path: Path, kind: str) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    commit(folder)
    target = {
        "another": lambda: make_repository(tmp_path / "other") / ".git" / "info",
        "bare": lambda: make_repository(tmp_path / "other", "--bare"),
        "worktree": lambda: folder / ".git" / "worktrees" / "tree",
    }[kind]()
    if kind == "worktree":
        git(folder, "worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"))
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    before = sorted(path.name for path in target.iterdir())
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(target / "new")), TargetUnusable)
    assert sorted(path.name for path in target.iterdir()) == before


def test_a_copy_is_not_made_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    for parent in ("nowhere", "project/a"):
        answer = checkpoints.materialize(str(folder), checkpoint, str(tmp_path / parent / "new"))
        assert isinstance(answer, TargetUnusable), answer
        assert str(tmp_path / parent) in answer.detail


def test_a_folder_of_ours_in_a_workspace_may_hold_copies(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    (folder / "state" / "isolated").mkdir(parents=True)
    checkpoints = GitCheckpoints(tmp_path / "place", SystemClock(), (f"{folder}/state/isolated/*",))
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    target = folder / "state" / "isolated" / "new"
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(target)), Materialized)
    assert captured(checkpoints.capture(str(folder), "two")).tree_id == checkpoint.tree_id
