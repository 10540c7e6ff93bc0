"""What became of operations that were looked at again, for people and programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ...application.reconciliation import Completed, Left, LeftAlone, NowParked, OperationReconciled
from ...domain.events.tool import Observation
from ...domain.explanations import explain
from .command_lines import CommandLines
from .escaping import one_line
from .ways_on import WayOn, choosing, declaring_over, ending, settling

Json = dict[str, Any]

_SEEN: Final = {
    Observation.EFFECT_FREE: "it only reads, was run again, and this is its fresh result",
    Observation.REDELIVERED: "it was delivered again with its recorded key, and this is the answer",
    Observation.MATCHES_EXPECTED_STATE: "its target is exactly as the call was to leave it; it was not run again",
    Observation.ALREADY_SATISFIED: "its target was and is as the call was to leave it; it was not run again",
    Observation.HANDLE_SETTLED: "what it started was found by its handle, and has ended",
}
_LEFT: Final = {
    Left.MAY_BE_RUNNING: "it may still be running",
    Left.COULD_NOT_LOOK: "whether it still runs could not be seen",
    Left.RUN_OPEN: "its run has not ended",
    Left.RUN_UNREADABLE: "its run is damaged, so nothing is written about it",
    Left.FOREIGN: "this store cannot vouch that its outcome is missing, so it is not run again",
    Left.NOT_RECONCILABLE: "it has its outcome, or was never started",
    Left.PARKED: "it was looked at before, and only a person can say more",
    Left.REPEATED: "a later call took its place, and that one's outcome counts",
    Left.NO_RECONCILER: "nobody here can look its effect up",
    Left.NOT_SEEN: "whoever knows could not be asked now",
    Left.RECONCILER_FAILED: "whoever looks its effect up gave no usable answer",
    Left.RECONCILER_TIMED_OUT: "whoever looks its effect up did not answer in time",
    Left.TOOL_CHANGED: "its tool is not here as it was",
    Left.OTHER_WORKSPACE: "the folder is another workspace than the one it ran in",
    Left.COPY_AMBIGUOUS: "more than one folder is the workspace that it ran in: one is a copy",
    Left.WORKSPACE_UNSEEN: "its workspace could not be looked at",
    Left.NOT_DELIVERED: "it was tried once more, and what came back does not say what the first delivery did",
    Left.STOPPED: "it was stopped",
    Left.HANDLE_RUNNING: "what it started has not come to its end",
    Left.CHILD_INTERRUPTED: "the run that it started was interrupted; resumed, that comes to an end",
    Left.HANDLE_LOST: "what it started came to no end that can be seen, and only a person can say what came of it",
    Left.MOVED_ON: "its run does not stand still",
}
_BECAME: Final = {Completed: "completed", NowParked: "parked", LeftAlone: "left"}
AGAIN: Final = frozenset(
    {
        Left.MAY_BE_RUNNING,
        Left.NOT_SEEN,
        Left.RECONCILER_TIMED_OUT,
        Left.WORKSPACE_UNSEEN,
        Left.NOT_DELIVERED,
        Left.STOPPED,
        Left.HANDLE_RUNNING,
        Left.CHILD_INTERRUPTED,
        Left.MOVED_ON,
    }
)
"""Where the same command can come to something else later."""
_SETTLED_BY_HAND: Final = frozenset(
    {
        Left.PARKED,
        Left.NO_RECONCILER,
        Left.RECONCILER_FAILED,
        Left.RECONCILER_TIMED_OUT,
        Left.TOOL_CHANGED,
        Left.HANDLE_LOST,
    }
)


def say_reconciled(say: Callable[[str], None], operations: Iterable[OperationReconciled]) -> None:
    """One line for each operation."""
    for one in operations:
        name = one_line(one.tool_name, 60) or "an operation"
        say(f"{name} (operation {one_line(one.operation_id, 60)}): {_said(one.became)}")


def _said(became: Completed | NowParked | LeftAlone) -> str:
    detail = f" ({one_line(became.detail, 500)})" if became.detail else ""
    match became:
        case Completed():
            failed = " It is an error." if became.is_error else ""
            return f"settled: {_SEEN.get(became.observation, became.observation.value)}{detail}.{failed}"
        case NowParked():
            return f"parked: {explain(became.reason).sentence}{detail} [{became.reason}]"
        case LeftAlone():
            processes = ", ".join(f"{one_line(one.name, 40)} (pid {one.pid})" for one in became.processes)
            running = f": {processes}" if processes else ""
            return f"left as it is: {_LEFT[became.why]}{running}{detail} [{became.why}]"


def of_reconciled(operations: Iterable[OperationReconciled]) -> list[Json]:
    """For JSON."""
    return [_document(one) for one in operations]


def _document(one: OperationReconciled) -> Json:
    became = one.became
    left = became if isinstance(became, LeftAlone) else None
    return {
        "operation_id": one.operation_id,
        "run_id": one.run_id,
        "tool": one.tool_name,
        "mode": None if one.mode is None else one.mode.value,
        "became": _BECAME[type(became)],
        "observation": None if isinstance(became, LeftAlone) else became.observation.value,
        "code": left.why.value if left else became.reason.value if isinstance(became, NowParked) else None,
        "is_error": became.is_error if isinstance(became, Completed) else None,
        "detail": became.detail,
        "child": None if left is None else left.child,
        "processes": [{"pid": process.pid, "name": process.name} for process in (left.processes if left else ())],
    }


def ways_after(operations: Iterable[OperationReconciled], session: str, commands: CommandLines) -> Iterator[WayOn]:
    """What can be done about those that have no outcome now."""
    again, copied = False, set[tuple[str, ...]]()
    for one in operations:
        match one.became:
            case NowParked():
                yield from settling(commands, one.operation_id, one.tool_name)
            case LeftAlone(why=why, processes=processes):
                yield from ending(processes, one.tool_name)
                if why is Left.COULD_NOT_LOOK:
                    yield declaring_over(commands, one.operation_id, one.tool_name)
                again = again or why in AGAIN
                if why in _SETTLED_BY_HAND:
                    yield from settling(commands, one.operation_id, one.tool_name)
                if one.became.child is not None:
                    yield WayOn(commands.about("plan", one.became.child), "see what a resume of that run would do")
                if one.became.folders:
                    copied.add(one.became.folders)
            case Completed():
                pass
    for folders in sorted(copied):
        yield from choosing(commands, folders)
    if again:
        yield WayOn(commands.about("reconcile", session), "look again later")
