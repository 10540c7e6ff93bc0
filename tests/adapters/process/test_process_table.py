"""The process table of a real host."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.process import ending, process_table
from safepoint.ports.contract_kit.supervisor import eventually


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a name that is hard to parse."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    shutil.copy(sleep, tmp_path / "a) S 1 (b")
    with subprocess.Popen([tmp_path / "a) S 1 (b", "300"], stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


def test_a_process_is_read_whatever_its_name_is(sleeping: subprocess.Popen[bytes]) -> None:
    process = process_table.find(sleeping.pid)
    assert process is not None
    assert (process.name, process.parent, process.group) == ("a) S 1 (b", os.getpid(), sleeping.pid)
    assert (process.ended, process.stopped) == (False, False)
    assert sleeping.pid in {child.pid for child in process_table.descendants(os.getpid(), process_table.everything())}


def test_a_stopped_process_is_told_from_an_ended_one(sleeping: subprocess.Popen[bytes]) -> None:
    sleeping.send_signal(signal.SIGSTOP)
    assert eventually(lambda: getattr(process_table.find(sleeping.pid), "stopped", False))
    sleeping.kill()
    assert eventually(
        lambda: getattr(process_table.find(sleeping.pid), "ended", False)
    )  # a zombie until it is waited for
    assert sleeping.pid not in {
        child.pid for child in process_table.descendants(os.getpid(), process_table.everything())
    }
    sleeping.wait()
    assert process_table.find(sleeping.pid) is None


def test_ps_tells_the_same_where_there_is_no_proc(sleeping: subprocess.Popen[bytes]) -> None:
    from_proc = process_table.find(sleeping.pid)
    (from_ps,) = process_table._from_ps("-p", str(sleeping.pid))
    assert from_proc is not None
    for fact in ("pid", "parent", "group", "ended", "stopped"):
        assert getattr(from_ps, fact) == getattr(from_proc, fact)
    assert process_table._from_ps("-p", str(sleeping.pid))[0].start_time == from_ps.start_time > 1_000_000_000


def test_a_signal_reaches_the_process_with_that_start_time_and_no_other(sleeping: subprocess.Popen[bytes]) -> None:
    process = process_table.find(sleeping.pid)
    assert process is not None
    assert not ending.signal_exactly(sleeping.pid, process.start_time + 1, signal.SIGKILL)
    assert not ending.signal_exactly(sleeping.pid, process.start_time - 1, signal.SIGKILL)
    assert sleeping.poll() is None
    assert ending.signal_exactly(sleeping.pid, process.start_time, signal.SIGKILL)
    assert sleeping.wait() == -signal.SIGKILL
    assert not ending.signal_exactly(sleeping.pid, process.start_time, signal.SIGKILL)
