"""Failpoints that stop the process until it is continued: a real process, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from safepoint.adapters.failpoints.killing import MalformedFailpoint, failpoints_from

PROGRAM = """
import os, sys
from safepoint.adapters.failpoints.killing import failpoints_from
failpoints = failpoints_from(os.environ)
for point in sys.argv[1].split():
    failpoints.hit(point)
    print("passed", point, flush=True)
"""


def test_it_stands_still_at_the_point_until_it_is_continued_and_then_dies_where_it_must(tmp_path: Path) -> None:
    hooks = {"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT_STOP": "P2:2", "SAFEPOINT_FAILPOINT": "P4"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "P1 P2 P2 P3 P4"],
        env={**os.environ, **hooks, "SAFEPOINT_FAILPOINT_TRACE": str(tmp_path / "trace")},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert (tmp_path / "trace").read_text().split() == ["P1", "P2", "P2"]
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert out.splitlines() == ["passed P1", "passed P2", "passed P2", "passed P3"]


def test_a_request_to_stop_that_cannot_be_read_is_refused_by_its_name() -> None:
    with pytest.raises(MalformedFailpoint, match="SAFEPOINT_FAILPOINT_STOP holds 'P4:'"):
        failpoints_from({"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT_STOP": "P4:"})
