"""`list`, `status`, `show`, `plan` and `verify` only look."""

from __future__ import annotations

from pathlib import Path

import pytest

from safepoint.adapters.cli import documents

from .program import PAY, READ, WRITE, Program, program_in

LOOKS = (("list",), ("status",), ("status", "s1"), ("show", "s1"), ("plan", "s1"), ("plan",), ("verify",))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A store with a completed session, and one that was killed between effect and outcome."""
    program = program_in(tmp_path_factory.mktemp("looking"))
    program.script({"text": "Hello."})
    assert program.process(*program.run("--session", "s0")).code == 0
    program.script({"text": "I do it.", "calls": [WRITE, PAY]}, {"text": "All done."})
    program.killed_at("tool.record_effect.after_effect", *program.run("--session", "s1"))
    return program


@pytest.fixture
def looked_at(program: Program, made: Program) -> Program:
    return Program(made.folder, program.capture, made.environment)


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["people", "json"])
def test_looking_changes_no_byte_and_leaves_no_trace(
    looked_at: Program, look: tuple[str, ...], form: tuple[str, ...]
) -> None:
    locks = Path(f"{looked_at.store}.locks")
    before = looked_at.bytes_of_store(), sorted(path.name for path in locks.iterdir())
    ran = looked_at(*look, *form)
    assert ran.code in (0, 3), ran
    assert (looked_at.bytes_of_store(), sorted(path.name for path in locks.iterdir())) == before
    if form:
        assert ran.document["schema"].startswith("safepoint.cli.")


def test_a_list_as_json(looked_at: Program) -> None:
    document = looked_at("list", "--json").document
    assert list(document) == ["schema", *documents.MEMBERS[documents.LIST]]
    assert [(one["session_id"], one["state"]) for one in document["sessions"]] == [
        ("s1", "interrupted"),
        ("s0", "completed"),
    ]
    assert [one["unsettled"] for one in document["sessions"]] == [1, 0] or document["sessions"][0]["unsettled"] == 2
    assert document["after"] is None


def test_a_list_is_paged_from_where_the_page_before_ended(looked_at: Program) -> None:
    first = looked_at("list", "--limit", "1", "--json").document
    assert [one["session_id"] for one in first["sessions"]] == ["s1"]
    second = looked_at("list", "--limit", "1", "--after", first["after"], "--json").document
    assert [one["session_id"] for one in second["sessions"]] == ["s0"]
    assert second["after"] is None


def test_a_list_for_people_has_one_line_per_session(looked_at: Program) -> None:
    lines = looked_at("list").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["SESSION", "STATE"], ["s1", "interrupted"], ["s0", "completed"]]


def test_status_names_every_operation_without_a_certain_outcome_with_its_verdict(looked_at: Program) -> None:
    document = looked_at("status", "--json").document
    assert list(document) == ["schema", *documents.MEMBERS[documents.STATUS]]
    assert document["condition"]["trust"] == "ok"
    paid = [one for one in document["operations"] if one["tool"] == "record_effect"]
    assert [(one["verdict"], one["reason"]) for one in paid] == [("indeterminate", "dispatch_without_response")]
    assert document["unsettled"] == len(document["operations"])


def test_status_can_fail_where_something_is_unsettled(looked_at: Program) -> None:
    assert looked_at("status").code == 0
    assert looked_at("status", "--fail-if-unsettled").code == 3
    assert looked_at("status", "s1", "--fail-if-unsettled").code == 3
    assert looked_at("status", "s0", "--fail-if-unsettled").code == 0


def test_status_of_one_session_offers_the_commands_that_fit_it(looked_at: Program) -> None:
    status = looked_at("status", "s1", "--json").document
    offered = [one["command"].split()[1] for one in status["commands"]]
    open_now = {one["tool"] for one in looked_at("plan", "s1", "--json").document["operations"] if not one["settled"]}
    assert "record_effect" in open_now, "which promises nothing"
    # The write ran beside it: whether its outcome was recorded when the process died is a matter of time.
    assert offered == [*(["reconcile"] if "write_file" in open_now else []), "plan", "show"]


def test_show_lists_facts_in_order_within_its_limit(looked_at: Program) -> None:
    document = looked_at("show", "s1", "--limit", "3", "--json").document
    assert list(document) == ["schema", *documents.MEMBERS[documents.SHOW]]
    run = document["run"]
    sequences = [fact["sequence"] for fact in run["facts"]]
    assert sequences == [run["high_water"] - 2, run["high_water"] - 1, run["high_water"]]
    assert run["facts_left_out"] == run["high_water"] - 3


def test_show_previews_texts_and_only_sizes_of_arguments(looked_at: Program) -> None:
    facts = looked_at("show", "s1", "--json").document["run"]["facts"]
    (said,) = [fact for fact in facts if fact["type"] == "message.user.v1"]
    assert said["content"] == {"text": {"text": "Do it.", "chars": 6}}
    called = [fact for fact in facts if fact["type"] == "tool.called.v1"]
    assert [(fact["content"], "args" in fact["sizes"]) for fact in called] == [({}, True), ({}, True)]


def test_show_full_has_arguments_up_to_a_bound(program: Program) -> None:
    long = "x" * 50_000
    call = {"tool": "write_file", "args": {"path": "a.txt", "content": long}}
    program.script({"text": "I do it.", "calls": [call]}, {"text": "Done."})
    program(*program.run("--session", "s1"))
    facts = program("show", "s1", "--full", "--json").document["run"]["facts"]
    (called,) = [fact for fact in facts if fact["type"] == "tool.called.v1"]
    shown = called["content"]["args"]
    assert len(shown["text"]) == 16_000
    assert shown["chars"] > 50_000


def test_show_of_another_run_of_the_session(program: Program) -> None:
    program.script({"text": "One."}, {"text": "Two."})
    program(*program.run("--session", "s1"))
    program(*program.run("--session", "s1"))
    first = program("show", "s1", "--json").document["runs"][0]["run_id"]
    shown = program("show", "s1", "--run", first, "--json").document["run"]
    assert shown["run_id"] == first
    assert program("show", "s1", "--run", "no-such-run").code == 2


def test_a_sound_store_verifies(looked_at: Program) -> None:
    document = looked_at("verify", "--json").document
    assert list(document) == ["schema", *documents.MEMBERS[documents.VERIFY]]
    assert (document["sound"], document["damages"], document["projections"]) == (True, [], [])
    assert document["streams"] == 4
    assert document["events"] > 10


@pytest.mark.parametrize("command", ["list", "status"])
def test_a_store_that_is_not_there_is_said_and_not_made(program: Program, command: str) -> None:
    ran = program(command)
    assert ran.code == 0
    assert f"There is no store at {program.store} yet" in ran.out
    assert not program.store.exists()
    assert program(command, "--json").document["exists"] is False
    assert list(program.store.parent.iterdir()) == []


@pytest.mark.parametrize("command", [("show", "s1"), ("verify",), ("cancel", "s1")], ids=" ".join)
def test_what_needs_a_store_says_that_there_is_none(program: Program, command: tuple[str, ...]) -> None:
    ran = program(*command, "--json")
    assert (ran.code, ran.document["code"]) == (2, "store_missing")
    assert not program.store.exists()


def test_the_default_store_is_in_the_state_folder(program: Program) -> None:
    program.script({"text": "Hello."})
    arguments = program.run("--session", "s1")
    assert program.bare(*arguments).code == 0
    assert (program.folder / "xdg" / "safepoint" / "store.sqlite").stat().st_mode & 0o077 == 0
    assert "s1" in program.bare("list").out


def test_control_characters_of_stored_text_reach_no_terminal(program: Program) -> None:
    program.script({"text": "\x1b[2J\u202eevil\x07"})
    program(*program.run("--session", "s1"))
    shown = program("show", "s1").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert r"\x1b[2J\u202eevil\x07" in shown
    facts = program("show", "s1", "--json").document["run"]["facts"]
    assert "\x1b[2J\u202eevil\x07" in [fact["content"]["text"]["text"] for fact in facts if fact["content"]]


def test_a_continuation_that_was_claimed_and_never_started_is_shown_as_that(program: Program) -> None:
    program.script({"text": "I look.", "calls": [READ]}, {"text": "Done."})
    program.killed_at("P6", *program.run("--session", "s1"))
    program.killed_at("P11.claim", "resume", "s1", "--script", program.folder / "script.json")
    ran = program("show", "s1")
    assert ran.code == 0
    assert "claimed to continue the run before it, and never started" in ran.out
    assert "None" not in ran.out
    (row,) = [line for line in ran.out.splitlines() if " continuation " in line]
    assert "not started" in row
    assert program("show", "s1", "--json").document["run"]["high_water"] == 0
