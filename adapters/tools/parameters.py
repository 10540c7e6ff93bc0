"""The arguments of a function as a model may give them: a schema, and a strict check against it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined

from ...domain import canonical
from ...domain.errors import RefusedWithoutEffect
from ...domain.events.event import Json
from ...ports.tool_catalog import Arguments, ToolContext
from .declaration import ToolDefinitionError

FAULTS_MAX = 5
_KINDS = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


class MisfitArguments(ValueError):
    """The arguments do not fit; the message names the places and what was expected, and no value."""


class Parameters:
    """What a function takes.

    Args:
        function: every parameter named and typed; no *args, no **kwargs, none by position only.

    Raises:
        ToolDefinitionError: it has parameters that a model cannot give.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = getattr(function, "__qualname__", repr(function))
        parameters = _parameters(function, self._function)
        hints = _hints(function, self._function)
        self.takes_context = bool(parameters) and hints.get(parameters[0].name) is ToolContext
        if self.takes_context:
            parameters = parameters[1:]
        self._fields = {f"argument_{place}": parameter.name for place, parameter in enumerate(parameters)}
        self._model = self._make_model(parameters, hints)
        self.schema = self._make_schema()

    def typed(self, arguments: Json | Mapping[str, Json]) -> dict[str, Any]:
        """Return keyword arguments of the declared types, defaults included.

        Nothing is coerced: a text is no number. What JSON cannot say (a date, an enumeration, a tuple) is made from
            what it says.

        Raises:
            MisfitArguments: they do not fit the schema, or name what it does not.
        """
        given = dict(arguments) if isinstance(arguments, Mapping) else arguments
        try:
            model = self._model.model_validate_json(canonical.encode(given), strict=True)
        except ValidationError as error:
            raise MisfitArguments(_faults(error)) from error
        return {name: getattr(model, field) for field, name in self._fields.items()}

    def call(self, function: Callable[..., Any], arguments: Arguments, context: ToolContext) -> Any:
        """Call the function with arguments that are checked once more and made into its types.

        Raises:
            RefusedWithoutEffect: they do not fit after all; the function was not called.
        """
        try:
            typed = self.typed(arguments)
        except MisfitArguments as misfit:
            raise RefusedWithoutEffect(str(misfit)) from misfit
        return function(context, **typed) if self.takes_context else function(**typed)

    def _make_model(self, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        for field, parameter in zip(self._fields, parameters, strict=True):
            if parameter.name not in hints:
                raise ToolDefinitionError(self._function, f"the parameter {parameter.name} has no type")
            fields[field] = (hints[parameter.name], _field(parameter))
        try:
            return create_model("Arguments", __config__=ConfigDict(extra="forbid", strict=True), **fields)
        except PydanticUserError as error:
            raise ToolDefinitionError(
                self._function, f"a parameter has a type that cannot be checked: {error.message}"
            ) from error

    def _make_schema(self) -> dict[str, Json]:
        try:
            schema: dict[str, Json] = self._model.model_json_schema(schema_generator=_Untitled)
        except PydanticUserError as error:
            raise ToolDefinitionError(
                self._function, f"a parameter has a type without a JSON schema: {error.message}"
            ) from error
        schema.pop("title", None)
        return schema


class _Untitled(GenerateJsonSchema):
    """Leaves out titles, which only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(name, "it has no signature that can be read") from error
    for parameter in parameters:
        if parameter.kind not in _KINDS:
            raise ToolDefinitionError(name, f"the parameter {parameter.name} cannot be given by name")
    return parameters


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        detail = f"the type {error.name!r} is not known where the function's module can see it"
        raise ToolDefinitionError(name, detail) from error


def _field(parameter: inspect.Parameter) -> Any:
    """Make a field; its own name is neutral, so that a parameter may be called `schema` or `_x`."""
    default = parameter.default
    if default is inspect.Parameter.empty:
        return Field(default=PydanticUndefined, alias=parameter.name)
    try:
        canonical.encode(default)
    except canonical.CanonicalError:
        return Field(default_factory=lambda: default, alias=parameter.name)  # cannot stand in a schema
    return Field(default=default, alias=parameter.name)


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in faults[:FAULTS_MAX]]
    return "; ".join(shown + ([f"and {len(faults) - FAULTS_MAX} more"] if len(faults) > FAULTS_MAX else []))
