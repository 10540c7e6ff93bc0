"""The first objects of a file, for telling its format."""

from __future__ import annotations

from pydantic import JsonValue

from .contents import Members
from .document_places import is_document
from .lines import BYTE_ORDER_MARK, Reading, lines_of, parsed, value_of

_LOOKED_AT_MAX = 50
_HOLDERS = (
    *("messages", "history", "input", "output", "loglines", "events"),
    *("request", "response", "interactions", "choices"),
)


def first_objects(data: bytes) -> list[Members]:
    """Objects by which a file's format can be told: of a document, what its known members hold; else its first lines.

    What cannot be read is passed over here; whoever reads the file tells of it.
    """
    if is_document(data, _HOLDERS):
        try:
            value = parsed(data.removeprefix(BYTE_ORDER_MARK).decode())
        except ValueError:
            return []
        return _held(value)[:_LOOKED_AT_MAX]
    quiet, found = Reading(), list[Members]()
    for place, line in lines_of(data, quiet):
        value_ = value_of(line, place, quiet)
        if isinstance(value_, dict):
            found.append(value_)
        if place.line >= _LOOKED_AT_MAX:
            break
    return found


def _held(value: JsonValue) -> list[Members]:
    if isinstance(value, list):
        return [held for member in value for held in _held(member)]
    if not isinstance(value, dict):
        return []
    holders = [value[name] for name in _HOLDERS if isinstance(value.get(name), list | dict)]
    return [value, *(held for holder in holders for held in _held(holder))]
