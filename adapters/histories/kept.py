"""What only one API understands of a block or item, kept in its provider options under a key of that API. SPEC F10."""

from __future__ import annotations

from collections.abc import Mapping

from ...domain.events.event import Json
from ...domain.own_copies import own


def kept_beside(key: str, members: Mapping[str, Json], *known: str) -> Json:
    """The provider options that keep all members but those that are known; None where nothing is left."""
    beside: Json = {name: value for name, value in members.items() if name not in known and value is not None}
    return {key: beside} if beside else None


def kept_in(key: str, options: Json) -> dict[str, Json]:
    """A copy of what provider options keep under the key; empty where that is nothing."""
    kept = options.get(key) if isinstance(options, dict) else None
    return own(kept) if isinstance(kept, dict) else {}
