"""Arguments are read strictly, in one place, and never repaired. SPEC sections 5, 8 and 23 (F5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical
from safepoint.domain.reasons import ResponseCode
from safepoint.domain.tool_arguments import ARGUMENTS_BYTES_MAX, NotStrictJson, ParsedArguments, parse_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ('{"path": "a.txt"}', {"path": "a.txt"}),
        (" {} ", {}),
        ("null", None),
        ("[1, 2.5]", [1, 2.5]),
        ('{"big": 1e16}', {"big": 1e16}),
        ('{"emoji": "\\ud83d\\ude42"}', {"emoji": "🙂"}),
    ],
)
def test_strict_json_is_parsed_whatever_its_shape(text: str, args: object) -> None:
    assert parse_arguments(text) == ParsedArguments(args)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"path":"a","content":"line1',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 9007199254740993}',
        '{"a": "\\ud800"}',
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": 1} {"b": 2}',
        '{"a": "line\nbreak"}',
        "[" * 100_000,
        "undefined",
    ],
)
def test_what_is_no_strict_json_is_kept_as_text_and_never_becomes_a_call(text: str) -> None:
    """Field report r3-106: a cut text is not salvaged."""
    outcome = parse_arguments(text)
    assert isinstance(outcome, NotStrictJson)
    assert outcome.code is ResponseCode.ARGS_NOT_STRICT_JSON
    assert outcome.text == text
    assert outcome.size_bytes == len(text)
    assert outcome.detail


def test_a_lone_surrogate_in_the_text_itself_is_replaced_so_that_the_text_can_be_stored() -> None:
    outcome = parse_arguments('{"a": "\ud800"}')
    assert isinstance(outcome, NotStrictJson)
    assert outcome.code is ResponseCode.ARGS_NOT_STRICT_JSON
    assert outcome.text == '{"a": "?"}'


def test_the_bound_counts_bytes_and_is_reached_exactly() -> None:
    fits = '"' + "é" * 4 + '"'
    assert parse_arguments(fits, bytes_max=10) == ParsedArguments("éééé")
    outcome = parse_arguments(fits + " ", bytes_max=10)
    assert outcome == NotStrictJson(ResponseCode.ARGS_TOO_LARGE, "11 bytes where 10 are allowed", 11, '"éé')


def test_text_that_grows_when_it_is_stored_is_bounded_as_it_is_stored() -> None:
    text = "[" + ",".join(["1e20"] * 40_000) + "]"
    assert len(text) < ARGUMENTS_BYTES_MAX
    outcome = parse_arguments(text)
    assert isinstance(outcome, NotStrictJson)
    assert outcome.code is ResponseCode.ARGS_TOO_LARGE
    assert outcome.size_bytes > ARGUMENTS_BYTES_MAX


@given(st.text(alphabet=st.characters(codec=None), max_size=200), st.integers(1, 100))
def test_refused_text_always_fits_a_stored_call_on_a_code_point_border(text: str, bytes_max: int) -> None:
    outcome = parse_arguments("x" + text, bytes_max)
    assert isinstance(outcome, NotStrictJson)
    assert len(canonical.encode(outcome.text)) <= bytes_max + len('""')


@given(JSON)
def test_canonical_text_is_parsed_to_the_value_that_it_was_made_from(value: object) -> None:
    assert parse_arguments(canonical.encode(value).decode()) == ParsedArguments(value)  # type: ignore[arg-type]
