"""Failpoints that kill: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from safepoint.adapters.failpoints.killing import KillingFailpoints, MalformedFailpoint, Trigger, failpoints_from
from safepoint.adapters.failpoints.null import NoFailpoints
from safepoint.ports.failpoints import Failpoint

PROGRAM = """
import atexit, os, sys
from safepoint.adapters.failpoints.killing import failpoints_from
atexit.register(lambda: print("cleanup", flush=True))
failpoints = failpoints_from(os.environ)
try:
    for point in sys.argv[1].split():
        failpoints.hit(point)
        print("passed", point, flush=True)
finally:
    print("finally", flush=True)
"""


def run(points: str, **environment: str) -> tuple[int, list[str]]:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, points],
        env={**{name: value for name, value in os.environ.items() if "SAFEPOINT" not in name}, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.splitlines()


KILLED = -signal.SIGKILL


@pytest.mark.parametrize(
    ("asked", "points", "passed"),
    [
        ("P4", "P3 P4 P5", ["passed P3"]),
        ("P4:2", "P4 P3 P4 P4", ["passed P4", "passed P3"]),
        (
            "P9,store.statement:3",
            "store.statement P4 store.statement store.statement P9",
            ["passed store.statement", "passed P4", "passed store.statement"],
        ),
        ("random:3", "P1 P2 P3 P4", ["passed P1", "passed P2"]),
        ("P11.claim", "P1 P11 P11.claim", ["passed P1", "passed P11"]),
        ("P11*:2", "P1 P11.claim P11.start", ["passed P1", "passed P11.claim"]),
    ],
)
def test_the_process_dies_at_the_point_and_cleans_nothing_up(asked: str, points: str, passed: list[str]) -> None:
    assert run(points, SAFEPOINT_TEST_HOOKS="1", SAFEPOINT_FAILPOINT=asked) == (KILLED, passed)


def test_a_point_that_is_never_hit_lets_the_program_end() -> None:
    code, lines = run("P1 P2", SAFEPOINT_TEST_HOOKS="1", SAFEPOINT_FAILPOINT="P4")
    assert (code, lines) == (0, ["passed P1", "passed P2", "finally", "cleanup"])


@pytest.mark.parametrize("hooks", [{}, {"SAFEPOINT_TEST_HOOKS": "0"}, {"SAFEPOINT_TEST_HOOKS": "true"}])
def test_without_the_test_hooks_nobody_dies_and_nothing_is_traced(hooks: dict[str, str], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    code, _ = run("P1 P4", SAFEPOINT_FAILPOINT="P4", SAFEPOINT_FAILPOINT_TRACE=str(trace), **hooks)
    assert code == 0
    assert not trace.exists()


def test_the_trace_names_every_hit_up_to_the_fatal_one(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    hooks = {"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT_TRACE": str(trace)}
    assert run("P1 store.statement", **hooks)[0] == 0
    assert run("P2 P4 P5", SAFEPOINT_FAILPOINT="P4", **hooks)[0] == KILLED
    assert trace.read_text().split() == ["P1", "store.statement", "P2", "P4"]


@pytest.mark.parametrize("text", ["P4:", "P4:0", "P4:-1", "P4:x", ":2", "P4,,P5", "random", "random:0", "P4:²"])
def test_a_request_that_cannot_be_read_stops_the_harness_and_not_the_process_under_test(text: str) -> None:
    with pytest.raises(MalformedFailpoint, match="POINT, POINT:N or random:N"):
        failpoints_from({"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": text})


@pytest.mark.parametrize("environment", [{}, {"SAFEPOINT_FAILPOINT": "P4"}, {"SAFEPOINT_TEST_HOOKS": "1"}])
def test_in_production_failpoints_do_nothing(environment: dict[str, str]) -> None:
    assert isinstance(failpoints_from(environment), NoFailpoints)


def test_hits_of_several_threads_are_counted_one_by_one() -> None:
    deaths: list[int] = []
    failpoints = KillingFailpoints([Trigger(Failpoint.EFFECT_DONE, 400)], die=lambda: deaths.append(1))

    def hit_often() -> None:
        for _ in range(100):
            failpoints.hit("P4")

    threads = [threading.Thread(target=hit_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert deaths == [1]
