"""Our own export as JSON lines: a header with the heads, one line an event, and a last line with the claims.

The last line has the digest of every byte before it, so a file that was cut or touched is no export (SPEC section 19).
The same session gives the same bytes in every store that vouches for it; any other store's header says `foreign`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from ...application.export_session import ExportBegin, ExportedEvent, ExportEnd, ExportPart
from ...domain import canonical

BEGIN = "safepoint.export.v1"
END = "safepoint.export.end.v1"


def lines_of_export(parts: Iterable[ExportPart]) -> Iterator[bytes]:
    """Each part as a line with its line end."""
    hashed = hashlib.sha256()
    for part in parts:
        if isinstance(part, ExportedEvent):
            line = _event(part)
        elif isinstance(part, ExportBegin):
            line = canonical.encode(
                {
                    "type": BEGIN,
                    "session_id": part.session_id,
                    "redacted": part.redacted,
                    "heads": [head._asdict() for head in part.heads],
                    **({"foreign": True} if part.foreign else {}),
                }
            )
        else:
            line = canonical.encode(end_of(part, hashed.hexdigest()))
        line += b"\n"
        hashed.update(line)
        yield line


def end_of(part: ExportEnd, digest: str) -> dict[str, JsonValue]:
    """The members of the last line; `digest` is over every byte before it."""
    claims: list[JsonValue] = [dict(claim._asdict()) for claim in part.claims]
    return {"type": END, "events": part.events, "claims": claims, "digest": digest}


def _event(part: ExportedEvent) -> bytes:
    """The event's own bytes stand in the line as they are; they are canonical, and so is the line."""
    sealed = part.sealed
    place = {"sequence": sealed.sequence, "stream": sealed.stream}
    hashed = b"" if part.args_hash is None else b'"args_hash":' + canonical.encode(part.args_hash) + b","
    head = b"{" + hashed + b'"digest":' + canonical.encode(sealed.digest) + b',"event":'
    return head + part.state + b"," + canonical.encode(place)[1:]
