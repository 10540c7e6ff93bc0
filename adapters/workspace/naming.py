"""What checkpoints are called, so that a store knows its own among others."""

from __future__ import annotations

from collections.abc import Callable

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
