"""The program for each test, in an environment that names no store of a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from .program import Program, program_in


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program with a store, a workspace and a script folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    for name in ("SAFEPOINT_STORE", "SAFEPOINT_RESUME", "SAFEPOINT_TEST_HOOKS", "SAFEPOINT_FAILPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MAX_TOKENS", "SAFEPOINT_LOG", "SAFEPOINT_OTEL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    return program_in(tmp_path, capsys)
