"""Stored text on a terminal: nothing in it may move the cursor, hide a letter or reach the terminal's commands."""

from __future__ import annotations

from typing import TextIO

from ..permission.display import visible


def one_line(text: object, chars_max: int = 200) -> str:
    """A text on one line, every character that is not printable as its escape, cut where it is longer.

    Args:
        chars_max: at least 2; counted after escaping.
    """
    shown = visible(str(text))
    return shown if len(shown) <= chars_max else f"{shown[: chars_max - 1]}…"


def lines(text: str) -> str:
    """A text with its line ends, everything else that is not printable as its escape."""
    return "\n".join(visible(line) for line in text.expandtabs().split("\n"))


def for_stream(text: str, stream: TextIO) -> str:
    """A text as it is where the stream is a file or a pipe, made harmless where it is a terminal."""
    return lines(text) if stream.isatty() else text
