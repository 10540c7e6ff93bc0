"""How long a checkpoint lasts, and what is remembered between two. SPEC section 16, F15."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from safepoint.adapters.git.folder_lock import folder_lock
from safepoint.adapters.git.index_cache import Remembered, recall, remember
from safepoint.adapters.git.names import Names
from safepoint.ports.checkpoints import CheckpointMissing, Compared, Kept, Materialized, Removed
from safepoint.ports.workspace import CouldNotLook

from .repositories import captured, checkpoints_of, commit, git, make_repository, tree_of, write

SAME = Compared((), 0, same_policy=True)


def collect_garbage(folder: Path) -> None:
    git(folder, "reflog", "expire", "--expire=now", "--all")
    git(folder, "gc", "--quiet", "--prune=now")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_repository(tmp_path / "project")
    write(folder, "a", b"1\n")
    commit(folder)
    write(folder, "untracked", b"2\n")
    return folder


def test_a_checkpoint_survives_the_collection_of_garbage_until_it_is_removed(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    collect_garbage(folder)
    assert checkpoints.verify(str(folder), checkpoint) == SAME
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(tmp_path / "out")), Materialized)
    assert checkpoints.remove(str(folder), checkpoint.ref) == Removed(was_there=True)
    collect_garbage(folder)
    assert checkpoints.kept(str(folder)) == Kept(())
    assert isinstance(checkpoints.verify(str(folder), checkpoint), CheckpointMissing)
    git(folder, "cat-file", "-e", checkpoint.tree_id, status=1)


def test_what_is_remembered_is_not_believed_when_its_objects_may_be_gone(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoints.remove(str(folder), captured(checkpoints.capture(str(folder), "one")).ref)
    collect_garbage(folder)
    checkpoint = captured(checkpoints.capture(str(folder), "two"))
    assert tree_of(folder, checkpoint).keys() == {"a", "untracked"}
    git(folder, "fsck", "--strict")


def test_what_is_remembered_outlives_a_newer_checkpoint_of_the_same_content(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    first = captured(checkpoints.capture(str(folder), "one"))
    second = captured(checkpoints.capture(str(folder), "two"))
    checkpoints.remove(str(folder), second.ref)
    (remembered,) = (tmp_path / "place").iterdir()
    assert first.ref.encode() in remembered.read_bytes().splitlines()[1]


@pytest.mark.parametrize("damage", [b"", bytes(4096), b"no index\n", None])
def test_damage_in_what_is_remembered_costs_time_and_nothing_else(
    tmp_path: Path, folder: Path, damage: bytes | None
) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    (remembered,) = (tmp_path / "place").iterdir()
    content = bytearray(remembered.read_bytes())
    content[len(content) // 2] ^= 1
    remembered.write_bytes(bytes(content) if damage is None else damage)
    write(folder, "a", b"3\n")
    changed = captured(checkpoints.capture(str(folder), "two"))
    assert changed.tree_id != checkpoint.tree_id
    assert tree_of(folder, changed)["a"] == ("100644", b"3\n")
    shutil.rmtree(tmp_path / "place")
    assert checkpoints.verify(str(folder), changed) == SAME


def test_a_change_of_the_same_size_right_after_a_capture_is_seen(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    for number in range(5):
        write(folder, "a", b"%04d\n" % number)
        checkpoint = captured(checkpoints.capture(str(folder), f"key{number}"))
        write(folder, "a", b"x%03d\n" % number)
        assert captured(checkpoints.capture(str(folder), f"after{number}")).tree_id != checkpoint.tree_id


def test_what_is_remembered_comes_back_with_its_own_time(tmp_path: Path) -> None:
    """Git reads again what is as young as its index: a younger index would hide a change in the same instant."""
    index, back = write(tmp_path, "index"), tmp_path / "back"
    os.utime(index, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    names = Names("1 2 3", [b"a", b"\xff/b"], [b"c\nd"], [], [b".gitattributes"])
    remember(tmp_path / "kept", str(index), Remembered("refs/x", "abc", names))
    assert recall(tmp_path / "kept", str(back)) == Remembered("refs/x", "abc", names)
    assert (back.read_bytes(), back.stat().st_mtime_ns) == (index.read_bytes(), index.stat().st_mtime_ns)


def test_a_ref_that_names_other_content_or_nothing_whole_is_missing(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    blob = git(folder, "rev-parse", f"{checkpoint.ref}:untracked").decode().strip()
    loose = folder / ".git" / "objects" / blob[:2] / blob[2:]
    content = loose.read_bytes()
    loose.unlink()
    assert isinstance(checkpoints.verify(str(folder), checkpoint), CheckpointMissing)
    answer = checkpoints.materialize(str(folder), checkpoint, str(tmp_path / "out"))
    assert isinstance(answer, CheckpointMissing)
    assert not (tmp_path / "out").exists()
    loose.write_bytes(content)
    assert checkpoints.verify(str(folder), checkpoint) == SAME
    git(folder, "update-ref", checkpoint.ref, "HEAD")
    assert isinstance(checkpoints.verify(str(folder), checkpoint), CheckpointMissing)


def test_a_damaged_ref_of_ours_hides_no_other(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    broken, sound = (captured(checkpoints.capture(str(folder), key)) for key in ("broken", "sound"))
    (folder / ".git" / broken.ref).write_text("0123456789" * 4 + "\n")
    kept = checkpoints.kept(str(folder))
    assert isinstance(kept, Kept)
    assert [one.checkpoint for one in kept.checkpoints] == [sound]
    assert isinstance(checkpoints.verify(str(folder), broken), CheckpointMissing)
    assert checkpoints.verify(str(folder), sound) == SAME


def test_damaged_content_is_never_written_out(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    blob = git(folder, "rev-parse", f"{checkpoint.ref}:untracked").decode().strip()
    loose = folder / ".git" / "objects" / blob[:2] / blob[2:]
    loose.chmod(0o644)
    loose.write_bytes(bytes(30))
    answer = checkpoints.materialize(str(folder), checkpoint, str(tmp_path / "out"))
    assert isinstance(answer, CouldNotLook), answer
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_change_of_what_is_ignored_is_told(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    write(folder, ".git/info/exclude", b"# a remark\n.safepoint-workspace.json\n")
    assert checkpoints.verify(str(folder), checkpoint) == SAME
    write(folder, ".git/info/exclude", b"untracked\n")
    assert checkpoints.verify(str(folder), checkpoint) == Compared((), 0, same_policy=False)


def test_a_lock_of_our_ref_that_a_killed_program_left_stands_in_nobodys_way(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    write(folder, ".git/refs/safepoint/checkpoints/one.lock", b"")
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    write(folder, ".git/refs/safepoint/checkpoints/one.lock", b"")
    assert checkpoints.remove(str(folder), checkpoint.ref) == Removed(was_there=True)


def test_a_packed_checkpoint_is_removed_too(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    git(folder, "pack-refs", "--all")
    assert checkpoints.verify(str(folder), checkpoint) == SAME
    assert checkpoints.remove(str(folder), checkpoint.ref) == Removed(was_there=True)
    assert checkpoints.kept(str(folder)) == Kept(())


def test_views_that_killed_processes_left_are_taken_away_and_no_others(tmp_path: Path, folder: Path) -> None:
    place = tmp_path / "place"
    views = {name: place / f"view-{name}" for name in ("dead", "held", "young")}
    for view in views.values():
        write(view, "objects/x")
    for name in ("dead", "held"):
        os.utime(views[name], (1_000_000_000, 1_000_000_000))
    with folder_lock(views["held"]):
        captured(checkpoints_of(tmp_path).capture(str(folder), "one"))
    assert [name for name, view in views.items() if view.exists()] == ["held", "young"]


def test_a_lock_of_ours_outlives_no_fork(tmp_path: Path) -> None:
    """A function worker is forked while a ref is written: it must not hold the refs for as long as it lives."""
    with folder_lock(tmp_path) as lock:
        copy = os.dup(lock)
    try:
        with folder_lock(tmp_path):
            pass
    finally:
        os.close(copy)


def test_whoever_waits_for_refs_in_vain_says_that_it_could_not_look(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safepoint.adapters.git.refs.LOCK_PATIENCE_SECONDS", 0.05)
    with folder_lock(folder / ".git"):
        answer = checkpoints_of(tmp_path).capture(str(folder), "one")
    assert isinstance(answer, CouldNotLook)
    assert "another process works on it" in answer.detail


def test_in_a_repository_that_a_group_shares_the_group_may_write_what_we_made(tmp_path: Path, folder: Path) -> None:
    git(folder, "config", "core.sharedRepository", "group")
    before = {path for path in (folder / ".git" / "objects").rglob("*") if path.is_dir()}
    captured(checkpoints_of(tmp_path).capture(str(folder), "one"))
    made = {path for path in (folder / ".git" / "objects").rglob("*") if path.is_dir()} - before
    assert made
    assert all(path.stat().st_mode & 0o020 for path in made)


def test_a_folder_that_somebody_else_made_beside_the_target_stays(tmp_path: Path, folder: Path) -> None:
    checkpoints = checkpoints_of(tmp_path)
    checkpoint = captured(checkpoints.capture(str(folder), "one"))
    theirs = [tmp_path / ".out.safepoint-partial", tmp_path / ".safepoint-partial-0123456789abcdef"]
    for one in theirs:
        write(one, "mine")
    assert isinstance(checkpoints.materialize(str(folder), checkpoint, str(tmp_path / "out")), Materialized)
    assert all((one / "mine").exists() for one in theirs)
