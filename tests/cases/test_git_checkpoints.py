"""Field reports: a copy of the workspace was not made, was lost, or cost what it was to protect. SPEC F15."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..adapters.cli.program import PAY, Program, Ran
from ..adapters.git.killing import Jobs, killing_at
from ..adapters.git.repositories import (
    Untouched,
    as_git_has_it,
    commit,
    files_under,
    git,
    git_files,
    make_repository,
    write,
)
from .programs import DONE, resume


def capture(program: Program, folder: Path) -> Ran:
    return program("checkpoint", "capture", "--workspace", folder, "--json")


def ref_of(ran: Ran) -> str:
    assert ran.code == 0, ran
    return str(ran.document["checkpoints"][0]["ref"])


def restored(program: Program, folder: Path, ref: str, name: str = "restored") -> Path:
    target = program.folder / name
    ran = program("checkpoint", "restore", ref, "--workspace", folder, "--into", target)
    assert ran.code == 0, ran
    return target


def test_r3_132_a_repository_stays_usable_whenever_a_capture_is_killed(tmp_path: Path) -> None:
    """`kill -9` at every command, in a repository with a submodule and a nested repository; nothing was renamed."""
    library = make_repository(tmp_path / "library")
    commit(library)
    folder = make_repository(tmp_path / "project")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "part/lib")
    nested = make_repository(folder / "nested")
    commit(nested)
    write(folder, "own/a")
    commit(folder)
    write(folder, "own/b")
    untouched, of_nested = Untouched(folder), git_files(nested / ".git")
    kills = 0
    with Jobs() as jobs:
        for workspace in (folder, folder / "own"):  # the one is refused for the submodule, the other is captured
            for at in range(1, 20):
                killed = jobs.run(
                    what="capture",
                    folder=str(workspace),
                    place=str(tmp_path / "place"),
                    key=f"key{at}",
                    environment=killing_at(tmp_path, at, "after"),
                )
                untouched.check()
                assert git_files(nested / ".git") == of_nested
                kills += killed
                if not killed:
                    break
    assert kills >= 12
    git(folder, "fsck", "--strict", "--no-dangling")
    git(folder / "part" / "lib", "status")


def test_r3_134_a_restore_deletes_no_file_that_is_ignored_by_now(program: Program) -> None:
    folder = make_repository(program.workspace)
    write(folder, "a", b"one\n")
    ref = ref_of(capture(program, folder))
    write(folder, ".gitignore", b"build/\n")
    write(folder, "build/x", b"built\n")
    before = files_under(folder)
    target = restored(program, folder, ref)
    assert files_under(folder) == before
    assert (folder / "build" / "x").read_bytes() == b"built\n"
    assert files_under(target).keys() == {"a"}


def test_r3_136_a_checkpoint_needs_no_name_and_address_of_the_user(program: Program) -> None:
    folder = make_repository(program.workspace)
    write(folder, "a")
    home = program.folder / "home"
    home.mkdir()
    settings = (folder / ".git" / "config").read_bytes()
    ran = program.process(
        "checkpoint", "capture", "--workspace", folder, "--json", HOME=str(home), GIT_CONFIG_GLOBAL=os.devnull, USER=""
    )
    who = git(folder, "log", "-1", "--format=%an <%ae>, %cn <%ce>", ref_of(ran)).decode().strip()
    assert who == "Safepoint <safepoint@localhost>, Safepoint <safepoint@localhost>"
    assert (folder / ".git" / "config").read_bytes() == settings
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "files", [{}, {"a": b"one\n", "deep/b": b"", "run.sh": b"#!/bin/sh\n"}], ids=["empty", "files"]
)
def test_r3_137_without_any_commit_a_checkpoint_is_usable(program: Program, files: dict[str, bytes]) -> None:
    folder = make_repository(program.workspace)
    for path, content in files.items():
        write(folder, path, content)
    made = capture(program, folder)
    target = restored(program, folder, ref_of(made))
    again = capture(program, target)
    assert again.document["checkpoints"][0]["tree_id"] == made.document["checkpoints"][0]["tree_id"]
    assert {path: seen.content for path, seen in files_under(target).items()} == files


@pytest.mark.parametrize("ignored", [False, True], ids=["no repository", "everything ignored"])
def test_r3_137_where_there_can_be_no_checkpoint_that_is_said_at_once(program: Program, ignored: bool) -> None:
    folder = make_repository(program.workspace) if ignored else program.workspace
    write(folder, ".gitignore", b"*\n")
    write(folder, "a")
    ran = capture(program, folder)
    assert (ran.code, ran.document["code"]) == (2, "checkpoints_unusable")
    assert ("everything_ignored" if ignored else "not_a_repository") in ran.document["message"]
    assert not (folder / ".git" / "refs" / "safepoint").exists()


@contextmanager
def recreated(file: Path) -> Iterator[None]:
    """Somebody else writes the file anew again and again; it is there at every instant."""
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (file.parent / "next").write_text(f"lock {number}\n")
            (file.parent / "next").rename(file)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def test_r3_139_no_file_is_ever_moved_away_and_a_failure_is_no_success(program: Program) -> None:
    """An untracked uv.lock in a nested project, which another process makes anew meanwhile."""
    folder = make_repository(program.workspace)
    write(folder, "a")
    commit(folder)
    file = write(folder, "sub/project/uv.lock", b"lock 0\n")
    absent, stop = [], threading.Event()

    def poll() -> None:
        while not stop.is_set():
            if not file.exists():
                absent.append(1)

    watcher = threading.Thread(target=poll)
    watcher.start()
    try:
        with recreated(file):
            made = [capture(program, folder) for _ in range(3)]
    finally:
        stop.set()
        watcher.join()
    assert absent == []
    for ran in made:
        assert (ran.code == 0) == ("checkpoints" in ran.document)
        if ran.code == 0:
            assert as_git_has_it(folder, f"{ref_of(ran)}:sub/project/uv.lock").startswith(b"lock ")
    assert git(folder, "stash", "list") == b""


def test_r3_141_a_checkpoint_outlasts_the_collection_of_garbage(program: Program) -> None:
    folder = make_repository(program.workspace)
    write(folder, "a", b"one\n")
    ref = ref_of(capture(program, folder))
    write(folder, "a", b"two\n")
    git(folder, "reflog", "expire", "--expire=now", "--all")
    git(folder, "gc", "--quiet", "--prune=now")
    assert (restored(program, folder, ref) / "a").read_bytes() == b"one\n"


def test_r3_142_damage_in_one_repository_stops_no_checkpoint_of_another_and_no_resume(program: Program) -> None:
    other = make_repository(program.folder / "other")
    write(other, "a")
    folder = make_repository(program.workspace)
    write(folder, "a")
    ref_of(capture(program, folder))
    for remembered in Path(f"{program.store}.checkpoints").iterdir():
        remembered.write_bytes(bytes(500))
    ref_of(capture(program, folder))  # what is remembered is made anew
    program.script({"text": "I do it.", "calls": [PAY]}, DONE)
    program.killed_at("P7", *program.run("--session", "s1", "--checkpoints", "none"))
    (folder / ".git" / "config").write_bytes(bytes(100))
    ran = capture(program, folder)
    assert (ran.code, ran.document["code"]) == (5, "checkpoints_unread")
    assert str(folder) in ran.document["message"]
    ref_of(capture(program, other))
    program.script({"text": "I do it.", "calls": [PAY]}, DONE)
    assert program(*resume(program)).code == 0


def test_r3_060_nothing_is_restored_over_work_and_what_was_kept_brings_all_of_it_back(program: Program) -> None:
    folder = make_repository(program.workspace)
    for name in ("modified", "staged"):
        write(folder, name, b"old\n")
    commit(folder)
    for name in ("modified", "staged", "untracked"):
        write(folder, name, f"{name} by the user\n".encode())
    git(folder, "add", "staged")
    untouched = Untouched(folder)
    ref = ref_of(capture(program, folder))
    refused = program("checkpoint", "restore", ref, "--workspace", folder, "--into", folder)
    assert (refused.code, "was left as it is" in refused.err) == (2, True)
    untouched.check()
    target = restored(program, folder, ref)
    names = ("modified", "staged", "untracked")
    assert [(target / name).read_bytes() for name in names] == [f"{name} by the user\n".encode() for name in names]
    untouched.check()
