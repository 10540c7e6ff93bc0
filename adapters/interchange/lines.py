"""Lines of a JSON-lines file with their places; whatever is no JSON object becomes a finding, never an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from ...ports.history_format import Finding, FindingCode, Place
from . import maka_json

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Reading:
    """What is found while a file is read."""

    findings: list[Finding] = field(default_factory=list)
    lines: int = 0
    _counted: dict[tuple[FindingCode, str], int] = field(default_factory=dict)

    def tell(self, code: FindingCode, place: Place, detail: str = "") -> None:
        """Note one thing."""
        self.findings.append(Finding(code, place, detail))

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
            reading.tell(FindingCode.NOT_AN_OBJECT, place, f"it is {_kind(value)}")
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
        if text.strip():
            reading.lines += 1
            yield place, text


class _Unread:
    """Stands for a line that has no value."""


_UNREAD = _Unread()


def value_of(line: bytes, place: Place, reading: Reading) -> JsonValue | _Unread:
    """The JSON value of a line, or a finding at the very byte where it cannot go on."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        reading.tell(FindingCode.NOT_UTF8, place._replace(offset=place.offset + error.start))
        return _UNREAD
    nul = line.find(b"\0")
    if nul >= 0:
        reading.tell(
            FindingCode.NUL_BYTES, place._replace(offset=place.offset + nul), f"{line.count(0)} of {len(line)} bytes"
        )
        return _UNREAD
    try:
        return parsed(text)
    except RepeatedKey as error:
        reading.tell(FindingCode.REPEATED_KEY, place, str(error))
    except maka_json.MakaJsonError as error:
        reading.tell(*_not_json(text, place, error))
    return _UNREAD


class RepeatedKey(ValueError):
    """An object has a key twice, so that readers may disagree on what it says."""


def parsed(text: str) -> JsonValue:
    """Read JSON; numbers keep their spelling's value, escaped lone surrogates pass, a repeated key does not.

    Raises:
        RepeatedKey: an object has a key twice.
        MakaJsonError: it is not JSON, or nests too deep.
    """
    try:
        return maka_json.parse(text, _distinct)
    except maka_json.MakaJsonError as error:
        if isinstance(error.__cause__, RepeatedKey):
            raise error.__cause__ from None
        raise


def _distinct(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise RepeatedKey("an object has a key twice")
    return members


def _not_json(text: str, place: Place, error: maka_json.MakaJsonError) -> tuple[FindingCode, Place, str]:
    """What is wrong with a text, and the byte at which it could not go on; torn where that is its end."""
    cause = error.__cause__
    if not isinstance(cause, json.JSONDecodeError):
        return FindingCode.NOT_JSON, place, str(error)
    torn = cause.msg.startswith("Unterminated string") or cause.pos >= len(text.rstrip())
    good = text.rstrip() if torn else text[: cause.pos]
    at = place.offset + len(good.encode("utf-8", "surrogatepass"))
    if torn:
        return FindingCode.TORN_LINE, place, f"it ends before its JSON does, at byte {at}"
    return FindingCode.NOT_JSON, place, f"{cause.msg}, at byte {at}"


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
