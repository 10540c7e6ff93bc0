"""Redaction takes secrets out and leaves everything else as it is, once and for all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain.redaction import MARK, redact, redact_text

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("API_KEY=sk-test-abcdefghijklmnopqrst", f"API_KEY={MARK}"),
        ("found sk-test-abcdefghijklmnopqrst here", f"found {MARK} here"),
        ("AKIAIOSFODNN7EXAMPLE", MARK),
        (f"before\n{PEM}\nafter", f"before\n{MARK}\nafter"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKC", MARK),
        ("DB_PASSWORD=a,b;c rest", f"DB_PASSWORD={MARK} rest"),
        ('password = "a b c" # why', f'password = "{MARK}" # why'),
        (r"{\"api_key\": \"abc12345\"}", rf"{{\"api_key\": \"{MARK}\"}}"),
        ("password: hunter2!", f"password: {MARK}"),
        ("Authorization: Bearer abcdefghijk", f"Authorization: Bearer {MARK}"),
        ("postgres://user:pw@host/db", f"postgres://user:{MARK}@host/db"),
        (f"session {JWT}", f"session {MARK}"),
        ("GITHUB_TOKEN: ghp_" + "a" * 36, f"GITHUB_TOKEN: {MARK}"),
    ],
)
def test_what_looks_like_a_credential_is_replaced(text: str, expected: str) -> None:
    """Field report r3-144: environment files, cloud keys, PEM blocks."""
    assert redact_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "export API_KEY=${API_KEY}",
        "API_KEY=",
        "API_KEY=$API_KEY",
        'API_KEY=""',
        "password: <your password>",
        "PASSWORD=%PASSWORD%",
        "token={{ token }}",
        "password=***",
        "os.environ['API_KEY']",
        "max_tokens=4096",
        "author: Jane Smith",
        "PATH=/usr/bin:/bin",
        "https://user:${PASS}@host",
        "std::token::next()",
        "no secret at all",
    ],
)
def test_names_without_a_value_and_placeholders_stay(text: str) -> None:
    """Field report r3-148."""
    assert redact_text(text) == text


SNIPPETS = ["API_KEY=", "sk-", "abcdefghijklmnopqrst", "Bearer ", '"', "'", "\\", "://a:", "@", "-----BEGIN A-----"]
PIECES = st.sampled_from([*SNIPPETS, PEM, MARK, "token: ", "$", "{", "[", " ", "\n", "="]) | st.text(max_size=5)
TEXTS = st.lists(PIECES).map("".join)


@given(TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    """Field report r3-148."""
    once = redact_text(text)
    assert redact_text(once) == once


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["password", "x", "api_key"]), inner),
    max_leaves=8,
)


@given(JSON)
def test_redacting_a_value_twice_changes_nothing(value: Any) -> None:
    once = redact(value)
    assert redact(once) == once


def test_a_member_whose_key_names_a_secret_is_replaced_whole() -> None:
    value: Any = {"api_key": "12", "x": {"password": "", "secret": 7, "apiKey": "${KEY}"}, "list": ["token=abcdef"]}
    expected = {"api_key": MARK, "x": {"password": "", "secret": 7, "apiKey": "${KEY}"}, "list": [f"token={MARK}"]}
    assert redact(value) == expected


def test_members_that_are_kept_are_left_alone() -> None:
    value: Any = {"event_id": "API_KEY=abcdef", "text": "API_KEY=abcdef"}
    redacted = redact(value, keep=lambda key: key == "event_id")
    assert redacted == {"event_id": "API_KEY=abcdef", "text": f"API_KEY={MARK}"}
