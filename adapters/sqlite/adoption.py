"""Adopting a store that cannot vouch for its facts: the generation is raised, and what is in it stays foreign. SPEC
section 6.
"""

from __future__ import annotations

from typing import NamedTuple

from ...domain.errors import StoreUnavailable
from .anchor import Anchor
from .anchor_record import AnchorRecord
from .condition import control_of
from .connection import WriterDatastore
from .control_rows import checksum
from .errors import translated
from .place import Place
from .position import newest, position_at
from .reader import Readers

_RECORD = "INSERT INTO adoptions VALUES (?, ?, ?, ?, ?, ?)"
_MOVE = "UPDATE store_control SET generation = ?, device = ?, inode = ?, boot_id = ?, checksum = ?"


class Adoption(NamedTuple):
    """Who adopts a store, why, and when (as events carry it)."""

    by: str
    note: str
    at: str


def adopt(place: Place, readers: Readers, busy_timeout_seconds: float, adoption: Adoption) -> None:
    """Accept the store as it stands: record the adoption, then write the anchor anew.

    Killed in between, the store is as untrusted as before, with one generation more; adopting again mends it.

    Raises:
        StoreUnavailable: it could not be written.
        StoreDamaged: it is not a store, or damaged.
    """
    with readers.view() as view:
        condition = view.condition()
    here = place.identity()
    if here is None:
        raise StoreUnavailable(f"the database {place.database} is gone")
    datastore = WriterDatastore(place, busy_timeout_seconds)
    try:
        with translated(place.database, "adopt"), Anchor(place.anchor, busy_timeout_seconds).exclusively() as anchor:
            connection = datastore.connection()._sqlite_conn  # noqa: SLF001 - a transaction of our own
            connection.execute("BEGIN IMMEDIATE")
            control, position = control_of(connection), position_at(connection, newest(connection))
            generation = control.generation + 1
            record = (generation, *adoption, f"{condition.trust}: {condition.detail}")
            connection.execute(_RECORD, (*record, checksum("adoptions", *record)))
            moved = checksum("store_control", control.store_id, generation, *here)
            connection.execute(_MOVE, (generation, *here, moved))
            connection.execute("COMMIT")
            anchor.write(AnchorRecord(control.store_id, position.counter, position.digest))
    finally:
        datastore.close()
