"""The next step that the table names, as somebody can take it: with the session and store put in. SPEC section 22."""

from __future__ import annotations

import re
import shlex
from typing import Final

_COMMAND: Final = re.compile("`(safepoint [^`]*)`")


def with_names(text: str, session_id: str | None, store: str | None) -> str:
    """Put the session, and the store, into the commands that a sentence of the table names.

    >>> with_names("Look at `safepoint show --session SESSION`.", "bill", "/data/my agents.db")
    "Look at `safepoint show --session bill --store '/data/my agents.db'`."

    Args:
        session_id: None leaves the word `SESSION`.
        store: the database file; None where it is the usual one, which needs no option.
    """
    session = "SESSION" if session_id is None else shlex.quote(session_id)
    option = "" if store is None else f" --store {shlex.quote(store)}"
    return _COMMAND.sub(lambda found: f"`{found[1]}{option}`", text.replace("SESSION", session))
