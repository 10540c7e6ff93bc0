"""How far a long command is, said now and then on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from .output import Output

TOLD_EVERY_SECONDS = 1.0


def telling(out: Output, sentence: Callable[[int, int], str]) -> Callable[[int, int], None]:
    """What a use case is given to tell two counts to; silent where nobody watches."""
    next_at = time.monotonic() + TOLD_EVERY_SECONDS
    terminal = sys.stderr.isatty()

    def progress(first: int, second: int) -> None:
        nonlocal next_at
        if terminal and time.monotonic() >= next_at:
            next_at = time.monotonic() + TOLD_EVERY_SECONDS
            out.tell(sentence(first, second))

    return progress


def telling_parts(out: Output, sentence: Callable[[str], str]) -> Callable[[str], None]:
    """What a use case is given to tell the part that it begins; silent for work that takes no time."""
    begun = time.monotonic()
    terminal = sys.stderr.isatty()

    def part_begins(part: str) -> None:
        if terminal and time.monotonic() >= begun + TOLD_EVERY_SECONDS:
            out.tell(sentence(part))

    return part_begins
