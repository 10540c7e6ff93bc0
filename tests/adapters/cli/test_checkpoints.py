"""`safepoint checkpoint`: by hand, without a run. SPEC sections 16 and 17."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.cli import documents

from ..git.repositories import Untouched, git, make_repository, write, write_odd
from .program import Program


@pytest.fixture
def files(program: Program) -> Path:
    """The workspace, as a repository with files."""
    folder = make_repository(program.workspace)
    write(folder, "a.txt", b"one\n")
    write(folder, "deep/b.txt", b"two\n")
    return folder


def captured(program: Program, files: Path) -> str:
    ran = program("checkpoint", "capture", "--workspace", files, "--json")
    assert ran.code == 0, ran
    (made,) = ran.document["checkpoints"]
    assert isinstance(made["ref"], str)
    return made["ref"]


def test_a_folder_is_kept_compared_restored_and_given_up(program: Program, files: Path) -> None:
    ref = captured(program, files)
    shown = program("checkpoint", "show", ref, "--workspace", files)
    assert (shown.code, "has the same content" in shown.out) == (0, True)
    write(files, "a.txt", b"changed\n")
    (files / "deep" / "b.txt").unlink()
    write_odd(files, b"\xff\x1b[2J", b"")
    untouched = Untouched(files)
    shown = program("checkpoint", "show", ref, "--workspace", files)
    assert shown.code == 3
    assert {"  changed: a.txt", "  removed: deep/b.txt"} < set(shown.out.splitlines())
    assert "\x1b" not in shown.out
    target = program.folder / "restored"
    restored = program("checkpoint", "restore", ref, "--workspace", files, "--into", target)
    assert restored.code == 0, restored
    assert (target / "a.txt").read_bytes() == b"one\n"
    assert program("checkpoint", "remove", ref, "--workspace", files).code == 0
    assert program("checkpoint", "list", "--workspace", files, "--json").document["checkpoints"] == []
    untouched.check()


def test_every_action_answers_with_the_one_object(program: Program, files: Path) -> None:
    ref = captured(program, files)
    write(files, "new", b"")
    target = program.folder / "out"
    for arguments, code in {
        ("list",): 0,
        ("show", ref): 3,
        ("show", ref.rpartition("/")[2]): 3,
        ("restore", ref, "--into", str(target)): 0,
        ("remove", ref): 0,
    }.items():
        ran = program("checkpoint", *arguments, "--workspace", files, "--json")
        found = ran.document
        assert (ran.code, found.pop("schema"), tuple(found)) == (
            code,
            documents.CHECKPOINT,
            documents.MEMBERS[documents.CHECKPOINT],
        )
        assert (found["action"], found["exit_code"], found["workspace"]) == (arguments[0], code, str(files))
        if arguments[0] == "show":
            assert found["differences"] == [{"path": "new", "how": "added"}]
            assert (found["differences_total"], found["same_policy"]) == (1, True)
        if arguments[0] == "restore":
            assert found["target"] == str(target)


def test_the_offered_commands_do_what_they_say(program: Program, files: Path) -> None:
    ran = program("checkpoint", "capture", "--workspace", files, "--json")
    show, restore = (shlex.split(one["command"])[1:] for one in ran.document["commands"])
    assert program.bare(*show).code == 0
    assert program.bare(*restore).code == 0
    assert (program.folder / "workspace-restored" / "a.txt").exists()


def test_nothing_is_restored_over_what_is_there(program: Program, files: Path) -> None:
    ref = captured(program, files)
    write(files, "a.txt", b"mine\n")
    for target in (files, write(program.folder, "file"), program.folder):
        ran = program("checkpoint", "restore", ref, "--workspace", files, "--into", target)
        assert (ran.code, "was left as it is" in ran.err) == (2, True)
    assert (files / "a.txt").read_bytes() == b"mine\n"


WRONG = (
    *(("show",), ("restore", "x"), ("restore", "--into", "y")),
    *(("list", "x"), ("capture", "x"), ("show", "x", "--into", "y")),
)


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_what_an_action_does_not_take_is_told_before_anything_is_done(
    program: Program, files: Path, arguments: tuple[str, ...]
) -> None:
    ran = program("checkpoint", *arguments, "--workspace", files, "--json")
    assert (ran.code, ran.document["code"]) == (2, "usage")
    assert program("checkpoint", "list", "--workspace", files, "--json").document["checkpoints"] == []


@pytest.mark.parametrize("action", ["show", "remove"])
def test_a_checkpoint_that_is_not_there_is_told(program: Program, files: Path, action: str) -> None:
    ran = program("checkpoint", action, "nothing", "--workspace", files, "--json")
    assert (ran.code, ran.document["code"]) == (2, "checkpoint_missing")


def test_what_a_run_kept_is_not_removed_by_hand(program: Program, files: Path) -> None:
    ref = captured(program, files)
    of_run = "refs/safepoint/checkpoints/0123-of-a-run"
    git(files, "update-ref", of_run, ref)
    ran = program("checkpoint", "remove", of_run, "--workspace", files, "--json")
    assert (ran.code, ran.document["code"]) == (2, "checkpoint_of_run")
    assert git(files, "rev-parse", of_run) == git(files, "rev-parse", ref)


def damaged(files: Path, ref: str) -> None:
    blob = git(files, "rev-parse", f"{ref}:a.txt").decode().strip()
    (files / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def not_a_repository(files: Path, ref: str) -> None:
    (files / ".git").rename(files.parent / "elsewhere")


def not_readable(files: Path, ref: str) -> None:
    (files / ".git" / "HEAD").write_bytes(bytes(100))


@pytest.mark.parametrize("named", ["the store of the run", "another store"])
def test_a_tool_does_not_remove_what_a_person_kept(program: Program, files: Path, tmp_path: Path, named: str) -> None:
    ref = captured(program, files)
    store = program.store if named == "the store of the run" else tmp_path / "another.sqlite"
    own = f"{sys.executable} -m safepoint checkpoint remove {ref} --store {store} --json"
    shell = {"tool": "run_shell", "args": {"command": f"{own} > said.json"}}
    program.script({"text": "I tidy up.", "calls": [shell]}, {"text": "Done."})
    assert program.process(*program.run("--session", "s1")).code == 0
    assert json.loads((files / "said.json").read_text())["code"] == "not_a_person"
    left = program("checkpoint", "list", "--workspace", files, "--json").document["checkpoints"]
    assert ref in [one["ref"] for one in left]
    assert program("checkpoint", "remove", ref, "--workspace", files).code == 0  # and a person does


@pytest.mark.parametrize(
    ("harm", "code", "status"),
    [
        (damaged, "workspace_ref_missing", 4),
        (not_a_repository, "checkpoints_unusable", 2),
        (not_readable, "checkpoints_unread", 5),
    ],
)
def test_missing_refused_and_not_looked_at_are_three_answers(
    program: Program, files: Path, harm: Callable[[Path, str], None], code: str, status: int
) -> None:
    ref = captured(program, files)
    harm(files, ref)
    ran = program("checkpoint", "show", ref, "--workspace", files, "--json")
    assert (ran.code, ran.document["code"]) == (status, code)


def test_a_refusal_names_what_is_in_the_way(program: Program, files: Path) -> None:
    make_repository(files / "inner")
    ran = program("checkpoint", "capture", "--workspace", files)
    assert ran.code == 2
    assert "nested_repository" in ran.err
    assert "(inner)" in ran.err


def test_a_store_inside_the_workspace_is_no_content(program: Program, files: Path) -> None:
    store = files / "state" / "store.sqlite"
    write(files, "state/store.sqlite-wal")
    write(files, "state/notes")
    ran = program.bare("checkpoint", "capture", "--workspace", files, "--store", store, "--json")
    assert ran.code == 0
    tree = ran.document["checkpoints"][0]["tree_id"]
    named = git(files, "ls-tree", "-r", "--name-only", tree).decode().split()
    assert named == ["a.txt", "deep/b.txt", "state/notes"]
    assert [path.name for path in store.parent.glob("*.checkpoints")] == ["store.sqlite.checkpoints"]


@pytest.mark.parametrize("into", ["inside", ".git/inside", "../nowhere/new", "a.txt/new"])
def test_a_copy_is_refused_where_it_does_harm_or_cannot_be(program: Program, files: Path, into: str) -> None:
    ref = captured(program, files)
    untouched = Untouched(files)
    ran = program("checkpoint", "restore", ref, "--workspace", files, "--into", files / into, "--json")
    assert ran.code == 2
    assert "--into" in str(ran.document)
    untouched.check()
    captured(program, files)


@pytest.mark.parametrize("action", [("capture",), ("list",), ("remove", "x")])
@pytest.mark.parametrize("folder", ["missing", "files/a.txt"])
def test_a_workspace_that_is_no_folder_is_named(
    program: Program, files: Path, action: tuple[str, ...], folder: str
) -> None:
    named = program.folder / "missing" if folder == "missing" else files / "a.txt"
    ran = program("checkpoint", *action, "--workspace", named)
    assert ran.code == 2
    assert f"The workspace {named} is" in ran.err


def test_what_is_said_to_do_next_can_be_done(program: Program, files: Path) -> None:
    ref = captured(program, files)
    assert f"--workspace {shlex.quote(str(files))}" in program("checkpoint", "show", "x", "--workspace", files).err
    assert "--into" in program("checkpoint", "restore", ref, "--workspace", files).err
    write(files, "new")
    shown = program("checkpoint", "show", ref, "--workspace", files)
    assert "checkpoint restore" in shown.out
    assert "checkpoint show" not in shown.out
