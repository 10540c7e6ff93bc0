"""The stepped world has no time: nobody in it waits for an owner that may listen a moment later."""

from __future__ import annotations

import pytest

from safepoint.application import commands_from_elsewhere


@pytest.fixture(autouse=True)
def no_waiting_for_ears(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's command asks an owner once, as it would after it has waited."""
    monkeypatch.setattr(commands_from_elsewhere, "EAR_SECONDS", 0.0)
