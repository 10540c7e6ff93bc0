"""Ids are opaque, bounded text, each of its own type; derived ones are a pure function. SPEC section 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from safepoint.domain.events.derived import Derived, derived_id
from safepoint.domain.identifiers import (
    ID_LENGTH_MAX,
    RunId,
    RunIdField,
    SessionId,
    derive_id,
    parse_id,
    run_of,
    run_stream,
    session_of,
    session_stream,
)

from .facts import Facts

FIELD: TypeAdapter[str] = TypeAdapter(RunIdField)


@pytest.mark.parametrize("text", ["a", "a" * ID_LENGTH_MAX, "ünïcode", "\U0001d4b3", " spaces and / signs ", "0"])
def test_any_bounded_text_is_an_id(text: str) -> None:
    assert parse_id(text, "run id") == text
    assert FIELD.validate_python(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "a" * (ID_LENGTH_MAX + 1), "a\n", "\na", "a\x00b", "\x1f", "\x7f", "\x85", "a\u2028", "a\u2029b", "\ud800"],
)
def test_empty_long_and_control_characters_are_refused_and_the_id_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="run id must be 1 to 200 characters"):
        parse_id(text, "run id")
    with pytest.raises(ValidationError):
        FIELD.validate_python(text)


@given(st.text(max_size=ID_LENGTH_MAX + 5))
def test_what_may_be_parsed_may_be_stored_and_the_other_way_round(text: str) -> None:
    try:
        parse_id(text, "id")
        parsed = True
    except ValueError:
        parsed = False
    try:
        FIELD.validate_python(text)
        stored = True
    except ValidationError:
        stored = False
    assert parsed == stored


def test_a_stream_is_named_for_what_it_belongs_to() -> None:
    assert session_stream(SessionId("x")) == "session:x"
    assert run_stream(RunId("x")) == "run:x"


@pytest.mark.parametrize("name", ["x", "a:b", ":", "run:x"])
def test_what_a_stream_belongs_to_is_read_from_its_name(name: str) -> None:
    assert (session_of(f"session:{name}"), run_of(f"session:{name}")) == (name, None)
    assert (session_of(f"run:{name}"), run_of(f"run:{name}")) == (None, name)


def test_a_name_that_is_no_streams_belongs_to_nothing() -> None:
    for stream in ("", "x", "runs:x", "sessions:x"):
        assert session_of(stream) is None
        assert run_of(stream) is None


labels = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cc"]), max_size=5), max_size=4)


@given(labels, labels)
def test_derived_ids_are_equal_only_for_equal_parts(left: list[str], right: list[str]) -> None:
    assert (derive_id("seed", *left) == derive_id("seed", *right)) == (left == right)


def test_a_derived_id_is_a_legal_id_that_never_changes() -> None:
    assert derive_id("seed", "label", "7") == "d327feb3748a5620b3f286181e228757"
    assert parse_id(derive_id("seed"), "id") == derive_id("seed")


def test_facts_that_one_fact_entails_have_ids_of_their_own() -> None:
    seed, other = Facts("r").ended(), Facts("q").ended()
    made = [derived_id(one, why, position) for one in (seed, other) for why in Derived for position in range(3)]
    assert len(set(made)) == len(made)
    assert derived_id(seed, Derived.CALL_CLOSED, 1) == made[1]
