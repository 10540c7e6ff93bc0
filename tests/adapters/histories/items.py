"""Items of a history in a line each, and any legal history at all."""

from __future__ import annotations

from hypothesis import strategies as st

from safepoint.adapters.models.legality import why_illegal
from safepoint.domain.events.event import Json
from safepoint.domain.events.model import Attachment
from safepoint.domain.identifiers import EventId, StepId, ToolCallId
from safepoint.domain.replay.items import CallItem, HostItem, Item, ResultItem, TextItem, ThinkingItem, UserItem


def user(text: str = "Hi", *attachments: Attachment) -> UserItem:
    return UserItem(EventId("u"), text, attachments)


def host(text: str = "Note") -> HostItem:
    return HostItem(EventId("h"), text, "host_note")


def said(step: str, text: str, options: Json = None) -> TextItem:
    return TextItem(EventId("t"), StepId(step), text, options)


def thought(step: str, text: str, signature: str | None = None, options: Json = None) -> ThinkingItem:
    return ThinkingItem(EventId("th"), StepId(step), text, signature, options)


def call(
    step: str,
    call_id: str,
    args: Json = None,
    args_text: str | None = None,
    name: str = "read_file",
    options: Json = None,
) -> CallItem:
    args = {} if args is None and args_text is None else args
    return CallItem(EventId("c"), StepId(step), ToolCallId(call_id), name, args, args_text, None, options)


def result(step: str, call_id: str, value: Json = "ok", *, is_error: bool = False) -> ResultItem:
    return ResultItem(EventId("r"), StepId(step), ToolCallId(call_id), "read_file", value, is_error)


_TEXT = st.text(max_size=12)
_WORDS = _TEXT.filter(str.strip)
_JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_ARGS: st.SearchStrategy[Json] = st.dictionaries(_TEXT, _JSON, max_size=3)


@st.composite
def _thoughts(draw: st.DrawFn, step: str, place: int) -> ThinkingItem:
    text, blob = draw(_TEXT), draw(_WORDS)
    kind = draw(st.sampled_from(["plain", "signed", "redacted", "reasoning"]))
    if kind == "redacted":
        return thought(step, "", options={"type": "redacted_thinking", "data": blob})
    if kind == "reasoning":
        summary: Json = [{"type": "summary_text", "text": text}]
        return thought(
            step,
            text,
            options={"type": "reasoning", "id": f"rs_{step}_{place}", "summary": summary, "encrypted_content": blob},
        )
    return thought(step, text, blob if kind == "signed" else None)


@st.composite
def _steps(draw: st.DrawFn, number: int, *, with_calls: bool) -> list[Item]:
    step = f"s{number}"
    parts: list[Item] = []
    results: list[Item] = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            parts.append(draw(_thoughts(step, len(parts))))
        parts.append(said(step, draw(_WORDS)))
    for place in range(draw(st.integers(1, 3)) if with_calls else 0):
        call_id = draw(st.sampled_from([f"call_{number}_{place}", f"c{number}.{place}", f"{number}{place}" * 30]))
        strict = draw(st.booleans())
        if draw(st.booleans()):
            parts.append(draw(_thoughts(step, len(parts))))
        parts.append(call(step, call_id, draw(_ARGS)) if strict else call(step, call_id, args_text=draw(_TEXT)))
        results.append(result(step, call_id, draw(_JSON), is_error=draw(st.booleans())))
    return [*parts, *results]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Item, ...]:
    """Any legal history that ends where a provider is to go on."""
    history: list[Item] = [user(draw(_WORDS))]
    for number in range(draw(st.integers(0, 4))):
        history += draw(_steps(number, with_calls=draw(st.booleans())))
        if history[-1].kind != "result" or draw(st.booleans()):
            history += [user(draw(_WORDS)), *([host(draw(_WORDS))] if draw(st.booleans()) else [])]
    assert why_illegal(history) is None
    return tuple(history)
