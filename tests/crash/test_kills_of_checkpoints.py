"""A run that is bound to its workspace's content, and what is done about that content, killed at random instants.

SPEC sections 16 and 20: what was accepted is there, a run's own writes are no drift, and a second try finishes.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.git.checkpoints import GitCheckpoints
from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.ports.checkpoints import Checkpoint

from .harness.fork_server import ForkServer
from .harness.program import KILLED, Ended, Hooks
from .harness.stage import SESSION, Stage, call, step
from .harness.tools import CONFIG, NEW, OLD, prepare
from .harness.trial import check_record, codes

KILLS = 20
KILLS_OF_SOAK = 200
KILLS_PER_TEST = 5
SOAK = pytest.mark.soak
FIRSTS = [pytest.param(first, marks=() if first < KILLS else SOAK) for first in range(0, KILLS_OF_SOAK, KILLS_PER_TEST)]
OTHER = "another.txt"
STEPS = (
    step("I write.", call("write_file", path=CONFIG, content=NEW)),
    step("I write more.", call("write_file", path=OTHER, content="more\n")),
    step("Done."),
)
Make = Callable[[str], Stage]


@pytest.fixture
def make(tmp_path: Path, forks: ForkServer) -> Make:
    """Makes stages, by name, each with a repository."""
    return lambda name: bound(Stage.in_folder(tmp_path / name, forks))


def git(stage: Stage, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=stage.workspace, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def bound(stage: Stage) -> Stage:
    prepare(stage)
    git(stage, "init", "-q")
    git(stage, "add", "-A")
    git(stage, "commit", "-qm", "begin")
    stage.play(STEPS)
    return stage


def users(stage: Stage) -> tuple[str, bytes, str]:
    """What belongs to the user in the repository."""
    index = (stage.workspace / ".git" / "index").read_bytes()
    return git(stage, "rev-parse", "HEAD"), index, git(stage, "for-each-ref", "refs/heads", "refs/stash")


def runs(stage: Stage, hooks: Hooks) -> Ended:
    return stage.do("run", "do it", "--checkpoints", "git", hooks=hooks)


def about(stage: Stage, verb: str, *more: str, hooks: Hooks) -> Ended:
    """A command that names no script."""
    named = () if verb == "gc" else ("--session", SESSION)
    return stage.program.run(verb, *more, *named, "--store", str(stage.store), "--json", hooks=hooks)


def instants(make: Make, name: str, command: Callable[[Stage, Hooks], Ended], before: Callable[[Stage], None]) -> int:
    """How many instants a command has, undisturbed."""
    stage = make(name)
    before(stage)
    trace = stage.folder / "rehearsal"
    command(stage, Hooks(trace=trace)).expect(0)
    stage.clean_up()
    return len(trace.read_text().split())


def is_sound(stage: Stage, before: tuple[str, bytes, str]) -> None:
    git(stage, "fsck", "--strict", "--no-dangling")
    assert users(stage) == before


def chosen(seed: int, name: str, first: int, count: int) -> list[int]:
    """The instants of one test, of all that are drawn for the story."""
    drawn = random.Random(f"{seed} {name}")
    return [drawn.randint(1, count) for _ in range(KILLS_OF_SOAK)][first : first + KILLS_PER_TEST]


def check_resume(stage: Stage, nth: int) -> None:
    record = stage.record
    resumed = stage.do("resume", "--reconcile")
    if resumed.exit_code != 0:
        said = set(codes(resumed.expect(3)))
        assert said == {"resume_candidate_missing"} or "tool_recovery_parked" in said, (nth, said)
    assert (stage.workspace / CONFIG).read_text() in {OLD, NEW}
    check_record(stage, record)


@pytest.mark.parametrize("first", FIRSTS)
def test_a_bound_run_that_was_killed_is_continued_and_its_own_writes_are_no_drift(
    make: Make, seed: int, first: int
) -> None:
    count = instants(make, "undisturbed", runs, lambda stage: None)
    for number, nth in enumerate(chosen(seed, "run", first, count)):
        stage = make(f"run-{number}")
        before = users(stage)
        assert runs(stage, Hooks(kill=f"random:{nth}")).exit_code == KILLED
        if stage.store.exists() and stage.record.run_ids(SESSION):
            check_resume(stage, nth)
        is_sound(stage, before)
        stage.clean_up()


def interrupted(stage: Stage) -> None:
    """A run that was killed before its end, and a file that somebody changed since."""
    assert runs(stage, Hooks(kill="P8")).exit_code == KILLED
    (stage.workspace / CONFIG).write_text("theirs\n")
    stage.play((*STEPS, step("Done.")))


@pytest.mark.parametrize("way", ["--isolated", "--rebaseline"])
@pytest.mark.parametrize("first", FIRSTS)
def test_a_way_on_that_was_killed_is_taken_by_a_second_try(make: Make, seed: int, first: int, way: str) -> None:
    def goes_on(stage: Stage, hooks: Hooks) -> Ended:
        return stage.do("resume", way, hooks=hooks)

    count = instants(make, "undisturbed", goes_on, interrupted)
    for number, nth in enumerate(chosen(seed, way, first, count)):
        stage = make(f"{way}-{number}")
        interrupted(stage)
        before, record = users(stage), stage.record
        assert goes_on(stage, Hooks(kill=f"random:{nth}")).exit_code == KILLED
        again = goes_on(stage, Hooks())
        if again.exit_code == 3 and way == "--isolated" and "workspace_ref_missing" in codes(again.document):
            again = stage.do("resume", "--rebaseline")  # it had moved already, and had not accepted what is there
        assert again.exit_code == 0 or codes(again.expect(3)) == ["resume_candidate_missing"], (nth, again)
        assert (stage.workspace / CONFIG).read_text() == "theirs\n"
        check_record(stage, record)
        is_sound(stage, before)
        stage.clean_up()


def completed(stage: Stage) -> None:
    runs(stage, Hooks()).expect(0)


@pytest.mark.parametrize("first", FIRSTS)
def test_forgetting_that_was_killed_is_finished_by_a_second_try(make: Make, seed: int, first: int) -> None:
    def forget(stage: Stage, hooks: Hooks) -> Ended:
        return about(stage, "forget", "--yes", hooks=hooks)

    count = instants(make, "undisturbed", forget, completed)
    for number, nth in enumerate(chosen(seed, "forget", first, count)):
        stage = make(f"forget-{number}")
        completed(stage)
        before = users(stage)
        assert forget(stage, Hooks(kill=f"random:{nth}")).exit_code == KILLED
        again = forget(stage, Hooks())
        assert again.exit_code == 0 or again.document["code"] == "session_forgotten", (nth, again)
        assert "refs/safepoint/checkpoints" not in git(stage, "for-each-ref")
        assert stage.look("verify").expect(0)["sound"]
        assert NEW.encode() not in stage.store.read_bytes()
        is_sound(stage, before)
        stage.clean_up()


def littered(stage: Stage) -> None:
    """A completed run, and beside what it accepted checkpoints and folders of long ago that no fact names."""
    completed(stage)
    clock = ManualClock()
    clock.jump_wall(-10 * 366 * 86_400)
    with OpenedStore(Settings(stage.store)) as runtime:
        keys = [runtime.parts.new_key()() for _ in range(3)]
        folders = [Path(runtime.parts.isolated().new()) for _ in range(2)]
    for key in keys:
        (stage.workspace / OTHER).write_text(key)
        captured = GitCheckpoints(stage.folder / "cache", clock).capture(str(stage.workspace), key)
        assert isinstance(captured, Checkpoint)
    for folder in folders:
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "file").write_text("left\n")
        os.utime(folder, (0, 0))


@pytest.mark.parametrize("first", FIRSTS)
def test_collecting_that_was_killed_is_finished_by_a_second_try(make: Make, seed: int, first: int) -> None:
    def collect(stage: Stage, hooks: Hooks) -> Ended:
        return about(stage, "gc", "--delete", hooks=hooks)

    count = instants(make, "undisturbed", collect, littered)
    for number, nth in enumerate(chosen(seed, "gc", first, count)):
        stage = make(f"gc-{number}")
        littered(stage)
        before = users(stage)
        accepted = about(stage, "gc", hooks=Hooks()).expect(0)["accepted"]
        assert collect(stage, Hooks(kill=f"random:{nth}")).exit_code == KILLED
        collect(stage, Hooks()).expect(0)
        listed = about(stage, "gc", hooks=Hooks()).expect(0)
        assert (listed["checkpoints"], listed["folders"], listed["accepted"]) == ([], [], accepted), nth
        assert len(git(stage, "for-each-ref", "refs/safepoint/checkpoints").splitlines()) == accepted
        is_sound(stage, before)
        stage.clean_up()
