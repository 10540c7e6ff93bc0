"""Names of called tools as an API takes them. Field report r3-024."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_REFUSED: Final = re.compile("[^a-zA-Z0-9_-]")


class SentToolNames:
    """Names as they are sent: what a model called may be a name that its own API refuses, and would refuse for ever.

    What is stored is never changed.

    Args:
        chars_max: the API refuses longer names.
        offered: names that the endpoint is offered as they are; whoever takes them there takes them here.
    """

    def __init__(self, chars_max: int, offered: Collection[str]) -> None:
        self._chars_max = chars_max
        self._offered = frozenset(offered)

    def of(self, name: str) -> str:
        """The name, with every character that is refused replaced."""
        return name if name in self._offered else _REFUSED.sub("_", name)[: self._chars_max]
