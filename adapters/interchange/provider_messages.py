"""Messages that somebody has in memory, read back into a provider-neutral history. SPEC section 19."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ...application.judge_history import FormatUnknown, JudgedReplay, judge
from .formats import history_formats

MESSAGE_FORMATS = ("openai-chat", "openai-responses", "anthropic")
"""Formats that histories are made in, too; see `adapters.histories`."""


def replay_from(messages: Sequence[Mapping[str, object]], format_name: str) -> JudgedReplay:
    """Read a conversation as an importer would, and project it as a continuation would.

    Args:
        messages: JSON objects, oldest first.
        format_name: one of `MESSAGE_FORMATS`.

    Returns:
        The history, for `to_openai_chat` and the others as it is. What stands after its last stable item is `trimmed`,
        such as a last answer, behind which nothing is to be asked.

    Raises:
        FormatUnknown: there is no such format.
        TypeError: the messages are no list of JSON objects.
    """
    if format_name not in MESSAGE_FORMATS:
        raise FormatUnknown(f"there is no format {format_name!r} of messages")
    given: object = messages
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"messages are a list of JSON objects, not a {type(given).__name__}")
    for message in given:
        if not isinstance(message, Mapping):
            raise TypeError(f"a message is a JSON object, not a {type(message).__name__}")
    data = json.dumps([dict(message) for message in messages]).encode()
    return judge(history_formats()[format_name].read(data)).replay
