"""What is the user's stays as it is, byte for byte, whenever the process is killed. SPEC section 16, F15."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.git.folder_lock import folder_lock
from safepoint.ports.checkpoints import Checkpoint, Compared, Kept, Materialized, Removed

from .killing import Jobs, killing_at
from .repositories import Untouched, captured, checkpoints_of, files_under, git, repository_of_somebody, tree_of

SAME = Compared((), 0, same_policy=True)
KILLS = 20
SEEDS = [16, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(100, 110))]
COMMANDS_MAX = 20


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    with Jobs() as jobs:
        yield jobs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository_of_somebody(tmp_path)


def job(tmp_path: Path, folder: Path, environment: dict[str, str] | None = None) -> dict[str, object]:
    return {"folder": str(folder), "place": str(tmp_path / "place"), "environment": environment or {}}


def until_quiet(folder: Path, group: int) -> None:
    """Commands may outlive their starter, and end by themselves: wait for those of the group, and for those apart."""
    while group in set(_living_groups()):
        time.sleep(0.005)
    with folder_lock(folder / ".git", patience_seconds=60):
        return


def _living_groups() -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group = process.read_text().rpartition(")")[2].split()[:3]
            if state != "Z":
                yield int(group)


def nothing_left(tmp_path: Path) -> None:
    assert not (tmp_path / "ran").exists(), "a hook, filter or helper of the user ran"


def test_a_whole_life_of_checkpoints_touches_nothing_and_runs_nothing_of_the_users(
    tmp_path: Path, folder: Path
) -> None:
    untouched = Untouched(folder)
    (tmp_path / "ran").unlink(missing_ok=True)  # asking for the user's status runs the user's programs
    checkpoints = checkpoints_of(tmp_path)
    one, two = (captured(checkpoints.capture(str(folder), key)) for key in ("one", "two"))
    assert checkpoints.verify(str(folder), one) == SAME
    assert isinstance(checkpoints.materialize(str(folder), one, str(tmp_path / "out")), Materialized)
    assert isinstance(checkpoints.kept(str(folder)), Kept)
    assert checkpoints.remove(str(folder), two.ref) == Removed(was_there=True)
    nothing_left(tmp_path)
    untouched.check()
    assert tree_of(folder, one)["shout.up"] == ("100644", b"whisper\n")
    assert tree_of(folder, one)["lines.txt"] == ("100644", b"one\r\ntwo\r\n")
    git(folder, "fsck", "--strict", "--no-dangling")


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_a_capture_that_is_killed_at_any_command_touches_nothing_and_the_next_one_finishes(
    tmp_path: Path, folder: Path, jobs: Jobs, when: str
) -> None:
    untouched, kills = Untouched(folder), 0
    for at in range(1, COMMANDS_MAX):
        environment = killing_at(tmp_path, at, when)
        group = jobs.start(what="capture", key=f"key{at}", **job(tmp_path, folder, environment))
        killed = jobs.wait()
        until_quiet(folder, group)
        untouched.check()
        kills += killed
        if not killed:
            break
    assert 8 <= kills < COMMANDS_MAX - 1
    git(folder, "fsck", "--strict", "--no-dangling")
    finished(tmp_path, folder, "key1")
    untouched.check()


def finished(tmp_path: Path, folder: Path, key: str) -> Checkpoint:
    """Capture again, with what a killed process may have left, and compare with a capture that has nothing of it."""
    checkpoint = captured(checkpoints_of(tmp_path).capture(str(folder), key))
    anew = captured(checkpoints_of(tmp_path / "elsewhere").capture(str(folder), f"{key}-anew"))
    assert checkpoint.tree_id == anew.tree_id
    assert checkpoints_of(tmp_path).verify(str(folder), checkpoint) == SAME
    return checkpoint


@pytest.mark.parametrize("seed", SEEDS)
def test_random_kills_of_captures_touch_nothing_and_the_next_one_finishes(
    tmp_path: Path, folder: Path, jobs: Jobs, seed: int
) -> None:
    untouched, dice = Untouched(folder), random.Random(seed)
    started = time.monotonic()
    jobs.run(what="capture", key="measured", **job(tmp_path, folder))
    needed_seconds = time.monotonic() - started
    for number in range(KILLS):
        if number % 3 == 0:
            shutil.rmtree(tmp_path / "place", ignore_errors=True)  # also where nothing is remembered
        group = jobs.start(what="capture", key=f"key{number}", **job(tmp_path, folder))
        time.sleep(dice.uniform(0, needed_seconds))
        kill(group, whole=number % 2 == 0)
        jobs.wait()
        until_quiet(folder, group)
        untouched.check()
        git(folder, "fsck", "--strict", "--no-dangling")
        finished(tmp_path, folder, f"key{number}")
    untouched.check()


def kill(group: int, *, whole: bool) -> None:
    try:
        (os.killpg if whole else os.kill)(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # it was quicker


@pytest.mark.parametrize("seed", SEEDS)
def test_random_kills_of_materializing_leave_no_half_folder_and_the_next_one_finishes(
    tmp_path: Path, folder: Path, jobs: Jobs, seed: int
) -> None:
    untouched, dice = Untouched(folder), random.Random(seed)
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    expected = {path: seen.content for path, seen in files_under(folder).items()}
    for ignored in ("build/out", "trace.log"):
        del expected[ignored]
    target, needed_seconds = tmp_path / "out", 0.0
    for number in range(KILLS + 1):
        started = time.monotonic()
        group = jobs.start(what="materialize", checkpoint=[*checkpoint], target=str(target), **job(tmp_path, folder))
        if number == 0:
            jobs.wait()
            needed_seconds = time.monotonic() - started
        else:
            time.sleep(dice.uniform(0, needed_seconds))
            kill(group, whole=number % 2 == 0)
            jobs.wait()
        until_quiet(folder, group)
        if not target.exists():
            assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(target)), Materialized)
        assert {path: seen.content for path, seen in files_under(target).items()} == expected
        git(target, "fsck", "--strict", "--no-dangling")
        assert git(target, "status", "--porcelain") == b""
        shutil.rmtree(target)
        assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    git(folder, "fsck", "--strict", "--no-dangling")
    untouched.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_kills_of_a_removal_leave_it_whole_or_gone(tmp_path: Path, folder: Path, jobs: Jobs, seed: int) -> None:
    untouched, dice = Untouched(folder), random.Random(seed)
    checkpoints = checkpoints_of(tmp_path)
    for number in range(KILLS):
        checkpoint = captured(checkpoints.capture(str(folder), f"key{number}"))
        group = jobs.start(what="remove", ref=checkpoint.ref, **job(tmp_path, folder))
        time.sleep(dice.uniform(0, 0.03))
        kill(group, whole=True)
        jobs.wait()
        until_quiet(folder, group)
        kept = checkpoints.kept(str(folder))
        assert isinstance(kept, Kept)
        if kept.checkpoints:
            assert checkpoints.verify(str(folder), checkpoint) == SAME
        checkpoints.remove(str(folder), checkpoint.ref)
        assert checkpoints.kept(str(folder)) == Kept(())
    untouched.check()
    git(folder, "-c", f"core.hooksPath={os.devnull}", "pack-refs", "--all")
    git(folder, "fsck", "--strict", "--no-dangling")
