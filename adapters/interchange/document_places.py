"""A file that is one JSON document, and where each object in it begins.

Every object begins with a brace outside of strings, and a parsed document holds its objects in the order of these
braces: so the two are counted side by side, and no reader of our own is needed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from ...ports.history_format import FindingCode, Place
from .lines import BYTE_ORDER_MARK, Reading, parsed, value_of

_STRING_OR_BRACE = re.compile(rb'"(?:[^"\\]|\\.)*"|\{', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document.

    Attributes:
        value: an object or an array.
        offsets: where objects begin, by the identity of the parsed object.
        line_ends: where lines end.
    """

    value: JsonValue
    offsets: dict[int, int]
    line_ends: list[int]

    def place_of(self, value: object, path: str = "") -> Place:
        """Where an object of this document stands; the beginning for anything else."""
        offset = self.offsets.get(id(value), 0)
        return Place(bisect_left(self.line_ends, offset) + 1, offset, path)


def document_of(data: bytes, reading: Reading) -> Document | None:
    """Read a file as one document; None where it is none, and `reading` is told why."""
    text = data.removeprefix(BYTE_ORDER_MARK)
    skipped = len(data) - len(text)
    if skipped:
        reading.tell(FindingCode.BYTE_ORDER_MARK, Place(1, 0))
    if not text.strip():
        reading.tell(FindingCode.EMPTY_FILE, Place(1, 0))
        return None
    reading.lines = sum(1 for line in text.split(b"\n") if line.strip())
    value = value_of(text, Place(1, skipped), reading)
    if not isinstance(value, dict | list):
        if not any(finding.unreadable for finding in reading.findings):
            reading.tell(FindingCode.NOT_AN_OBJECT, Place(1, skipped), "it is neither an object nor an array")
        return None
    braces = (found.start() + skipped for found in _STRING_OR_BRACE.finditer(text) if found.group() == b"{")
    offsets = {id(member): at for member, at in zip(_objects(value), braces, strict=True)}
    return Document(value, offsets, [found.start() for found in re.finditer(b"\n", data)])


def is_document(data: bytes, wrappers: Collection[str]) -> bool:
    """Whether a file is one document, and not an object a line.

    Args:
        data: the file.
        wrappers: members by which a single object is known to hold the others.
    """
    text = data.removeprefix(BYTE_ORDER_MARK).strip()
    first, _, rest = text.partition(b"\n")
    if text[:1] == b"[" or first.rstrip() == b"{":
        return True
    value = _value(first)
    if value is None and rest.strip():
        return isinstance(_value(text), dict)
    return isinstance(value, dict) and not rest.strip() and not value.keys().isdisjoint(wrappers)


def _value(text: bytes) -> JsonValue:
    try:
        return parsed(text.decode())
    except ValueError:
        return None


def _objects(value: JsonValue) -> Iterator[JsonValue]:
    waiting = [value]
    while waiting:
        member = waiting.pop()
        if isinstance(member, dict):
            yield member
            waiting += reversed(member.values())
        elif isinstance(member, list):
            waiting += reversed(member)
