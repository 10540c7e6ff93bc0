"""Command lines that a person can copy: exact, with the store, script and workspace that they need."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from . import places

_COMMAND: Final = re.compile("`(safepoint [^`]*)`")


@dataclass(frozen=True, slots=True)
class CommandLines:
    """Writes commands about one store.

    Attributes:
        script: repeated where a model is asked, because no record names it.
        workspace: repeated there where it was given, because the record names another.
        permissions: options of a policy that was given, where that is what is asked about.
    """

    store: Path
    script: Path | None = None
    workspace: Path | None = None
    permissions: tuple[str, ...] = ()

    def about(self, verb: str, *arguments: str) -> str:
        """A command that asks no model."""
        return self._line(verb, *arguments)

    def asking(self, verb: str, *arguments: str) -> str:
        """A command that asks the model."""
        script = () if self.script is None else ("--script", str(places.absolute(self.script)))
        given = self.workspace is not None and "--workspace" not in arguments
        workspace = ("--workspace", str(places.absolute(self.workspace))) if given and self.workspace else ()
        return self._line(verb, *arguments, *workspace, *script)

    def in_text(self, text: str, session_id: str | None) -> str:
        """Put the session, and where it is needed the store, into the commands that a sentence of the table names."""
        store = "" if places.is_usual(self.store) else f" --store {shlex.quote(str(self.store))}"
        session = "SESSION" if session_id is None else shlex.quote(session_id)
        filled = text.replace("SESSION", session)
        return _COMMAND.sub(lambda found: f"`{found[1]}{store}`", filled)

    def _line(self, verb: str, *arguments: str) -> str:
        store = () if places.is_usual(self.store) else ("--store", str(self.store))
        return shlex.join(("safepoint", verb, *arguments, *store))
