"""Every implementation of `Ids` keeps its contract."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.domain.identifiers import EventId, RunId
from safepoint.ports.contract_kit.ids import IdsContract


def in_threads(functions: Sequence[Callable[[], list[str]]]) -> list[list[str]]:
    with ThreadPoolExecutor(len(functions)) as pool:
        return [running.result() for running in [pool.submit(function) for function in functions]]


class TestUuid7Ids(IdsContract):
    @pytest.fixture
    def ids(self) -> Uuid7Ids:
        return Uuid7Ids()

    @pytest.fixture
    def at_once(self) -> Callable[[Sequence[Callable[[], list[str]]]], list[list[str]]]:
        return in_threads

    def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front(self) -> None:
        made = UUID(Uuid7Ids(lambda: 0x0190_1234_5678 * 1_000_000).fresh(RunId))
        assert (made.version, made.variant) == (7, "specified in RFC 4122")
        assert made.int >> 80 == 0x0190_1234_5678

    def test_order_is_kept_when_the_clock_stands_still_or_goes_back(self) -> None:
        times = iter([5_000_000_000, 5_000_000_000, 4_000_000_000, 5_000_000_001])
        ids = Uuid7Ids(lambda: next(times))
        made = [ids.fresh(EventId) for _ in range(4)]
        assert made == sorted(set(made))

    def test_the_last_tick_of_a_millisecond_is_followed_by_the_next_millisecond(self) -> None:
        ids = Uuid7Ids(lambda: 1_999_999)
        first, second = UUID(ids.fresh(str)), UUID(ids.fresh(str))
        assert (first.int >> 80, first.int >> 64 & 0xFFF) == (1, 4095)
        assert (second.int >> 80, second.int >> 64 & 0xFFF) == (2, 0)


class TestCountingIds(IdsContract):
    @pytest.fixture
    def ids(self) -> CountingIds:
        return CountingIds()

    @pytest.fixture
    def at_once(self) -> Callable[[Sequence[Callable[[], list[str]]]], list[list[str]]]:
        return in_threads

    def test_an_id_can_be_predicted_and_names_its_type(self) -> None:
        ids = CountingIds("a-")
        assert [ids.fresh(RunId), ids.fresh(EventId)] == ["a-000001-RunId", "a-000002-EventId"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked off on POSIX only")
def test_a_process_that_was_forked_off_makes_other_ids_at_the_same_time() -> None:
    program = """
import os, sys
from safepoint.adapters.system.ids import Uuid7Ids
ids = Uuid7Ids(lambda: 0)
ids.fresh(str)
child = os.fork()
sys.stdout.write(ids.fresh(str)[19:] + "\\n")
sys.stdout.flush()
if child:
    os.waitpid(child, 0)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert len(set(told.stdout.split())) == 2
