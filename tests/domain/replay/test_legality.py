"""What strict providers refuse, and how items are grouped for those who make messages of them."""

from __future__ import annotations

import pytest

from safepoint.domain.identifiers import EventId, StepId, ToolCallId
from safepoint.domain.replay.items import CallItem, Item, ResultItem, TextItem, ThinkingItem, UserItem
from safepoint.domain.replay.legality import (
    Illegality,
    IllegalityCode,
    Message,
    ModelStep,
    check_provider_legality,
    steps_of,
)

USER = UserItem(EventId("u"), "U")


def asked(call_id: str, step: str = "s1") -> CallItem:
    return CallItem(EventId(f"e-{call_id}"), StepId(step), ToolCallId(call_id), "t", {})


def answered(call_id: str, step: str = "s1") -> ResultItem:
    return ResultItem(EventId(f"r-{call_id}"), StepId(step), ToolCallId(call_id), "t", "done", False)


def said(step: str = "s1") -> TextItem:
    return TextItem(EventId("x"), StepId(step), "text")


def thought(step: str = "s1") -> ThinkingItem:
    return ThinkingItem(EventId("k"), StepId(step), "hm", "sig")


def test_a_step_ends_where_another_begins_or_a_message_comes() -> None:
    items: list[Item] = [USER, thought(), said(), asked("A"), answered("A"), said("s1"), said("s2"), USER, said("s2")]
    grouped = steps_of(items)
    assert [type(step).__name__ for step in grouped] == ["Message", *["ModelStep"] * 3, "Message", "ModelStep"]
    first = grouped[1]
    assert isinstance(first, ModelStep)
    assert (len(first.parts), first.calls, first.results) == (3, (asked("A"),), (answered("A"),))
    assert grouped[0] == Message(USER)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], Illegality(IllegalityCode.EMPTY, 0)),
        ([said()], Illegality(IllegalityCode.FIRST_NOT_FROM_USER, 0)),
        ([USER, asked("A")], Illegality(IllegalityCode.CALL_NOT_ANSWERED, 1, "A", 1, 0)),
        ([USER, asked("A"), USER, answered("A")], Illegality(IllegalityCode.CALL_NOT_ANSWERED, 1, "A", 1, 0)),
        ([USER, answered("A")], Illegality(IllegalityCode.RESULT_WITHOUT_CALL, 1, "A", 0, 1)),
        (
            [USER, asked("A"), answered("A"), answered("A")],
            Illegality(IllegalityCode.CALL_ANSWERED_TWICE, 1, "A", 1, 2),
        ),
        (
            [USER, asked("A"), answered("A"), asked("A", "s2"), answered("A", "s2")],
            Illegality(IllegalityCode.CALL_ID_REPEATED, 2, "A", 1, 1),
        ),
        ([USER, thought(), USER], Illegality(IllegalityCode.THINKING_NOT_FOLLOWED, 1)),
        ([USER, thought(), said("s2")], Illegality(IllegalityCode.THINKING_NOT_FOLLOWED, 1)),
    ],
    ids=lambda value: value.code.value if isinstance(value, Illegality) else "",
)
def test_what_a_strict_provider_refuses_is_found(items: list[Item], expected: Illegality) -> None:
    assert check_provider_legality(items) == expected


def test_r3_008_a_turn_with_fewer_results_than_calls_is_illegal_and_says_both_numbers() -> None:
    found = check_provider_legality([USER, asked("A"), asked("B"), asked("C"), answered("A"), answered("C")])
    assert found is not None
    assert (found.code, found.call_id, found.calls, found.responses) == (IllegalityCode.CALL_NOT_ANSWERED, "B", 3, 2)


def test_r3_006_a_result_whose_id_is_not_its_calls_is_an_orphan() -> None:
    found = check_provider_legality([USER, asked("c1"), answered("c2")])
    assert found is not None
    assert (found.code, found.call_id) == (IllegalityCode.RESULT_WITHOUT_CALL, "c2")


def test_a_legal_history_is_legal() -> None:
    items: list[Item] = [USER, thought(), asked("A"), asked("B"), answered("B"), answered("A"), said("s2"), USER]
    assert check_provider_legality(items) is None
