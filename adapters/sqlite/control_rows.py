"""A checksum in every control row: no chain covers them, and whether a writer lives is judged by what they say.

Control rows are the store's own row, adoptions, process lives and owners. `verify` names a row whose checksum is not
its own; the facts of a process that cannot be right are read as none, so that nobody is taken for dead by them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from ...domain import canonical

CHECKSUM_DOMAIN = "safepoint.control.v1"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "store_control": ("store_id", "generation", "device", "inode", "boot_id"),
    "adoptions": ("generation", "adopted_by", "note", "adopted_at", "found"),
    "incarnations": ("incarnation_id", "pid", "process_start_time", "host", "boot_id", "pid_namespace"),
    "session_owners": ("session_id", "incarnation_id", "epoch"),
}
"""What a row says, by table; the checksum is over these in this order."""
_HEX_DIGITS = 16


def checksum(table: str, *values: object) -> str:
    """The checksum of a row; of values that only damage makes, one that no row has."""
    try:
        said = canonical.encode([table, *values])
    except (TypeError, ValueError):
        return ""
    return canonical.digest(CHECKSUM_DOMAIN, said)[:_HEX_DIGITS]


def is_whole(table: str, row: Sequence[object]) -> bool:
    """Tell whether a row, read with its checksum behind its columns, is what was written."""
    *values, found = row
    return found == checksum(table, *values)


def faults_of_control_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Rows that are not what was written, each as a sentence."""
    for table, columns in COLUMNS.items():
        for row in connection.execute(f"SELECT {', '.join(columns)}, checksum FROM {table}"):
            if not is_whole(table, row):
                yield f"the row {row[0]} of {table} is not what was written"


def add_function(connection: sqlite3.Connection) -> None:
    """Let SQL work the checksum out: for the step that gives older rows theirs."""
    connection.create_function("control_checksum", -1, checksum, deterministic=True)
