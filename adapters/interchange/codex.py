"""Codex rollout lines: `{"timestamp", "type", "payload"}`, where response items are the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from ...ports.history_format import FindingCode, Place
from .contents import Members, content_of, text_in
from .document_places import Document, placed_objects
from .lines import Reading
from .parts import Part, Setting, Stopped, TurnEnded
from .record_links import Records
from .responses_items import Steps, is_instruction, parts_of_item
from .sniffing import first_objects
from .transcript import TranscriptFormat
from .values import time_in

_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_OLDER_META = frozenset({"id", "timestamp", "instructions"})
_ENDS = frozenset({"task_complete", "turn_complete"})


class CodexRollout(TranscriptFormat):
    """The rollout file of one Codex session."""

    name = "codex"
    provider = "openai"

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any(
            ("payload" in found and text_in(found, "type") in _LINES)
            or "record_type" in found
            or (found.keys() >= _OLDER_META and "type" not in found)
            for found in first_objects(data)
        )

    def items_of(self, document: Document, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """See `TranscriptFormat`."""
        values: list[JsonValue] = document.value if isinstance(document.value, list) else [document.value]
        yield from placed_objects(document, values, "", reading)

    def parts(self, items: Iterable[tuple[Place, Members]], setting: Setting, reading: Reading) -> Iterator[Part]:
        """See `TranscriptFormat`."""
        steps, records, spoken = Steps(), Records(), set[bool]()
        for place, line in items:
            kind, payload = _kind_and_payload(line)
            here = place._replace(source_id=text_in(payload, "id"))
            at = time_in(line, "timestamp", here, reading)
            if kind == "response_item":
                spoken.add(payload is line)
                if len(spoken) > 1:
                    reading.tell_once(FindingCode.SEVERAL_SESSIONS, here, "items with and without a wrapper")
                if (wrong := records.take(here, payload, reading)) is not None:
                    yield from wrong
                    yield from _item(payload, here, steps, at, setting, reading)
            elif kind == "event_msg":
                yield from _event(payload, here, at, reading)
            elif kind in _LINES:
                if kind == "session_meta" and spoken and setting.session is None:
                    reading.tell_once(FindingCode.SEVERAL_SESSIONS, here, "items stand before the line that names it")
                _note(kind, payload, here, setting, reading)
            else:
                code = FindingCode.UNKNOWN_SHAPE if kind is None else FindingCode.UNKNOWN_TYPE
                reading.tell(code, place, "a line of another kind")


def _kind_and_payload(line: Members) -> tuple[str | None, Members]:
    """What a line is; in older files items stand without a wrapper, behind a line that names the session."""
    kind, payload = text_in(line, "type"), line.get("payload")
    if isinstance(payload, dict):
        return kind, payload
    if "record_type" in line:
        return "turn_context", {}
    if kind is None:
        return ("session_meta", line) if line.keys() >= _OLDER_META else (None, {})
    return (None, {}) if kind in _LINES else ("response_item", line)


def _item(
    payload: Members, place: Place, steps: Steps, at: str | None, setting: Setting, reading: Reading
) -> Iterator[Part]:
    if is_instruction(payload):
        said = content_of(payload.get("content"), place, reading)
        setting.system += "" if said is None else said.text
    else:
        yield from parts_of_item(payload, place, steps, at, reading)


def _event(payload: Members, place: Place, at: str | None, reading: Reading) -> Iterator[Part]:
    """What was shown on the screen repeats the items; only how a turn ended is said here alone."""
    kind = text_in(payload, "type")
    if kind == "turn_aborted":
        yield Stopped(place, at=at)
    elif kind in _ENDS:
        yield TurnEnded(place, at)
    else:
        reading.tell_once(FindingCode.NOT_CONVERSATION, place, f"event_msg {kind or ''}".rstrip()[:80])


def _note(kind: str, payload: Members, place: Place, setting: Setting, reading: Reading) -> None:
    if kind == "session_meta":
        named = text_in(payload, "id")
        setting.session = setting.session or named
        if named not in (None, setting.session):
            reading.tell_once(FindingCode.SEVERAL_SESSIONS, place, "a line that names another session")
        setting.cwd = setting.cwd or text_in(payload, "cwd") or ""
        setting.system = setting.system or text_in(payload, "instructions") or ""
    elif kind == "turn_context":
        setting.model = text_in(payload, "model") or setting.model
        reading.tell_once(FindingCode.NOT_CONVERSATION, place, kind)
    else:
        reading.tell_once(FindingCode.COMPACTED, place, kind)
