"""A capture from what is remembered answers as one that has never seen the workspace, whatever happened between."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.ports.checkpoints import Checkpoint, Unsupported, WhyUnsupported

from .repositories import captured, checkpoints_of, commit, git, make_repository, tree_of, write

PATHS = ("a", "b.log", "sub/c", "sub/d.log", "build/e", "build/deep/f", "g.txt")
RULES = (b"", b"*.log\n", b"build/\n", b"*\n!a\n!sub\n!sub/c\n", b"/sub\n")
STEPS = 25


def write_file(folder: Path, dice: random.Random) -> None:
    file = folder / dice.choice(PATHS)
    if file.is_symlink() or (file.parent != folder and file.parent.is_symlink()):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"%d\r\n" % dice.randrange(3))


def delete(folder: Path, dice: random.Random) -> None:
    (folder / dice.choice(PATHS)).unlink(missing_ok=True)


def link(folder: Path, dice: random.Random) -> None:
    file = folder / dice.choice(PATHS)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.symlink_to(dice.choice(("a", "nowhere")))


def change_mode(folder: Path, dice: random.Random) -> None:
    file = folder / dice.choice(PATHS)
    if file.is_file() and not file.is_symlink():
        file.chmod(dice.choice((0o644, 0o755)))


def ignore(folder: Path, dice: random.Random) -> None:
    write(folder, dice.choice((".gitignore", "sub/.gitignore", ".git/info/exclude")), dice.choice(RULES))


def track(folder: Path, dice: random.Random) -> None:
    path = dice.choice(PATHS)
    if (folder / path).is_file() or (folder / path).is_symlink():
        git(folder, "add", "--force", path)


def track_no_longer(folder: Path, dice: random.Random) -> None:
    git(folder, "rm", "--quiet", "--cached", "--ignore-unmatch", dice.choice(PATHS))


def commit_all(folder: Path, dice: random.Random) -> None:
    commit(folder)


def set_attributes(folder: Path, dice: random.Random) -> None:
    write(folder, ".gitattributes", dice.choice((b"* text=auto\n", b"*.txt filter=lfs\n", b"")))


def make_inner(folder: Path, dice: random.Random) -> None:
    if (folder / "sub").is_dir() and dice.random() < 0.3:
        git(folder, "init", "--quiet", "sub")


def remove_inner(folder: Path, dice: random.Random) -> None:
    shutil.rmtree(folder / "sub" / ".git", ignore_errors=True)


STEP_KINDS: tuple[Callable[[Path, random.Random], None], ...] = (
    *(write_file, write_file, write_file, delete, link, change_mode, ignore, track, track_no_longer, commit_all),
    *(set_attributes, make_inner, remove_inner, remove_inner),
)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 60))])
def test_what_is_remembered_changes_no_answer(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    folder = make_repository(tmp_path / "project")
    remembering = checkpoints_of(tmp_path)
    count = 0
    for number in range(STEPS):
        step = dice.choice(STEP_KINDS)
        step(folder, dice)
        answers = [
            one.capture(str(folder), f"{key}{number}")
            for key, one in (("old", remembering), ("new", checkpoints_of(tmp_path / f"new{number}")))
        ]
        about = (seed, number, step.__name__)
        if isinstance(answers[1], Checkpoint):
            count += 1
            assert isinstance(answers[0], Checkpoint), about
            assert answers[0].tree_id == answers[1].tree_id, about
        else:
            assert isinstance(answers[1], Unsupported), answers[1]
            assert isinstance(answers[0], Unsupported), about
            assert answers[0].why == answers[1].why, about
    assert count


def test_a_tracked_and_ignored_file_that_comes_back_is_in_again(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "a")
    write(folder, "kept.log")
    commit(folder)
    write(folder, ".gitignore", b"*.log\n")
    (folder / "kept.log").unlink()
    checkpoints = checkpoints_of(tmp_path)
    without, again = (captured(checkpoints.capture(str(folder), key)) for key in ("one", "two"))
    write(folder, "kept.log")
    back = captured(checkpoints.capture(str(folder), "three"))
    assert tree_of(folder, without).keys() == tree_of(folder, again).keys() == {"a", ".gitignore"}
    assert tree_of(folder, back).keys() == {"a", ".gitignore", "kept.log"}


def test_a_file_that_goes_to_lfs_by_now_refuses_although_no_name_is_new(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "project")
    write(folder, "picture.psd")
    write(folder, ".gitattributes", b"")
    checkpoints = checkpoints_of(tmp_path)
    captured(checkpoints.capture(str(folder), "one"))
    write(folder, ".gitattributes", b"*.psd filter=lfs\n")
    refused = checkpoints.capture(str(folder), "two")
    assert isinstance(refused, Unsupported)
    assert refused.why is WhyUnsupported.LFS
