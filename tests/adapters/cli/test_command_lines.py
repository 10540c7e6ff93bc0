"""Commands that are offered can be copied as they stand."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from safepoint.adapters.cli.command_lines import CommandLines
from safepoint.adapters.cli.escaping import lines, one_line
from safepoint.adapters.cli.places import default_store, is_usual


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SAFEPOINT_STORE", raising=False)


def test_the_usual_store_is_not_repeated(tmp_path: Path) -> None:
    assert CommandLines(default_store()).about("list") == "safepoint list"
    other = tmp_path / "other.sqlite"
    assert CommandLines(other).about("list") == f"safepoint list --store {other}"


def test_a_store_of_the_environment_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFEPOINT_STORE", str(tmp_path / "mine.sqlite"))
    assert is_usual(tmp_path / "mine.sqlite")
    assert not is_usual(default_store())


def test_names_are_quoted_for_the_shell(tmp_path: Path) -> None:
    command = CommandLines(default_store(), tmp_path / "my script.json").asking("resume", "it's; rm -rf /")
    assert shlex.split(command) == [
        "safepoint",
        "resume",
        "it's; rm -rf /",
        "--script",
        str(tmp_path / "my script.json"),
    ]


def test_a_new_turn_names_the_recorded_model_and_a_resume_takes_it_from_the_record() -> None:
    commands = CommandLines(default_store(), recorded_model=("--model", "m"))
    assert commands.asking("run", "Go on.", "--session", "s") == "safepoint run 'Go on.' --session s --model m"
    assert commands.resuming("s") == "safepoint resume s"


def test_limits_that_are_given_anew_take_the_place_of_all_that_were_given() -> None:
    commands = CommandLines(default_store(), resuming_with=(("--max-steps", "3"), ("--drop-permissions",)))
    assert commands.resuming("s") == "safepoint resume s --max-steps 3 --drop-permissions"
    assert commands.resuming("s", "--max-tokens", "9") == "safepoint resume s --max-tokens 9 --drop-permissions"


def test_sentences_of_the_table_get_session_and_store(tmp_path: Path) -> None:
    commands = CommandLines(tmp_path / "s.sqlite")
    said = commands.in_text("Try `safepoint resume --session SESSION` again, or `safepoint verify`.", "a b")
    store = tmp_path / "s.sqlite"
    assert said == (
        f"Try `safepoint resume --session 'a b' --store {store}` again, or `safepoint verify --store {store}`."
    )
    assert CommandLines(default_store()).in_text("`safepoint plan --session SESSION`", None) == (
        "`safepoint plan --session SESSION`"
    )


def test_a_relative_state_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_store() == Path.home() / ".local" / "state" / "safepoint" / "store.sqlite"


def test_text_is_shown_without_what_moves_a_cursor() -> None:
    assert one_line("a\nb\x1b[2J") == r"a\nb\x1b[2J"
    assert one_line("x" * 300) == "x" * 199 + "…"
    assert lines("a\nb\tc\x07\u2066") == "a\nb       c\\x07\\u2066"
