"""Where the store is: the user's state folder, the environment or an option; and looking there without opening it."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .usage import UsageError

STORE_VARIABLE: Final = "SAFEPOINT_STORE"
STORE_NAME: Final = "store.sqlite"
_NOTHING_THERE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}


def default_store(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's own store: `$XDG_STATE_HOME/safepoint/store.sqlite`, by default under `~/.local/state`."""
    state = environment.get("XDG_STATE_HOME", "")
    folder = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return folder / "safepoint" / STORE_NAME


def absolute(path: Path) -> Path:
    """The path from the root on.

    Raises:
        UsageError: it is relative, and the folder in which this program was started is gone.
    """
    try:
        return path.absolute()
    except OSError:
        hint = "Go to a folder that is there, or give whole paths."
        raise UsageError("The present folder is not there any more.", hint, code="workspace_missing") from None


def store_path(given: Path | None) -> Path:
    """The store to use, absolute."""
    return default_store() if given is None else absolute(given)


def is_usual(store: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """True when a command without `--store`, in the same environment, uses this store."""
    named = environment.get(STORE_VARIABLE)
    return store == (absolute(Path(named)) if named else default_store(environment))


def is_there(store: Path) -> bool:
    """True when anything of a store is there: the database, or the anchor that says that there was one.

    What cannot be looked at counts as being there: opening it then says why (F1).
    """
    return may_be_there(store) or may_be_there(f"{os.path.realpath(store)}.anchor")


def may_be_there(path: str | os.PathLike[str]) -> bool:
    """False only where it is proven that nothing has that name; who may not look has seen nothing (F1)."""
    try:
        os.lstat(path)
    except ValueError:
        return False
    except OSError as error:
        return error.errno not in _NOTHING_THERE
    return True


def is_folder(path: Path) -> bool:
    """True when a folder is seen to be there."""
    try:
        return path.is_dir()
    except OSError:
        return False


def prepare_folder(store: Path) -> None:
    """Make the state folder, for its user alone, where the store is the default one; no other folder is made."""
    if store != default_store():
        return
    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"The folder {store.parent} cannot be made: {error.strerror}."
        raise UsageError(message, "Name a store with --store.", code="store_unusable") from error
