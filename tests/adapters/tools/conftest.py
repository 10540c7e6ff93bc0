"""A call's context over a real folder."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.domain.identifiers import ExecutionIdentity, InvocationId, OperationId, RunId, SessionId, TurnId
from safepoint.ports.tool_catalog import ToolContext


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def failpoints() -> RecordingFailpoints:
    return RecordingFailpoints()


@pytest.fixture
def cancel() -> threading.Event:
    return threading.Event()


@pytest.fixture
def context(workspace: Path, failpoints: RecordingFailpoints, cancel: threading.Event) -> ToolContext:
    return ToolContext(
        identity=ExecutionIdentity(SessionId("s"), RunId("r"), TurnId("t"), InvocationId("i")),
        operation_id=OperationId("operation-1"),
        idempotency_key="key-1",
        workspace=workspace,
        cancel=cancel,
        report=lambda line: None,
        failpoints=failpoints,
    )
