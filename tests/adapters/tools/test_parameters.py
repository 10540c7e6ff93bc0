"""The arguments of a function as a model may give them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from safepoint.adapters.tools.declaration import ToolDefinitionError
from safepoint.adapters.tools.parameters import MisfitArguments, Parameters
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.event import Json
from safepoint.ports.tool_catalog import ToolContext


class Colour(StrEnum):
    RED = "red"


class Point(BaseModel):
    x: int
    y: int = 0


def everything(
    context: ToolContext,
    text: str,
    number: float,
    colour: Colour,
    when: date,
    pair: tuple[int, int],
    point: Point,
    kind: Literal["a", "b"] = "a",
    size: Annotated[int, Field(ge=1)] | None = None,
) -> None: ...


FITTING: dict[str, Json] = {
    "text": "t",
    "number": 2,
    "colour": "red",
    "when": "2030-01-02",
    "pair": [1, 2],
    "point": {"x": 1},
}


def test_what_json_cannot_say_is_made_from_what_it_says() -> None:
    assert Parameters(everything).typed(FITTING) == {
        "text": "t",
        "number": 2.0,
        "colour": Colour.RED,
        "when": date(2030, 1, 2),
        "pair": (1, 2),
        "point": Point(x=1),
        "kind": "a",
        "size": None,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", 1),
        ("text", None),
        ("number", "2"),
        ("number", True),
        ("colour", "green"),
        ("when", 0),
        ("pair", [1]),
        ("pair", ["1", "2"]),
        ("point", {"x": 1.5}),
        ("kind", "c"),
        ("size", 0),
        ("size", 1.5),
        ("unknown", 1),
    ],
)
def test_nothing_is_coerced_and_nothing_unknown_is_taken(name: str, value: Json) -> None:
    with pytest.raises(MisfitArguments, match=name):
        Parameters(everything).typed({**FITTING, name: value})


@pytest.mark.parametrize("name", FITTING)
def test_what_has_no_default_must_be_given(name: str) -> None:
    with pytest.raises(MisfitArguments, match=f"{name}: Field required"):
        Parameters(everything).typed({given: value for given, value in FITTING.items() if given != name})


def test_a_misfit_is_told_without_the_value_and_within_bounds() -> None:
    def many(numbers: list[int]) -> None: ...

    with pytest.raises(MisfitArguments) as misfit:
        Parameters(many).typed({"numbers": ["sk-secret"] * 1_000})
    assert "secret" not in str(misfit.value)
    assert "and 995 more" in str(misfit.value)
    assert len(str(misfit.value)) < 1_000


def test_names_that_mean_something_elsewhere_are_ordinary_names() -> None:
    def odd(schema: int, copy: int, model_config: int, _hidden: int, json: int = 5) -> None: ...

    given: dict[str, Json] = {"schema": 1, "copy": 2, "model_config": 3, "_hidden": 4}
    assert Parameters(odd).typed(given) == {**given, "json": 5}
    assert list(Parameters(odd).schema["properties"]) == ["schema", "copy", "model_config", "_hidden", "json"]  # type: ignore[arg-type]


def test_the_schema_names_every_parameter_but_the_context() -> None:
    schema = Parameters(everything).schema
    assert list(schema["properties"]) == [*FITTING, "kind", "size"]  # type: ignore[arg-type]
    assert schema["required"] == list(FITTING)
    assert schema["additionalProperties"] is False
    assert "title" not in schema


def test_a_default_that_is_no_json_is_used_and_not_shown() -> None:
    def with_date(when: date = date(2030, 1, 1)) -> None: ...

    assert Parameters(with_date).typed({}) == {"when": date(2030, 1, 1)}
    assert "default" not in str(Parameters(with_date).schema)


def test_the_context_is_given_first_and_only_where_it_is_asked_for(context: ToolContext) -> None:
    def with_context(given: ToolContext, n: int) -> tuple[ToolContext, int]:
        return given, n

    def without(n: int) -> int:
        return n

    assert Parameters(with_context).call(with_context, {"n": 1}, context) == (context, 1)
    assert Parameters(without).call(without, {"n": 1}, context) == 1


def test_arguments_that_do_not_fit_at_the_call_are_refused_without_effect(context: ToolContext) -> None:
    def without(n: int) -> int:
        raise AssertionError

    with pytest.raises(RefusedWithoutEffect):
        Parameters(without).call(without, {"n": "1"}, context)


def untyped(a) -> None: ...  # type: ignore[no-untyped-def]


def with_rest(*rest: int) -> None: ...


def with_more(**more: int) -> None: ...


def by_position(a: int, /) -> None: ...


def unknown_type(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def without_schema(a: Callable[[], int]) -> None: ...


class Opaque:
    pass


def uncheckable(a: Opaque) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (untyped, "a has no type"),
        (with_rest, "rest cannot be given by name"),
        (with_more, "more cannot be given by name"),
        (by_position, "a cannot be given by name"),
        (unknown_type, "'Nowhere' is not known"),
        (without_schema, "without a JSON schema"),
        (uncheckable, "cannot be checked"),
        (max, "no signature that can be read"),
    ],
)
def test_a_parameter_that_a_model_cannot_give_is_said_when_the_tool_is_defined(
    function: Callable[..., Any], told: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=told):
        Parameters(function)
