"""Claude Code sessions: the order of the file counts, and links only tell what following them would lose."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.events.model import ModelText, UserMessage
from safepoint.domain.events.run import RunOpened
from safepoint.domain.events.tool import ToolCalled

from .reading import (
    SAMPLES,
    codes,
    events_of,
    exit_status,
    findings,
    issues,
    judged,
    lines,
    replayed,
    statuses,
    verdicts,
)

DONE = ("completed", "matching_response")


def line(kind: str, record_id: str | None, content: Any, parent: str | None = None, **more: Any) -> dict[str, Any]:
    role = kind if kind in {"user", "assistant"} else "user"
    record = {"type": kind, "uuid": record_id, "parentUuid": parent, "message": {"role": role, "content": content}}
    return {**record, **more}


def use(call_id: str, name: str = "Read") -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": {"f": call_id}}]


def result(call_id: str, content: str = "ok") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": content}]


def test_parallel_calls_that_are_stored_as_a_tree_lose_no_sibling() -> None:
    """Field report r3-015."""
    judgement = judged((SAMPLES / "claude_code_tree.jsonl").read_bytes())
    assert verdicts(judgement) == [(f"toolu_{name}", *DONE) for name in "abc"]
    calls, results = ([f"{kind}:toolu_{name}" for name in "abc"] for kind in ("call", "result"))
    assert replayed(judgement) == ["user", *calls, *results]
    assert judgement.replay.illegal is None
    assert len({call.step_id for call in events_of(judgement, ToolCalled)}) == 1
    assert ("outside_parent_chain", 5) in findings(judgement)


def test_a_link_that_skips_an_answer_does_not_drop_it() -> None:
    """Field report r3-016: the next message hangs on a late error notice, not on the answer."""
    judgement = judged(
        lines(
            line("user", "U", "first"),
            {"type": "system", "uuid": "E", "parentUuid": "U", "content": "502"},
            line("assistant", "M", "the good answer", "U"),
            line("user", "U2", "second", "E"),
        )
    )
    said = [
        event.text for run in judgement.runs for event in run.read.events if isinstance(event, UserMessage | ModelText)
    ]
    assert said == ["first", "the good answer", "second"]
    assert replayed(judgement) == ["user", "text", "user"]
    (skipped,) = [found for found in judgement.history.findings if found.code == "outside_parent_chain"]
    assert (skipped.times, skipped.place.line) == (1, 3)


def repeating(last: str) -> bytes:
    """Records A and B stand twice; the second A says `last`."""
    return lines(
        {"type": "file-history-snapshot"},
        line("system-notice", "A", "s") | {"type": "user"},
        line("assistant", "B", "c", "A"),
        line("user", "A", last),
        line("assistant", "B", "c", "A"),
        line("user", "C", "m", "B"),
    )


def test_records_that_stand_twice_alike_are_taken_once_and_told() -> None:
    """Field report r3-072: also where a link leads back."""
    judgement = judged(repeating("s"))
    assert [found for found in findings(judgement) if found[0] == "repeated_record"] == [
        ("repeated_record", 4),
        ("repeated_record", 5),
    ]
    assert (replayed(judgement), exit_status(judgement)) == (["user", "text", "user"], 0)


def test_records_with_one_id_that_differ_are_corruption() -> None:
    """Field report r3-072."""
    judgement = judged(repeating("something else"))
    assert issues(judgement) == [("duplicate_event_id", 4)]
    assert exit_status(judgement) == 4


def test_links_in_a_circle_end() -> None:
    """Field report r3-072."""
    judgement = judged(lines(line("user", "A", "a", "B"), line("assistant", "B", "b", "A")))
    assert findings(judgement) == [("broken_parent_link", 1)]


def test_a_summary_that_was_written_between_a_call_and_its_answer_stands_behind_both() -> None:
    """Field report r3-010."""
    judgement = judged(
        lines(
            line("user", "u", "go"),
            line("assistant", "1", use("a")),
            line("user", "s", "what was said before", isCompactSummary=True),
            line("user", "2", result("a")),
            line("assistant", "3", "done"),
        )
    )
    assert replayed(judgement) == ["user", "call:a", "result:a", "user"]
    assert judgement.replay.illegal is None


def test_a_call_that_lines_repeat_is_one_call() -> None:
    repeated = lines(
        line("user", "u", "go"),
        line("assistant", "1", use("a")),
        line("assistant", "2", [*use("a"), *use("b")]),
        line("user", "3", result("a")),
        line("user", "4", result("b")),
    )
    judgement = judged(repeated)
    assert verdicts(judgement) == [("a", *DONE), ("b", *DONE)]
    assert findings(judgement) == [("repeated_call", 3)]


def test_what_is_not_the_main_conversation_is_told_and_left_out() -> None:
    data = lines(
        line("user", "u", "go"),
        line("assistant", "s", "of a subagent", isSidechain=True),
        line("assistant", "e", "API Error: 502", isApiErrorMessage=True),
        {"type": "system", "subtype": "compact_boundary"},
        line("user", "c", "what was said before", isCompactSummary=True),
        {"type": "summary", "summary": "…"},
    )
    judgement = judged(data)
    assert findings(judgement) == [
        ("other_conversation", 2),
        ("not_conversation", 3),
        ("compacted", 4),
        ("compacted", 5),
        ("not_conversation", 6),
    ]
    assert replayed(judgement) == ["user", "user"]


def test_a_message_in_a_line_of_an_unknown_kind_is_named() -> None:
    judgement = judged(lines(line("user", "u", "go"), line("oracle", "o", "hm")))
    assert (findings(judgement), exit_status(judgement)) == ([("unknown_type", 2)], 4)


def test_lines_without_a_message_are_named() -> None:
    broken = {"type": "user", "message": "error"}
    misspelt = {"type": "user", "message": {"role": "user", "contenst": []}}
    judgement = judged(lines(line("user", "u", "go"), broken, misspelt, {"silly": "this"}))
    assert findings(judgement) == [("unknown_shape", 2), ("unknown_shape", 3), ("unknown_shape", 4)]


def test_a_call_that_waits_for_its_answer_parks() -> None:
    judgement = judged(lines(line("user", None, "go"), line("assistant", None, use("a"))))
    assert (codes(judgement), statuses(judgement)) == ({"dangling_tool_state"}, ["failed"])


def test_the_session_its_folder_and_its_times_are_the_files() -> None:
    judgement = judged((SAMPLES / "claude_code_tree.jsonl").read_bytes())
    (opened,) = events_of(judgement, RunOpened)
    assert (opened.session_id, opened.cwd, opened.occurred_at) == ("tree", "/project", "2026-01-01T10:00:00.000000Z")
    assert judgement.runs[0].read.sealed[-1].event.occurred_at == "2026-01-01T10:00:03.000000Z"


def test_a_line_of_another_session_is_told() -> None:
    one = line("user", "u1", "go", sessionId="one")
    judgement = judged(lines(one, line("assistant", "a1", "Hi.", "u1", sessionId="two")))
    assert ("several_sessions", 2) in findings(judgement)
    assert exit_status(judgement) == 4


def test_a_line_of_a_type_that_nobody_knows_may_be_part_of_the_conversation() -> None:
    one = line("user", "u1", "go", sessionId="one")
    judgement = judged(lines(one, {"type": "wat", "uuid": "w1"}, line("assistant", "a1", "Hi.", "u1")))
    assert ("unknown_type", 2) in findings(judgement)
    assert exit_status(judgement) == 4


def test_every_line_of_a_branch_that_was_left_is_counted() -> None:
    left = [line("user", "A", "a"), line("assistant", "B", "b", "A"), line("user", "C", "c", "B")]
    kept = [line("user", "D", "d"), line("assistant", "E", "e", "D")]
    [told] = [found for found in judged(lines(*left, *kept)).history.findings if found.code == "outside_parent_chain"]
    assert (told.place.line, told.times) == (1, 3)
    assert findings(judged(lines(line("user", "A", "a"), line("assistant", "B", "b")))) == []


def test_a_parent_that_is_not_in_the_file_is_told() -> None:
    judgement = judged(lines(line("user", "A", "a", "gone"), line("assistant", "B", "b", "A")))
    assert findings(judgement) == [("broken_parent_link", 1)]


INTERRUPTED = "[Request interrupted by user]"


@pytest.mark.parametrize(
    "marker",
    [INTERRUPTED, [{"type": "text", "text": INTERRUPTED}], "[Request interrupted by user for tool use]"],
)
def test_a_turn_that_a_person_interrupted_is_cancelled(marker: Any) -> None:
    told = [line("user", "A", "go"), line("assistant", "B", use("c1"), "A"), line("user", "C", result("c1"), "B")]
    judgement = judged(lines(*told, line("user", "D", marker, "C"), line("user", "E", "else", "D")))
    assert statuses(judgement) == ["cancelled", "failed"]
    assert [event.text for event in events_of(judgement, UserMessage)] == ["go", "else"]
    assert findings(judgement) == []


def test_a_turn_that_was_interrupted_before_the_model_spoke_is_a_turn_of_its_own() -> None:
    asked = [line("user", "A", "go"), line("user", "B", INTERRUPTED, "A"), line("user", "C", "else", "B")]
    assert statuses(judged(lines(*asked, line("assistant", "D", "done", "C")))) == ["cancelled", "completed"]


def test_who_quotes_an_interruption_interrupts_nothing() -> None:
    judgement = judged(lines(line("user", "A", f"what is {INTERRUPTED}?"), line("assistant", "B", "b", "A")))
    assert statuses(judgement) == ["completed"]
