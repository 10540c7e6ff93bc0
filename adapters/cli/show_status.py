"""How a store or one session stands, and every operation without a certain outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...application.inspect_runs import OperationSeen
from ...application.inspect_sessions import SessionState, SessionSummary
from ...domain.identifiers import RunId, SessionId, session_stream
from ...domain.session.state import Session
from ...ports.incarnations import Liveness
from ...ports.store_keeping import StoreCondition, Trust
from ...ports.views import OperationRow, PermissionRow
from ..opened_store import OpenedStore
from . import documents, places
from .command_lines import CommandLines
from .escaping import one_line
from .exit_codes import ExitCode, exit_code_of_trust
from .output import Output
from .parking import operation_line, say_ways
from .resumable import commands_of
from .runtimes import no_store, reading
from .session_names import known
from .ways_on import MESSAGE, WHY, WayOn, adopting, answers, as_documents, looking_again

JUDGED_RUNS_MAX = 100
_OWNED = frozenset({SessionState.RUNNING, SessionState.OWNER_NOT_SEEN, SessionState.UNREADABLE})
_LIVES = {
    Liveness.ALIVE: "works on it",
    Liveness.DEAD: "has ended",
    Liveness.COULD_NOT_LOOK: "could not be looked at",
}


def show_status(out: Output, store: Path, named: SessionId | None, limit: int, *, fail_if_unsettled: bool) -> int:
    """Show it; returns the exit status."""
    if not places.is_there(store):
        out.say(no_store(store))
        out.document(documents.STATUS, documents.filled(documents.STATUS, {"store": str(store)}))
        return ExitCode.DONE
    with reading(store) as runtime:
        inspect = runtime.parts.inspect_sessions()
        sessions = inspect.page(limit=limit).sessions if named is None else (known(runtime, named),)
        views = runtime.parts.store().views
        rows: Sequence[OperationRow] = views.unsettled(named, limit=limit)
        operations = _judged(runtime, rows)
        asked: Sequence[PermissionRow] = inspect.waiting(named, limit=limit)
        condition: StoreCondition = runtime.parts.store().condition()
        session = None if named is None else _session(runtime, sessions[0])
        commands = CommandLines(store) if named is None else commands_of(runtime, store, named)
        ways = tuple(_answers(asked, commands))
        if named is not None:
            again = looking_again([seen for _, seen in operations], named, commands)
            ways = (*ways, *(() if sessions[0].state in _OWNED else again), *_ways(sessions[0], commands))
        if condition.trust is not Trust.OK:  # nothing else that writes is heeded there
            ways = (
                adopting(condition.trust, commands),
                *(way for way in ways if way.command in _looks(named, commands)),
            )
        _say(out, store, condition, sessions, operations, asked, whole=named is None)
        say_ways(out, ways)
        members = {
            "store": str(store),
            "exists": True,
            "condition": {"trust": condition.trust.value, "detail": condition.detail},
            "sessions": [documents.of_session(one) for one in sessions],
            "operations": [documents.of_operation(seen, run_id) for run_id, seen in operations],
            "unsettled": len(rows),
            "permissions": [documents.of_permission(row) for row in asked],
            "watched": [] if session is None else [_watched(session, one) for one in session.watched],
            "commands": as_documents(ways),
        }
        out.document(documents.STATUS, documents.filled(documents.STATUS, members))
    if (code := exit_code_of_trust(condition.trust)) is not ExitCode.DONE:
        return code
    if not fail_if_unsettled:
        return ExitCode.DONE
    if any(one.state is SessionState.UNREADABLE for one in sessions):
        return ExitCode.CORRUPTION
    return ExitCode.PARKED if rows or asked else ExitCode.DONE


def _looks(named: SessionId | None, commands: CommandLines) -> tuple[str, ...]:
    return () if named is None else (commands.about("show", named), commands.about("plan", named))


def _judged(runtime: OpenedStore, rows: Sequence[OperationRow]) -> list[tuple[str, OperationSeen]]:
    """The resolver's verdicts on what the views list: rows are facts, never verdicts (R11)."""
    listed = {row.operation_id for row in rows}
    runs = list(dict.fromkeys(row.run_id for row in rows if row.run_id is not None))[:JUDGED_RUNS_MAX]
    judged: list[tuple[str, OperationSeen]] = []
    for run_id in runs:
        seen = runtime.parts.inspect_runs()(RunId(run_id))
        if seen is not None:
            judged += ((run_id, one) for one in seen.operations if one.verdict.operation_id in listed)
    return judged


def _session(runtime: OpenedStore, summary: SessionSummary) -> Session | None:
    if summary.state is SessionState.UNREADABLE:
        return None
    from ...application.states import load

    with runtime.parts.events().snapshot() as reader:
        return load(reader, session_stream(summary.session_id)).session()


def _answers(asked: Sequence[PermissionRow], commands: CommandLines) -> Iterator[WayOn]:
    for row in asked:
        yield from answers(commands, row.request_id, row.tool_name or "a tool")


def _ways(summary: SessionSummary, commands: CommandLines) -> tuple[WayOn, ...]:
    session = summary.session_id
    show = WayOn(commands.about("show", session), "see what happened")
    match summary.state:
        case SessionState.RUNNING:
            end = WayOn(commands.about("takeover", session), "end its process, where that does not answer")
            return (WayOn(commands.about("cancel", session), "stop it"), end, show)
        case SessionState.OWNER_NOT_SEEN:
            fence = commands.about("takeover", session, "--fence-only")
            return (WayOn(fence, "once you have made sure that its owner has ended: take its right to write"), show)
        case SessionState.UNREADABLE:
            give_up = WayOn(commands.about("abandon", session, "--note", WHY), "give its damaged run up")
            return (WayOn(commands.about("verify"), "find the damaged place"), give_up, show)
        case state if state.may_be_resumed:
            return (WayOn(commands.about("plan", session), "see whether it may be continued"), show)
        case _:
            turn = commands.asking("run", MESSAGE, "--session", session)
            return (WayOn(turn, commands.to_ask("start the next turn")), show)


def _say(
    out: Output,
    store: Path,
    condition: StoreCondition,
    sessions: Sequence[SessionSummary],
    operations: Sequence[tuple[str, OperationSeen]],
    asked: Sequence[PermissionRow],
    *,
    whole: bool,
) -> None:
    if condition.trust is not Trust.OK:
        out.say(f"The store {store} cannot vouch for what it does not hold: {one_line(condition.detail, 400)}")
    ended_well = {SessionState.COMPLETED, SessionState.EMPTY, SessionState.ABANDONED}
    shown = [one for one in sessions if not whole or one.state not in ended_well]
    if whole:
        out.say(f"{len(shown)} of the {len(sessions)} sessions used last need a look.")
    for one in shown:
        out.say(f"Session {one_line(one.session_id)}: {_state(one)}")
    out.say(f"Operations without a certain outcome: {len(operations) or 'none'}.")
    for run_id, seen in operations:
        out.say(f"  run {one_line(run_id)}: {operation_line(seen)}")
    for row in asked:
        out.say(waits_line(row))


def _state(summary: SessionSummary) -> str:
    said = str(summary.state).replace("_", " ")
    if summary.owner is not None:
        lives = "" if summary.owner_liveness is None else _LIVES[summary.owner_liveness]
        said += f" (process {summary.owner.pid} {lives})"
    if summary.damage is not None:
        said += f" [{summary.damage.code}] {one_line(summary.damage.detail, 400)}"
    elif summary.row.head_failure_class is not None:
        said += f" [{one_line(summary.row.head_failure_class)}]"
    return f"{said}, run {one_line(summary.head_run_id)}" if summary.head_run_id is not None else said


def waits_line(row: PermissionRow) -> str:
    """A question that waits, on one line."""
    where = f"session {one_line(row.session_id, 200)}, request {one_line(row.request_id, 200)}"
    return f"Waits for permission: {one_line(row.tool_name, 60)} ({where})"


def _watched(session: Session, operation_id: object) -> documents.Json:
    watched = next(one for key, one in session.watched.items() if key == operation_id)
    return {
        "operation_id": watched.operation_id,
        "run_id": watched.run_id,
        "tool": watched.tool_name,
        "status": watched.status.value,
    }
