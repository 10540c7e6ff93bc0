"""Fields of stored events, as SQL reads them."""

from __future__ import annotations


def field_of(name: str, state: str = "state") -> str:
    """SQL for a text field of an event, NULL where its bytes are no JSON."""
    text = f"CAST({state} AS TEXT)"
    return f"CASE WHEN json_valid({text}) THEN json_extract({text}, '$.{name}') END"
