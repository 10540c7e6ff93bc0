"""What an MCP tool answered, as strict JSON within bounds. SPEC section 8."""

from __future__ import annotations

import base64
import binascii

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from ...domain.canonical import sha256_hex
from ...domain.events.event import Json


def result_of(answer: CallToolResult) -> Json:
    """What the model is shown: structured content as it is, texts as one text, else a list of blocks.

    Images, sounds and other bytes are named by type, length and digest, and not kept.
    """
    others = [block for block in answer.content if not isinstance(block, TextContent)]
    wrapped = not others and answer.structured_content == {"result": text_of(answer)}  # a text, said twice
    if answer.structured_content is not None and not wrapped:
        structured: Json = answer.structured_content
        return {"structured": structured, "content": [_block(block) for block in others]} if others else structured
    return [_block(block) for block in answer.content] if others else text_of(answer)


def text_of(answer: CallToolResult) -> str:
    """Its texts, one below the other."""
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))


def _block(block: ContentBlock) -> dict[str, Json]:
    match block:
        case TextContent():
            return {"type": "text", "text": block.text}
        case ImageContent() | AudioContent():
            return {"type": block.type, "mime_type": block.mime_type, **_bytes(block.data)}
        case ResourceLink():
            return {"type": block.type, "uri": str(block.uri), "name": block.name}
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            return {"type": block.type, "uri": str(blob.uri), "mime_type": blob.mime_type, **_bytes(blob.blob)}
        case EmbeddedResource(resource=resource):
            return {"type": block.type, "uri": str(resource.uri), "text": getattr(resource, "text", "")}


def _bytes(data: str) -> dict[str, Json]:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        content = data.encode("utf-8", "backslashreplace")
    return {"bytes": len(content), "sha256": sha256_hex(content)}
