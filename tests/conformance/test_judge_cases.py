"""`judge --cases` answers every recorded ledger as Maka did, but for the differences that are stated.

The differences and their reasons stand in `test_maka_verdicts` and `test_replay_vectors`; here it is the answers, as
they are written, that are compared.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.interchange.maka_cases import answer_case, written

from .test_maka_verdicts import RESOLUTION_DIFFERENCES, overstepping, recorded_resolution, repeats_a_recovery
from .test_replay_vectors import BY_ID, recorded_names, without

Case = dict[str, Any]


@pytest.fixture(scope="module")
def answers(ledgers: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Each ledger with its answer, asked as the very line that was recorded."""
    recorded = gzip.decompress(Path(__file__).with_name("maka-open.jsonl.gz").read_bytes()).decode()
    lines = {json.loads(line)["id"]: line for line in recorded.split("\n") if line}
    found = []
    for case in ledgers:
        answer, judged = answer_case(lines[case["id"]])
        assert judged
        told = written(answer)
        assert "\n" not in told
        found.append((case, json.loads(told)))
    return found


def test_every_answer_has_the_id_of_its_case(answers: list[tuple[Case, Case]]) -> None:
    assert len(answers) > 1_700
    assert [answer["id"] for _, answer in answers] == [case["id"] for case, _ in answers]


def test_the_issues_of_a_scan_agree(answers: list[tuple[Case, Case]]) -> None:
    disagreeing = []
    for case, answer in answers:
        mine = [one for one in answer["scan"]["issues"] if one["code"] != "event_after_terminal"]
        ours = [(one["code"], one["event_id"], one["operation_id"], one["tool_call_id"]) for one in mine]
        theirs = [
            (one["code"], one["eventId"], one.get("operationId"), one.get("toolCallId"))
            for one in case["expect"]["scan"]["issues"]
        ]
        corrupt = case["expect"]["scan"]["hasCorruption"] or bool(overstepping(case))
        if (ours, answer["scan"]["has_corruption"]) != (theirs, corrupt):
            disagreeing.append(case["id"])
    assert disagreeing == []


def adjusted(case: Case) -> Case:
    said = recorded_resolution(case)
    for difference in RESOLUTION_DIFFERENCES:
        said = difference.adjust(case, said)
    return said


def test_the_verdicts_on_operations_agree(answers: list[tuple[Case, Case]]) -> None:
    disagreeing = []
    for case, answer in answers:
        expected = adjusted(case)
        recorded = case["expect"]["resolve"]["decisions"]
        for ours, theirs, raw in zip(answer["operations"], expected["verdicts"], recorded, strict=True):
            judged = {"verdict": "status", "reason": "reason", "settlement_origin": "settlementOrigin"}
            if repeats_a_recovery(case, theirs["toolCallId"]):
                judged = {}
            named = {
                **judged,
                "tool_call_id": "toolCallId",
                "operation_id": "operationId",
                "call_event_id": "callRuntimeEventId",
                "dispatch_event_id": "dispatchRuntimeEventId",
                "response_event_id": "responseRuntimeEventId",
            }
            both = {**raw, **theirs}
            # Recorded origins have the original's word; the adjusted ones are these, too.
            if any(ours[mine] != both.get(its) for mine, its in named.items()):
                disagreeing.append(case["id"])
        if answer["requires_reconciliation"] != expected["requiresReconciliation"]:
            disagreeing.append(case["id"])
        if answer["has_corruption"] != expected["hasCorruption"]:
            disagreeing.append(case["id"])
    assert disagreeing == []


def test_recovery_facts_are_named_by_kind(answers: list[tuple[Case, Case]]) -> None:
    for case, answer in answers:
        for ours, theirs in zip(answer["operations"], case["expect"]["scan"]["operations"], strict=True):
            assert ours["reconcile_event_ids"] == theirs.get("reconcileEventIds", []), case["id"]
            assert ours["decision_event_ids"] == theirs.get("decisionEventIds", []), case["id"]


def test_the_encodings_agree(answers: list[tuple[Case, Case]]) -> None:
    disagreeing = [
        case["id"]
        for case, answer in answers
        if (
            answer["maka"]["canonical_sha256"],
            answer["maka"]["prefix_digest"],
            answer["maka"]["manifest_digest"],
        )
        != (
            case["expect"]["canonical"]["sha256"],
            case["expect"]["prefix"].get("prefixDigest"),
            case["expect"].get("manifestDigest"),
        )
    ]
    assert disagreeing == []


def difference_of(case: Case, ours: Case, theirs: Case) -> str | None:
    """Why a replay is another one than theirs; None where it is the same, `unexplained` where nothing says why."""
    kinds = (ours["kind"], ours["reason"]), (theirs["kind"], theirs.get("reason"))
    if kinds[0] != kinds[1]:
        if case["id"] in BY_ID:
            return "by id"
        if ours["reason"] == "tool_recovery_corruption" and adjusted(case)["hasCorruption"]:
            return "stricter"
        gap = kinds[1][1] == "provider_replay_non_suffix_gap" and ours["kind"] == "replayable"
        return "one step" if gap else "unexplained"
    if ours["kind"] == "blocked":
        return None
    names = recorded_names(theirs["providerItems"])
    if not set(theirs["trimmedSuffixEventIds"]) <= set(ours["trimmed"]):
        return "unexplained"
    if ours["items"] == names:
        return None
    if ours["items"] == without("thinking", names):
        return "thinking"
    return "call order" if sorted(ours["items"]) == sorted(names) else "unexplained"


def test_the_replays_agree_but_for_the_stated_differences(answers: list[tuple[Case, Case]]) -> None:
    met: Counter[str] = Counter()
    for case, answer in answers:
        if "segment" in case["expect"]:
            met[difference_of(case, answer["replay"], case["expect"]["segment"]) or "equal"] += 1
    assert met["equal"] > 1_400
    assert set(met) == {"equal", "by id", "stricter", "one step", "thinking", "call order"}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no json",
        "[]",
        "7",
        '{"id": "x"}',
        '{"id": "x", "events": {}}',
        '{"id": "x", "events": "no"}',
        '{"id": "x", "events": ' + "[" * 50_000,
    ],
)
def test_a_broken_case_is_answered_with_an_error(line: str) -> None:
    answer, judged = answer_case(line)
    assert not judged
    assert set(answer) == {"id", "error"}
    json.loads(written(answer))


@pytest.mark.parametrize(
    "events",
    [
        "[]",
        "[1, null, [], {}]",
        '[{"id": "\\ud800", "content": {"kind": ["x"]}, "refs": [1], "actions": 7}]',
        '[{"id": "a", "ts": 1e308, "partial": false, "role": "user", "content": {"kind": "text", "text": "\\ud800"}}]',
        '[{"content": {"kind": "function_call", "id": "c", "name": "t", "args": {"n": -0, "m": 1e400}}}]',
        '[{"id": "a", "ts": ' + "9" * 400 + ', "role": "user", "content": {"kind": "text", "text": ""}}]',
        '[{"actions": {"toolRecovery": {"kind": "maka.tool.recovery_decision", "payload": {"operationId": [{}]}}}}]',
    ],
)
def test_any_events_are_judged(events: str) -> None:
    answer, judged = answer_case(f'{{"id": 1, "events": {events}}}')
    assert judged
    json.loads(written(answer))


def test_what_is_no_envelope_is_named_by_its_position() -> None:
    """It has no bytes, so the digests do not hold it; it is not passed over in silence."""
    answer, _ = answer_case('{"id": 1, "events": [1, null, {}]}')
    assert (answer["maka"]["not_encoded"], answer["maka"]["encoded_events"]) == ([1, 2, 3], 0)
