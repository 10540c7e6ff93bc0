"""Codex rollout lines: `{"timestamp", "type", "payload"}`, where response items are the conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...ports.history_format import FindingCode, Place
from .contents import Members, content_of, members_of, text_in
from .document_places import Document
from .lines import Reading
from .parts import Part, Setting, Stopped, TurnEnded
from .responses_items import Steps, is_instruction, parts_of_item
from .sniffing import first_objects
from .transcript import TranscriptFormat, placed_objects
from .values import time_of

_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ENDS = frozenset({"task_complete", "turn_complete"})


class CodexRollout(TranscriptFormat):
    """The rollout file of one Codex session."""

    name = "codex"
    provider = "openai"

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any("payload" in found and text_in(found, "type") in _LINES for found in first_objects(data))

    def items_of(self, document: Document, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """See `TranscriptFormat`."""
        values = document.value if isinstance(document.value, list) else [document.value]
        yield from placed_objects(document, values, "", reading)

    def parts(self, items: Iterable[tuple[Place, Members]], setting: Setting, reading: Reading) -> Iterator[Part]:
        """See `TranscriptFormat`."""
        steps = Steps()
        for place, line in items:
            kind, payload = text_in(line, "type"), members_of(line.get("payload"))
            if kind not in _LINES or not isinstance(line.get("payload"), dict):
                code = FindingCode.UNKNOWN_SHAPE if kind is None or kind in _LINES else FindingCode.UNKNOWN_TYPE
                reading.tell(code, place, "a line of another kind")
                continue
            here = place._replace(source_id=text_in(payload, "id"))
            at = time_of(line.get("timestamp"))
            if kind == "response_item":
                yield from _item(payload, here, steps, at, setting, reading)
            elif kind == "event_msg":
                yield from _event(payload, here, at, reading)
            else:
                _note(kind, payload, here, setting, reading)


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
        setting.session = setting.session or text_in(payload, "id")
        setting.cwd = setting.cwd or text_in(payload, "cwd") or ""
        setting.system = setting.system or text_in(payload, "instructions") or ""
    elif kind == "turn_context":
        setting.model = text_in(payload, "model") or setting.model
        reading.tell_once(FindingCode.NOT_CONVERSATION, place, kind)
    else:
        reading.tell_once(FindingCode.COMPACTED, place, kind)
