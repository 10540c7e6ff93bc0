"""Which locks beside a store are held: by living owners, and by what their tools started. SPEC section 15."""

from __future__ import annotations

from pathlib import Path

from ...domain.errors import StoreUnavailable
from .file_lock import look


def held_locks(folder: Path) -> tuple[str, ...]:
    """Names of the lock files in `<store>.locks` that somebody holds.

    Raises:
        StoreUnavailable: it could not be looked at, which is no proof that nobody works there.
    """
    try:
        return tuple(sorted(path.name for path in folder.glob("*.lock") if _held(path)))
    except OSError as error:
        raise StoreUnavailable(f"cannot look who works on the store, in {folder}: {error}") from error


def _held(path: Path) -> bool:
    try:
        return look(str(path)).held
    except FileNotFoundError:
        return False
