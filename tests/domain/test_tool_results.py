"""What is recorded of a tool's answer."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical, tool_results
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Effect
from safepoint.domain.reasons import ResponseCode


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "value", [None, "", [], {}, 0, False, "text", {"size": None, "lines": [], "note": ""}, [None, None], 1.5]
)
def test_strict_json_is_kept_as_it_is(value: Json) -> None:
    """Field report r3-100: nulls and empty values in every optional field."""
    prepared = tool_results.prepare_result(value)
    assert prepared == tool_results.PreparedResult(value, is_error=False, effect=Effect.DONE)


def test_what_a_tool_changes_later_is_not_what_was_recorded() -> None:
    value = {"list": [1]}
    prepared = tool_results.prepare_result(value)
    value["list"].append(2)
    assert prepared.result == {"list": [1]}


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        (1, 2),
        object(),
        Colour.RED,
        {1: "a"},
        float("nan"),
        float("inf"),
        "\ud800",
        {"deep": {"er": [set()]}},
        2**63 + 1,
    ],
)
def test_what_is_no_strict_json_is_an_error_whose_effect_did_happen(value: object) -> None:
    prepared = tool_results.prepare_result(value)
    assert (prepared.is_error, prepared.effect) == (True, Effect.DONE)
    assert prepared.code is ResponseCode.RESULT_NOT_STRICT_JSON
    assert "its effect has happened" in str(prepared.result)
    canonical.encode(prepared.result)


def test_a_result_that_contains_itself_is_an_error_and_no_crash() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert tool_results.prepare_result(endless).code is ResponseCode.RESULT_NOT_STRICT_JSON


CUT_CHARACTERS = ["😀", "🇩🇪🇫🇷", "e\u0301\u0302\u0303", "ß", "\0", '"', "\u2028"]


@pytest.mark.parametrize("characters", CUT_CHARACTERS)
@pytest.mark.parametrize("offset", range(9))
def test_a_long_text_is_cut_between_characters_at_every_offset(characters: str, offset: int) -> None:
    """Field report r3-098."""
    limit = 64
    text = "a" * (limit - offset) + characters * 10
    prepared = tool_results.prepare_result(text, bytes_max=limit)
    assert isinstance(prepared.result, str)
    assert text.startswith(prepared.result)
    assert len(canonical.encode(prepared.result)) <= limit < len(canonical.encode(text[: len(prepared.result) + 1]))
    assert (prepared.code, prepared.is_error, prepared.effect) == (ResponseCode.RESULT_TOO_LARGE, False, Effect.DONE)
    assert prepared.original_length == len(text.encode())
    assert prepared.original_digest == hashlib.sha256(text.encode()).hexdigest()


def test_a_result_of_exactly_the_bound_is_whole() -> None:
    text = "a" * (tool_results.RESULT_BYTES_MAX - 2)
    assert tool_results.prepare_result(text).code is None
    assert tool_results.prepare_result(text + "a").code is ResponseCode.RESULT_TOO_LARGE


def test_of_a_long_structure_the_beginning_of_its_canonical_form_is_kept() -> None:
    value = {"b": ["😀"] * 100, "a": 1}
    prepared = tool_results.prepare_result(value, bytes_max=50)
    whole = canonical.encode(value)
    assert isinstance(prepared.result, str)
    assert whole.decode().startswith(prepared.result)
    assert len(canonical.encode(prepared.result)) <= 50
    assert (prepared.original_length, prepared.original_digest) == (len(whole), hashlib.sha256(whole).hexdigest())


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(2, 200))
def test_a_cut_text_is_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    cut = tool_results.cut_text(text, limit)
    assert text.startswith(cut)
    assert len(canonical.encode(cut)) <= limit
    assert cut == text or len(canonical.encode(text[: len(cut) + 1])) > limit


def test_a_raise_proves_nothing_and_says_so() -> None:
    prepared = tool_results.raised("ValueError", "boom", effect=Effect.UNKNOWN)
    assert prepared == tool_results.PreparedResult(
        "The tool failed (ValueError: boom). Its effect may have happened in whole or in part; inspect before"
        " repeating it.",
        is_error=True,
        effect=Effect.UNKNOWN,
        code=ResponseCode.TOOL_RAISED,
    )


def test_a_raise_of_a_tool_that_only_reads_raises_no_doubt() -> None:
    prepared = tool_results.raised("KeyError", "", effect=Effect.NONE)
    assert prepared.result == "The tool failed (KeyError). It only reads, so nothing was changed."


def test_a_typed_refusal_has_no_effect() -> None:
    prepared = tool_results.refused("no such file")
    assert prepared.result == "The tool refused before it did anything: no such file"
    assert (prepared.effect, prepared.code) == (Effect.NONE, ResponseCode.REFUSED_WITHOUT_EFFECT)


@pytest.mark.parametrize(("effect", "told"), [(Effect.UNKNOWN, "may have happened"), (Effect.NONE, "nothing was")])
def test_a_time_out_says_what_is_known_of_the_effect(effect: Effect, told: str) -> None:
    prepared = tool_results.timed_out(1.5, effect=effect)
    assert "within 1.5 seconds" in str(prepared.result)
    assert told in str(prepared.result)
    assert (prepared.effect, prepared.code) == (effect, ResponseCode.TOOL_TIMED_OUT)


def test_a_foreign_message_is_bounded_and_can_always_be_stored() -> None:
    prepared = tool_results.refused("\ud800" + "x" * 1_000_000)
    assert len(canonical.encode(prepared.result)) < 5_000


def test_a_result_that_cannot_even_be_begun_is_named_too_large() -> None:
    prepared = tool_results.oversized_result()
    assert (prepared.code, prepared.is_error, prepared.effect) == (ResponseCode.RESULT_TOO_LARGE, True, Effect.DONE)
    assert "its effect has happened" in str(prepared.result)
