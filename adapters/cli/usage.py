"""What was given cannot be used: said before anything is changed."""

from __future__ import annotations


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
