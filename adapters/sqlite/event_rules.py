"""The rules of the table of events that hold against raw SQL, as triggers. SPEC section 7 and ADR 0072.

One program per row looks whether an event fits, and one keeps what is known of it: each program that runs costs more
than what it does, and so does a list of more than two texts in it, which SQLite would build anew for every event.
"""

from __future__ import annotations

from ...domain.events.catalogue import AFTER_TERMINAL
from ...domain.events.run import RunClaimed, RunEnded
from ...domain.unique_ids import FIELDS, IdKind

SEALED = "the stream is sealed: only facts that may follow a terminal event may be added, and none after a claim"
NOT_NEXT = "the version is not the next one of its stream"

SEALING = (RunEnded.topic, RunClaimed.topic)
_MARKED = tuple(dict.fromkeys((*FIELDS, *SEALING)))
"""Topics of which more is known than the event's own id."""


def _quoted(texts: frozenset[str] | list[str]) -> str:
    return ", ".join(f"'{text}'" for text in sorted(texts))


def _field(name: str) -> str:
    return f"json_extract(CAST(NEW.state AS TEXT), '$.{name}')"


def fitting_rule() -> str:
    """The rule that refuses an event that is not the next of a stream that is not sealed.

    NEW.rowid is -1 when SQLite is to choose it: a row chosen by the caller could replace another (INSERT OR REPLACE
    fires no DELETE trigger), or leave a gap.
    """
    return f"""CREATE TRIGGER stored_events_insert BEFORE INSERT ON stored_events BEGIN SELECT CASE
        WHEN NEW.rowid <> -1 THEN RAISE(ABORT, 'the row of an event cannot be chosen')
        WHEN typeof(NEW.originator_id) <> 'text' OR typeof(NEW.originator_version) <> 'integer'
            OR typeof(NEW.topic) <> 'text' OR typeof(NEW.state) <> 'blob' THEN RAISE(ABORT, 'this is not an event')
        WHEN NEW.originator_version <> 1 + COALESCE((SELECT MAX(originator_version) FROM stored_events
            WHERE originator_id = NEW.originator_id), 0) THEN RAISE(ABORT, '{NOT_NEXT}')
        WHEN EXISTS (SELECT 1 FROM sealed_streams WHERE stream = NEW.originator_id
            AND (sealed_by = '{RunClaimed.topic}' OR NEW.topic NOT IN ({_quoted(AFTER_TERMINAL)})))
            THEN RAISE(ABORT, '{SEALED}')
        END; END"""


def _use_up(kind: IdKind, field: str) -> str:
    if kind is IdKind.RUN:
        return f"INSERT INTO admissions SELECT {_field(field)}, {_field('session_id')}, generation FROM store_control"
    return f"INSERT INTO unique_ids VALUES ({_field(field)}, '{kind}', NEW.rowid)"


def _known_of(name: str, when: str, *more: str) -> str:
    """Keep what is known of an event: its id, and more. Ids are taken from its bytes, so that no writer can leave them
    out.

    Ids that were made at one time stand beside one another whatever they name, so a commit writes one page for all.
    """
    kept = "; ".join((_use_up(IdKind.EVENT, "event_id"), *more))
    return f"""CREATE TRIGGER stored_events_{name} AFTER INSERT ON stored_events WHEN {when} BEGIN
        {kept}; END"""


def known_rules() -> tuple[str, ...]:
    """Rules that keep what is known of an event, one for each of the topics of which more is known than of others."""
    rules = [_known_of("known", " AND ".join(f"NEW.topic <> '{topic}'" for topic in _MARKED))]
    for topic in _MARKED:
        more = [_use_up(*FIELDS[topic])] if topic in FIELDS else []
        if topic in SEALING:
            more.append("INSERT INTO sealed_streams VALUES (NEW.originator_id, NEW.topic)")
        rules.append(_known_of(f"known_{topic.split('.')[1]}", f"NEW.topic = '{topic}'", *more))
    return tuple(rules)
