"""A run as it happens, on standard error. None of it is durable (R13)."""

from __future__ import annotations

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
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def end(self) -> None:
        """End a line that streamed text has begun."""
        with self._turn:
            self._end_line()
            sys.stderr.flush()

    def _partial(self, delta: TextDelta | ThinkingDelta) -> None:
        if isinstance(delta, ThinkingDelta):
            return
        with self._turn:
            self.streamed += delta.text
            sys.stderr.write(escaping.lines(delta.text))
            sys.stderr.flush()
            self._in_line = not delta.text.endswith("\n")

    def _note(self, tool: str, what: str) -> None:
        self.streamed = ""
        self.line(f"  {escaping.one_line(tool)}: {what}")

    def _progress(self, tool: str, said: str) -> None:
        self.line(f"  {escaping.one_line(tool)}: {escaping.one_line(said)}")

    def _end_line(self) -> None:
        if self._in_line:
            sys.stderr.write("\n")
            self._in_line = False
