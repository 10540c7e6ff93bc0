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

    Raises:
        FormatUnknown: there is no such format.
    """
    if format_name not in MESSAGE_FORMATS:
        raise FormatUnknown(f"there is no format {format_name!r} of messages")
    data = json.dumps([dict(message) for message in messages]).encode()
    return judge(history_formats()[format_name].read(data)).replay
