"""Both implementations of `Incarnations` keep its contract."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.memory.incarnations import MemoryIncarnations
from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.ports.contract_kit.incarnations import IncarnationsContract
from safepoint.ports.incarnations import Incarnation, Liveness

LIVE = """
import sys
from pathlib import Path
from safepoint.adapters.process.incarnations import FileLockIncarnations
held = FileLockIncarnations(Path(sys.argv[1])).enter()
print(held.incarnation.model_dump_json(), flush=True)
sys.stdin.read()
"""


class TestMemoryIncarnations(IncarnationsContract):
    @pytest.fixture
    def incarnations(self) -> MemoryIncarnations:
        return MemoryIncarnations()

    @pytest.fixture
    def observer(self, incarnations: MemoryIncarnations) -> MemoryIncarnations:
        return MemoryIncarnations(incarnations.host)

    @pytest.fixture
    def other_process(self, incarnations: MemoryIncarnations) -> Incarnation:
        return MemoryIncarnations(incarnations.host).enter().incarnation

    def test_a_process_that_does_not_end_stays_alive(
        self, incarnations: MemoryIncarnations, observer: MemoryIncarnations
    ) -> None:
        held = incarnations.enter()
        incarnations.ends = False
        assert observer.end(held.incarnation, timeout_seconds=1.0) is Liveness.ALIVE
        incarnations.die()
        assert observer.probe(held.incarnation) is Liveness.DEAD

    def test_every_observer_sees_what_a_test_told(
        self, incarnations: MemoryIncarnations, observer: MemoryIncarnations
    ) -> None:
        held = incarnations.enter()
        for liveness in Liveness:
            incarnations.tell(held.incarnation, liveness)
            assert observer.probe(held.incarnation) is liveness
        incarnations.tell(held.incarnation, None)
        assert observer.probe(held.incarnation) is Liveness.ALIVE
        observer.delete_lock_file(held.incarnation)
        assert observer.probe(held.incarnation) is Liveness.COULD_NOT_LOOK


class TestFileLockIncarnations(IncarnationsContract):
    @pytest.fixture
    def incarnations(self, tmp_path: Path) -> FileLockIncarnations:
        return FileLockIncarnations(tmp_path / "store.locks")

    @pytest.fixture
    def observer(self, tmp_path: Path) -> FileLockIncarnations:
        return FileLockIncarnations(tmp_path / "store.locks")

    @pytest.fixture
    def other_process(self, tmp_path: Path) -> Iterator[Incarnation]:
        command = [sys.executable, "-c", LIVE, str(tmp_path / "store.locks")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            yield Incarnation.model_validate_json(process.stdout.readline())
            process.kill()
