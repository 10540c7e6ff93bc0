"""A stand-in for a payment: an effect that can be counted from outside. Offered with the scripted provider only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ....domain.errors import RefusedWithoutEffect
from ....domain.events.event import Json
from ....ports.tool_catalog import ToolContext
from ..decorator import tool

ContractName: TypeAlias = Literal[
    "replay_safe", "idempotent", "reconcile", "reattach", "outcome_unknown", "never_auto_retry"
]


def _declared(arguments: Mapping[str, Any]) -> str:
    return str(arguments["contract"])


def _resource(arguments: Mapping[str, Any]) -> str:
    return f"effects:{arguments['path']}"


def _in_workspace(arguments: Mapping[str, Any]) -> bool:
    return not os.path.isabs(arguments["path"])  # noqa: PTH117 (the text alone is looked at)


@tool(recovery=_declared, resource_key=_resource, key_valid_seconds=86_400, writes_workspace=_in_workspace)
def record_effect(
    context: ToolContext, path: str, line: str, contract: ContractName = "never_auto_retry"
) -> dict[str, Json]:
    """Append one line to a file, durably.

    The path may be anywhere; contract names the recovery mode that is declared.
    """
    if "\n" in line or "\r" in line:
        raise RefusedWithoutEffect("line holds a line end; it must be one line")
    target = context.workspace / Path(path)
    try:
        file = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        raise RefusedWithoutEffect(f"{path!r} cannot be opened for appending: {error}") from error
    try:
        context.failpoint("tool.record_effect.before_effect")
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
        context.failpoint("tool.record_effect.after_effect")
    finally:
        os.close(file)
    return {"recorded": line}
