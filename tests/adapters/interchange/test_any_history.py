"""Whatever a file holds, it is read, judged and told of; nothing raises, and twice is the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from safepoint.adapters.cli.judgement_documents import of_judgement
from safepoint.application.judge_history import judge

from .exported import exported
from .reading import READ, SAMPLES

FORMATS = st.sampled_from(sorted(READ.formats))
MEMBERS = """type role content id name input tool_calls message payload uuid parentUuid call_id arguments output
tool_use_id tool_call_id function text event stream messages history interactions request response choices sessionId
runId actions"""
VALUES = """user assistant tool system text tool_use tool_result function_call message thinking function_call_output
response_item event_msg turn_aborted reasoning c1"""
KEYS = st.sampled_from(MEMBERS.split())
WORDS = st.sampled_from([*VALUES.split(), "\ud800", "\0", ""])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
FILES = [*(path.read_bytes() for path in sorted(SAMPLES.iterdir())), exported()]


def everything_said(data: bytes, format_name: str) -> Any:
    return of_judgement(judge(READ(data, format_name)), full=True)


@given(st.lists(ANYTHING, max_size=5), FORMATS, st.booleans())
@settings(deadline=None)
def test_any_json_is_judged(values: list[Any], format_name: str, document: bool) -> None:
    data = json.dumps(values).encode() if document else b"\n".join(json.dumps(value).encode() for value in values)
    assert everything_said(data, format_name) == everything_said(data, format_name)


@given(st.binary(max_size=200), FORMATS)
@settings(deadline=None)
def test_any_bytes_are_judged(data: bytes, format_name: str) -> None:
    said = everything_said(data, format_name)
    assert said["decision"] == "park", "there is nothing to continue in noise"


@given(st.sampled_from(FILES), st.integers(min_value=0), st.binary(max_size=3), st.integers(0, 4), st.none() | FORMATS)
@settings(deadline=None)
def test_a_file_that_was_touched_anywhere_is_judged(
    data: bytes, place: int, put: bytes, cut: int, format_name: str | None
) -> None:
    at = place % (len(data) + 1)
    touched = data[:at] + put + data[at + cut :]
    for name in (
        [format_name] if format_name else [name for name in READ.formats if READ.formats[name].recognises(data)]
    ):
        json.dumps(everything_said(touched, name))
