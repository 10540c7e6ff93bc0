"""Ids of tool calls as an API takes them. SPEC section 4."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_DIGEST_CHARS: Final = 32


class SentCallIds:
    """Ids as they are sent: ours where the API takes it and it was not sent before, else one derived from it.

    Args:
        chars_max: the API refuses longer ids.
        pattern: what an id must be, whole.
    """

    def __init__(self, chars_max: int, pattern: str = "(?s:.+)") -> None:
        self._chars_max = chars_max
        self._pattern = re.compile(pattern)
        self._sent: set[str] = set()
        self._latest: dict[str, str] = {}

    def call(self, call_id: str) -> str:
        """The id of a call; the same calls in the same order always get the same ones."""
        sent, repeats = call_id, 0
        while sent in self._sent or len(sent) > self._chars_max or self._pattern.fullmatch(sent) is None:
            sent = "call_" + hashlib.sha256(f"{repeats}:{call_id}".encode()).hexdigest()[:_DIGEST_CHARS]
            repeats += 1
        self._sent.add(sent)
        self._latest[call_id] = sent
        return sent

    def result(self, call_id: str) -> str:
        """The id of the call that an answer belongs to."""
        return self._latest[call_id]
