"""Exports, imports and judged files: nothing is lost without a word, and what is refused leaves nothing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .program import Program


@pytest.fixture
def worked(program: Program) -> Program:
    program.script({"text": "Hello."})
    assert program(*program.run("--session", "one")).code == 0
    return program


@pytest.fixture
def export(worked: Program) -> Path:
    file = worked.folder / "one.jsonl"
    assert worked("export", "one", "--out", file).code == 0
    return file


def test_an_export_leaves_a_file_that_is_there_as_it_was(worked: Program, export: Path) -> None:
    export.write_text("mine")
    ran = worked("export", "one", "--out", export, "--json")
    assert (ran.code, ran.document["code"], export.read_text()) == (2, "file_exists", "mine")


@pytest.mark.parametrize("content", ["", "no history", '{"type": "message", "role": "alien"}\n'])
def test_a_refused_import_makes_no_store(program: Program, content: str) -> None:
    file = program.folder / "history.jsonl"
    file.write_text(content)
    assert program("import", file).code in {2, 4}
    assert [*program.store.parent.iterdir()] == []


def test_an_empty_file_is_called_empty(program: Program) -> None:
    file = program.folder / "empty"
    file.write_text(" \n")
    assert "The file is empty" in program.bare("judge", file).err


def test_an_item_that_is_no_object_is_shown_with_its_place(program: Program) -> None:
    file = program.folder / "history.json"
    file.write_text('[{"role": "user", "content": "go"},\n42, null]')
    ran = program.bare("judge", file)
    assert "Unreadable: line 2, byte 36, messages[1] [not_an_object]: it is a number" in ran.out
    assert "Unreadable: line 2, byte 40, messages[2] [not_an_object]: it is null" in ran.out


def test_a_torn_line_is_said_to_end(worked: Program, export: Path) -> None:
    export.write_bytes(export.read_bytes()[:-20])
    told = worked.bare("judge", export, "--json").document["findings"]
    assert [one["detail"] for one in told if one["code"] == "torn_line"] == [
        f"it ends before its JSON does, at byte {export.stat().st_size}"
    ]


def test_every_line_behind_a_damaged_event_of_an_export_is_told(worked: Program, export: Path) -> None:
    lines = export.read_text().splitlines(keepends=True)
    run = [number for number, line in enumerate(lines, 1) if json.loads(line).get("stream", "").startswith("run:")]
    lines[run[1] - 1] = lines[run[1] - 1].replace("Do it.", "Do that.")
    export.write_text("".join(lines))
    ran = worked.bare("judge", export, "--json")
    told = [one["line"] for one in ran.document["findings"] if one["code"] == "digest_mismatch"]
    assert told[: len(run) - 1] == run[1:]
    assert ran.code == 4


def test_an_export_without_a_whole_run_is_damaged_and_not_useless(worked: Program, export: Path) -> None:
    lines = export.read_text().splitlines(keepends=True)
    run = next(number for number, line in enumerate(lines) if json.loads(line).get("stream", "").startswith("run:"))
    export.write_text("".join(lines[:run] + lines[run + 1 :]))
    assert worked.bare("judge", export).code == 4


def test_a_view_that_is_gone_is_named_with_what_makes_it_again(worked: Program) -> None:
    with closing(sqlite3.connect(worked.store)) as raw:
        raw.execute("DROP TABLE runs")
        raw.execute("DROP VIEW operations")
        raw.commit()
    ran = worked("verify")
    assert ran.code == 4
    for view in ("runs", "operations"):
        assert f"View {view}: unreadable (gone, damaged, or not what this program makes)." in ran.out
    assert "safepoint rebuild" in ran.out
    assert worked("rebuild").code == 0
    assert worked("verify").code == 0
