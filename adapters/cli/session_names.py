"""Which session a command is about: named, or the one that can only be meant."""

from __future__ import annotations

from itertools import islice

from ...application.inspect_sessions import InspectSessions, SessionSummary
from ...domain.errors import StoreBehindAnchor, StoreNotAdopted
from ...domain.identifiers import SessionId, parse_id
from ...ports.store_keeping import StoreCondition, Trust
from ..opened_store import OpenedStore
from .usage import UsageError

LOOKED_AT_MAX = 200
SHOWN_MAX = 10


def session_id_of(argument: str | None, option: str | None) -> SessionId | None:
    """The session that was named, None when none was.

    Raises:
        UsageError: two were named, or it is no id.
    """
    if argument is not None and option is not None and argument != option:
        raise UsageError(f"Two sessions are named: {argument!r} and {option!r}.", "Name one.")
    named = option if argument is None else argument
    if named is None:
        return None
    if named.startswith("-"):
        raise UsageError(f"A session id does not begin with a dash: {named!r}.", "`safepoint list` shows the ids.")
    try:
        named.encode()
        return SessionId(parse_id(named, "a session id"))
    except ValueError as error:
        raise UsageError(f"This is no session id: {error}.", "`safepoint list` shows the ids.") from error


def required_session(argument: str | None, option: str | None) -> SessionId:
    """As `session_id_of`, where there must be one."""
    named = session_id_of(argument, option)
    if named is None:
        raise UsageError("No session is named.", "Name one; `safepoint list` shows them.")
    return named


def known(runtime: OpenedStore, session_id: SessionId) -> SessionSummary:
    """Look at a session that must exist.

    Raises:
        UsageError: there is none.
        StoreNotAdopted: none was found, and the store may have lost it: that is no proof that there is none (F1).
    """
    found: SessionSummary | None = runtime.parts.inspect_sessions().one(session_id)
    if found is None:
        require_whole(runtime)
        hint = "`safepoint list` shows the sessions of this store; --store names another."
        raise UsageError(f"There is no session {session_id} in this store.", hint, code="unknown_session")
    return found


def require_whole(runtime: OpenedStore) -> None:
    """Make sure that what was not found is not there: a store that may have lost it proves nothing (F1).

    Raises:
        StoreNotAdopted: it may have.
    """
    condition: StoreCondition = runtime.parts.store().condition()
    if condition.trust is Trust.COPIED:
        raise StoreNotAdopted(condition.detail)
    if condition.trust is not Trust.OK:
        raise StoreBehindAnchor(condition.detail)


def to_resume(runtime: OpenedStore, named: SessionId | None) -> SessionSummary | None:
    """The session to resume: the named one, else the one used last, else the only one with something to resume.

    Returns:
        None where none is named and there is nothing to resume.

    Raises:
        UsageError: there is no such session, or several could be meant.
        StoreNotAdopted: as `known`.
    """
    return _meant(runtime.parts.inspect_sessions()) if named is None else known(runtime, named)


def _meant(inspect: InspectSessions) -> SessionSummary | None:
    newest = list(islice(inspect.every(), LOOKED_AT_MAX))
    candidates = [one for one in newest if one.state.may_be_resumed]
    if not candidates or candidates[0] is newest[0] or len(candidates) == 1:
        return candidates[0] if candidates else None
    shown = ", ".join(one.session_id for one in candidates[:SHOWN_MAX])
    more = "" if len(candidates) <= SHOWN_MAX else f" and {len(candidates) - SHOWN_MAX} more"
    raise UsageError(f"Several sessions could be meant: {shown}{more}.", "Name one.", code="ambiguous_session")
