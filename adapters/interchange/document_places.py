"""A file that is one JSON document, and where each object and array in it begins.

Each begins with a brace or bracket outside of strings, and a parsed document holds them in the order of these: so the
two are counted side by side, and no reader of our own is needed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from ...ports.history_format import FindingCode, Place
from .contents import Members
from .lines import BLANKS, BYTE_ORDER_MARK, Reading, kind_of, parsed, value_of

_STRING = rb'"(?:[^"\\]|\\.)*"'
_STRING_OR_BEGIN = re.compile(_STRING + rb"|[{\[]", re.DOTALL)
_BLANKS = re.compile(b"[" + BLANKS + b"]*")
_STRING_OR_MARK = re.compile(_STRING + rb"|[{}\[\],]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document.

    Attributes:
        value: an object or an array.
        data: the file.
        offsets: where objects and arrays begin, by the identity of the parsed one.
        line_ends: where lines end.
    """

    value: JsonValue
    data: bytes
    offsets: dict[int, int]
    line_ends: list[int]

    def place_of(self, value: object, path: str = "") -> Place:
        """Where an object or array of this document stands; the beginning for anything else."""
        return self._at(self.offsets.get(id(value), 0), path)

    def places_in(self, values: list[JsonValue]) -> list[Place]:
        """Where each item of an array of this document stands."""
        begin = self.offsets.get(id(values))
        return [] if begin is None else [self._at(offset) for offset in _items_from(self.data, begin)]

    def _at(self, offset: int, path: str = "") -> Place:
        return Place(bisect_left(self.line_ends, offset) + 1, offset, path)


def document_of(data: bytes, reading: Reading) -> Document | None:
    """Read a file as one document; None where it is none, and `reading` is told why."""
    text = data.removeprefix(BYTE_ORDER_MARK)
    skipped = len(data) - len(text)
    if skipped:
        reading.tell(FindingCode.BYTE_ORDER_MARK, Place(1, 0))
    if not text.strip(BLANKS):
        reading.tell(FindingCode.EMPTY_FILE, Place(1, 0))
        return None
    reading.lines = sum(1 for line in text.split(b"\n") if line.strip(BLANKS))
    value = value_of(text, Place(1, skipped), reading)
    if not isinstance(value, dict | list):
        if not any(finding.unreadable for finding in reading.findings):
            reading.tell(FindingCode.NOT_AN_OBJECT, Place(1, skipped), "it is neither an object nor an array")
        return None
    begins = (found.start() + skipped for found in _STRING_OR_BEGIN.finditer(text) if found.group() in {b"{", b"["})
    offsets = {id(member): at for member, at in zip(_containers(value), begins, strict=True)}
    return Document(value, data, offsets, [found.start() for found in re.finditer(b"\n", data)])


def placed_objects(
    document: Document, values: list[JsonValue], path: str, reading: Reading
) -> Iterator[tuple[Place, Members]]:
    """The objects of a list in a document with their places; anything else in it is told."""
    places: list[Place] = []
    for number, value in enumerate(values):
        here = f"{path}[{number}]"
        if isinstance(value, dict):
            yield document.place_of(value, here), value
        else:
            places = places or document.places_in(values)
            place = places[number] if places else document.place_of(document.value)
            reading.tell(FindingCode.NOT_AN_OBJECT, place._replace(path=here), f"it is {kind_of(value)}")


def _items_from(data: bytes, begin: int) -> Iterator[int]:
    """Where the items begin of the array that begins there and is not empty."""
    depth = 0
    yield _behind_blanks(data, begin + 1)
    for found in _STRING_OR_MARK.finditer(data, begin + 1):
        mark = found.group()
        if mark == b"," and depth == 0:
            yield _behind_blanks(data, found.end())
        elif mark in {b"{", b"["}:
            depth += 1
        elif mark in {b"}", b"]"}:
            depth -= 1
            if depth < 0:
                return


def _behind_blanks(data: bytes, at: int) -> int:
    found = _BLANKS.match(data, at)
    return at if found is None else found.end()


def is_document(data: bytes, wrappers: Collection[str]) -> bool:
    """Whether a file is one document, and not an object a line.

    Args:
        data: the file.
        wrappers: members by which a single object is known to hold the others.
    """
    text = data.removeprefix(BYTE_ORDER_MARK).strip(BLANKS)
    first, _, rest = text.partition(b"\n")
    if first.rstrip(BLANKS) == b"{":
        return True
    if text[:1] == b"[":  # an array that ends with its line is the first of several lines
        return not rest or _value(first) is None
    value = _value(first)
    if value is None and rest:
        return isinstance(_value(text), dict)
    return isinstance(value, dict) and not rest and not value.keys().isdisjoint(wrappers)


def _value(text: bytes) -> JsonValue:
    try:
        return parsed(text.decode())
    except ValueError:
        return None


def _containers(value: JsonValue) -> Iterator[JsonValue]:
    waiting = [value]
    while waiting:
        member = waiting.pop()
        if isinstance(member, dict):
            yield member
            waiting += reversed(member.values())
        elif isinstance(member, list):
            yield member
            waiting += reversed(member)
