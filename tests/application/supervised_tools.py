"""Supervised tools for the supervisor in memory: programs by name, with what a real one would record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from safepoint.adapters.memory.tool_catalog import MemoryTool
from safepoint.adapters.tools.left_running import detached_main, left_running
from safepoint.domain import tool_results
from safepoint.domain.events.tool import Effect, RecoveryMode
from safepoint.ports.supervised import Command, ProcessInfo, SupervisedExit
from safepoint.ports.tool_catalog import Arguments, Settled, SupervisedCall, ToolContext


def runs(
    name: str,
    *,
    detached: bool = False,
    work: Callable[[Arguments, ToolContext], Command] | None = None,
    settle: Callable[[SupervisedExit, ToolContext], Settled] | None = None,
    mode: RecoveryMode = RecoveryMode.OUTCOME_UNKNOWN,
    **contract: Any,
) -> MemoryTool:
    """A tool without arguments that runs the program of its own name."""

    def command(arguments: Arguments, context: ToolContext) -> Command:
        return Command((name,))

    def ended(end: SupervisedExit, context: ToolContext) -> Settled:
        said = {"exit_code": end.exit_code, "stdout": end.stdout.data.decode()}
        return Settled(tool_results.prepare_result(said, effect=Effect.DONE), left_running(end))

    def begun(processes: Sequence[ProcessInfo], context: ToolContext) -> Settled:
        return Settled(tool_results.prepare_result("begun", effect=Effect.DONE), detached_main(processes))

    call = SupervisedCall(work or command, settle or ended, begun if detached else None)
    return MemoryTool(name=name, implementation=call, mode=mode, **contract)
