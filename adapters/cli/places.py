"""Where the store is: the user's state folder, the environment or an option; and looking there without opening it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

STORE_VARIABLE: Final = "SAFEPOINT_STORE"
STORE_NAME: Final = "store.sqlite"


def default_store(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's own store: `$XDG_STATE_HOME/safepoint/store.sqlite`, by default under `~/.local/state`."""
    state = environment.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return folder / "safepoint" / STORE_NAME


def store_path(given: Path | None) -> Path:
    """The store to use, absolute."""
    return (default_store() if given is None else given).absolute()


def is_usual(store: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """True when a command without `--store`, in the same environment, uses this store."""
    named = environment.get(STORE_VARIABLE)
    return store == (Path(named).absolute() if named else default_store(environment))


def is_there(store: Path) -> bool:
    """True when anything of a store is there: the database, or the anchor that says that there was one.

    What cannot be looked at counts as being there: opening it then says why (F1).
    """
    try:
        return os.path.lexists(store) or os.path.lexists(f"{os.path.realpath(store)}.anchor")
    except OSError:
        return True


def prepare_folder(store: Path) -> None:
    """Make the state folder, for its user alone, where the store is the default one; no other folder is made."""
    if store == default_store():
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
