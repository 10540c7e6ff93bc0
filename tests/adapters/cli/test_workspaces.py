"""Which folder a session works in, and what is printed about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .program import PAY, Program


def killed(program: Program, point: str) -> Path:
    script = program.script({"text": "I do it.", "calls": [PAY]}, {"text": "More.", "calls": [PAY]}, {"text": "Done."})
    program.killed_at(point, *program.run("--session", "s1"))
    return script


def test_a_new_turn_of_a_session_goes_on_in_its_own_folder_wherever_it_is_typed(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = killed(program, "P7")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert program("run", "more", "--session", "s1", "--script", script).code == 0
    assert list(elsewhere.iterdir()) == []
    assert program.effects == ["paid", "paid"]


def test_a_copy_beside_the_folder_that_the_run_worked_in_is_no_move(program: Program, tmp_path: Path) -> None:
    script = killed(program, "P7")
    copy = tmp_path / "copy"
    shutil.copytree(program.workspace, copy)
    ran = program("resume", "s1", "--script", script, "--workspace", copy, "--json")
    assert ran.code == 3
    assert [reason["code"] for reason in ran.document["reasons"]] == ["workspace_copy_ambiguous"]
    assert (copy / "effects.log").read_text().splitlines() == program.effects == ["paid"]
    shutil.rmtree(program.workspace)
    ran = program("plan", "s1", "--script", script, "--workspace", copy, "--json")
    assert ran.code == 0
    assert f"--workspace {copy}" in ran.document["commands"][0]["command"]


def test_what_a_store_lost_is_never_said_not_to_be_there(program: Program) -> None:
    killed(program, "P4")
    Path(f"{program.store}-wal").unlink()
    Path(f"{program.store}-shm").unlink()
    for arguments in (("list",), ("status", "--fail-if-unsettled"), ("plan", "s1"), ("show", "s1"), ("cancel", "s1")):
        ran = program(*arguments)
        assert ran.code == 4, arguments
        assert "is lost" in ran.err + ran.out, arguments


def test_a_session_is_not_named_like_an_option(program: Program) -> None:
    program.script({"text": "Hello."})
    ran = program(*program.run("--session=-dash"))
    assert ran.code == 2
    assert "does not begin with a dash" in ran.err


def test_a_person_says_that_the_copy_is_the_workspace(program: Program, tmp_path: Path) -> None:
    script = killed(program, "P7")
    copy = tmp_path / "copy"
    shutil.copytree(program.workspace, copy)
    shown = program("workspace", "show", copy, "--json")
    assert (shown.code, shown.document["elsewhere"]) == (3, [str(program.workspace)])
    parked = program("resume", "s1", "--script", script, "--workspace", copy, "--json").document
    assert f"safepoint workspace adopt {copy}" in " ".join(way["command"] for way in parked["commands"])
    adopted = program("workspace", "adopt", copy, "--by", "Ada", "--json").document
    assert [run["session_id"] for run in adopted["runs"]] == ["s1"]
    assert "transitioned" in program("show", "s1").out
    ran = program("resume", "s1", "--script", script)  # the record names the copy by now
    assert ran.code == 0, ran
    assert (copy / "effects.log").read_text().splitlines() == ["paid", "paid"]
    assert program.effects == ["paid"]


def test_a_person_says_that_the_copy_is_another_workspace(program: Program, tmp_path: Path) -> None:
    script = killed(program, "P7")
    copy = tmp_path / "copy"
    shutil.copytree(program.workspace, copy)
    renewed = program("workspace", "renew", copy, "--json").document
    assert renewed["identity"] != renewed["before"]
    assert (renewed["runs"], renewed["elsewhere"]) == ([], [])
    assert program("workspace", "show", copy).code == 0
    assert program("resume", "s1", "--script", script).code == 0
    assert program.effects == ["paid", "paid"]


def test_no_turn_begins_in_a_copy_until_a_person_says_which_is_the_workspace(program: Program, tmp_path: Path) -> None:
    script = killed(program, "P7")
    copy = tmp_path / "copy"
    shutil.copytree(program.workspace, copy)
    for session in ("s1", "new"):  # its own, and another one of the same store
        ran = program("run", "more", "--session", session, "--script", script, "--workspace", copy, "--json")
        assert (ran.code, ran.document["code"]) == (3, "workspace_copy_ambiguous")
        assert str(copy) in ran.document["message"]
        assert str(program.workspace) in ran.document["message"]
        assert "safepoint workspace renew" in ran.document["next_step"]
    assert [one["session_id"] for one in program("list", "--json").document["sessions"]] == ["s1"]
    assert program("workspace", "renew", copy).code == 0
    assert program("run", "more", "--session", "new", "--script", script, "--workspace", copy).code == 0


def in_two_places(program: Program, tmp_path: Path) -> tuple[Path, Path]:
    """A run was interrupted in the workspace, another one worked in a copy of it, and both folders are there."""
    script = killed(program, "P7")
    copy, aside = tmp_path / "copy", tmp_path / "aside"
    shutil.copytree(program.workspace, copy)
    program.workspace.rename(aside)
    assert program("run", "more", "--session", "new", "--script", script, "--workspace", copy).code == 0
    aside.rename(program.workspace)
    return script, copy


def test_a_run_is_not_continued_in_its_own_folder_where_another_worked_in_a_copy(
    program: Program, tmp_path: Path
) -> None:
    script, copy = in_two_places(program, tmp_path)
    for command in ("plan", "resume"):
        parked = program(command, "s1", "--script", script, "--json")
        assert (parked.code, [one["code"] for one in parked.document["reasons"]]) == (3, ["workspace_copy_ambiguous"])
        assert parked.document["reasons"][0]["detail"]["paths"] == [str(copy), str(program.workspace)]
    offered = " ".join(way["command"] for way in parked.document["commands"])
    assert f"workspace adopt {program.workspace}" in offered
    assert f"workspace renew {copy}" in offered
    assert program.effects == ["paid"]


def test_a_person_says_it_once_and_it_is_said_for_good(program: Program, tmp_path: Path) -> None:
    script, copy = in_two_places(program, tmp_path)
    assert program("workspace", "adopt", program.workspace, "--by", "Ada").code == 0
    shown = program("workspace", "show", program.workspace, "--json")
    assert (shown.code, shown.document["elsewhere"]) == (0, [str(copy)])
    assert program("resume", "s1", "--script", script).code == 0
    assert program("run", "more", "--session", "s1", "--script", script).code == 0
    assert program("run", "more", "--session", "s3", "--script", script, "--workspace", program.workspace).code == 0
    ran = program("run", "more", "--session", "new", "--script", script, "--json")
    assert (ran.code, ran.document["code"]) == (3, "workspace_copy_ambiguous")


def test_where_the_other_folder_is_another_workspace_by_now_nothing_is_in_doubt(
    program: Program, tmp_path: Path
) -> None:
    script, copy = in_two_places(program, tmp_path)
    assert program("workspace", "renew", copy).code == 0
    assert program("resume", "s1", "--script", script).code == 0


def test_looking_at_a_workspace_needs_no_store_and_makes_none(program: Program) -> None:
    script = killed(program, "P7")
    assert script.exists()
    other = program.folder / "other.sqlite"
    ran = program.bare("workspace", "show", program.workspace, "--store", other, "--json")
    assert (ran.code, ran.document["runs"]) == (0, [])
    assert not other.exists()


def test_a_folder_without_a_marker_is_no_workspace(program: Program, tmp_path: Path) -> None:
    ran = program("workspace", "show", tmp_path, "--json")
    assert (ran.code, ran.document["code"]) == (2, "workspace_missing")


@pytest.mark.parametrize("verb", ["reconcile", "resume"])
def test_the_bytes_of_a_copy_settle_nothing_of_what_was_done_in_the_other_folder(
    program: Program, tmp_path: Path, verb: str
) -> None:
    edit = {"tool": "edit_file", "args": {"path": "a.txt", "old_text": "one", "new_text": "two"}}
    script = program.script({"text": "I edit it.", "calls": [edit]}, {"text": "Done."})
    (program.workspace / "a.txt").write_text("one\n")
    program.killed_at("P4", *program.run("--session", "s1"))
    copy = tmp_path / "copy"
    shutil.copytree(program.workspace, copy)
    (program.workspace / "a.txt").write_text("one\n")
    more = ("--reconcile", "--script", script) if verb == "resume" else ()
    ran = program(verb, "s1", "--workspace", copy, *more, "--json")
    assert ran.code == 3, ran
    (one,) = ran.document["operations" if verb == "reconcile" else "reconciled"]
    assert (one["became"], one["code"]) == ("left", "workspace_copy_ambiguous")
    assert f"safepoint workspace adopt {copy}" in " ".join(way["command"] for way in ran.document["commands"])
    program("workspace", "adopt", copy, "--by", "Ada")
    (one,) = program("reconcile", "s1", "--json").document["operations"]
    assert (one["became"], one["observation"]) == ("completed", "matches_expected_state")


def test_in_the_folder_of_the_run_nothing_is_settled_either_while_a_copy_is_known(
    program: Program, tmp_path: Path
) -> None:
    edit = {"tool": "edit_file", "args": {"path": "a.txt", "old_text": "one", "new_text": "two"}}
    script = program.script({"text": "I edit it.", "calls": [edit]}, {"text": "Done."})
    (program.workspace / "a.txt").write_text("one\n")
    program.killed_at("P4", *program.run("--session", "s1"))
    copy, aside = tmp_path / "copy", tmp_path / "aside"
    shutil.copytree(program.workspace, copy)
    program.workspace.rename(aside)
    done = program.script({"text": "Done."})
    assert program("run", "more", "--session", "new", "--script", done, "--workspace", copy).code == 0
    aside.rename(program.workspace)
    left = program("reconcile", "s1", "--json")
    assert (left.code, [one["code"] for one in left.document["operations"]]) == (3, ["workspace_copy_ambiguous"])
    assert program("workspace", "adopt", program.workspace).code == 0
    assert [one["became"] for one in program("reconcile", "s1", "--json").document["operations"]] == ["completed"]
    assert script.exists()
