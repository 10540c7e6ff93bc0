"""The content of foreign messages: texts, and attachments of which only the name, kind and digest are kept."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import NamedTuple, TypeAlias

from pydantic import JsonValue

from ...domain.events.model import Attachment
from ...ports.history_format import FindingCode, Place
from .exact_json import storable
from .lines import Reading

Members: TypeAlias = dict[str, JsonValue]
_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_FILES = frozenset(
    {"image", "image_url", "input_image", "document", "input_file", "file", "input_audio", "video", "audio"}
)


class Content(NamedTuple):
    """What a message says; None where it could not be read."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def members_of(value: JsonValue | None) -> Members:
    """The members of an object; none of anything else."""
    return value if isinstance(value, dict) else {}


def text_in(members: Members, name: str) -> str | None:
    """A member that is a text, None where it is missing or something else."""
    value = members.get(name)
    return value if isinstance(value, str) else None


def content_of(value: JsonValue | None, place: Place, reading: Reading) -> Content | None:
    """Read the content of a message in the user's role, or of an answer.

    Args:
        value: a text, null, or a list of blocks.
        place: of the message.
        reading: is told of what cannot be read, or is not kept.
    """
    if value is None or isinstance(value, str):
        return Content(value or "")
    if not isinstance(value, list):
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "its content is neither a text nor a list")
        return None
    texts: list[str] = []
    attachments: list[Attachment] = []
    for number, block in enumerate(value):
        here = place._replace(path=_inside(place, number))
        if (text := text_block(block)) is not None:
            texts.append(text)
        elif is_file(block):
            attachments.append(attachment_of(members_of(block), here, reading))
        else:
            tell_unknown(block, here, reading)
    return Content("\n".join(texts), tuple(attachments))


def text_block(block: JsonValue) -> str | None:
    """The text of a block of text, None of any other."""
    members = members_of(block)
    return text_in(members, "text") if text_in(members, "type") in _TEXTS else None


def is_file(block: JsonValue) -> bool:
    """Whether a block is something attached."""
    return text_in(members_of(block), "type") in _FILES


def tell_unknown(block: JsonValue | Members, place: Place, reading: Reading) -> None:
    """Tell of a block that nobody here can read: what it says is not known."""
    kind = members_of(block).get("type")
    if isinstance(kind, str):
        reading.tell(FindingCode.UNKNOWN_TYPE, place, f"a block of type {storable(kind)[:80]!r}")
    else:
        reading.tell(FindingCode.UNKNOWN_SHAPE, place, "a block without a type")


def attachment_of(block: Members, place: Place, reading: Reading) -> Attachment:
    """What is kept of an attachment: not its bytes, which is told."""
    kind = reading.stored(str(block.get("type")), place)
    source = members_of(block.get("source")) or members_of(block.get(kind)) or block
    reference = next(
        (url for key in ("url", "image_url", "file_url", "file_id") if (url := text_in(source, key))), None
    )
    data, media_type = text_in(source, "data") or text_in(source, "file_data"), text_in(source, "media_type")
    if reference is not None and reference.startswith("data:"):
        head, _, data = reference.partition(",")
        media_type, reference = head.removeprefix("data:").partition(";")[0], None
    if data is not None:
        reading.tell_once(FindingCode.ATTACHMENT_NOT_KEPT, place, kind)
    name = text_in(block, "title") or text_in(source, "filename") or kind
    return Attachment(
        name=reading.stored(name, place),
        media_type=reading.stored(media_type or _usual_type(kind), place),
        uri=None if reference is None else reading.stored(reference, place),
        digest=None if data is None else hashlib.sha256(_bytes_of(data)).hexdigest(),
    )


def _usual_type(kind: str) -> str:
    return "image/*" if "image" in kind else "application/octet-stream"


def _bytes_of(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return data.encode("utf-8", "surrogatepass")


def _inside(place: Place, number: int) -> str:
    return f"{place.path}.content[{number}]".lstrip(".")
