"""Lists the sessions of a store, page by page; a damaged one is listed as unreadable (F12, F13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...domain.identifiers import SessionId
from ...ports.store_keeping import StoreCondition, Trust
from ...ports.views import PermissionRow, SessionKey
from . import documents, places
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode, exit_code_of_trust
from .output import Output
from .runtimes import no_store, reading
from .show_status import waits_line
from .usage import UsageError
from .ways_on import answers

COLUMNS = ("SESSION", "STATE", "LAST USED", "UNSETTLED", "WHY")


def list_sessions(out: Output, store: Path, limit: int, after: str | None) -> int:
    """Show one page; returns the exit status."""
    if not places.is_there(store):
        out.say(no_store(store))
        out.document(documents.LIST, documents.filled(documents.LIST, {"store": str(store)}))
        return ExitCode.DONE
    with reading(store) as runtime:
        page = runtime.parts.inspect_sessions().page(after=_key(after), limit=limit)
        condition: StoreCondition = runtime.parts.store().condition()
        asked: Sequence[PermissionRow] = runtime.parts.inspect_sessions().waiting(limit=limit)
    if condition.trust is not Trust.OK:
        out.tell(f"This store cannot vouch that it is whole: {condition.detail}. What is not listed may be lost.")
    if not page.sessions:
        out.say("No sessions." if after is None else "No more sessions.")
    else:
        out.table(COLUMNS, (_cells(documents.of_session(one)) for one in page.sessions))
    next_page = None if page.after is None else f"{page.after.newest_at}/{page.after.session_id}"
    if next_page is not None:
        out.say(f"More: --after {one_line(next_page, 400)}")
    commands = CommandLines(store)
    for row in asked:
        out.say(waits_line(row))
        for way in answers(commands, row.request_id, row.tool_name or "a tool"):
            out.say(f"  {one_line(way.command, 2_000)}")
    members = {
        "store": str(store),
        "exists": True,
        "sessions": [documents.of_session(one) for one in page.sessions],
        "after": next_page,
        "permissions": [documents.of_permission(row) for row in asked],
        "condition": {"trust": condition.trust.value, "detail": condition.detail},
    }
    out.document(documents.LIST, documents.filled(documents.LIST, members))
    return exit_code_of_trust(condition.trust)


def _cells(session: documents.Json) -> tuple[object, ...]:
    why = session["code"] or session["failure_class"] or ""
    return session["session_id"], session["state"], session["last_used_at"], session["unsettled"] or "", why


def _key(after: str | None) -> SessionKey | None:
    if after is None:
        return None
    newest_at, slash, session_id = after.partition("/")
    if not slash:
        raise UsageError(f"{after!r} is no place in the list.", "Give what `safepoint list` said after --after.")
    return SessionKey(newest_at, SessionId(session_id))
