"""What is handed out is equal to what it was made of, and changing it changes nothing else. ADR 0091."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical
from safepoint.domain.own_copies import own, own_event, own_item, own_items
from safepoint.domain.replay.items import CallItem, Item, ResultItem, TextItem, ThinkingItem, UserItem

from ..changing import change_all
from ..stored_events.examples import EXAMPLES
from .test_assembling import are_one

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_changing_a_copy_changes_nothing_else(value: Any) -> None:
    before = canonical.encode(value)
    mine = own(value)
    assert canonical.encode(mine) == before
    change_all(mine)
    assert canonical.encode(value) == before


@given(JSON, JSON)
def test_no_item_of_a_history_shares_what_can_be_changed(value: Any, options: Any) -> None:
    items: list[Item] = [
        UserItem("e0", "hi"),  # type: ignore[arg-type]
        TextItem("e1", "s", "text", options),  # type: ignore[arg-type]
        ThinkingItem("e2", "s", "thought", None, options),  # type: ignore[arg-type]
        CallItem("e3", "s", "c", "pay", value, None, None, options),  # type: ignore[arg-type]
        ResultItem("e4", "s", "c", "pay", value, is_error=False),  # type: ignore[arg-type]
    ]
    before = repr(items)
    mine = own_items(items)
    assert list(mine) == items
    assert [own_item(item) for item in items] == items
    change_all(mine)
    assert repr(items) == before


@pytest.mark.parametrize("topic", EXAMPLES)
def test_no_event_shares_what_can_be_changed(topic: str) -> None:
    for event in EXAMPLES[topic]:
        before = event.model_dump_json()
        mine = own_event(event)
        are_one(mine, event)
        change_all(mine)
        assert event.model_dump_json() == before


def test_as_deep_as_json_may_be_is_not_too_deep() -> None:
    deep: Any = []
    for _ in range(canonical.DEPTH_MAX - 1):
        deep = [deep]
    assert own(deep) == deep
