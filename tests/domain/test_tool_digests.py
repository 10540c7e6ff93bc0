"""Names for what a tool looks like (field report r3-054)."""

from __future__ import annotations

from typing import Any

import pytest

from safepoint.domain.tool_digests import contract_digest, schema_digest

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "title": "Title", "description": "What it is called."},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "kind": {"enum": ["a", "b"]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
    },
    "required": ["title", "items"],
    "additionalProperties": False,
    "$defs": {"Item": {"type": "object", "properties": {"n": {"type": "number", "minimum": 0}}, "required": ["n"]}},
}
GOLDEN_SCHEMA = "b44886d0adc2bc7fd62d7cf8da74471c654679f8eb0e46c4edb96a3ed8cb794b"
GOLDEN_CONTRACT = "50147ebb6be15804de8fddbdb87bd182d0481584abd36637a87d3bf00afe8a8a"
CONTRACT: dict[str, Any] = {"recovery": "idempotent", "key_valid_seconds": 60, "version": 1}


def changed(**changes: Any) -> dict[str, Any]:
    return {**SCHEMA, **changes}


def with_property(name: str, schema: Any) -> dict[str, Any]:
    return changed(properties={**SCHEMA["properties"], name: schema})


def test_digests_are_what_they_were_when_they_were_first_stored() -> None:
    assert schema_digest(SCHEMA) == GOLDEN_SCHEMA
    assert contract_digest(CONTRACT) == GOLDEN_CONTRACT


@pytest.mark.parametrize(
    "same",
    [
        dict(reversed(list(SCHEMA.items()))),
        changed(properties=dict(reversed(list(SCHEMA["properties"].items())))),
        changed(required=["items", "title"]),
        changed(title="Arguments", description="Anything"),
        with_property("kind", {"enum": ["b", "a"]}),
        with_property("title", {"type": "string", "description": "Said in other words."}),
    ],
)
def test_order_and_annotations_do_not_count(same: dict[str, Any]) -> None:
    assert schema_digest(same) == GOLDEN_SCHEMA


@pytest.mark.parametrize(
    "different",
    [
        with_property("optional", {"type": "string", "default": ""}),
        with_property("title", {"type": "integer"}),
        with_property("size", {"type": "integer", "default": 3}),
        changed(properties={name: value for name, value in SCHEMA["properties"].items() if name != "title"}),
        changed(required=["title"]),
        changed(additionalProperties=True),
        changed(**{"$defs": {"Item": {"type": "object", "properties": {"n": {"type": "number", "minimum": 1}}}}}),
        with_property("description", {"type": "string"}),
    ],
)
def test_whatever_else_changes_changes_the_digest(different: dict[str, Any]) -> None:
    """A parameter that is called `title` or `description` is a parameter and no annotation."""
    assert schema_digest(different) != GOLDEN_SCHEMA


def test_a_contract_is_named_by_all_of_it_in_any_order() -> None:
    assert contract_digest(dict(reversed(list(CONTRACT.items())))) == GOLDEN_CONTRACT
    assert contract_digest({**CONTRACT, "version": 2}) != GOLDEN_CONTRACT
    assert contract_digest({**CONTRACT, "recovery": "replay_safe"}) != GOLDEN_CONTRACT


def test_a_schema_and_a_contract_never_share_a_digest() -> None:
    assert schema_digest({}) != contract_digest({})
