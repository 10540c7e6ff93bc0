"""Claude Code session lines: messages of Anthropic's API with ids and parent links, a content block or more a line.

Order is that of the file. Links are looked at to tell what they leave out: parallel calls are stored as a tree, and
whoever follows one line of parents loses all but the last sibling (field reports r3-015, r3-016).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...ports.history_format import FindingCode, Place
from .anthropic import assistant_message
from .anthropic_blocks import user_blocks
from .contents import Members, members_of, text_block, text_in
from .document_places import Document, placed_objects
from .exact_json import storable
from .lines import Reading
from .parts import Part, Setting, Stopped
from .record_links import ParentLinks, Records
from .sniffing import first_objects
from .transcript import TranscriptFormat
from .values import time_in

_SPEAKERS = frozenset({"user", "assistant"})
_BESIDE = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "attachment",
        "content-replacement",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "summary",
        "system",
        "tag",
        "worktree-state",
    }
)
"""Lines that are known to hold nothing of the conversation."""
_INTERRUPTIONS = frozenset({"[Request interrupted by user]", "[Request interrupted by user for tool use]"})
"""What stands in the user's role where a person stopped the turn; the program writes it."""


class ClaudeCodeSession(TranscriptFormat):
    """The file of one Claude Code session, and the web's export of one."""

    name = "claude-code"
    provider = "anthropic"
    wrappers = frozenset({"loglines"})

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any(text_in(found, "type") in _SPEAKERS and "message" in found for found in first_objects(data))

    def items_of(self, document: Document, setting: Setting, reading: Reading) -> Iterator[tuple[Place, Members]]:
        """See `TranscriptFormat`."""
        lines = members_of(document.value).get("loglines", document.value)
        if isinstance(lines, list):
            yield from placed_objects(document, lines, "loglines", reading)
        else:
            reading.tell(FindingCode.UNKNOWN_SHAPE, document.place_of(document.value), "no list of lines")

    def parts(self, items: Iterable[tuple[Place, Members]], setting: Setting, reading: Reading) -> Iterator[Part]:
        """See `TranscriptFormat`."""
        records, links = Records(), ParentLinks()
        for place, line in items:
            kind, record_id = text_in(line, "type"), text_in(line, "uuid")
            here = place._replace(source_id=record_id)
            if kind is None or (kind in _SPEAKERS and not _has_content(line)):
                reading.tell(FindingCode.UNKNOWN_SHAPE, here, "no message" if kind else "a line without a type")
                continue
            setting.session = setting.session or text_in(line, "sessionId")
            setting.cwd = setting.cwd or text_in(line, "cwd") or ""
            links.see(record_id, text_in(line, "parentUuid"))
            if _is_told_aside(kind, line, here, reading):
                continue
            if (named := text_in(line, "sessionId")) not in (None, setting.session):
                reading.tell_once(FindingCode.SEVERAL_SESSIONS, here, f"session {storable(named or '')[:80]!r}")
            if (wrong := records.take(here, line, reading)) is not None:
                yield from wrong
                yield from _message(kind, line, here, reading)
        for place in links.outside_the_chain(records.places()):
            reading.tell_once(FindingCode.OUTSIDE_PARENT_CHAIN, place, "kept, in the order of the file")
        for place, how in links.broken(records.places()):
            reading.tell_once(FindingCode.BROKEN_PARENT_LINK, place, how)


def _has_content(line: Members) -> bool:
    return "content" in members_of(line.get("message"))


def _is_told_aside(kind: str, line: Members, place: Place, reading: Reading) -> bool:
    """Tell of a line that is no part of the main conversation."""
    if line.get("isSidechain") is True:
        reading.tell_once(FindingCode.OTHER_CONVERSATION, place, "sidechain")
    elif line.get("isApiErrorMessage") is True:
        reading.tell_once(FindingCode.NOT_CONVERSATION, place, "an error of the API")
    elif kind not in _SPEAKERS and "message" in line:
        reading.tell(FindingCode.UNKNOWN_TYPE, place, f"a message in a line of type {kind[:80]!r}")
    elif kind not in _SPEAKERS | _BESIDE:
        reading.tell(FindingCode.UNKNOWN_TYPE, place, f"a line of type {storable(kind)[:80]!r}")
    elif kind not in _SPEAKERS:
        compacted = line.get("subtype") == "compact_boundary"
        code = FindingCode.COMPACTED if compacted else FindingCode.NOT_CONVERSATION
        reading.tell_once(code, place, kind[:80])
    else:
        return False
    return True


def _said_alone(message: Members) -> str | None:
    """The text of a message that has nothing else."""
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1:
        return text_block(content[0])
    return content if isinstance(content, str) else None


def _message(kind: str, line: Members, place: Place, reading: Reading) -> Iterator[Part]:
    message, at = members_of(line.get("message")), time_in(line, "timestamp", place, reading)
    if kind == "user":
        if line.get("isCompactSummary") is True:
            reading.tell_once(FindingCode.COMPACTED, place, "summary")
        if _said_alone(message) in _INTERRUPTIONS:
            yield Stopped(place, at=at)
            return
        yield from user_blocks(message.get("content"), place, at, reading)
    else:
        step = text_in(message, "id") or place.source_id or f"line-{place.line}"
        yield from assistant_message(message, place, step, at, reading)
