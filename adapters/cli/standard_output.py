"""Standard output of the process: where it cannot be written any more, the program ends, whichever part of it wrote.

A reader that has gone (`| head`) ends it quietly, as a program dies of SIGPIPE; a full disk or a closed descriptor is
said, for then the result was lost. A write's error must not look like that of a file that a command reads, so it is no
`OSError` from here on.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BROKEN_PIPE: Final = 141
"""128 and the number of SIGPIPE: what a shell shows for a program that died of it."""
_STANDARD_DESCRIPTORS: Final = (0, 1, 2)


class OutputLost(Exception):
    """What was said on standard output did not arrive.

    Attributes:
        reason: the system's sentence.
        reader_gone: nobody reads it any more, and nobody is to be told.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error}")
        self.reason = error.strerror or str(error)
        self.reader_gone = error.errno == errno.EPIPE

    @property
    def exit_code(self) -> int:
        """The status to leave with."""
        return BROKEN_PIPE if self.reader_gone else 1

    @property
    def sentence(self) -> str:
        """What a person is told; the command itself may have done its work."""
        return f"safepoint: Standard output cannot be written: {self.reason}. What the command did is done."


class _Descriptor(io.FileIO):
    """The descriptor of standard output; behind its first error whatever comes is passed over."""

    lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        if not self.lost:
            try:
                written = super().write(data)
                if written is not None:  # a descriptor that does not wait, and has no room
                    return written
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            except OSError as error:
                self.lost = True
                raise OutputLost(error) from error
        return memoryview(data).nbytes


def take_standard_output() -> None:
    """Write to standard output as this module says, from now on.

    A standard descriptor that is closed is opened first, on nothing: else the next file that is opened would get its
    number, and be written to. Standard output stays unwritable.
    """
    for descriptor in _STANDARD_DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:  # the lowest number that is free is this one
            os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 (for as long as the process lives)
    known = sys.stdout
    raw = _Descriptor(1, "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=None if known is None else known.encoding,
        errors="backslashreplace",
        line_buffering=raw.isatty(),
    )


def lost_in(error: BaseException) -> OutputLost | None:
    """The loss that an error is, also where tasks wrapped it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, OutputLost) else None
