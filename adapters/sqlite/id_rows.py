"""Whether the rows that rules make beside events (used ids, admissions, seals) are what the events make. SPEC
section 7.

Nothing else would notice a changed byte in them: SQLite sees that they are in order, and the chain does not hold them.
A missing one would let an id be used twice, or a sealed run be written.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator

from ...domain.events.session import RunAdmitted
from ...domain.forgetting import FORGOTTEN_TOPIC
from ...domain.unique_ids import FIELDS, IdKind
from .condition import control_of
from .event_rules import SEALING
from .stored_fields import field_of

_TOPICS = tuple(sorted({*FIELDS, *SEALING}))
_USED = " ".join(f"WHEN '{topic}' THEN {field_of(field)}" for topic, (_, field) in FIELDS.items())
_EVENTS = f"""SELECT rowid, originator_id, originator_version, topic, CASE topic {_USED} END, {field_of("session_id")}
    FROM stored_events WHERE topic IN ({", ".join("?" * len(_TOPICS))}) ORDER BY rowid"""
_ID = "SELECT 1 FROM unique_ids WHERE id = ? AND kind = ? AND event = ?"
_ADMISSION = "SELECT session_id, generation FROM admissions WHERE run_id = ?"
_LIVED = f"""SELECT 1 FROM stored_events e
    JOIN incarnations i ON i.incarnation_id = {field_of("incarnation_id", "e.state")}
    WHERE e.originator_id = ? AND e.originator_version = 1"""
_SEAL = "SELECT 1 FROM sealed_streams WHERE stream = ? AND sealed_by = ?"
_FORGOTTEN = f"""SELECT {field_of("was")}, COUNT(*) FROM stored_events WHERE topic = '{FORGOTTEN_TOPIC}' GROUP BY 1"""
_COUNTS = """SELECT (SELECT COUNT(*) FROM stored_events), (SELECT COUNT(*) FROM unique_ids),
    (SELECT COUNT(*) FROM admissions), (SELECT COUNT(*) FROM sealed_streams), (SELECT COUNT(*) FROM adoptions)"""


def faults_of_id_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """What is missing, changed or too much, each as a sentence. An event's own id is looked for where its stream is
    verified.
    """
    looking = connection.cursor()
    present = control_of(looking).generation
    seen = Counter[str]()
    generation = 0
    for row, stream, version, topic, used, session in connection.execute(_EVENTS, _TOPICS):
        seen[topic] += 1
        place = f"event {version} of {stream}"
        if topic in SEALING and looking.execute(_SEAL, (stream, topic)).fetchone() is None:
            yield f"the seal that {place} sets is not there"
        if used is None or topic not in FIELDS:
            continue
        kind = FIELDS[topic][0]
        if kind is not IdKind.RUN:
            if looking.execute(_ID, (used, kind.value, row)).fetchone() is None:
                yield f"the {kind} id of {place} is not among the used ids"
            continue
        admitted = looking.execute(_ADMISSION, (used,)).fetchone()
        if admitted is None or admitted[0] != session:
            yield f"the admission that {place} makes is not there"
        elif admitted[1] == 0 and looking.execute(_LIVED, (f"run:{used}",)).fetchone() is not None:
            yield f"the run that {place} admits is marked as imported, and a process of this store began it"
        elif not (admitted[1] == 0 or generation <= admitted[1] <= present):
            yield f"the admission that {place} makes is of generation {admitted[1]}, which cannot be"
        else:
            generation = admitted[1] or generation
    for was, count in connection.execute(_FORGOTTEN):
        seen[was] += count
    yield from _too_many(looking, seen, present)


def _too_many(cursor: sqlite3.Cursor, seen: Counter[str], generation: int) -> Iterator[str]:
    events, ids, admissions, seals, adoptions = cursor.execute(_COUNTS).fetchone()
    runs = seen[RunAdmitted.topic]
    expected = {
        "used ids": (ids, events + sum(seen[topic] for topic in FIELDS) - runs),
        "admissions": (admissions, runs),
        "seals": (seals, sum(seen[topic] for topic in SEALING)),
        "adoptions": (adoptions, generation - 1),
    }
    for name, (found, made) in expected.items():
        if found != made:
            yield f"there are {found} {name}, and {made} were made"
