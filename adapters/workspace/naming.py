"""What checkpoints and the folders that are made of them are called, so that a store knows its own among others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ...domain import canonical
from ...ports.ids import Ids
from ...ports.store_keeping import StoreKeeping

_DIGITS = 32


def store_tag(store: StoreKeeping) -> str:
    """What the names of a store's checkpoints begin with.

    A copy that was adopted has a tag of its own: it knows nothing of what the original accepted since.
    """
    condition = store.condition()
    return canonical.sha256_hex(f"{condition.store_id}\0{condition.generation}".encode())[:16]


def checkpoint_keys(store: StoreKeeping, ids: Ids) -> Callable[[], str]:
    """Make names for new checkpoints; the store is looked at when the first one is asked for."""
    tags: list[str] = []

    def new_key() -> str:
        if not tags:
            tags.append(store_tag(store))
        return f"{tags[0]}-{canonical.sha256_hex(ids.fresh(str).encode())[:_DIGITS]}"

    return new_key


def isolated_folders(place: Path, new_key: Callable[[], str]) -> Callable[[], str]:
    """Make paths for new folders.

    Args:
        place: the folder that holds them, made for its user alone when it is first needed.
        new_key: names a folder as it names a checkpoint.
    """

    def new_folder() -> str:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(Path(os.path.realpath(place)) / new_key())

    return new_folder
