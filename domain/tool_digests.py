"""Names for what a tool looks like: equal for equal schemas and contracts, whatever order they are written in.

SPEC section 13, gate 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import canonical
from .events.event import Json

SCHEMA_DOMAIN = "safepoint.tool-schema.v1"
CONTRACT_DOMAIN = "safepoint.tool-contract.v1"

_ANNOTATIONS = frozenset({"title", "description", "examples", "$comment"})
"""Said to readers; what is valid does not depend on them."""
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members are schemas under names that somebody chose."""
_SETS = frozenset({"required", "enum", "type"})
"""Keywords whose list has no order."""
_VALUES = frozenset({"const", "default"})
"""Keywords whose value is data and no schema."""


def schema_digest(schema: Mapping[str, Json]) -> str:
    """Digest of an input schema: order of keys, of `required` and `enum`, and annotations do not count; everything else
    does.

    Raises:
        CanonicalError: the schema is not strict JSON.
    """
    return canonical.digest(SCHEMA_DOMAIN, canonical.encode(_normal(dict(schema))))


def contract_digest(contract: Mapping[str, Json]) -> str:
    """Digest of a declared recovery contract.

    Raises:
        CanonicalError: the contract is not strict JSON.
    """
    return canonical.digest(CONTRACT_DOMAIN, canonical.encode(dict(contract)))


def _normal(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_normal(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    normal: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        if keyword in _VALUES:
            normal[keyword] = value
        elif keyword in _SETS and isinstance(value, list):
            normal[keyword] = sorted(value, key=canonical.encode)
        elif keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            normal[keyword] = {name: _normal(member) for name, member in value.items()}
        else:
            normal[keyword] = _normal(value)
    return normal
