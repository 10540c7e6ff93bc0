"""Looks at the world again for a session's operations, and says what became of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio

from ...application.reconcile_operations import Hands
from ...application.reconciliation import Left, LeftAlone, Reconciliation
from ...application.stopping import Stopping
from ...domain.identifiers import OperationId, SessionId, parse_id
from ..opened_store import OpenedStore
from . import documents
from .ending import say_repaired
from .escaping import one_line
from .exit_codes import ExitCode
from .http_origins import http_origins
from .interrupts import Interrupts, Stoppable
from .output import Output
from .parking import say_ways
from .persons import person
from .places import absolute
from .reconciled import of_reconciled, say_reconciled, ways_after
from .resumable import commands_of
from .runtimes import require_store, writing
from .session_names import known, require_whole
from .usage import UsageError
from .ways_on import WayOn, as_documents


class _ByHand(Stoppable):
    """Stops what is being reconciled; nothing of it is recorded."""

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping

    async def cancel(self, by: str) -> None:
        """Ask for the end."""
        if self._stopping.ask(by):
            self._stopping.request()


def reconcile_session(
    out: Output, session_id: SessionId, operation: str | None, workspace: Path | None, store: Path
) -> int:
    """Reconcile, and say what became of each operation; returns the exit status."""
    operation_id = None if operation is None else _operation_id(operation)
    require_store(store)
    with writing(store) as runtime:
        known(runtime, session_id)
        result, signalled = _reconciled(runtime, out, session_id, operation_id, workspace)
        summary = known(runtime, session_id)
        commands = commands_of(runtime, store, session_id)
    say_repaired(out, result.repaired)
    say_reconciled(out.say, result.operations)
    if not result.operations:
        out.say(f"Nothing of session {one_line(session_id)} waits to be looked at again.")
    ways = list(ways_after(result.operations, session_id, commands))
    if summary.state.may_be_resumed:
        ways.append(WayOn(commands.about("plan", session_id), "see whether its run can be continued"))
    say_ways(out, ways)
    code = signalled or _exit_code(result)
    members = {
        "session_id": session_id,
        "repaired": documents.of_repaired(result.repaired),
        "operations": of_reconciled(result.operations),
        "settled": result.settled,
        "commands": as_documents(ways),
        "exit_code": int(code),
    }
    out.document(documents.RECONCILE, documents.filled(documents.RECONCILE, members))
    return code


def _reconciled(
    runtime: OpenedStore, out: Output, session_id: SessionId, operation_id: OperationId | None, workspace: Path | None
) -> tuple[Reconciliation, int | None]:
    from ..tools.builtin import builtin_tools
    from ..tools.catalog import FunctionCatalog

    stopping = Stopping(bound_seconds=runtime.settings.cancel_bound_seconds)
    interrupts = Interrupts(person(), out.tell, stopping.bound_seconds)
    folder = None if workspace is None else absolute(workspace)
    # What the scripted model alone is offered is here, too: whether it may run again is said by the contract of T1.
    hands = Hands(FunctionCatalog(builtin_tools(scripted=True, origins=http_origins())), folder, _progress(out))
    use_case = runtime.parts.reconcile_session()

    async def work(started: Callable[[Stoppable], None]) -> Reconciliation | None:
        started(_ByHand(stopping))
        result: Reconciliation | None = await use_case(session_id, hands, operation_id, stopping)
        return result

    result = anyio.run(interrupts.watching, work)
    if result is None:
        require_whole(runtime)
        hint = "`safepoint status` lists every operation without a certain outcome."
        raise UsageError(f"Session {session_id} has no operation {operation_id}.", hint, code="unknown_operation")
    received = interrupts.received
    return result, None if received is None else 128 + received.value


def _progress(out: Output) -> Callable[[str, str], None]:
    def report(tool_name: str, line: str) -> None:
        out.tell(f"{one_line(tool_name, 60)}: {one_line(line, 500)}")

    return report


def _operation_id(named: str) -> OperationId:
    try:
        return OperationId(parse_id(named, "an operation id"))
    except ValueError as error:
        raise UsageError(f"This is no operation id: {error}.", "`safepoint status` shows the ids.") from error


def _exit_code(result: Reconciliation) -> ExitCode:
    if result.settled:
        return ExitCode.DONE
    left = {one.became.why for one in result.operations if isinstance(one.became, LeftAlone)}
    return ExitCode.CORRUPTION if Left.RUN_UNREADABLE in left else ExitCode.PARKED
