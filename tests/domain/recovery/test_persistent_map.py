"""Both maps behave as a dictionary; versions of the persistent one do not disturb one another."""

from __future__ import annotations

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
