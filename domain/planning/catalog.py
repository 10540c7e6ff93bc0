"""The digest of a tool catalog: what it offers, in whatever order. SPEC section 13, gate 6."""

from __future__ import annotations

from collections.abc import Iterable

from .. import canonical
from ..events.run import ToolProfile

CATALOG_DOMAIN = "safepoint.catalog.v1"
SHOWN_DIGEST_CHARS = 12
"""How much of a digest people are shown."""


def catalog_digest(tools: Iterable[ToolProfile]) -> str:
    """Digest over names, input schemas and contracts; the order in which tools are offered is no difference."""
    listed = sorted((tool.name, tool.schema_digest, tool.contract_digest) for tool in tools)
    return canonical.digest(CATALOG_DOMAIN, canonical.encode([list(tool) for tool in listed]))
