"""Write the pages that are made from the code: python docs/generate.py. A test compares them with what is kept."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from safepoint.domain import reasons
from safepoint.domain.events import model, outside, run, session, tool
from safepoint.domain.events.catalogue import AFTER_TERMINAL, EVENTS, Event, RunEvent, SessionEvent
from safepoint.domain.events.event import Value
from safepoint.domain.explanations import explain
from safepoint.domain.identifiers import ID_LENGTH_MAX

HERE = Path(__file__).parent
GENERATED = "<!-- Made by docs/generate.py from the code: change that, and run it again. -->"
CODE_KINDS: tuple[type[StrEnum], ...] = (
    reasons.ParkReason,
    reasons.RevalidationCode,
    reasons.LedgerIssue,
    reasons.WriteRefusal,
    reasons.ResponseCode,
    reasons.RecoveryReason,
    reasons.FailureClass,
    reasons.VerdictReason,
    reasons.ReplayBlock,
)
EVENT_MODULES = (session, run, model, tool, outside)
PATTERNS = {"^[0-9a-f]{64}$": "digest", "^[^\\x00-\\x1f\\x7f]+$": "name"}
REFERENCES = re.compile(r"(?:(?<=[.:])|;) (?:SPEC|STYLE|ADR|[FR]\d+)\b[^.]*\.?$")
"""What a docstring cites at its end: it says nothing to whoever only reads what is stored."""


def pages() -> dict[str, str]:
    """Every generated page by its file name."""
    return {"reason-codes.md": reason_codes(), "events.md": events()}


def reason_codes() -> str:
    """The page that explains every stable code, from the one table of the code base."""
    lines = [
        "# Reason codes",
        "",
        GENERATED,
        "",
        "Codes are stable: programs may depend on them. The sentences may change. An *expected* code is an ordinary",
        "state, shown as a hint; every other one is shown as a failure. `SESSION` stands for the session's id.",
    ]
    for kind in CODE_KINDS:
        lines += [
            "",
            f"## {_title(kind).capitalize()}",
            "",
            _sentence(kind),
            "",
            "| code | what it means | what to do next |",
        ]
        lines.append("|---|---|---|")
        for code in kind:
            explained = explain(code)
            expected = " *(expected)*" if explained.expected else ""
            lines.append(f"| `{code.value}`{expected} | {explained.sentence} | {explained.next_step} |")
    return "\n".join(lines) + "\n"


def events() -> str:
    """The catalogue of events: each with its fields, and the values that they carry."""
    values: dict[str, type[BaseModel]] = {}
    lines = [
        "# Events",
        "",
        GENERATED,
        "",
        "What is stored, by its stable type. Each event also has `event_id`, `session_id` and `occurred_at`, an event",
        "of a run's stream `run_id`, `turn_id` and `invocation_id` as well, and sealing adds `type`, `sequence` and",
        "`previous_digest` (`domain.sealing.seal`). A field that may be null is stored as null, never left out.",
        "*Model-visible* events are what the history that a provider sees is made of; *late* ones may follow a run's",
        "terminal event.",
    ]
    for module in EVENT_MODULES:
        lines += ["", f"## {module.__name__.rpartition('.')[2].capitalize()}", "", _sentence(module)]
        for topic, cls in EVENTS.items():
            if cls.__module__ == module.__name__:
                lines += ["", *_event(topic, cls, values)]
    lines += ["", "## Values inside events"]
    for name in sorted(values):
        lines += ["", f"### {name}", "", _sentence(values[name]), "", *_fields(values[name], frozenset(), {})]
    return "\n".join(lines) + "\n"


def _event(topic: str, cls: type[Event], values: dict[str, type[BaseModel]]) -> Iterator[str]:
    marks = ["session's stream" if issubclass(cls, SessionEvent) else "run's stream"]
    if cls.model_visible:
        marks.append("model-visible")
    if topic in AFTER_TERMINAL:
        marks.append("late")
    yield f"### `{topic}`"
    yield ""
    yield f"{_sentence(cls)} ({', '.join(marks)})"
    yield ""
    spine = frozenset(RunEvent.model_fields if issubclass(cls, RunEvent) else SessionEvent.model_fields)
    yield from _fields(cls, spine, values)


def _fields(cls: type[BaseModel], left_out: frozenset[str], values: dict[str, type[BaseModel]]) -> Iterator[str]:
    schema = cls.model_json_schema(mode="serialization")
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    shown = {name: part for name, part in schema.get("properties", {}).items() if name not in left_out}
    for value in _values_in(cls):
        values[value.__name__] = value
    if not shown:
        yield "No fields of its own."
        return
    yield "| field | value |"
    yield "|---|---|"
    for name, part in shown.items():
        yield f"| `{name}` | {_kind(part, definitions)} |"


def _values_in(cls: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The values that an event carries, and those inside them."""
    names = cls.model_json_schema(mode="serialization").get("$defs", {})
    for module in EVENT_MODULES:
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, Value) and found.__name__ in names:
                yield found


def _kind(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Say in words what a field may hold."""
    if "$ref" in part:
        return _defined(part["$ref"].rpartition("/")[2], definitions)
    if "anyOf" in part:
        kinds = [_kind(one, definitions) for one in part["anyOf"]]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in part:
        return f"`{part['const']}`"
    match part.get("type"):
        case "string":
            pattern = str(part.get("pattern", ""))
            return PATTERNS.get(pattern) or ("id" if part.get("maxLength") == ID_LENGTH_MAX else "text")
        case "integer":
            return f"integer ≥ {part['minimum']}" if "minimum" in part else "integer"
        case "array":
            return f"list of {_kind(part['items'], definitions)}"
        case "object":
            return "JSON object"
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case _:
            return "JSON"


def _defined(name: str, definitions: Mapping[str, Any]) -> str:
    definition = definitions.get(name, {})
    if "enum" in definition:
        return " / ".join(f"`{value}`" for value in definition["enum"])
    if "properties" in definition:
        return f"[{name}](#{name.lower()})"
    return "JSON"


def _title(kind: type[StrEnum]) -> str:
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).lower()
    return f"{words}es" if words.endswith("s") else f"{words}s"


def _sentence(documented: Any) -> str:
    """The first paragraph of a docstring, its own and not an inherited one, on one line."""
    doc = inspect.cleandoc(documented.__doc__ or "")
    if not doc:
        raise ValueError(f"{documented} has no documentation")
    return REFERENCES.sub("", " ".join(doc.partition("\n\n")[0].split()))


if __name__ == "__main__":
    for file_name, text in pages().items():
        (HERE / file_name).write_text(text)
