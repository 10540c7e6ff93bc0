"""Where a command speaks: its result, or one JSON object, on standard output; everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from . import escaping

WIDTH_WITHOUT_TERMINAL: Final = 200


class Output:
    """Speaks for one command.

    Args:
        as_json: standard output gets one JSON object and nothing else.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a text that the terminal's encoding lacks is shown escaped
                stream.reconfigure(errors="backslashreplace")

    def document(self, schema: str, members: Mapping[str, Any]) -> None:
        """Print the command's one JSON object, in JSON mode only."""
        if self.as_json:
            sys.stdout.write(json.dumps({"schema": schema, **members}) + "\n")
            sys.stdout.flush()

    def say(self, text: str = "") -> None:
        """Print a line of the result for people; silent in JSON mode. The caller has escaped what was stored."""
        if not self.as_json:
            sys.stdout.write(text + "\n")

    def text(self, stored: str) -> None:
        """Print a stored text as the result; silent in JSON mode."""
        self.say(escaping.for_stream(stored, sys.stdout))

    def tell(self, text: str) -> None:
        """Print a line beside the result: progress, hints, errors."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table of one-line cells; silent in JSON mode."""
        if self.as_json:
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for place, column in enumerate(columns):
            table.add_column(column, overflow="fold", no_wrap=place == 0)
        for row in rows:
            table.add_row(*(Text(escaping.one_line("" if cell is None else cell)) for cell in row))
        with console.capture() as captured:
            console.print(table)
        for line in captured.get().splitlines():
            self.say(line.rstrip())
