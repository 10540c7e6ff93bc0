"""Both implementations of `Handover` keep its contract."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safepoint.adapters.memory.handover import MemoryHandover
from safepoint.adapters.memory.incarnations import MemoryIncarnations
from safepoint.adapters.process.handover import UnixSocketHandover
from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.ports.contract_kit.handover import HandoverContract
from safepoint.ports.incarnations import Incarnation


class HoldsUp(HandoverContract):
    @pytest.fixture
    def hold_up(self) -> Iterator[Callable[[float], object]]:
        over = threading.Event()
        yield over.wait
        over.set()


class TestMemoryHandover(HoldsUp):
    @pytest.fixture
    def handover(self) -> MemoryHandover:
        return MemoryHandover()

    @pytest.fixture
    def other_side(self, handover: MemoryHandover) -> MemoryHandover:
        return handover

    @pytest.fixture
    def owner(self) -> Incarnation:
        return MemoryIncarnations().enter().incarnation


class TestUnixSocketHandover(HoldsUp):
    @pytest.fixture
    def handover(self, tmp_path: Path) -> UnixSocketHandover:
        return UnixSocketHandover(tmp_path / "store.locks")

    @pytest.fixture
    def other_side(self, tmp_path: Path) -> UnixSocketHandover:
        return UnixSocketHandover(tmp_path / "store.locks")

    @pytest.fixture
    def owner(self, tmp_path: Path) -> Iterator[Incarnation]:
        held = FileLockIncarnations(tmp_path / "store.locks").enter()
        yield held.incarnation
        held.leave(keep_lock_file=False)


class TestUnixSocketHandoverInADeepFolder(TestUnixSocketHandover):
    """The address of a Unix socket holds 107 bytes; a folder's path may be longer."""

    @pytest.fixture
    def tmp_path(self, tmp_path: Path) -> Path:
        deep = tmp_path / ("d" * 100) / ("e" * 100)
        deep.mkdir(parents=True)
        return deep
