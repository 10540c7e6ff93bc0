"""Histories of Maka's ledgers are what Maka made of them, but for the differences stated here.

A case falls under a difference by a predicate or by its id; every difference must be met, so none outlives its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from safepoint.adapters.interchange.maka_facts import scan
from safepoint.adapters.interchange.maka_history import MakaHistory, history_of
from safepoint.domain.boundary import boundary_violations
from safepoint.domain.events.run import PrefixRef
from safepoint.domain.reasons import ReplayBlock
from safepoint.domain.recovery.resolver import resolve
from safepoint.domain.recovery.verdict import Resolution
from safepoint.domain.replay.blocks import SegmentBlocks
from safepoint.domain.replay.history import replay
from safepoint.domain.replay.items import Item
from safepoint.domain.replay.legality import IllegalityCode, check_provider_legality
from safepoint.domain.replay.segment import Segment, project_segment

Case = dict[str, Any]
Names = list[str]

KINDS = {
    "user": "text",
    "host": "text",
    "text": "text",
    "thinking": "thinking",
    "call": "tool_call",
    "result": "tool_result",
}
STRICTER = "our scanner calls it corrupt where theirs does not (the reasons are in test_maka_verdicts)"
CALL_ORDER = "results stand in call order directly behind their step; theirs in the order in which they came"
ONE_STEP = "a gap needs a later step: a sibling's result, or a message that came meanwhile, is none (SPEC section 12)"
THINKING = "thinking that no part of its own step follows is left out: providers refuse it (field report r3-018)"
HIDDEN_CALL = "a result whose call is hidden is no part of any history; theirs shows it and then blocks"
EMPTY = "a user message that says nothing is kept and blocks; theirs leaves it out of the plan and then blocks"
BY_ID = {
    "replay_trim-00830": "theirs refuses results that claim to be its own shell's and are not of that shape",
    "mutation-03155": "theirs blocks on an empty system text; a system fact shows us nothing",
}


def judged(events: Sequence[Any]) -> tuple[MakaHistory, Resolution]:
    return history_of(events), resolve(scan(events), foreign=False)


def named(items: Sequence[Item]) -> Names:
    return [f"{KINDS[item.kind]}:{item.event_id}" for item in items]


def recorded_names(items: Sequence[Any]) -> Names:
    return [item if isinstance(item, str) else f"{item['kind']}:{item['eventId']}" for item in items]


def without(kind: str, names: Names) -> Names:
    return [name for name in names if not name.startswith(f"{kind}:")]


def same_items(ours: Sequence[Item], theirs: Names) -> str | None:
    """None where the histories are equal, or the difference that explains how they are not; else the test fails."""
    mine = named(ours)
    if mine == theirs:
        return None
    if mine == without("thinking", theirs):
        return THINKING
    assert sorted(mine) == sorted(theirs)
    assert without("tool_result", mine) == without("tool_result", theirs)
    illegal = check_provider_legality(ours)
    assert illegal is None or illegal.code is IllegalityCode.FIRST_NOT_FROM_USER
    return CALL_ORDER


def segment_of(events: Sequence[Any]) -> Segment:
    history, resolution = judged(events)
    segment = project_segment(history.events, resolution, resumed=True)
    if segment.blocked is None and history.refused:
        return Segment(blocked=ReplayBlock.PROVIDER_REPLAY_UNSUPPORTED)
    return segment


def test_what_a_ledger_shows_the_model_is_what_the_original_shows(ledgers: Sequence[Case]) -> None:
    met: Counter[str] = Counter()
    for case in ledgers:
        expected = case["expect"]
        history, resolution = judged(case["events"])
        if expected["resolve"]["hasCorruption"] or resolution.has_corruption:
            continue  # of a corrupt ledger we make no history at all
        theirs = recorded_names(expected["replayPlan"]["items"])
        ours = SegmentBlocks(history.events).items()
        if case["id"] in BY_ID:
            met[case["id"]] += named(ours) != theirs
            continue
        hidden = {f"tool_result:{event_id}" for event_id in history.refused}
        if hidden & set(theirs):
            met[HIDDEN_CALL] += 1
            theirs = [name for name in theirs if name not in hidden]
        said = tuple(item for item in ours if item.kind != "user" or item.text)
        met[EMPTY] += len(said) != len(ours)
        if (difference := same_items(said, theirs)) is not None:
            met[difference] += 1
        else:
            met["equal"] += 1
    assert met["equal"] > 650
    assert {each for each in met if met[each]} == {
        "equal",
        CALL_ORDER,
        THINKING,
        HIDDEN_CALL,
        EMPTY,
        "replay_trim-00830",
    }


def test_the_content_of_what_is_shown_is_the_originals(ledgers: Sequence[Case]) -> None:
    compared = 0
    for case in ledgers:
        if case["expect"]["resolve"]["hasCorruption"]:
            continue
        recorded = {
            item["eventId"]: item
            for item in case["expect"]["replayPlan"]["items"]
            if isinstance(item, Mapping) and not item.get("steering") and not _quotes(case, item["eventId"])
        }
        for item in SegmentBlocks(history_of(case["events"]).events).items():
            theirs = recorded.get(item.event_id)
            if theirs is None:
                continue
            compared += 1
            if item.kind == "call":
                assert (item.call_id, item.tool_name, item.args) == (
                    theirs["toolCallId"],
                    theirs["toolName"],
                    theirs["input"],
                )
            elif item.kind == "result":
                assert (item.call_id, item.is_error) == (theirs["toolCallId"], theirs["isError"])
            elif item.kind == "thinking":
                assert (item.text, item.signature) == (theirs["text"], theirs.get("signature"))
            else:
                assert item.text == theirs["content"]
    assert compared > 800


def _quotes(case: Case, event_id: str) -> bool:
    """The original writes quotes and steering into the text, in a form of its own; ours leaves that to adapters."""
    return any(event["id"] == event_id and event["content"].get("quotes") for event in case["events"])


def test_a_segment_is_replayable_or_blocked_as_in_the_original(ledgers: Sequence[Case]) -> None:
    met: Counter[str] = Counter()
    for case in ledgers:
        expected = case["expect"].get("segment")
        if expected is None:
            continue
        ours = segment_of(case["events"])
        theirs = expected.get("reason")
        if (difference := _difference(case, ours, theirs)) is not None:
            met[difference] += 1
            continue
        assert (ours.blocked or None) == theirs, case["id"]
        if theirs is None:
            trimmed = expected["trimmedSuffixEventIds"]
            explained = same_items(ours.items, recorded_names(expected["providerItems"]))
            # What theirs never shows it does not list as trimmed; ours lists all that stays out.
            assert set(trimmed) <= set(ours.trimmed) <= set(trimmed) | _unshown(case), case["id"]
            if explained is not None:
                met[explained] += 1
        met["equal"] += 1
    assert met["equal"] > 1400
    assert set(met) == {"equal", STRICTER, ONE_STEP, CALL_ORDER, THINKING, *BY_ID}


def _unshown(case: Case) -> set[str]:
    contents = [(event["id"], event.get("content") or {}) for event in case["events"]]
    return {
        event_id for event_id, content in contents if content.get("kind") == "thinking" or content.get("text") == ""
    }


def _difference(case: Case, ours: Segment, theirs: str | None) -> str | None:
    if case["id"] in BY_ID:
        assert ours.blocked != theirs
        return str(case["id"])
    corrupt_for_us = ours.blocked is ReplayBlock.TOOL_RECOVERY_CORRUPTION
    if corrupt_for_us and not case["expect"]["resolve"]["hasCorruption"]:
        return STRICTER
    if theirs == ReplayBlock.PROVIDER_REPLAY_NON_SUFFIX_GAP and ours.blocked is None:
        illegal = check_provider_legality(ours.items)
        assert illegal is None or illegal.code is IllegalityCode.FIRST_NOT_FROM_USER
        assert ours.trimmed
        assert not _later_steps(case["events"]), case["id"]
        return ONE_STEP
    return None


def _later_steps(envelopes: Sequence[Any]) -> Names:
    """What the model visibly said after a call without a visible answer, once something of its step was answered."""
    said = [one for one in envelopes if isinstance(one.get("content"), dict) and one.get("partial") is not True]
    visible = [one for one in said if one.get("modelVisibility") != "hidden"]
    answered = {one["content"].get("id") for one in visible if one["content"]["kind"] == "function_response"}
    later: Names = []
    for number, call in enumerate(said):
        if call not in visible or call["content"]["kind"] != "function_call" or call["content"]["id"] in answered:
            continue
        after = said[number + 1 :]
        ends = next((n for n, one in enumerate(after) if one["content"]["kind"] == "function_response"), len(after))
        step = (call.get("refs") or {}).get("stepId")
        later += [
            one["id"]
            for one in after[ends:]
            if one in visible
            and one["role"] == "model"
            and (step is None or (one.get("refs") or {}).get("stepId") != step)
        ]
    return later


def test_segments_alone_and_then_concatenated_are_the_originals_lineage(cases: Mapping[str, Sequence[Case]]) -> None:
    met: Counter[str] = Counter()
    for case in cases["lineage"]:
        plan = case["expect"]["plan"]
        if "error" in plan:
            refs = [_ref(segment["identity"], number) for number, segment in enumerate(case["segments"])]
            assert boundary_violations(refs), case["id"]
            met["refused"] += 1
            continue
        segments = [segment_of(segment["events"]) for segment in case["segments"]]
        blocked = next(((n, s.blocked) for n, s in enumerate(segments) if s.blocked), None)
        if plan["kind"] == "blocked":
            assert blocked == (plan["segmentIndex"], plan["reason"]), case["id"]
            met["blocked"] += 1
            continue
        assert blocked is None, case["id"]
        items = replay(segments, None).items
        assert same_items(items, plan["providerItems"]) is None, case["id"]
        assert [list(segment.trimmed) for segment in segments] == plan["trimmed"], case["id"]
        met["replayable"] += 1
    assert met == {"refused": 3, "blocked": 21, "replayable": 44}


def _ref(identity: Mapping[str, str], number: int) -> PrefixRef:
    return PrefixRef.model_validate(
        {
            "session_id": identity["sessionId"],
            "run_id": identity["runId"],
            "turn_id": identity["turnId"],
            "invocation_id": identity["invocationId"],
            "high_water": 1,
            "digest": f"{number:064x}",
        }
    )


@pytest.mark.parametrize("group", ["replay_trim", "lineage"])
def test_every_group_of_histories_is_there(cases: Mapping[str, Sequence[Case]], group: str) -> None:
    assert len(cases[group]) > 40
