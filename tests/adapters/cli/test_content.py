"""Runs that are bound to the content of a Git workspace, from the command line: drift, and both ways on."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.git.checkpoints import GitCheckpoints
from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.ports.checkpoints import Checkpoint

from .program import PAY, WRITE, Program

EDIT: dict[str, Any] = {"tool": "write_file", "args": {"path": "config.json", "content": '{"port": 5000}'}}
LOOK: dict[str, Any] = {"tool": "read_file", "args": {"path": "notes.txt"}}


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(program: Program) -> Path:
    """The workspace is a repository with one commit."""
    (program.workspace / "notes.txt").write_text("mine\n")
    git(program.workspace, "init", "-q")
    git(program.workspace, "add", "-A")
    git(program.workspace, "commit", "-qm", "begin")
    return program.workspace


def killed(program: Program, point: str = "P8") -> Path:
    script = program.script(
        {"text": "I look.", "calls": [LOOK]}, {"text": "I do it.", "calls": [WRITE]}, {"text": "Done."}
    )
    program.killed_at(point, *program.run("--session", "s1", "--checkpoints", "git"))
    return script


def reasons(document: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in document["reasons"]]


def test_a_run_goes_on_where_the_files_are_as_it_left_them(program: Program, repository: Path) -> None:
    branch, index = git(repository, "rev-parse", "HEAD"), (repository / ".git" / "index").read_bytes()
    script = killed(program)
    ran = program("resume", "s1", "--script", script, "--json")
    assert ran.code == 0, ran
    assert (git(repository, "rev-parse", "HEAD"), (repository / ".git" / "index").read_bytes()) == (branch, index)
    shown = program("show", "s1").out
    assert "checkpoint_accepted" in shown


def test_drift_parks_with_the_paths_and_the_commands_that_help(program: Program, repository: Path) -> None:
    script = killed(program)
    (repository / "notes.txt").write_text("theirs\n")
    (repository / "another.txt").write_text("theirs\n")
    ran = program("resume", "s1", "--script", script, "--json")
    assert (ran.code, reasons(ran.document)) == (3, ["workspace_drift"])
    assert ran.document["reasons"][0]["detail"]["paths"] == ["notes.txt", "another.txt"]
    commands = " ".join(way["command"] for way in ran.document["commands"])
    assert "--isolated" in commands
    assert "--rebaseline" in commands
    planned = program("plan", "s1", "--script", script, "--json")
    assert reasons(planned.document) == ["workspace_drift"]


def test_the_files_are_accepted_as_they_are(program: Program, repository: Path) -> None:
    script = killed(program)
    (repository / "notes.txt").write_text("theirs\n")
    ran = program("resume", "s1", "--script", script, "--rebaseline", "--json")
    assert ran.code == 0, ran
    assert ran.document["drift"] == {"rebaselined": {"paths": ["notes.txt"], "count": 1, "epoch": 1}}
    assert "notes.txt" in program("show", "s1", "--full").out
    assert (repository / "notes.txt").read_text() == "theirs\n"


def test_the_work_goes_on_apart_and_its_result_is_brought_home(program: Program, repository: Path) -> None:
    killed(program)
    (repository / "notes.txt").write_text("theirs\n")
    before = {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()}
    script = program.script({"text": "?"}, {"text": "?"}, {"text": "I go on.", "calls": [EDIT]}, {"text": "Done."})
    ran = program("resume", "s1", "--script", script, "--isolated", "--json")
    assert ran.code == 0, ran
    isolated = ran.document["drift"]["isolated"]
    apart = Path(isolated["path"])
    assert (apart / "notes.txt").read_text() == "mine\n"
    assert (apart / "config.json").read_text() == '{"port": 5000}'
    assert {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()} == before
    subprocess.run(isolated["bring_home"], shell=True, check=True)
    assert (repository / "config.json").read_text() == '{"port": 5000}'
    assert (repository / "notes.txt").read_text() == "theirs\n"


@pytest.mark.parametrize("way", ["--isolated", "--rebaseline"])
@pytest.mark.parametrize("also", [(), ("--reconcile",)])
def test_nothing_is_done_about_drift_where_nobody_looked_at_the_files(
    program: Program, repository: Path, way: str, also: tuple[str, ...]
) -> None:
    script = program.script({"text": "I do it.", "calls": [WRITE]}, {"text": "More.", "calls": [EDIT]}, {"text": "."})
    program.killed_at("P4", *program.run("--session", "s1", "--checkpoints", "none"))
    (repository / "notes.txt").write_text("theirs\n")
    before = {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()}
    events = program("show", "s1", "--json").document
    ran = program("resume", "s1", "--script", script, way, *also, "--json")
    assert (ran.code, ran.document["code"]) == (3, "bound_to_nothing")
    assert "not known" in ran.document["message"]
    assert {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()} == before
    assert "isolated" not in " ".join(path.name for path in program.folder.iterdir())
    shown = program("show", "s1", "--json").document
    assert [run["run_id"] for run in shown["runs"]] == [run["run_id"] for run in events["runs"]]


def test_where_nothing_has_drifted_the_users_folder_is_left_alone_as_was_asked(
    program: Program, repository: Path
) -> None:
    killed(program)
    before = {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()}
    script = program.script({"text": "?"}, {"text": "?"}, {"text": "I go on.", "calls": [EDIT]}, {"text": "Done."})
    ran = program("resume", "s1", "--script", script, "--isolated", "--json")
    assert ran.code == 0, ran
    assert (Path(ran.document["drift"]["isolated"]["path"]) / "config.json").read_text() == '{"port": 5000}'
    assert {path.name: path.read_bytes() for path in repository.iterdir() if path.is_file()} == before


class Inside(Program):
    """The program with its store in the workspace."""

    @property
    def store(self) -> Path:
        return self.workspace / "state" / "store.sqlite"


def test_a_store_in_the_workspace_and_what_is_made_beside_it_are_no_content(program: Program, repository: Path) -> None:
    inside = Inside(program.folder, program.capture, program.environment)
    inside.store.parent.mkdir()
    script = killed(inside)
    (repository / "notes.txt").write_text("theirs\n")
    resumed = inside("resume", "s1", "--script", script, "--isolated", "--json")
    assert resumed.code == 0, resumed
    assert Path(resumed.document["drift"]["isolated"]["path"]).is_relative_to(repository)
    inside.script({"text": "Hello."})
    again = inside(*inside.run("--session", "s2", "--checkpoints", "git"))
    assert again.code == 0, again


def test_what_reconciling_finalized_is_no_drift_although_no_checkpoint_has_it(
    program: Program, repository: Path
) -> None:
    script = killed(program, "P4:2")
    parked = program("resume", "s1", "--script", script, "--json").document
    assert "dangling_tool_state" in reasons(parked)
    ran = program("resume", "s1", "--script", script, "--reconcile", "--json")
    assert ran.code == 0, ran
    assert (repository / "config.json").read_text() == '{"port": 4000}'


@pytest.mark.parametrize("way", ["--isolated", "--rebaseline"])
def test_what_has_no_outcome_is_looked_at_before_drift_is_decided_on(
    program: Program, repository: Path, way: str
) -> None:
    script = killed(program, "P4:2")
    (repository / "notes.txt").write_text("theirs\n")
    ran = program("resume", "s1", "--script", script, "--reconcile", way, "--json")
    assert ran.code == 0, ran
    assert ran.document["drift"] is not None
    assert (repository / "config.json").read_text() == '{"port": 4000}'


def test_what_a_finalized_write_left_goes_along_into_isolation(program: Program, repository: Path) -> None:
    script = killed(program, "P4:2")
    assert program("reconcile", "s1").code == 0
    (repository / "notes.txt").write_text("theirs\n")
    ran = program("resume", "s1", "--script", script, "--isolated", "--json")
    assert ran.code == 0, ran
    apart = Path(ran.document["drift"]["isolated"]["path"])
    assert (apart / "config.json").read_text() == '{"port": 4000}'
    assert (apart / "notes.txt").read_text() == "mine\n"


def test_what_another_tool_may_have_written_is_not_covered(program: Program, repository: Path) -> None:
    script = program.script({"text": "I pay.", "calls": [PAY]}, {"text": "Done."})
    program.killed_at("P4", *program.run("--session", "s1", "--checkpoints", "git"))
    operation = program("status", "--json").document["operations"][0]["operation_id"]
    assert program("settle", operation, "--completed", "paid", "--note", "seen").code == 0
    ran = program("resume", "s1", "--script", script, "--json")
    assert reasons(ran.document) == ["checkpoint_does_not_cover", "workspace_drift"]
    assert ran.document["reasons"][0]["detail"]["tools"] == ["record_effect"]
    assert program("resume", "s1", "--script", script, "--rebaseline").code == 0
    assert program.effects == ["paid"]


def test_a_checkpoint_that_is_gone_is_said(program: Program, repository: Path) -> None:
    script = killed(program)
    for ref in git(repository, "for-each-ref", "--format=%(refname)", "refs/safepoint").split():
        git(repository, "update-ref", "-d", ref)
    assert reasons(program("resume", "s1", "--script", script, "--json").document) == ["workspace_ref_missing"]
    assert program("resume", "s1", "--script", script, "--rebaseline").code == 0


def test_a_weaker_mode_is_said_and_never_taken(program: Program, repository: Path) -> None:
    script = killed(program)
    parked = program("resume", "s1", "--script", script, "--checkpoints", "none", "--json").document
    assert reasons(parked) == ["mode_mismatch"]
    shutil.rmtree(repository / ".git")
    assert reasons(program("resume", "s1", "--script", script, "--json").document) == ["mode_mismatch"]


def test_what_keeps_a_folder_from_being_compared_is_named(program: Program, repository: Path) -> None:
    killed(program)
    git(repository, "init", "-q", "a nested one")
    ran = program("plan", "s1")
    assert ran.code == 3
    assert "a nested one" in ran.out
    assert "safepoint resume s1" in ran.out.partition("What you can do:")[2]


def test_paths_that_differ_are_told_apart_and_counted_first(program: Program, repository: Path) -> None:
    killed(program)
    for name in ("a b", "c", "d"):
        (repository / name).write_text("")
    (line,) = (line for line in program("plan", "s1").out.splitlines() if "paths: " in line)
    assert "count: 3, paths: 'a b' c d" in line


def test_a_folder_without_marker_is_not_said_to_be_missing(program: Program, repository: Path) -> None:
    killed(program)
    folder = program.folder / "plain"
    folder.mkdir()
    for action in ("show", "adopt", "renew"):
        ran = program("workspace", action, folder)
        assert (ran.code, "it has no marker" in ran.err, "--workspace" in ran.err) == (2, True, False)
        gone = program("workspace", action, folder / "gone")
        assert (gone.code, "is not there" in gone.err, "--workspace" in gone.err) == (2, True, False)


def test_a_folder_without_git_is_refused_before_anything_is_begun(program: Program) -> None:
    program.script()
    ran = program(*program.run("--session", "s1", "--checkpoints", "git", "--json"))
    assert (ran.code, ran.document["code"]) == (2, "checkpoints_unusable")
    assert program("list", "--json").document["sessions"] == []


def test_the_environment_chooses_the_mode_of_new_turns(
    program: Program, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFEPOINT_CHECKPOINTS", "git")
    program.script({"text": "Hello."})
    assert program(*program.run("--session", "s1")).code == 0
    assert "refs/safepoint" in git(repository, "for-each-ref")
    monkeypatch.setenv("SAFEPOINT_CHECKPOINTS", "maybe")
    assert program(*program.run("--session", "s2")).code == 2


@pytest.mark.parametrize("arguments", [("--isolated", "--rebaseline"), ("--checkpoints", "none", "--isolated")])
def test_options_that_contradict_each_other_are_refused(program: Program, arguments: tuple[str, ...]) -> None:
    script = program.script({"text": "Hello."})
    assert program("resume", "s1", "--script", script, *arguments).code == 2


def orphan(program: Program, repository: Path) -> str:
    """A checkpoint of this store that was made long ago, and that no fact names; answers its ref."""
    clock = ManualClock()
    clock.jump_wall(-10 * 366 * 86_400)
    with OpenedStore(Settings(program.store)) as runtime:
        key = runtime.parts.new_key()()
    (repository / "orphan.txt").write_text(key)
    captured = GitCheckpoints(program.folder / "cache", clock).capture(str(repository), key)
    (repository / "orphan.txt").unlink()
    assert isinstance(captured, Checkpoint)
    return captured.ref


def test_orphans_are_listed_first_and_removed_when_that_is_asked_for(program: Program, repository: Path) -> None:
    script = killed(program)
    lost = orphan(program, repository)
    before = git(repository, "for-each-ref")
    listed = program("gc", "--json").document
    assert [one["ref"] for one in listed["checkpoints"]] == [lost]
    assert (listed["deleted"], listed["removed"]) == (False, 0)
    assert git(repository, "for-each-ref") == before
    deleted = program("gc", "--delete", "--json").document
    assert (deleted["removed"], deleted["left"]) == (1, [])
    assert lost not in git(repository, "for-each-ref")
    assert program("gc", "--json").document["checkpoints"] == []
    assert program("resume", "s1", "--script", script).code == 0


def test_what_git_still_holds_of_a_forgotten_session_is_said(program: Program, repository: Path) -> None:
    killed(program)
    done = program("forget", "s1", "--yes")
    assert done.code == 0
    assert f"git -C {repository} gc --prune=now" in done.out
    assert program("forget", "s1", "--yes").out.count("gc --prune") == 0  # there is nothing more


def test_checkpoints_that_could_not_be_looked_at_are_not_counted(program: Program, repository: Path) -> None:
    killed(program)
    kept = program("gc", "--json").document["accepted"]
    repository.rename(program.folder / "away")
    ran = program("gc")
    assert kept > 0
    assert "of the checkpoints that were found, 0 are" in ran.out
    assert f"not counted: {repository}" in ran.out


def test_an_isolated_folder_that_a_run_works_in_stays_and_one_of_nobody_goes(
    program: Program, repository: Path
) -> None:
    script = killed(program)
    (repository / "notes.txt").write_text("theirs\n")
    ran = program("resume", "s1", "--script", script, "--isolated", "--json").document
    used = Path(ran["drift"]["isolated"]["path"])
    unused = used.parent / "half-made"
    unused.mkdir()
    for folder in (used, unused):
        os.utime(folder, (0, 0))
    listed = program("gc", "--json").document
    assert [one["path"] for one in listed["folders"]] == [str(unused)]
    assert program("gc", "--delete").code == 0
    assert used.is_dir()
    assert not unused.exists()


def test_killed_at_random_instants_a_last_collection_finishes_and_the_repository_is_sound(
    program: Program, repository: Path
) -> None:
    script = killed(program)
    chance = random.Random(20_261_130)
    for _ in range(5):
        for _ in range(2):
            orphan(program, repository)
        process = program.start("gc", "--delete")
        time.sleep(chance.uniform(0.05, 0.8))
        process.kill()
        process.communicate()
    assert program("gc", "--delete").code == 0
    assert program("gc", "--json").document["checkpoints"] == []
    git(repository, "fsck", "--strict", "--no-dangling")
    assert program("resume", "s1", "--script", script).code == 0


def test_a_forgotten_session_is_gone_from_every_file_and_its_id_is_never_used_again(
    program: Program, repository: Path
) -> None:
    script = killed(program)
    other = program.script({"text": "The other one stays."})
    assert (
        program(
            *("run", "Stay.", "--script", other, "--workspace", repository, "--session", "s2", "--checkpoints", "none")
        ).code
        == 0
    )
    program.script({"text": "I look.", "calls": [LOOK]}, {"text": "I do it.", "calls": [WRITE]}, {"text": "Done."})
    listed = program("forget", "s1", "--json").document
    assert (listed["forgotten"], listed["sessions"]) == (False, ["s1"])
    assert program("show", "s1").code == 0
    assert program("forget", "s1").code == 0
    content = b": 4000}"
    assert any(content in file.read_bytes() for file in program.store.parent.glob("store.sqlite*") if file.is_file())
    done = program("forget", "s1", "--yes", "--by", "Ada", "--json").document
    assert (done["forgotten"], done["log_emptied"], done["left"]) == (True, True, [])
    assert "refs/safepoint/checkpoints" not in git(repository, "for-each-ref")
    for file in program.store.parent.glob("store.sqlite*"):
        if file.is_file():
            assert content not in file.read_bytes(), file
    for arguments in (("show", "s1"), ("plan", "s1"), ("resume", "s1", "--script", script), ("export", "s1")):
        ran = program(*arguments)
        assert ran.code == 2, (arguments, ran)
        assert "was forgotten by Ada" in ran.err, arguments
    ran = program("run", "Again.", "--script", other, "--workspace", repository, "--session", "s1", "--json")
    assert (ran.code, ran.document["code"]) == (2, "session_forgotten")
    assert [one["session_id"] for one in program("list", "--json").document["sessions"]] == ["s2"]
    assert program("verify").code == 0
    assert program("rebuild").code == 0
    assert program("verify").code == 0
    assert program("doctor").code == 0
    assert program("run", "More.", "--script", other, "--session", "s2").code == 0
    copy = program.folder / "copy.sqlite"
    assert program("backup", copy).code == 0
    git(repository, "fsck", "--strict", "--no-dangling")


def test_a_session_that_is_worked_in_is_not_forgotten_and_one_that_is_not_there_is_said(program: Program) -> None:
    program.script()
    assert program("forget", "nobody").code == 2
    assert program(*program.run("--session", "s1")).code == 0
    assert program("forget", "nobody", "--yes", "--json").document["code"] == "unknown_session"


def test_a_turn_is_bound_by_itself_where_it_can_be_and_drift_then_parks(program: Program, repository: Path) -> None:
    script = program.script({"text": "I do it.", "calls": [WRITE]}, {"text": "Done."})
    program.killed_at("P8", *program.run("--session", "s1"))
    assert "Content of the folder: kept by git" in program("show", "s1").out
    (repository / "notes.txt").write_text("changed by somebody else\n")
    parked = program("resume", "s1", "--script", script, "--json")
    assert reasons(parked.document) == ["workspace_drift"]


def test_where_it_cannot_be_a_person_is_told_once_with_the_code(program: Program) -> None:
    program.script({"text": "Done."})
    first = program(*program.run("--session", "s1"))
    assert (first.code, first.err.count("[not_a_repository]")) == (0, 1)
    assert "not kept, and not compared at a resume" in program("show", "s1").out
    again = program(*program.run("--session", "s1"))
    assert (again.code, "not_a_repository" in again.err) == (0, False)


def test_a_session_that_was_not_bound_is_at_its_next_turn_where_that_has_become_possible(program: Program) -> None:
    program.script({"text": "Done."})
    assert program(*program.run("--session", "s1")).code == 0
    git(program.workspace, "init", "-q")
    (program.workspace / "notes.txt").write_text("mine\n")
    assert program(*program.run("--session", "s1")).code == 0
    assert program("show", "s1", "--json").document["run"]["checkpoints"] == "git"
    shutil.rmtree(program.workspace / ".git")
    weaker = program(*program.run("--session", "s1"))
    assert (weaker.code, weaker.err.count("[not_a_repository]")) == (0, 1)


def test_what_is_large_is_not_copied_unasked_and_is_where_it_is_asked_for(program: Program, repository: Path) -> None:
    with (repository / "data.bin").open("wb") as data:
        data.truncate(65 * 1024 * 1024)
    program.script({"text": "Done."})
    told = program(*program.run("--session", "s1"))
    assert (told.code, told.err.count("[content_too_large]")) == (0, 1)
    assert "refs/safepoint" not in git(repository, "for-each-ref")
    assert program(*program.run("--session", "s2", "--checkpoints", "git")).code == 0
    assert "refs/safepoint" in git(repository, "for-each-ref")


def test_the_environment_turns_it_off(program: Program, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFEPOINT_CHECKPOINTS", "none")
    program.script({"text": "Done."})
    quiet = program(*program.run("--session", "s1"))
    assert (quiet.code, "Not bound" in quiet.err) == (0, False)
    assert "refs/safepoint" not in git(repository, "for-each-ref")
