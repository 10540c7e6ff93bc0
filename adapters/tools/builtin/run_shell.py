"""The tool `run_shell`: a command line in processes of its own, under supervision. SPEC section 15."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from ....domain import tool_results
from ....domain.events.event import Json
from ....domain.events.tool import RecordedContract, RecoveryMode
from ....ports.supervised import CapturedOutput, Command, ProcessInfo, SupervisedExit
from ....ports.tool_catalog import (
    Arguments,
    BoundCall,
    SchemaMismatch,
    Settled,
    SupervisedCall,
    ToolContext,
)
from ..left_running import detached_main, left_running, process_list
from ..parameters import MisfitArguments, Parameters
from ..promise import BY_ARGUMENTS, spec_of

NAME = "run_shell"
VERSION = 2
"""Of its promise: since 2, how a command ended is looked up by what its supervisor wrote down."""
TIMEOUT_SECONDS_MAX = 3_600
OUTPUT_BYTES_MAX = 64 * 1024
_OWN_PREFIX = "SAFEPOINT_"
_PROVIDER_KEYS = frozenset({"ANTHROPIC_API_KEY", "OPENAI_API_KEY"})


def run_shell(
    command: str, timeout_seconds: Annotated[int, Field(ge=1, le=TIMEOUT_SECONDS_MAX)] = 120, detach: bool = False
) -> None:
    """Run a command with /bin/sh in the workspace and return its exit code and the beginning of its output.

    It is ended after timeout_seconds. With detach it is started and left running; its output is not kept then, so
    redirect it.
    """


def shell_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for commands: the owner's, without keys of model providers and settings of Safepoint
    (F14).
    """
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(_OWN_PREFIX) and name not in _PROVIDER_KEYS
    }


class ShellTool:
    """Binds command lines.

    Args:
        environment: what commands get, asked when one starts; never recorded.
    """

    def __init__(self, environment: Callable[[], Mapping[str, str]] = lambda: shell_environment(os.environ)) -> None:
        self._environment = environment
        self._parameters = Parameters(run_shell)
        contract: dict[str, Json] = {
            "contract_id": NAME,
            "version": VERSION,
            "recovery": RecoveryMode.REATTACH.value,
            "supervised": True,
            "timeout_seconds": BY_ARGUMENTS,
        }
        self.spec = spec_of(NAME, inspect.getdoc(run_shell) or "", self._parameters.schema, contract)

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments."""
        try:
            typed = self._parameters.typed(arguments)
        except MisfitArguments as misfit:
            return SchemaMismatch(NAME, str(misfit))
        return BoundCall(
            tool_name=NAME,
            contract=RecordedContract(
                mode=RecoveryMode.REATTACH,
                contract_id=NAME,
                version=VERSION,
                digest=self.spec.contract_digest,
            ),
            implementation=SupervisedCall(self._work, _settle, _detach if typed["detach"] else None),
            timeout_seconds=typed["timeout_seconds"],
        )

    def _work(self, arguments: Arguments, context: ToolContext) -> Command:
        typed = self._parameters.typed(arguments)
        return Command(
            argv=("/bin/sh", "-c", typed["command"]),
            cwd=str(context.workspace),
            environment=self._environment(),
        )


def _settle(end: SupervisedExit, context: ToolContext) -> Settled:
    left = left_running(end)
    result: dict[str, Json] = {
        "exit_code": end.exit_code,
        "signal": end.signal,
        "stdout": _shown(end.stdout),
        "stdout_bytes": end.stdout.total_bytes,
        "stderr": _shown(end.stderr),
        "stderr_bytes": end.stderr.total_bytes,
        "left_running": [] if left is None else process_list(end.living),
    }
    return Settled(tool_results.prepare_result(result), left)


def _detach(processes: Sequence[ProcessInfo], context: ToolContext) -> Settled:
    result: dict[str, Json] = {"detached": True, "left_running": process_list(processes)}
    return Settled(tool_results.prepare_result(result), detached_main(processes))


def _shown(output: CapturedOutput) -> str:
    """Show the beginning of an output as text; bytes that are no UTF-8 become replacement characters."""
    return tool_results.cut_text(output.data.decode("utf-8", "replace"), OUTPUT_BYTES_MAX)
