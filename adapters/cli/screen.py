"""A run as it happens, on standard error. None of it is durable (R13)."""

from __future__ import annotations

import contextlib
import sys
import threading

from ...application.run_agent import Screen
from ...ports.model_step import TextDelta, ThinkingDelta
from . import escaping


class LiveScreen:
    """Writes streamed text, calls and the progress of tools; called from several threads.

    Attributes:
        streamed: the text of the newest model step as it was shown.
    """

    def __init__(self) -> None:
        self.streamed = ""
        self._in_line = False
        self._turn = threading.Lock()

    @property
    def screen(self) -> Screen:
        """What the application tells."""
        return Screen(partial=self._partial, note=self._note, progress=self._progress)

    def line(self, text: str) -> None:
        """Write a whole line, on a line of its own."""
        with self._turn:
            self._end_line()
            self._write(text + "\n")

    def end(self) -> None:
        """End a line that streamed text has begun."""
        with self._turn:
            self._end_line()

    def _partial(self, delta: TextDelta | ThinkingDelta) -> None:
        if isinstance(delta, ThinkingDelta):
            return
        with self._turn:
            self.streamed += delta.text
            self._write(escaping.lines(delta.text))
            self._in_line = not delta.text.endswith("\n")

    def _note(self, tool: str, what: str) -> None:
        self.streamed = ""
        self.line(f"  {escaping.one_line(tool)}: {what}")

    def _progress(self, tool: str, said: str) -> None:
        self.line(f"  {escaping.one_line(tool)}: {escaping.one_line(said)}")

    def _end_line(self) -> None:
        if self._in_line:
            self._write("\n")
            self._in_line = False

    @staticmethod
    def _write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # whoever watched has gone: the run goes on
            sys.stderr.write(text)
            sys.stderr.flush()
