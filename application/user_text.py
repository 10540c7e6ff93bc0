"""What a user says, before it is recorded."""

from __future__ import annotations


def check_said(text: object) -> None:
    """Make sure that there is something to record of the user: no provider takes a message without any text.

    Raises:
        TypeError, ValueError: there is not; nothing is recorded.
    """
    if not isinstance(text, str):
        raise TypeError(f"what the user says is text, not a {type(text).__name__}")
    if not text.strip():
        raise ValueError("what the user says is empty: no provider takes a message without text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"what the user says is no text that can be kept or sent: {error.reason}") from error
