"""Maka's ledgers as files: judged as they are, and turned into legacy runs of ours."""

from __future__ import annotations

import json
from typing import Any

from safepoint.domain.events.run import RunEnded, RunOpened
from safepoint.domain.events.tool import RecoveryMode, ToolCalled, ToolDispatched, ToolResponded
from safepoint.domain.identifiers import SessionId
from safepoint.domain.recovery.verdict import VerdictStatus

from .reading import READ, SAMPLES, codes, events_of, exit_status, findings, issues, judged, lines, statuses, verdicts

INTERRUPTED = (SAMPLES / "maka_interrupted.jsonl").read_bytes()


def envelope(event_id: str, role: str, author: str, run: str = "run-1", **more: Any) -> dict[str, Any]:
    names = {name: f"{name}-{run}" for name in ("invocationId", "turnId")}
    spine = {"id": event_id, "sessionId": "sess-1", "runId": run, **names, "ts": 1767261600000, "partial": False}
    return {**spine, "role": role, "author": author, **more}


def said_by_user(event_id: str, text: str, run: str = "run-1") -> dict[str, Any]:
    return envelope(event_id, "user", "user", run, content={"kind": "text", "text": text})


def answered(event_id: str, text: str, run: str = "run-1", **more: Any) -> dict[str, Any]:
    return envelope(event_id, "model", "agent", run, content={"kind": "text", "text": text}, **more)


def called(event_id: str, call_id: str, **more: Any) -> dict[str, Any]:
    content = {"kind": "function_call", "id": call_id, "name": "Bash", "args": {"command": "ls", "n": 1.0}}
    return envelope(event_id, "model", "agent", content=content, **more)


def test_a_dispatch_without_answer_parks() -> None:
    judgement = judged(INTERRUPTED)
    assert verdicts(judgement) == [("call-1", "indeterminate", "dispatch_without_response")]
    assert (codes(judgement), exit_status(judgement)) == ({"dangling_tool_state"}, 3)


def test_an_import_makes_a_legacy_run_that_keeps_what_is_known() -> None:
    (run,) = READ(INTERRUPTED, "maka").runs
    events = run.events
    (opened,) = [event for event in events if isinstance(event, RunOpened)]
    (dispatch,) = [event for event in events if isinstance(event, ToolDispatched)]
    (ended,) = [event for event in events if isinstance(event, RunEnded)]
    assert opened.protocol is None, "whoever promised that a dispatch comes first was not this program"
    assert (dispatch.operation_id, dispatch.contract.mode) == ("op-1", RecoveryMode.RECONCILE)
    assert (ended.status, ended.failure_class) == ("failed", "imported_without_terminal")
    assert events[1].occurred_at == "2026-01-01T10:00:00.000000Z"


def test_the_second_reading_gives_the_same_facts_ids_and_times() -> None:
    """SPEC F16."""
    first, second = (READ(INTERRUPTED, "maka") for _ in range(2))
    assert [one.state for run in first.runs for one in run.sealed] == [
        one.state for run in second.runs for one in run.sealed
    ]


def test_in_another_session_every_id_is_another() -> None:
    first, second = READ(INTERRUPTED, "maka"), READ(INTERRUPTED, "maka", SessionId("elsewhere"))
    ids = [{one.event.event_id for run in history.runs for one in run.sealed} for history in (first, second)]
    assert ids[0].isdisjoint(ids[1])
    assert first.runs[0].identity.run_id == "run-1" != second.runs[0].identity.run_id


def test_a_terminal_envelope_ends_the_run() -> None:
    done = answered("m", "Done.", status="completed")
    assert statuses(judged(lines(said_by_user("u", "go"), done))) == ["completed"]
    aborted = envelope("e", "system", "system", status="aborted")
    assert statuses(judged(lines(said_by_user("u", "go"), aborted))) == ["cancelled"]


def test_runs_that_stand_apart_are_runs_and_others_are_one_ledger() -> None:
    first, second = said_by_user("u", "1"), said_by_user("v", "2", "run-2")
    apart = judged(lines(first, answered("m", "one", status="completed"), second))
    assert statuses(apart) == ["completed", "failed"]
    together = judged(lines(first, second | {"invocationId": "invocationId-run-1"}))
    assert len(together.runs) == 1
    assert codes(together) >= {"runtime_identity_mismatch"}
    assert exit_status(together) == 4


def test_an_open_question_parks() -> None:
    request = {
        "kind": "tool_permission",
        "requestId": "q1",
        "toolUseId": "c1",
        "toolName": "Bash",
        "category": "shell",
        "reason": "shell_dangerous",
        "args": {},
        "rememberForTurnAllowed": True,
    }
    asked = envelope("p", "system", "system", actions={"permissionRequest": request})
    decision = {"permissionDecision": {"requestId": "q1", "decision": "deny"}}
    decided = envelope("d", "system", "system", actions=decision)
    ledger = (said_by_user("u", "go"), called("c", "c1"), asked)
    assert "pending_permission" in codes(judged(lines(*ledger)))
    assert "pending_permission" not in codes(judged(lines(*ledger, decided)))


def test_envelopes_of_two_sessions_are_told() -> None:
    judgement = judged(lines(said_by_user("u", "1"), said_by_user("v", "2") | {"sessionId": "sess-2"}))
    assert ("several_sessions", 2) in findings(judgement)
    assert exit_status(judgement) == 4


def test_an_envelope_of_another_shape_is_told_and_judged_all_the_same() -> None:
    judgement = judged(lines(said_by_user("u", "go"), called("c", "c1") | {"colour": "red"}))
    assert findings(judgement) == [("unknown_shape", 2)]
    assert [verdict[:2] for verdict in verdicts(judgement)] == [("c1", "indeterminate")]


def test_a_call_that_the_model_was_not_shown_can_be_judged_and_not_imported() -> None:
    hidden = called("c", "c1", origin="code_mode", modelVisibility="hidden")
    judgement = judged(lines(said_by_user("u", "go"), hidden))
    assert findings(judgement) == [("not_expressible", 2)]
    assert verdicts(judgement)[0][1] == "indeterminate"
    assert "provider_replay_unsupported" in codes(judgement)


def test_partial_and_system_facts_are_told_and_not_imported() -> None:
    streamed = answered("p", "Do", status="streaming") | {"partial": True}
    note = envelope("s", "system", "system", content={"kind": "text", "text": "note"})
    judgement = judged(lines(said_by_user("u", "go"), streamed, note))
    assert findings(judgement) == [("not_conversation", 2), ("not_conversation", 3)]


def test_numbers_are_the_doubles_that_the_original_took_them_for() -> None:
    judgement = judged(lines(said_by_user("u", "go"), called("c", "c1")))
    (call,) = events_of(judgement, ToolCalled)
    assert json.dumps(call.args) == '{"command": "ls", "n": 1}'


def test_an_answer_names_the_operation_that_was_dispatched() -> None:
    content = {"kind": "function_response", "id": "call-1", "name": "Write", "result": "ok"}
    spine = json.loads(INTERRUPTED.splitlines()[0])
    response = {key: spine[key] for key in ("sessionId", "invocationId", "runId", "turnId", "ts", "partial")}
    response |= {"id": "r1", "role": "tool", "author": "tool", "content": content}
    response |= {"refs": {"operationId": "op-1", "toolCallId": "call-1"}}
    judgement = judged(INTERRUPTED + lines(response))
    assert events_of(judgement, ToolResponded)[0].operation_id == "op-1"
    (verdict,) = judgement.runs[0].resolution.verdicts
    assert (verdict.status, verdict.origin) == (VerdictStatus.COMPLETED, "normal_t2")


def test_envelopes_may_stand_in_an_array_or_under_events() -> None:
    listed = [json.loads(line) for line in INTERRUPTED.splitlines()]
    for document in (listed, {"id": "case", "events": listed}):
        judgement = judged(json.dumps(document).encode())
        assert (judgement.history.format, verdicts(judgement)) == ("maka", verdicts(judged(INTERRUPTED)))


def test_a_call_id_that_no_event_can_have_is_told_also_in_an_earlier_run() -> None:
    first = [said_by_user("u", "1"), called("c", ""), answered("m", "one", status="completed")]
    judgement = judged(lines(*first, said_by_user("v", "2", "run-2")))
    assert findings(judgement) == [("not_expressible", 2)]
    assert codes(judgement) == {"source_run_unreadable", "provider_replay_unsupported"}


def test_an_id_that_stands_again_is_told_at_each_place_where_it_does() -> None:
    judgement = judged(lines(*(said_by_user(event_id, "go") for event_id in ("e1", "e2", "e1", "e3", "e1"))), "maka")
    assert issues(judgement) == [("duplicate_event_id", 3), ("duplicate_event_id", 5)]
