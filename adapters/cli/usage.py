"""What was given cannot be used: said before anything is changed."""

from __future__ import annotations

from typing import Final

TEXT_CHARS_MAX: Final = 1_000


class UsageError(Exception):
    """What was given cannot be used.

    Attributes:
        message: what is wrong.
        next_step: what to do.
        code: stable, for programs.
    """

    def __init__(self, message: str, next_step: str = "", *, code: str = "usage") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.code = code


def required_text(option: str, given: str) -> str:
    """A text that a person gave for the record.

    Raises:
        UsageError: it is empty, too long, or no one line.
    """
    text = given.strip()
    if not text or len(text) > TEXT_CHARS_MAX or not text.isprintable():
        raise UsageError(f"{option} is a text of one line, of 1 to {TEXT_CHARS_MAX} characters.")
    return text
