"""Field reports: what a file says of a call whose outcome was lost. SPEC section 10, F8."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..adapters.cli.program import Program
from .programs import SESSION, codes_in, interrupted, resume

BEFORE = "port = 3000\nhost = here\n"
MEANT = "port = 4000\nhost = hére\n"
WRITE: dict[str, Any] = {"tool": "write_file", "args": {"path": "f", "content": MEANT}}
APPEND: dict[str, Any] = {"tool": "append_file", "args": {"path": "f", "text": "x\n"}}


def looked_up(program: Program) -> tuple[str, str, str | None]:
    """What `safepoint reconcile` saw, and what became of the call."""
    (one,) = program("reconcile", SESSION, "--json").document["operations"]
    return one["observation"], one["became"], one["code"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (MEANT.encode(), ("matches_expected_state", "completed", None)),
        (BEFORE.encode(), ("matches_prior_state", "parked", "reconcile_matches_prior_state")),
        (MEANT.encode()[:12], ("diverged", "parked", "reconcile_diverged")),
        (MEANT.replace("\n", "\r\n").encode(), ("diverged", "parked", "reconcile_diverged")),
        (MEANT.encode("utf-8-sig"), ("diverged", "parked", "reconcile_diverged")),
        (MEANT.replace("4000", "4001").encode(), ("diverged", "parked", "reconcile_diverged")),
    ],
    ids=["(i) as meant", "(ii) as before", "(iii) the first half", "(iv) CRLF", "(v) a mark", "the same size"],
)
def test_r3_062_only_the_very_bytes_confirm_a_write(
    program: Program, found: bytes, said: tuple[str, str, str | None]
) -> None:
    """D(A: write f, intended bytes B, pre-hash p); X. What is on the disk decides, and is left as it is."""
    path = program.workspace / "f"
    path.write_text(BEFORE)
    interrupted(program, "P3", WRITE)
    path.write_bytes(found)
    assert looked_up(program) == said
    assert path.read_bytes() == found
    assert program(*resume(program)).code == (0 if said[1] == "completed" else 3)
    assert path.read_bytes() == found, "a resume writes nothing either"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (0, ("matches_prior_state", "parked", "reconcile_matches_prior_state")),
        (1, ("matches_expected_state", "completed", None)),
        (2, ("diverged", "parked", "reconcile_diverged")),
    ],
)
def test_r3_065_an_append_is_confirmed_by_exactly_one_new_line(
    program: Program, lines: int, said: tuple[str, str, str | None]
) -> None:
    """D(A: append 'x\\n' to f); X; f on disk has 0, 1 or 2 new lines."""
    path = program.workspace / "f"
    path.write_text("x\n")
    interrupted(program, "P3", APPEND)
    path.write_text("x\n" * (1 + lines))
    assert looked_up(program) == said
    assert path.read_text() == "x\n" * (1 + lines)


def test_r3_063_a_text_of_many_bytes_is_all_there_and_the_call_gets_its_own_answer(program: Program) -> None:
    """The bytes are on the disk when the tool dies; 3792 characters are 3799 bytes."""
    text = "naïve… café déjà vu".ljust(3792, "x")
    interrupted(program, "P4", {"tool": "write_file", "args": {"path": "f", "content": text}})
    assert len((program.workspace / "f").read_bytes()) == len(text.encode()) > len(text) == 3792
    assert looked_up(program) == ("matches_expected_state", "completed", None)
    shown = program("show", SESSION, "--full", "--json").document["run"]["facts"]
    (response,) = [fact for fact in shown if fact["type"] == "tool.responded.v1"]
    assert json.loads(response["content"]["result"]["text"]) == {
        "path": "f",
        "size_bytes": len(text.encode()),
        "created": True,
    }


def test_r3_023_a_write_whose_file_says_nothing_parks_for_good_with_one_reason(program: Program) -> None:
    """Somebody else wrote the file: the first and the fifth resume say the same, and nothing is written."""
    interrupted(program, "P4", WRITE)
    (program.workspace / "f").write_text("theirs")
    assert looked_up(program) == ("diverged", "parked", "reconcile_diverged")
    said = [codes_in(program(*resume(program, "--reconcile", "--json"))) for _ in range(5)]
    assert said == [["tool_recovery_parked"]] * 5
    assert (program.workspace / "f").read_text() == "theirs"
    shown = program("show", SESSION, "--json").document["run"]["facts"]
    assert [fact["type"] for fact in shown].count("tool.reconciled.v1") == 1
