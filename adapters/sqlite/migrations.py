"""The steps from each published version of the database to the next. SPEC section 7.

A new version is one more `Migration` here, `schema.SCHEMA_VERSION` raised with it, and a store of the version before
kept in `tests/adapters/sqlite/golden`. The store's id, generation and place (`store_control`), its positions
(`commits`) and its events keep their names for good: whether a store may be trusted is judged before it is migrated.
"""

from __future__ import annotations

from typing import NamedTuple

from .control_rows import COLUMNS
from .event_rules import known_rules


class Migration(NamedTuple):
    """One step.

    Attributes:
        version: what it makes; it starts from the version before.
        statements: SQL, in order, which may call `control_checksum(table, value, …)`. They leave what
            `schema.statements` of that version make, and no event can be touched by them. Views need no statement:
            they are made again when their shape is another.
    """

    version: int
    statements: tuple[str, ...]


OLDEST_VERSION = 1
_CHECKSUMS = tuple(
    statement
    for table, columns in COLUMNS.items()
    for statement in (
        f"ALTER TABLE {table} ADD COLUMN checksum TEXT",
        f"UPDATE {table} SET checksum = control_checksum('{table}', {', '.join(columns)})",
    )
)
_RULES = (
    *(f"DROP TRIGGER stored_events_{name}" for name in ("event_id", "operation_id", "claim_id", "run_id", "seal")),
    *known_rules(),
)
MIGRATIONS: tuple[Migration, ...] = (Migration(2, _CHECKSUMS), Migration(3, _RULES))
"""In order and without a gap; the last one makes `schema.SCHEMA_VERSION`."""


def steps_from(version: int) -> tuple[Migration, ...]:
    """What brings a store of a published version forward; nothing for the present one."""
    return tuple(migration for migration in MIGRATIONS if migration.version > version)
