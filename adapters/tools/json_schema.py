"""Arguments held against a JSON schema that others wrote. SPEC section 8.

Needs `jsonschema`, which the extras `mcp` and `openai-agents` bring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry

from .declaration import ToolDefinitionError

PLACES_MAX: Final = 10
DETAIL_CHARS_MAX: Final = 200


class JsonSchema:
    """Says where arguments do not fit; references to other places are not followed.

    Args:
        tool: whose arguments.
        schema: of them.
        whose: how a message names the schema.

    Raises:
        ToolDefinitionError: it is no JSON schema.
    """

    def __init__(self, tool: str, schema: dict[str, Any], *, whose: str) -> None:
        self._whose = whose
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            raise ToolDefinitionError(tool, f"{whose} is none: {error.message[:DETAIL_CHARS_MAX]}") from error
        self._validator = kind(schema, registry=Registry())  # an empty registry: nothing is fetched

    def misfit(self, arguments: Mapping[str, Any]) -> str | None:
        """The places that do not fit, and the rule that says so, never a value; None where all fits."""
        try:
            places = sorted({_place(error) for error in self._validator.iter_errors(arguments)})
        except Exception as error:  # noqa: BLE001 (such as a reference that leads nowhere)
            return f"{self._whose} cannot be read: {type(error).__name__}"
        return "; ".join(places[:PLACES_MAX]) or None


def _place(error: Any) -> str:
    return f"{'.'.join(map(str, error.absolute_path)) or 'arguments'}: {error.validator}"
