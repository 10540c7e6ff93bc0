"""What `docs/cli.md` promises is what the program has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from safepoint.adapters.cli import documents
from safepoint.adapters.cli.exit_codes import MEANINGS, ExitCode, exit_code_of_park
from safepoint.adapters.cli.main import COMMANDS
from safepoint.application.inspect_sessions import SessionState
from safepoint.domain.reasons import ParkReason

DOCUMENTED = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()


def section(title: str) -> str:
    return DOCUMENTED.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_table_of_exit_codes_is_the_one_of_the_program() -> None:
    rows = re.findall(r"^\| (\d) \| (.*) \|$", section("Exit status"), re.MULTILINE)
    assert {ExitCode(int(code)): meaning for code, meaning in rows} == MEANINGS


def test_the_table_of_objects_is_the_one_of_the_program() -> None:
    rows = re.findall(r"^\| `(safepoint\.cli\.\w+\.v\d+)` \| (.*) \|$", section("JSON"), re.MULTILINE)
    assert {schema: tuple(re.findall(r"`(\w+)`", members)) for schema, members in rows} == documents.MEMBERS


def test_every_command_is_documented() -> None:
    listed = re.findall(r"^\| `(\w+)", DOCUMENTED.split("\n## ", 1)[0], re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize("state", SessionState)
def test_every_state_is_documented(state: SessionState) -> None:
    assert f"`{state}`" in section("JSON")


def test_an_object_has_every_member_and_no_other() -> None:
    filled = documents.filled(documents.RESUME, {"session_id": "s1"})
    assert tuple(filled) == documents.MEMBERS[documents.RESUME]
    assert (filled["session_id"], filled["reasons"], filled["resumable"], filled["text"]) == ("s1", [], False, None)
    with pytest.raises(KeyError):
        documents.filled(documents.RESUME, {"colour": "red"})


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ({ParkReason.DANGLING_TOOL_STATE}, ExitCode.PARKED),
        ({ParkReason.SESSION_BUSY, ParkReason.TERMINAL_REPAIR_FAILED}, ExitCode.BUSY),
        ({ParkReason.DANGLING_TOOL_STATE, ParkReason.RUNTIME_LEDGER_UNREADABLE}, ExitCode.CORRUPTION),
        ({ParkReason.STORE_UNAVAILABLE}, ExitCode.BUSY),
        ({ParkReason.OWNER_FENCED}, ExitCode.BUSY),
    ],
)
def test_a_park_gives_the_status_of_its_weightiest_reason(codes: set[ParkReason], expected: ExitCode) -> None:
    assert exit_code_of_park(codes) is expected
