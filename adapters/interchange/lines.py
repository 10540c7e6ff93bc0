"""Lines of a JSON-lines file with their places; whatever is no JSON object becomes a finding, never an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from ...ports.history_format import Finding, FindingCode, Place
from . import maka_json
from .exact_json import number_of, storable

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r\n"
"""What JSON takes for white space; anything else on a line is something that stands there."""
_BLANK_TEXT = BLANKS.decode()
_STRING_OR_BRACE = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)


@dataclass(slots=True)
class Reading:
    """What is found while a file is read."""

    findings: list[Finding] = field(default_factory=list)
    lines: int = 0
    _counted: dict[tuple[FindingCode, str], int] = field(default_factory=dict)

    def tell(self, code: FindingCode, place: Place, detail: str = "") -> None:
        """Note one thing."""
        self.findings.append(Finding(code, place, detail))

    def stored(self, text: str, place: Place) -> str:
        """The text as an event can hold it; what had to be replaced is told."""
        kept = storable(text)
        if kept != text:
            self.tell(FindingCode.TEXT_CHANGED, place, "half a character was replaced")
        return kept

    def tell_once(self, code: FindingCode, place: Place, detail: str) -> None:
        """Note one of many of a kind: all with one code and detail are counted in one finding, at the first's place."""
        number = self._counted.setdefault((code, detail), len(self.findings))
        if number == len(self.findings):
            self.tell(code, place, detail)
        else:
            self.findings[number] = self.findings[number]._replace(times=self.findings[number].times + 1)


def objects_of(data: bytes, reading: Reading) -> Iterator[tuple[Place, dict[str, JsonValue]]]:
    """The JSON objects of a file, one a line, in order; blank lines are none.

    Args:
        data: the file.
        reading: is told of every line that is not one.
    """
    for place, line in lines_of(data, reading):
        value = value_of(line, place, reading)
        if isinstance(value, dict):
            yield place, value
        elif value is not _UNREAD:
            reading.tell(FindingCode.NOT_AN_OBJECT, place, f"it is {kind_of(value)}")
    if not reading.lines:
        reading.tell(FindingCode.EMPTY_FILE, Place(1, 0))


def lines_of(data: bytes, reading: Reading) -> Iterator[tuple[Place, bytes]]:
    """Lines that are not blank, split at LF alone: strings may hold other line separators."""
    offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        place, text = Place(number, offset), line
        offset += len(line) + 1
        if number == 1 and line.startswith(BYTE_ORDER_MARK):
            reading.tell(FindingCode.BYTE_ORDER_MARK, place)
            text, place = line[len(BYTE_ORDER_MARK) :], place._replace(offset=len(BYTE_ORDER_MARK))
        if text.strip(BLANKS):
            reading.lines += 1
            yield place, text


class _Unread:
    """Stands for a line that has no value."""


_UNREAD = _Unread()


def value_of(line: bytes, place: Place, reading: Reading) -> JsonValue | _Unread:
    """The JSON value of a line, or of a document of several, or a finding at the very byte where it cannot go on."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        reading.tell(FindingCode.NOT_UTF8, _behind(place, line[: error.start]))
        return _UNREAD
    nul = line.find(b"\0")
    if nul >= 0:
        reading.tell(FindingCode.NUL_BYTES, _behind(place, line[:nul]), f"{line.count(0)} of {len(line)} bytes")
        return _UNREAD
    try:
        return parsed(text)
    except RepeatedKey as error:
        begin = _begin_of_object(line, error.objects_before)
        reading.tell(FindingCode.REPEATED_KEY, _line_behind(place, line[:begin]), str(error))
    except maka_json.MakaJsonError as error:
        reading.tell(*_not_json(text, place, error))
    return _UNREAD


class RepeatedKey(ValueError):
    """An object has a key twice, so that readers may disagree on what it says.

    Attributes:
        objects_before: how many objects of the text had ended before that one did.
    """

    def __init__(self, objects_before: int) -> None:
        super().__init__("an object has a key twice")
        self.objects_before = objects_before


def parsed(text: str) -> JsonValue:
    """Read JSON; what no double holds keeps its spelling, escaped lone surrogates pass, a repeated key does not.

    Raises:
        RepeatedKey: an object has a key twice.
        MakaJsonError: it is not JSON, or nests too deep.
    """
    ended = 0

    def distinct(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        nonlocal ended
        members = dict(pairs)
        if len(members) != len(pairs):
            raise RepeatedKey(ended)
        ended += 1
        return members

    try:
        return maka_json.parse(text, distinct, number_of)
    except maka_json.MakaJsonError as error:
        if isinstance(error.__cause__, RepeatedKey):
            raise error.__cause__ from None
        raise


def _begin_of_object(data: bytes, objects_before: int) -> int:
    """Where the object begins before whose end so many others end."""
    begins: list[int] = []
    for found in _STRING_OR_BRACE.finditer(data):
        if found.group() == b"{":
            begins.append(found.start())
        elif found.group() == b"}":
            begin, objects_before = begins.pop(), objects_before - 1
            if objects_before < 0:
                return begin
    return 0


def _not_json(text: str, place: Place, error: maka_json.MakaJsonError) -> tuple[FindingCode, Place, str]:
    """What is wrong with a text, and the byte at which it could not go on; torn where that is its end."""
    cause = error.__cause__
    if not isinstance(cause, json.JSONDecodeError):
        return FindingCode.NOT_JSON, place, str(error)
    torn = cause.msg.startswith("Unterminated string") or cause.pos >= len(text.rstrip(_BLANK_TEXT))
    good = text.rstrip(_BLANK_TEXT) if torn else text[: cause.pos]
    read = good.encode("utf-8", "surrogatepass")
    at, place = place.offset + len(read), _line_behind(place, read)
    if torn:
        return FindingCode.TORN_LINE, place, f"it ends before its JSON does, at byte {at}"
    return FindingCode.NOT_JSON, place, f"{cause.msg}, at byte {at}"


def _behind(place: Place, read: bytes) -> Place:
    """The place behind bytes that were read from a place on."""
    return place._replace(line=place.line + read.count(b"\n"), offset=place.offset + len(read))


def _line_behind(place: Place, read: bytes) -> Place:
    """The beginning of the line on which reading ended."""
    return _behind(place, read[: read.rfind(b"\n") + 1])


def kind_of(value: object) -> str:
    """What a JSON value is that is no object."""
    kinds = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
