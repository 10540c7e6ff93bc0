"""`safepoint judge`, `export` and `import`: for people, for programs, and without a traceback whatever a file holds."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from safepoint.adapters.cli import judgement_documents as documents
from safepoint.adapters.interchange.formats import history_formats
from safepoint.application.importable import ImportRefusal
from safepoint.ports.history_format import UNREADABLE, FindingCode

from .program import Program

DOCUMENTED = (Path(__file__).parents[3] / "docs" / "interchange.md").read_text()
CHAT = [
    {"role": "user", "content": "Pay."},
    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "pay", "arguments": "{}"}}]},
]
ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "API_KEY=sk-test-abcdefghijklmnopqrst"}


def written(program: Program, content: Any, name: str = "history") -> Path:
    path = program.folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def finished(program: Program, *more: str) -> None:
    """A session with one whole turn."""
    program.script()
    assert program(*program.run("--session", "s1", *more)).code == 0


# ---- judge ----


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ([*CHAT, ANSWER], 0),
        (CHAT, 3),
        ([*CHAT, ANSWER, {"role": "assistant", "content": "Done."}], 3),
        ([*CHAT, {**ANSWER, "tool_call_id": "c2"}], 4),
        (json.dumps(CHAT[0]).encode() + b"\n{", 4),
        (b"\0\0\0", 2),
    ],
    ids=["continue", "unsettled", "completed", "orphan", "torn", "nothing"],
)
def test_the_exit_status_says_how_it_stands(program: Program, content: Any, code: int) -> None:
    ran = program.bare("judge", written(program, content), "--format", "openai-chat", "--json")
    assert (ran.code, ran.document["exit_code"]) == (code, code)
    assert list(ran.document) == ["schema", *documents.MEMBERS[documents.JUDGE]]
    assert ran.document["decision"] == ("continue" if code == 0 else "park")


def test_people_are_told_the_place_the_verdict_and_the_reason(program: Program) -> None:
    data = b"\n".join(json.dumps(one).encode() for one in CHAT) + b"\n\0\0\n"
    ran = program.bare("judge", written(program, data))
    assert f"Unreadable: line 3, byte {len(data) - 3} [nul_bytes]" in ran.out
    assert "pay (call c1, line 2): indeterminate, legacy_dispatch_unknown" in ran.out
    assert "It could not be continued: " in ran.out
    assert "[source_run_unreadable]" in ran.out


def test_content_is_told_only_on_request(program: Program) -> None:
    """SPEC R15, and field report r3-144."""
    path = written(program, [*CHAT, ANSWER])
    for more in ((), ("--json",)):
        assert "sk-test" not in program.bare("judge", path, *more).out
    items = program.bare("judge", path, "--json", "--full").document["replay"]["items"]
    assert items[-1]["content"]["result"] == ANSWER["content"]


def test_no_store_is_made_by_looking(program: Program) -> None:
    program.bare("judge", written(program, CHAT))
    assert not program.store.exists()
    assert not (program.folder / "xdg").exists()


def test_a_name_cannot_reach_the_terminal(program: Program) -> None:
    call = {"id": "c\x1b[2J", "function": {"name": "t\u202epay", "arguments": "{}"}}
    ran = program.bare("judge", written(program, [CHAT[0], {"role": "assistant", "tool_calls": [call]}]))
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("judge", "nowhere.json"), "file_unreadable"),
        (("judge", "."), "file_unreadable"),
        (("judge", "history", "--format", "latin"), "format_unknown"),
        (("judge", "other"), "format_unknown"),
        (("judge", "history", "--cases", "--format", "codex"), "usage"),
        (("import", "nowhere.json"), "file_unreadable"),
        (("import", "other"), "format_unknown"),
        (("export", "nobody"), "unknown_session"),
    ],
)
def test_what_cannot_be_used_is_named(
    program: Program, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: str
) -> None:
    finished(program)
    written(program, CHAT)
    written(program, {"a": 1}, "other")
    monkeypatch.chdir(program.folder)
    more = ("--out", "x.jsonl") if arguments[0] == "export" else ()
    ran = program.bare(*(arguments if arguments[0] == "judge" else program.arguments(*arguments, *more)), "--json")
    assert (ran.code, ran.document["code"]) == (2, code)


# ---- judge --cases ----


def envelope(**more: Any) -> dict[str, Any]:
    spine = {"id": "u", "sessionId": "s", "invocationId": "i", "runId": "r", "turnId": "t", "ts": 1, "partial": False}
    return {**spine, "role": "user", "author": "user", "content": {"kind": "text", "text": "do"}, **more}


def test_each_case_is_answered_on_its_line_and_a_broken_one_stops_none(program: Program) -> None:
    good = [json.dumps({"id": f"case-{n}", "events": [envelope()]}).encode() for n in (1, 2)]
    data = b"\n".join([good[0], b"", b'{"id": "cut', b"\xff", b'{"id": 7}', good[1]]) + b"\n"
    ran = program.bare("judge", written(program, data), "--cases")
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [answer["id"] for answer in answers] == ["case-1", None, None, 7, "case-2"]
    assert [answer.get("line") for answer in answers] == [None, 3, 4, 5, None]
    assert ["error" in answer for answer in answers] == [False, True, True, True, False]
    assert answers[-1]["replay"] == {
        "kind": "replayable", "reason": None, "items": ["text:u"], "trimmed": [], "left_out": []
    }  # fmt: skip
    assert ran.code == 2


def test_cases_that_can_all_be_judged_leave_with_0(program: Program) -> None:
    data = json.dumps({"id": 1, "events": [envelope()]}).encode()
    ran = program.bare("judge", written(program, b"\xef\xbb\xbf" + data), "--cases", "--format", "maka")
    assert (ran.code, json.loads(ran.out)["id"]) == (0, 1)


def test_cases_come_from_standard_input_too(program: Program) -> None:
    case = json.dumps({"id": 1, "events": [envelope()]})
    ran = subprocess.run(
        [sys.executable, "-m", "safepoint", "judge", "--cases"],
        input=case, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(ran.stdout)["id"] == 1


# ---- export and import ----


def test_a_session_goes_into_another_store_and_back_without_a_loss(program: Program) -> None:
    finished(program)
    first, second = program.folder / "a.jsonl", program.folder / "b.jsonl"
    ran = program("export", "s1", "--out", first, "--json")
    assert list(ran.document) == ["schema", *documents.MEMBERS[documents.EXPORT]]
    assert (ran.code, stat.S_IMODE(first.stat().st_mode)) == (0, 0o600)
    elsewhere = ("--store", program.folder / "elsewhere.sqlite")
    imported = program.bare("import", first, *elsewhere, "--json")
    assert list(imported.document) == ["schema", *documents.MEMBERS[documents.IMPORT]]
    assert (imported.code, imported.document["imported"]) == (0, True)
    again = program.bare("export", "s1", "--out", second, *elsewhere, "--json")
    assert (again.code, again.document["foreign"], ran.document["foreign"]) == (0, True, False)
    assert "cannot vouch" in again.err
    (head, *events, _), (head_again, *events_again, _) = (one.read_bytes().splitlines() for one in (first, second))
    assert events_again == events
    assert json.loads(head_again) == {**json.loads(head), "foreign": True}
    assert program.bare("verify", *elsewhere).code == 0
    shown = program.bare("show", "s1", *elsewhere, "--json").document
    assert shown["run"]["foreign"]


def test_an_export_on_standard_output_is_the_same(program: Program) -> None:
    finished(program)
    assert program("export", "s1", "--out", program.folder / "a.jsonl").code == 0
    ran = program("export", "--session", "s1")
    assert (ran.code, ran.out.encode()) == (0, (program.folder / "a.jsonl").read_bytes())
    assert program("export", "s1", "--json").code == 2


@pytest.mark.parametrize("point", ["P1", "P4", "P6"])
def test_an_interrupted_run_is_judged_as_its_store_would_plan_it(program: Program, point: str) -> None:
    program.script()
    program.killed_at(point, *program.run("--session", "s1"))
    planned = program("plan", "s1", "--json").document
    assert program("export", "s1", "--out", program.folder / "a.jsonl").code == 0
    judged = program.bare("judge", program.folder / "a.jsonl", "--json").document
    assert judged["decision"] == planned["decision"]
    assert {reason["code"] for reason in judged["reasons"]} == {reason["code"] for reason in planned["reasons"]}
    assert judged["replay"]["digest"] == planned["replay_digest"], "also of answers that repair has not written yet"
    assert [one["verdict"] for one in judged["operations"] if one["verdict"] != "definitely_not_dispatched"] == [
        one["verdict"] for one in planned["operations"] if one["verdict"] != "definitely_not_dispatched"
    ]


def test_an_export_that_fails_leaves_no_file(program: Program) -> None:
    finished(program)
    target = program.folder / "a.jsonl"
    assert program("export", "s1", "--out", program.folder / "nowhere" / "a.jsonl").code == 2
    assert program("export", "nobody", "--out", target).code == 2
    assert not [path for path in program.folder.iterdir() if "jsonl" in path.name]


def test_a_redacted_export_is_judged_and_never_imported(program: Program) -> None:
    """Field report r3-144."""
    data = written(program, [*CHAT, ANSWER])
    assert program("import", data, "--session", "s1").code == 0
    plain, redacted = program("export", "s1").out, program("export", "s1", "--redact").out
    assert "sk-test" in plain
    assert "sk-test" not in redacted
    path = written(program, redacted.encode(), "redacted.jsonl")
    judged = program.bare("judge", path, "--json").document
    assert (judged["redacted"], judged["foreign"]) == (True, True)
    assert [one["code"] for one in judged["reasons"]] == ["foreign_run_not_adopted"], "as all that was imported"
    refused = program("import", path, "--json")
    assert (refused.code, refused.document["refused"], refused.document["events"]) == (2, "redacted", 0)


def test_a_malformed_file_adds_nothing_and_stays_what_it_was(program: Program) -> None:
    """Field report r3-090."""
    data = json.dumps(CHAT).encode()[:-30]
    path = written(program, data)
    ran = program("import", path, "--format", "openai-chat", "--json")
    assert (ran.code, ran.document["refused"], ran.document["imported"]) == (4, "unreadable", False)
    assert ran.document["findings"][0]["code"] == "torn_line"
    assert path.read_bytes() == data
    assert program("list", "--json").document["sessions"] == []


def test_a_history_with_an_orphan_names_it_and_adds_nothing(program: Program) -> None:
    """Field report r3-006."""
    ran = program("import", written(program, [*CHAT, {**ANSWER, "tool_call_id": "c2"}]), "--json")
    assert (ran.code, ran.document["refused"]) == (4, "corrupt")
    assert [(issue["code"], issue["call_id"]) for issue in ran.document["issues"]] == [("orphan_response", "c2")]


def test_an_imported_session_parks_until_a_person_decides(program: Program) -> None:
    imported = program("import", written(program, CHAT), "--session", "s1")
    assert (imported.code, "They are foreign" in imported.out) == (0, True)
    program.script()
    script = ("--script", program.folder / "script.json", "--workspace", program.workspace)
    planned = program("plan", "s1", *script, "--json")
    assert planned.code == 3
    assert {"foreign_run_not_adopted", "dangling_tool_state"} <= {one["code"] for one in planned.document["reasons"]}


def test_a_new_turn_goes_on_after_an_import_and_the_model_is_told_what_is_unknown(program: Program) -> None:
    assert program("import", written(program, CHAT), "--session", "s1").code == 0
    program.script({"text": "I see."})
    assert program(*program.run("--session", "s1")).code == 0
    assert program("verify").code == 0
    assert program("import", program.folder / "history", "--session", "s1", "--json").document["already_there"]


def calls_to_judge(program: Program, turns: int) -> int:
    """How many functions are called to judge a history of so many turns."""
    file = written(program, [*([CHAT[0], {"role": "assistant", "content": "Yes."}] * turns), CHAT[0]])
    calls = 0

    def count(frame: FrameType, event: str, of: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        ran = program.bare("judge", file, "--format", "openai-chat", "--json")
    finally:
        sys.setprofile(before)
    assert (ran.code, len(ran.document["runs"])) == (0, turns + 1)
    return calls


def test_twice_as_many_turns_take_twice_the_work(program: Program) -> None:
    calls_to_judge(program, 1)  # what is made once in a process
    few, more, most = (calls_to_judge(program, turns) for turns in (100, 200, 400))
    assert most - more < 2.1 * (more - few), (few, more, most)


# ---- the page ----


def test_every_member_is_documented() -> None:
    listed = re.findall(r"^\| `(safepoint\.cli\.\w+\.v1)` \| (.*) \|$", DOCUMENTED, re.MULTILINE)
    assert {schema: tuple(re.findall(r"`(\w+)`", members)) for schema, members in listed} == documents.MEMBERS


def test_every_finding_is_documented() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (yes|no) \|", DOCUMENTED, re.MULTILINE)
    assert {code: told == "yes" for code, told in listed} == {str(code): code in UNREADABLE for code in FindingCode}


@pytest.mark.parametrize("refusal", ImportRefusal)
def test_every_refusal_is_documented(refusal: ImportRefusal) -> None:
    assert f"`{refusal}`" in DOCUMENTED


def test_every_format_is_documented() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)` \| [^yn|]", DOCUMENTED, re.MULTILINE)) >= set(history_formats())
