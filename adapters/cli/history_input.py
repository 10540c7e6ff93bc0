"""Files that a command is given to read, and the formats that they may have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .usage import UsageError

STANDARD_INPUT = "-"


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    """Open a file, or standard input, for reading bytes.

    Raises:
        UsageError: it cannot be read.
    """
    if file == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("No file is named, and nothing comes on standard input.", "Name a file.")
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as stream:
            yield stream
    except OSError as error:
        raise unreadable(file, error) from error


def bytes_of(file: str) -> bytes:
    """The whole of a file. Raises as `opened`."""
    with opened(file) as stream:
        return stream.read()


def unreadable(file: str, error: OSError) -> UsageError:
    """What to say of a file that cannot be read."""
    return UsageError(f"{file} cannot be read: {error.strerror or error}.", "Check the path.", code="file_unreadable")


def unknown_format(detail: str) -> UsageError:
    """What to say where a file's format is not known."""
    hint = "Name one with --format: safepoint, maka, openai-chat, openai-responses, anthropic, claude-code, codex."
    return UsageError(f"{detail[:1].upper()}{detail[1:]}.", hint, code="format_unknown")
