"""What no fact names is removed when it is old, and what one names never is. SPEC sections 16 and 20."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.workspace.isolated_folders import FoldersInPlace
from safepoint.application.capture_content import CaptureContent
from safepoint.application.collect_garbage import AGE_SECONDS_MIN, CollectGarbage, Garbage
from safepoint.application.run_agent import Screen
from safepoint.domain.errors import StoreError, StoreNotAdopted
from safepoint.domain.events.event import Timestamp, after
from safepoint.domain.events.outside import CheckpointAccepted
from safepoint.ports.checkpoints import Kept, KeptCheckpoint, WhyUnsupported
from safepoint.ports.clock import Clock
from safepoint.ports.store_keeping import Trust

from .content import Bound, Files
from .resuming import Killed
from .wiring import SESSION, WORKSPACE, World, go

TAG = "mine"
DAY_SECONDS = 86_400
WRITE = calls(("write", {"path": "a.txt", "text": "new"}))
DONE = says("done")


class Later(Clock):
    """A clock that is ahead of the one that things were made by."""

    def __init__(self, world: World) -> None:
        self._inner = Bound(Files(world)).spines
        self.ahead_seconds = 30 * DAY_SECONDS

    def now(self) -> Timestamp:
        return after(self._inner.now(), self.ahead_seconds)

    def monotonic_seconds(self) -> float:
        return 0.0


class Yard:
    """A store whose runs are bound to content, an orphan beside them, and isolated folders of nobody."""

    def __init__(self, folder: Path) -> None:
        self.world = World()
        self.files = Files(self.world)
        self.process = self.new_process()
        self.process.works(WRITE, DONE)
        self.clock = Later(self.world)
        self.isolated = FoldersInPlace(folder / "isolated", self._key)
        for key in (f"{TAG}-orphan1", f"{TAG}-orphan2", "theirs-1"):
            self.files.here["b.txt"] = key.encode()
            self.files.checkpoints.capture(WORKSPACE, key)
        for _ in range(3):
            path = Path(self.isolated.new())
            (path / "deep").mkdir(parents=True)
            (path / "deep" / "file").write_text("x")

    def new_process(self) -> Bound:
        process = Bound(self.files)
        process.capture.new_key = self._key
        return process

    def _key(self) -> str:
        return f"{TAG}-{self.world.ids.fresh(str)}"

    def collect(self, at_failpoint: Callable[[str], None] = lambda point: None) -> CollectGarbage:
        process = Bound(self.files, at_failpoint=at_failpoint)
        return CollectGarbage(
            process.events_store,
            self.world.store,
            self.world.store.views,
            self.files.checkpoints,
            self.isolated,
            self.clock,
            process.failpoints,
            lambda: TAG,
        )

    def look(self, days: int = 7) -> Garbage:
        return self.collect().look(days * DAY_SECONDS)

    def refs(self) -> set[str]:
        kept = self.files.checkpoints.kept(WORKSPACE)
        assert isinstance(kept, Kept)
        return {one.checkpoint.ref for one in kept.checkpoints}


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def names(found: tuple[KeptCheckpoint, ...]) -> set[str]:
    return {one.checkpoint.ref for one in found}


def test_orphans_are_found_and_what_a_fact_names_or_another_store_made_is_left(yard: Yard) -> None:
    garbage = yard.look()
    assert names(garbage.checkpoints) == {f"memory/{TAG}-orphan1", f"memory/{TAG}-orphan2"}
    assert len(garbage.folders) == 3
    assert (garbage.kept, garbage.foreign) == (2, 1)


def test_looking_changes_nothing(yard: Yard) -> None:
    before, folders = yard.refs(), list(yard.isolated.folders())
    yard.look()
    assert (yard.refs(), list(yard.isolated.folders())) == (before, folders)


def test_what_was_found_is_removed_and_all_else_is_there(yard: Yard) -> None:
    accepted = {one.ref for one in yard.process.of(yard.process.head(), CheckpointAccepted)}
    done = yard.collect()(yard.look())
    assert (done.checkpoints, done.folders, done.left) == (2, 3, ())
    assert yard.refs() == accepted | {"memory/theirs-1"}
    assert yard.isolated.folders() == []


def test_what_is_younger_than_the_limit_stays(yard: Yard) -> None:
    assert yard.look(days=40) == yard.look(days=40)
    assert (yard.look(days=40).checkpoints, yard.look(days=40).folders) == ((), ())


def test_nothing_that_could_still_be_accepted_is_ever_removed_however_short_the_limit(yard: Yard) -> None:
    yard.clock.ahead_seconds = AGE_SECONDS_MIN - 60
    assert yard.look(days=0).checkpoints == ()
    yard.clock.ahead_seconds = AGE_SECONDS_MIN + 60
    assert len(yard.look(days=0).checkpoints) == 2


def test_an_artifact_whose_fact_was_never_written_is_an_orphan(yard: Yard) -> None:
    process = yard.new_process()
    process.events_store.fail_at(CheckpointAccepted.topic, Failure.UNAVAILABLE)
    with pytest.raises(StoreError):
        process.works(DONE)
    assert len(yard.look().checkpoints) == 3


def test_a_folder_that_a_run_worked_in_is_no_garbage(yard: Yard) -> None:
    used = yard.isolated.folders()[0].path
    yard.world.workspaces.make_folder(f"{used}/deep")
    yard.files.checkpoints.make_folder(f"{used}/deep")
    yard.world.workspaces.ensure(f"{used}/deep")
    process = yard.new_process()
    agent = process.bound([DONE], folder=f"{used}/deep")
    go(partial(process.run_turn, SESSION, "go", agent, Screen()))
    assert used not in {one.path for one in yard.look().folders}
    assert len(yard.look().folders) == 2


def test_where_a_run_cannot_be_read_nothing_is_garbage(yard: Yard) -> None:
    run_id = yard.process.head()
    tables = yard.world.store._tables
    row = tables.streams[f"run:{run_id}"][3]
    tables.records[row] = tables.records[row]._replace(state=b"workspace. damage")
    garbage = yard.look()
    assert garbage.unread == (run_id,)
    assert (garbage.checkpoints, garbage.folders) == ((), ())


def test_a_store_that_cannot_vouch_for_its_facts_collects_nothing(yard: Yard) -> None:
    yard.world.store.distrust(Trust.BEHIND_ANCHOR)
    with pytest.raises(StoreNotAdopted):
        yard.look()


def test_a_folder_that_cannot_be_looked_at_is_said_and_its_orphans_stay(yard: Yard) -> None:
    yard.files.checkpoints.make_unreadable(WORKSPACE)
    garbage = yard.look()
    assert [place for place, _ in garbage.not_looked] == [WORKSPACE]
    assert garbage.checkpoints == ()


def test_a_folder_that_is_no_repository_is_said_only_where_a_fact_says_that_it_was_one(yard: Yard) -> None:
    yard.files.checkpoints.make_folder("/plain")
    for folder in ("/plain", WORKSPACE):
        yard.files.checkpoints.refuse(folder, WhyUnsupported.NOT_A_REPOSITORY)
    garbage = yard.collect().look(DAY_SECONDS, ("/plain",))
    assert [place for place, _ in garbage.not_looked] == [WORKSPACE]


def test_a_workspace_that_no_run_ever_worked_in_is_looked_at_when_it_is_named(yard: Yard) -> None:
    yard.files.checkpoints.make_folder("/other", {"a": b"a"})
    CaptureContent(yard._key)  # what a killed turn did before it was begun
    yard.files.checkpoints.capture("/other", f"{TAG}-orphan3")
    garbage = yard.collect().look(DAY_SECONDS, ("/other",))
    assert f"memory/{TAG}-orphan3" in names(garbage.checkpoints)


@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_instant_a_second_run_finishes_the_work(yard: Yard, seed: int) -> None:
    after_removals = random.Random(seed).randrange(5)
    hits = 0

    def die(point: str) -> None:
        nonlocal hits
        if point == "gc.removed":
            hits += 1
            if hits > after_removals:
                raise Killed(point)

    accepted = {one.ref for one in yard.process.of(yard.process.head(), CheckpointAccepted)}
    with pytest.raises(Killed):
        yard.collect(die)(yard.look())
    yard.collect()(yard.look())
    assert yard.refs() == accepted | {"memory/theirs-1"}
    assert yard.isolated.folders() == []
    assert yard.look().checkpoints == ()


def test_a_folder_whose_removal_was_cut_off_is_still_found(yard: Yard) -> None:
    first = Path(yard.isolated.folders()[0].path)
    first.rename(first.with_name(f".removing-{first.name}"))
    yard.collect()(yard.look())
    assert yard.isolated.folders() == []


def test_nothing_outside_its_place_is_removed(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for path in (tmp_path / "mine", tmp_path, tmp_path / "isolated" / ".." / "mine"):
        with pytest.raises(ValueError, match="none of the folders"):
            yard.isolated.remove(str(path))
    assert (tmp_path / "mine").is_dir()
