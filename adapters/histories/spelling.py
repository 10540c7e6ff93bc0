"""How items are spelled where an API has no place of its own for what they say: the same in every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ...domain import canonical
from ...domain.events.event import Json
from ...domain.events.model import Attachment
from ...domain.replay.history import Replay
from ...domain.replay.items import CallItem, Item, ResultItem

AnyHistory: TypeAlias = Replay | Iterable[Item]
NOT_STRICT_JSON = "not_strict_json"
"""The one member of arguments that stand for a text that is no strict JSON."""
NOT_AN_OBJECT = "not_an_object"
"""The one member of arguments that stand for JSON that is no object, where an API takes objects alone."""


def items_in(history: AnyHistory) -> Sequence[Item]:
    """The items of a replay, or the items themselves.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(history, Replay):
        return history.items
    given: object = history
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"a history is a replay, or its items, not a {type(given).__name__}")
    items = tuple(history)
    if items and not hasattr(items[0], "kind"):
        raise TypeError(f"a history has items, not a {type(items[0]).__name__}: read messages by `replay_from`")
    return items


def arguments_value(item: CallItem) -> Json:
    """The arguments as JSON in any case: servers parse them, and one bad call must not block a session."""
    return item.args if item.args_text is None else {NOT_STRICT_JSON: item.args_text}


def arguments_text(item: CallItem) -> str:
    """The arguments, spelled as canonical JSON."""
    return canonical.encode(arguments_value(item)).decode()


def result_text(result: Json) -> str:
    """A result as text: itself, or its canonical JSON."""
    return result if isinstance(result, str) else canonical.encode(result).decode()


def flagged_result_text(item: ResultItem) -> str:
    """A result for an API without an error flag: an error says so in its text."""
    text = result_text(item.result)
    return f"Error: {text}" if item.is_error else text


def attachment_note(attachment: Attachment) -> str:
    """What stands for an attachment that the API cannot be given."""
    uri = attachment.uri or ""
    return f"[attached: {attachment.name} ({attachment.media_type}) {uri}".rstrip() + "]"
