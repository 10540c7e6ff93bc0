"""Both maps behave as a dictionary; versions of the persistent one do not disturb one another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain.persistent_map import PersistentMap, TransientMap

KEYS = st.integers(0, 600) | st.text(max_size=2) | st.tuples(st.text(max_size=1), st.text(max_size=1))
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.integers()), max_size=60)
"""A value to set, or None to discard the key."""


@pytest.mark.parametrize("make", [TransientMap, PersistentMap])
@given(changes=CHANGES)
def test_a_map_holds_what_a_dictionary_would(make: Callable[[], Any], changes: list[tuple[Any, int | None]]) -> None:
    tried = make()
    model: dict[Any, int] = {}
    for key, value in changes:
        if value is None:
            tried = tried.discard(key)
            model.pop(key, None)
        else:
            tried = tried.set(key, value)
            model[key] = value
    assert len(tried) == len(model)
    assert set(tried) == set(model)
    for key, _ in changes:
        assert (key in tried, tried.get(key)) == (key in model, model.get(key))


@given(changes=CHANGES)
def test_a_version_of_a_persistent_map_never_changes(changes: list[tuple[Any, int | None]]) -> None:
    versions: list[tuple[PersistentMap[Any, int], dict[Any, int]]] = [(PersistentMap(), {})]
    for key, value in changes:
        latest, model = versions[-1]
        if value is None:
            versions.append((latest.discard(key), {other: model[other] for other in model if other != key}))
        else:
            versions.append((latest.set(key, value), {**model, key: value}))
    for version, model in versions:
        assert {key: version.get(key) for key in version} == model


def test_the_fork_of_a_dictionary_is_a_copy_of_its_own() -> None:
    written: TransientMap[str, int] = TransientMap({"a": 1, "b": 2})
    fork = written.fork()
    written.set("a", 9).discard("b")
    assert (fork.get("a"), fork.get("b"), len(fork)) == (1, 2, 2)


def test_discarding_what_is_not_there_keeps_the_map() -> None:
    one = PersistentMap[str, int]().set("a", 1)
    assert one.discard("z") is one


@given(first=CHANGES, second=CHANGES, third=CHANGES)
def test_two_versions_that_go_on_from_the_same_one_do_not_disturb_each_other(
    first: list[tuple[Any, int | None]], second: list[tuple[Any, int | None]], third: list[tuple[Any, int | None]]
) -> None:
    """As after a commit that was rolled back."""
    shared, model = changed(PersistentMap(), {}, first)
    rolled_back, wrong = changed(shared, model, second)
    went_on, right = changed(shared, model, third)
    for tried, expected in ((shared, model), (rolled_back, wrong), (went_on, right)):
        assert {key: tried.get(key) for key in tried} == expected
        assert len(tried) == len(expected)


def changed(
    tried: PersistentMap[Any, int], model: dict[Any, int], changes: list[tuple[Any, int | None]]
) -> tuple[PersistentMap[Any, int], dict[Any, int]]:
    """A version after some changes, with the dictionary that it must equal."""
    model = dict(model)
    for key, value in changes:
        tried = tried.discard(key) if value is None else tried.set(key, value)
        model.pop(key, None)
        if value is not None:
            model[key] = value
    return tried, model


def test_going_over_a_map_costs_what_is_in_it_and_not_what_was_ever_in_it() -> None:
    tried: PersistentMap[int, int] = PersistentMap()
    for key in range(10_000):
        tried = tried.set(key, key).discard(key - 1)
    assert list(tried) == [9_999]
    assert len(tried._entries) < 100


def test_a_value_that_is_none_is_kept_wherever_a_map_is_copied() -> None:
    one: PersistentMap[str, None] = PersistentMap[str, None]().set("a", None)
    one.set("b", None)
    again = one.set("c", None)
    assert set(again) == {"a", "c"}


def test_readers_of_an_older_version_are_not_disturbed_while_the_newest_grows() -> None:
    old: PersistentMap[int, int] = PersistentMap.of({key: key for key in range(100)})
    seen: list[set[int]] = []
    reader = threading.Thread(target=lambda: seen.extend({*old} for _ in range(200)))
    reader.start()
    newest = old
    for key in range(5_000):
        newest = newest.set(key, -key)
    reader.join()
    assert {frozenset(keys) for keys in seen} == {frozenset(range(100))}
    assert [old.get(key) for key in range(100)] == list(range(100))
    assert len(newest) == 5_000
