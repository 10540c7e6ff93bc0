"""A stand-in for a payment: an effect that can be counted from outside. Offered with the scripted provider only."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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

    The path may be anywhere; contract names the recovery mode that is declared. An idempotent one keeps the keys of its
    deliveries in a file beside it, and a key that it knows appends nothing more.
    """
    if "\n" in line or "\r" in line:
        raise RefusedWithoutEffect("line holds a line end; it must be one line")
    target = context.workspace / Path(path)
    try:
        file = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        raise RefusedWithoutEffect(f"{path!r} cannot be opened for appending: {error}") from error
    written = f"{line}\n".encode()
    try:
        context.failpoint("tool.record_effect.before_effect")
        if contract == "idempotent":
            _append_once(file, Path(f"{target}.keys"), context.idempotency_key, written)
        else:
            _append(file, written)
        context.failpoint("tool.record_effect.after_effect")
    finally:
        os.close(file)
    return {"recorded": line}


def _append(file: int, written: bytes) -> None:
    os.write(file, written)
    os.fsync(file)


def _append_once(file: int, keys: Path, key: str, written: bytes) -> None:
    """Note the key and where its line will stand, then append; a line that stands where a key says was delivered."""
    with _locked(keys) as noted:
        for known in _lines_of(noted):
            if known["key"] == key and os.pread(file, len(written), known["at"]) == written:
                return
        note = json.dumps({"key": key, "at": os.fstat(file).st_size}, separators=(",", ":"))
        _append(noted, f"\n{note}\n".encode())  # apart from one that was cut off
        _append(file, written)


@contextmanager
def _locked(keys: Path) -> Iterator[int]:
    noted = os.open(keys, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(noted, fcntl.LOCK_EX)
        yield noted
    finally:
        os.close(noted)


def _lines_of(noted: int) -> list[dict[str, Any]]:
    text = os.pread(noted, os.fstat(noted).st_size, 0).decode()
    return [json.loads(one) for one in text.splitlines() if one.startswith("{") and one.endswith("}")]
