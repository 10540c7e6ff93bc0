"""Canonical bytes and digests. SPEC section 6."""

from __future__ import annotations

import datetime
import decimal
import enum
import hashlib
import json
import math
import uuid
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain import canonical
from safepoint.domain.canonical import DEPTH_MAX, SAFE_INTEGER_MAX, CanonicalError

# Characters where encoders differ: escapes, controls, DEL, line separators, and both sides of the surrogates.
AWKWARD = '"\\/\b\t\n\f\r\x00\x1f\x7f\x80é\u2028\u2029\ud7ff\ue000\ufffd\uffff\U00010000\U0001f600\U0010ffff'
TEXTS = st.text() | st.text(alphabet=AWKWARD, max_size=6)
DOUBLES = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**63), 2**63).map(float)
    | st.builds(lambda digits, exponent: float(f"{digits}e{exponent}"), st.integers(-9999, 9999), st.integers(-30, 30))
    | st.sampled_from([0.0, -0.0, 1e-7, 1e-6, 1e-5, 1e-3, 0.1, 1e15, 1e16, 1e20, 1e21, 1e22, 2.0**53, 5e-324])
)
INTEGERS = st.integers(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | DOUBLES | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=25,
)


def is_canonical(data: bytes) -> bool:
    """Whether the bytes are taken for exactly what encoding their value makes."""
    try:
        canonical.decode_canonical(data)
    except CanonicalError:
        return False
    return True


class Subtext(str):
    __slots__ = ()


class Number(enum.IntEnum):
    ONE = 1


class Colour(enum.StrEnum):
    RED = "red"


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"inner": value}
    return value


@given(VALUES)
def test_every_byte_is_that_of_the_reference_encoder(value: Any) -> None:
    assert canonical.encode(value) == rfc8785.dumps(value)


@given(st.dictionaries(st.text(alphabet=AWKWARD + "ab", max_size=3), INTEGERS | DOUBLES, min_size=2))
def test_keys_sort_by_utf_16_code_units_and_not_by_code_points(value: Any) -> None:
    assert canonical.encode({"outer": [value]}) == rfc8785.dumps({"outer": [value]})


@given(DOUBLES)
def test_numbers_print_as_ecmascript_prints_them(number: float) -> None:
    assert canonical.encode([number]) == rfc8785.dumps([number])


@given(VALUES)
def test_decoding_and_encoding_again_gives_the_same_bytes(value: Any) -> None:
    data = canonical.encode(value)
    assert canonical.encode(canonical.decode_canonical(data)) == data
    assert canonical.encode(canonical.decode(data)) == data
    assert is_canonical(data)


@given(VALUES, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_foreign_spellings_of_one_value_have_one_canonical_form(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert canonical.encode(canonical.decode(text)) == rfc8785.dumps(value)


@given(VALUES)
def test_only_the_canonical_spelling_is_canonical(value: Any) -> None:
    data = canonical.encode(value)
    text = json.dumps(value, indent=1).encode()
    assert is_canonical(text) is (text == data)
    assert not is_canonical(data + b" ")
    assert not is_canonical(data[:-1]) or data[:-1] == canonical.encode(json.loads(data[:-1]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (1e16, "10000000000000000"),
        (True, "true"),
        ({"b": 1, "a": [None, 1.5]}, '{"a":[null,1.5],"b":1}'),
        ({"\U00010000": 1, "\ue000": 2}, '{"\U00010000":1,"\ue000":2}'),
        ("\x00\x1f\x7f\u2028/<é", '"\\u0000\\u001f\x7f\u2028/<é"'),
        (SAFE_INTEGER_MAX, "9007199254740991"),
        (2**53, "9007199254740992"),
        (10**20, "100000000000000000000"),
    ],
)
def test_known_spellings(value: Any, text: str) -> None:
    assert canonical.encode(value) == text.encode()


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {1, 2},
        frozenset(),
        b"bytes",
        bytearray(b"bytes"),
        decimal.Decimal(1),
        datetime.date(2026, 1, 1),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        datetime.time(1),
        uuid.UUID(int=1),
        Path("file"),
        Colour.RED,
        Subtext("text"),
        Number.ONE,
        type("Subdict", (dict,), {})(),
        type("Sublist", (list,), {})(),
        object(),
        1j,
        math.nan,
        math.inf,
        -math.inf,
        "\ud800",
        "\udc00\ud800",
        2**53 + 1,
        -(2**53) - 1,
        10**21,
        10**400,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_json_is_refused_wherever_it_stands(value: Any) -> None:
    for holder in (value, [value], {"key": value}, {"a": 1, "é": [1.5, value]}, [[], {"deep": {"er": value}}]):
        with pytest.raises(CanonicalError):
            canonical.encode(holder)


@pytest.mark.parametrize("key", [1, None, True, 1.5, b"a", ("a",), Subtext("a"), Colour.RED, "\ud800"], ids=repr)
def test_keys_that_are_not_text_are_refused(key: Any) -> None:
    for holder in ({key: 1}, {key: 1.0, "é": 2}, [{"a": {key: None}}]):
        with pytest.raises(CanonicalError):
            canonical.encode(holder)


def test_the_error_names_the_place_and_not_the_content() -> None:
    with pytest.raises(CanonicalError, match="set is not a JSON type at 'args/1/x'") as caught:
        canonical.encode({"args": [1, {"x": {"secret"}}]})
    assert caught.value.path == ("args", 1, "x")
    assert "secret" not in str(caught.value)


def test_depth_is_bounded_both_ways() -> None:
    for levels in (DEPTH_MAX, DEPTH_MAX - 1):
        value = nested(levels)
        assert canonical.decode(canonical.encode(value)) == value
    for levels in (DEPTH_MAX + 1, 10_000):
        with pytest.raises(CanonicalError, match="levels"):
            canonical.encode(nested(levels))
    for levels in (DEPTH_MAX + 1, 100_000):
        text = "[" * levels + "]" * levels
        with pytest.raises(CanonicalError):
            canonical.decode(text)
        assert not is_canonical(text.encode())


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CanonicalError):
        canonical.encode(loop)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '[{"a":{"b":1,"b":2}}]',
        '{"a":1,"\\u0061":1}',
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e400",
        "[-1e400]",
        '"\\ud800"',
        '{"\\udfff":1}',
        '["\\udc00\\ud800"]',
        "9007199254740993",
        "-9007199254740993",
        "1000000000000000000000",
        "1" * 5000,
        "01",
        "1.",
        "+1",
        "",
        "{",
        "[1,]",
        "{'a':1}",
        '"\n"',
        "1 2",
        "\ufeff1",
        "nul",
    ],
)
def test_foreign_text_that_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises(CanonicalError):
        canonical.decode(text)
    assert not is_canonical(text.encode())


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    for data in (b'"\xff"', b'"\xed\xa0\x80"', b'\xff\xfe"\x00a\x00"\x00'):
        with pytest.raises(CanonicalError):
            canonical.decode(data)
        assert not is_canonical(data)


@pytest.mark.parametrize("text", ["9007199254740992", "10000000000000000", "-100000000000000000000"])
def test_an_integer_that_prints_as_its_double_becomes_that_double(text: str) -> None:
    for value in (canonical.decode(text), canonical.decode_canonical(text.encode())):
        assert type(value) is float
        assert canonical.encode(value) == text.encode()


def test_a_boolean_is_never_an_integer() -> None:
    assert canonical.encode([True, 1, False, 0]) == b"[true,1,false,0]"
    decoded = canonical.decode_canonical(b"[true,1]")
    assert isinstance(decoded, list)
    assert [type(item) for item in decoded] == [bool, int]


def test_encoding_leaves_the_value_alone() -> None:
    value = {"b": [1.0, {"é": -0.0}], "a": 2**53}
    before = json.dumps(value)
    canonical.encode(value)
    assert json.dumps(value) == before


def test_a_digest_covers_its_domain_string_with_its_length() -> None:
    prefix = (18).to_bytes(8, "big") + b"safepoint.event.v1"
    assert canonical.digest("safepoint.event.v1", b"{}") == hashlib.sha256(prefix + b"{}").hexdigest()
    assert canonical.digest("ab", b"c") != canonical.digest("a", b"bc")


@given(TEXTS, st.dictionaries(TEXTS, VALUES, max_size=4))
def test_the_arguments_hash_is_over_name_and_arguments(name: str, args: Any) -> None:
    expected = hashlib.sha256(rfc8785.dumps({"args": args, "toolName": name})).hexdigest()
    assert canonical.args_hash(name, args) == expected


def test_arguments_that_mean_the_same_hash_the_same() -> None:
    hashes = {canonical.args_hash("t", canonical.decode(text)) for text in ('{"a":1,"b":1e16}', '{"b":1E+16,"a":1.0}')}
    assert len(hashes) == 1
