"""Whether a store can vouch that its facts are complete: what its control rows, its anchor and its place say together.

SPEC section 6. A store ahead of its anchor is normal: its writer was killed between COMMIT and anchor.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ...domain.errors import StoreBehindAnchor, StoreNotAdopted, StoreUnreadable
from ...ports.store_keeping import StoreCondition, Trust
from .anchor_record import AnchorReading, NoAnchor
from .place import FileIdentity, Place
from .position import newest, position_at

_CONTROL = "SELECT store_id, generation, device, inode, boot_id FROM store_control WHERE one = 1"


class Control(NamedTuple):
    """The control row of a store."""

    store_id: str
    generation: int
    recorded: FileIdentity


def control_of(cursor: sqlite3.Cursor | sqlite3.Connection) -> Control:
    """The store's control row, in the present transaction."""
    row = cursor.execute(_CONTROL).fetchone()
    if row is None:
        raise StoreUnreadable("the store has no control row")
    store_id, generation, *identity = row
    if not isinstance(generation, int) or not isinstance(store_id, str):
        raise StoreUnreadable("the store's control row is damaged")
    return Control(store_id, generation, FileIdentity(*identity))


def judge(
    connection: sqlite3.Connection, place: Place, here: FileIdentity | None, anchor: AnchorReading
) -> StoreCondition:
    """Compare, in the connection's present transaction, with an anchor that was read before it began.

    Args:
        connection: reads the store.
        place: its files.
        here: which file it is.
        anchor: what the anchor said.
    """
    control, events = control_of(connection), newest(connection)
    trust, detail = _by_anchor(connection, place, anchor, control.store_id, events)
    if here is None or not here.same_file_as(control.recorded):
        copied = f"{place.database} is not the file that was recorded: a copy, or restored"
        if trust is Trust.OK or isinstance(anchor, NoAnchor) or anchor.store_id != control.store_id:
            trust, detail = Trust.COPIED, copied
        else:  # so it is with a backup that was restored, too
            trust, detail = Trust.COPIED_BEHIND_ANCHOR, f"{copied}; and {detail}"
    anchored = None if isinstance(anchor, NoAnchor) else anchor.counter
    return StoreCondition(trust, detail, control.store_id, control.generation, events, anchored)


def _by_anchor(
    connection: sqlite3.Connection, place: Place, anchor: AnchorReading, store_id: str, events: int
) -> tuple[Trust, str]:
    """What the anchor alone says of the store, and the same as a sentence."""
    if isinstance(anchor, NoAnchor):
        trust = Trust.ANCHOR_MISSING if anchor is NoAnchor.MISSING else Trust.ANCHOR_MISMATCH
        return trust, f"the anchor {place.anchor} is {anchor}"
    if anchor.store_id != store_id:
        return Trust.ANCHOR_MISMATCH, f"the anchor {place.anchor} belongs to another store"
    if anchor.counter > events:
        lost = f"{anchor.counter} events were kept, and {events} are there"
        return Trust.BEHIND_ANCHOR, f"the end of {place.database} is lost: {lost}"
    if position_at(connection, anchor.counter).digest != anchor.digest:
        return Trust.ANCHOR_MISMATCH, f"{place.database} does not hold the events that its anchor was made for"
    return Trust.OK, "the store agrees with its anchor"


def require_writable(condition: StoreCondition) -> None:
    """Refuse to write a store that cannot vouch for its facts.

    Raises:
        StoreBehindAnchor: its anchor is missing, or says something else; a copy, too.
        StoreNotAdopted: it is a copy.
    """
    if condition.trust is Trust.OK:
        return
    sentence = f"{condition.detail}; nothing is written to it until a person adopts it"
    raise StoreNotAdopted(sentence) if condition.trust is Trust.COPIED else StoreBehindAnchor(sentence)
