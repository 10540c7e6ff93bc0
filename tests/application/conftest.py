"""What the tests of the ledger share: every one runs on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .ledger_world import STORES, World


@pytest.fixture(params=STORES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store with a ledger over it."""
    made = World(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[World]:
    """As `world`, for what only the store in memory can be made to do."""
    made = World("memory", tmp_path)
    yield made
    made.close()
