"""Stored bytes, and the plain way to validate them: one pydantic model a topic, in one call."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, create_model

from safepoint.domain.events.catalogue import EVENTS
from safepoint.domain.events.event import Event
from safepoint.ports.event_store import EventReader

from .baselines import decode_validate_hash
from .measuring import Taken

_PAGE = 1000
_AT_ONCE = 20_000


def validator() -> Callable[[bytes], object]:
    """Validates the bytes of any stored event, its seal included."""
    stored = [_stored(topic, event) for topic, event in EVENTS.items()]
    # Built from data, so the checker cannot see the union.
    one_of: Any = stored[0]
    for model in stored[1:]:
        one_of = one_of | model
    adapter: TypeAdapter[object] = TypeAdapter(Annotated[one_of, Field(discriminator="type")])
    return adapter.validate_json


def _stored(topic: str, event: type[Event]) -> type[Event]:
    fields: dict[str, Any] = {"type": Literal[topic], "sequence": int, "previous_digest": str}
    return create_model(f"Stored{event.__name__}", __base__=event, **fields)


def states_of(reader: EventReader, stream: str) -> Iterator[bytes]:
    """The bytes of a stream's events, in order."""
    after = 0
    while rows := reader.read(stream, after=after, limit=_PAGE):
        yield from (row.state for row in rows)
        after = rows[-1].version


def baseline_of(states: Iterable[bytes], validate: Callable[[bytes], object]) -> Taken:
    """The baseline over more bytes than should be held in memory at once: the sum of its parts."""
    rest, wall, cpu = iter(states), 0.0, 0.0
    while some := list(islice(rest, _AT_ONCE)):
        before = time.process_time()
        wall += decode_validate_hash(some, validate)
        cpu += time.process_time() - before
    return Taken(wall, cpu)


def newest_row(path: Path) -> int:
    """How many events a store holds."""
    with closing(sqlite3.connect(path)) as connection:
        (newest,) = connection.execute("SELECT COALESCE(MAX(rowid), 0) FROM stored_events").fetchone()
    return int(newest)


def states_since(path: Path, row: int) -> Iterator[bytes]:
    """The bytes of all events after a row, in their order."""
    with closing(sqlite3.connect(path)) as connection:
        for (state,) in connection.execute("SELECT state FROM stored_events WHERE rowid > ? ORDER BY rowid", (row,)):
            yield state
