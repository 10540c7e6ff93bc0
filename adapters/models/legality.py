"""The refusal of a history that no provider takes, in words: the same for every adapter."""

from __future__ import annotations

from collections.abc import Iterable

from ...domain.replay.items import Item
from ...domain.replay.legality import check_provider_legality


def why_illegal(history: Iterable[Item]) -> str | None:
    """Say what a strict provider would refuse first, or None when it would take the history."""
    found = check_provider_legality(history)
    if found is None:
        return None
    call = f", call {found.call_id!r}" if found.call_id is not None else ""
    counts = f" ({found.calls} calls, {found.responses} results)" if found.calls or found.responses else ""
    return f"{found.code.value} at position {found.position}{call}{counts}"
