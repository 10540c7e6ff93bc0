"""A session of ours with everything that an export must carry, kept in memory."""

from __future__ import annotations

from pydantic import JsonValue

from safepoint.adapters.interchange.export_lines import lines_of_export
from safepoint.adapters.memory.event_store import MemoryStore
from safepoint.application.export_session import ExportSession
from safepoint.domain import canonical
from safepoint.domain.boundary import boundary_digest
from safepoint.domain.events.session import RunAdmitted, RunKind
from safepoint.ports.contract_kit.recorded_runs import NOON, RecordedSession

SECRET = "sk-test-abcdefghijklmnopqrst"
ARGS: dict[str, JsonValue] = {"path": f"/srv/API_KEY={SECRET}", "n": 10**16, "é": [1.5, None, "\u2028"]}


def store_with_session(*, claimed: bool = True) -> tuple[MemoryStore, RecordedSession]:
    """A store with one session: a completed turn, one that failed behind its tool's answer, and a claim of that."""
    store, recorded = MemoryStore(), RecordedSession()
    recorded.own(store.owners)
    recorded.keep(store.events, *recorded.opened("a"), recorded.text("Hello.", "a"), recorded.ended("a"))
    recorded.keep(store.events, *recorded.opened("b"))
    dispatched = recorded.dispatched("x", "b")
    hashed = dispatched.model_copy(update={"args_hash": canonical.args_hash("write_file", ARGS)})
    recorded.keep(store.events, recorded.called("x", "b", args=ARGS), hashed)
    recorded.keep(store.events, recorded.responded("x", "b"), recorded.ended("b"))
    if claimed:
        claim = recorded.claimed("claim", "b")
        claim = claim.model_copy(update={"boundary_digest": boundary_digest(claim.segments)})
        admitted = RunAdmitted(
            event_id=recorded.event_id(),
            session_id=recorded.session_id,
            occurred_at=NOON,
            run_id=claim.target.run_id,
            turn_id=claim.target.turn_id,
            invocation_id=claim.target.invocation_id,
            kind=RunKind.CONTINUATION,
            claim_id=claim.claim_id,
        )
        recorded.keep(store.events, claim, admitted)
    return store, recorded


def export_of(store: MemoryStore, recorded: RecordedSession, *, redacted: bool = False) -> bytes:
    """The session's export."""
    return b"".join(lines_of_export(ExportSession(store.events)(recorded.session_id, redacted=redacted)))


def exported(*, claimed: bool = True, redacted: bool = False) -> bytes:
    """The export of that session."""
    return export_of(*store_with_session(claimed=claimed), redacted=redacted)
