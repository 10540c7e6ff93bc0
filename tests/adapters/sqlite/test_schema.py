"""The published shape of the database. A change of it is a new schema version with a migration. SPEC section 7."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from safepoint.adapters.sqlite import projection_tables, schema
from safepoint.domain.events.catalogue import AFTER_TERMINAL
from safepoint.domain.projections import Column, Row

GOLDEN = Path(__file__).with_name("schema_v3.sql")


def test_schema_version_three_is_as_it_was_published() -> None:
    assert schema.SCHEMA_VERSION == 3
    assert ";\n\n".join(schema.statements()) + ";\n" == GOLDEN.read_text()


def test_every_topic_that_may_follow_a_terminal_event_is_in_the_rule() -> None:
    (rule,) = (one for one in schema.statements() if "stored_events_insert" in one)
    for topic in AFTER_TERMINAL:
        assert f"'{topic}'" in rule


def test_a_projection_row_leaves_other_columns_as_they_are() -> None:
    connection = sqlite3.connect(":memory:")
    for statement in projection_tables.statements():
        connection.execute(statement)
    first: dict[str, Column] = {"run_id": "r", "status": "failed", "epoch": 1}
    for values in (first, {"run_id": "r", "status": "completed"}, {"run_id": "r"}):
        connection.execute(*projection_tables.upsert(Row("runs", values)))
    assert connection.execute("SELECT run_id, status, epoch, kind FROM runs").fetchall() == [
        ("r", "completed", 1, None)
    ]
    connection.close()
