"""Repair that is killed itself: the next one finishes, and nothing is done twice. SPEC sections 11 and 20."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

from safepoint.adapters.sqlite.store import open_reader
from safepoint.ports.failpoints import Failpoint

from .harness.contract import EXPECTED
from .harness.fork_server import ForkServer
from .harness.left_open import leave_open
from .harness.program import KILLED, Ended, Hooks
from .harness.record import Record
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, codes, kill, look, verdicts

REPAIRING = str(Path(__file__).parent / "harness" / "repairing.py")
SESSIONS, BATCH = 10, 3
OPEN = (Failpoint.CLAIM_COMMITTED, Failpoint.START_COMMITTED, Failpoint.FIRST_STEP)
"""The points of a continuation after which its target is open."""
BEFORE = ("store.statement:1", "store.before_commit")
AFTER = ("store.after_commit",)


# ---- a resume, killed inside of each transaction ---------------------------------------------------------------------


def interrupt(stage: Stage) -> None:
    """A run that was killed when its one effect had its answer."""
    stage.play([step("I pay.", PAYMENT.call), step("Done."), step("Done.")])
    kill(stage, "run", "pay", at="P6")


TRANSACTIONS = {
    "claim": ("P11.claim", "run.claimed.v1"),
    "start": ("P11.start", "continuation.started.v1"),
    "first step": ("P11.step", "model.step_completed.v1"),
    "terminal": ("P9", "run.ended.v1"),
}


@pytest.fixture(scope="session")
def hits_of_resume(tmp_path_factory: pytest.TempPathFactory, forks: ForkServer) -> list[str]:
    """The instants of a resume that nothing disturbs."""
    stage = Stage.in_folder(tmp_path_factory.mktemp("undisturbed") / "stage", forks)
    interrupt(stage)
    return stage.rehearse("resume")


@pytest.mark.parametrize("instant", [*BEFORE, *AFTER])
@pytest.mark.parametrize("transaction", TRANSACTIONS)
def test_a_kill_inside_of_a_transaction_leaves_all_of_it_or_nothing_and_the_next_resume_goes_on(
    forked_stage: Stage, hits_of_resume: list[str], transaction: str, instant: str
) -> None:
    point, topic = TRANSACTIONS[transaction]
    stage = forked_stage
    interrupt(stage)
    at = hits_of_resume.index(point)
    nth = at - hits_of_resume[:at][::-1].index(instant)
    before, requests = stage.record, len(stage.requests)
    died = stage.do("resume", hooks=Hooks(kill=f"random:{nth}"))
    assert died.exit_code == KILLED

    kept = len(stage.record.of_session(SESSION, topic)) - len(before.of_session(SESSION, topic))
    there = 1 if topic == "run.ended.v1" else 0  # repair ended the first run
    assert kept == there + (1 if instant in AFTER else 0)
    death = stage.record
    look(stage)
    ended = transaction == "terminal" and instant in AFTER
    resumed = stage.do("resume").expect(3 if ended else 0)
    assert codes(resumed) == (["resume_candidate_missing"] if ended else [])
    asked = {"claim": 0, "start": 0, "first step": 1, "terminal": 1}[transaction]
    assert len(stage.requests) - requests == asked + (0 if ended else 1)
    assert (stage.effects(), verdicts(stage)) == (["paid"], ["completed / matching_response"])
    assert stage.record.ends(SESSION)[-1] == ["completed"]
    check_record(stage, death)


# ---- a second kill, in the repair of the first -----------------------------------------------------------------------


REPAIR_INSTANTS = {"store.before_commit:2": 0, "store.before_commit:3": 0, "store.after_commit:1": 1}
"""Right before the session is taken, before repair is kept, and after it: how often the run then has its end."""


@pytest.mark.parametrize("instant", REPAIR_INSTANTS)
@pytest.mark.parametrize("point", OPEN, ids=lambda point: point.name)
def test_a_resume_is_killed_and_its_repair_is_killed_and_the_next_resume_goes_on(
    forked_stage: Stage, point: Failpoint, instant: str
) -> None:
    check_second_kill(forked_stage, point, instant, REPAIR_INSTANTS[instant])


@pytest.mark.soak
@pytest.mark.parametrize("point", OPEN, ids=lambda point: point.name)
def test_a_repair_is_killed_at_each_of_its_instants(tmp_path: Path, forks: ForkServer, point: Failpoint) -> None:
    rehearsal = Stage.in_folder(tmp_path / "rehearsal", forks)
    interrupt(rehearsal)
    kill(rehearsal, "resume", at=point)
    for nth in range(1, rehearsal.rehearse("resume").index("P11.claim") + 1):
        check_second_kill(Stage.in_folder(tmp_path / str(nth), forks), point, f"random:{nth}", None)


def check_second_kill(stage: Stage, point: Failpoint, instant: str, ends: int | None) -> None:
    """Kill a resume at a point, the next one within its repair, and resume to the end."""
    interrupt(stage)
    first = kill(stage, "resume", at=point)
    second = stage.do("resume", hooks=Hooks(kill=instant))
    assert second.exit_code == KILLED
    death = stage.record
    assert ends is None or len(death.ends(SESSION)[-1]) == ends
    assert death.begins_with(first.record)
    assert len(stage.requests) == first.requests == EXPECTED[point].requests[0], "repair asks no provider"
    look(stage)
    assert stage.do("resume").expect(0)["status"] == "completed"
    assert len(stage.requests) == EXPECTED[point].requests[1]
    assert (stage.effects(), verdicts(stage)) == (["paid"], ["completed / matching_response"])
    claims = [len(stage.record.of_stream(f"run:{run}", "run.claimed.v1")) for run in stage.record.run_ids(SESSION)]
    assert claims == [1] * (len(claims) - 1) + [0]
    check_record(stage, death)


# ---- repair of many sessions -----------------------------------------------------------------------------------------


def repairs(stage: Stage, hooks: Hooks | None = None) -> Ended:
    return stage.program.run_python(REPAIRING, str(stage.store), str(BATCH), hooks=hooks or Hooks())


def check_repaired(stage: Stage, expected: dict[str, str], left: Record) -> None:
    """Each run has its one end, for the right reason; nothing that stood before was changed; the views agree."""
    record = stage.record
    assert record.begins_with(left)
    ends = {run: record.of_stream(f"run:{run}", "run.ended.v1") for run in expected}
    assert {run: [end["failure_class"] for end in found] for run, found in ends.items()} == {
        run: [failure] for run, failure in expected.items()
    }
    assert {end["recovered"] for found in ends.values() for end in found} == {True}
    assert stage.look("verify").expect(0)["sound"]
    with closing(open_reader(stage.store)) as store:
        assert list(store.owned_sessions()) == []


def kill_and_finish(stage: Stage, instants: list[int]) -> None:
    """Repair, killed at one instant after another, and then to the end."""
    expected = leave_open(stage.store, SESSIONS)
    left = stage.record
    for nth in instants:
        died = repairs(stage, Hooks(kill=f"random:{nth}"))
        assert died.exit_code == KILLED, died
        assert stage.record.begins_with(left)
    last = stage.record
    finished = json.loads(repairs(stage).out)
    assert (finished["alive"], finished["quarantined"]) == (0, 0)
    check_repaired(stage, expected, last)
    assert json.loads(repairs(stage).out)["closed"] == 0


def test_repair_of_many_sessions_is_killed_twice_and_finished_by_the_third(
    stage: Stage, tmp_path: Path, seed: int
) -> None:
    trace = tmp_path / "trace"
    undisturbed = Stage.in_folder(tmp_path / "undisturbed")
    expected = leave_open(undisturbed.store, SESSIONS)
    left = undisturbed.record
    assert json.loads(repairs(undisturbed, Hooks(trace=trace)).out)["closed"] > 0
    check_repaired(undisturbed, expected, left)
    half = len(trace.read_text().split()) // 2
    drawn = random.Random(f"{seed} many")
    kill_and_finish(stage, [drawn.randint(1, half) for _ in range(2)])


@pytest.mark.soak
def test_repair_of_many_sessions_is_killed_at_each_instant(tmp_path: Path) -> None:
    rehearsal, trace = Stage.in_folder(tmp_path / "rehearsal"), tmp_path / "trace"
    leave_open(rehearsal.store, SESSIONS)
    repairs(rehearsal, Hooks(trace=trace))
    for nth in range(1, len(trace.read_text().split()) + 1):
        kill_and_finish(Stage.in_folder(tmp_path / str(nth)), [nth])


def test_two_that_repair_at_once_end_each_run_once(stage: Stage, seed: int) -> None:
    """One stops itself before one of its transactions, while the other repairs all that is not taken."""
    expected = leave_open(stage.store, SESSIONS)
    left = stage.record
    place = random.Random(f"{seed} two").randint(1, 6)
    command = (REPAIRING, str(stage.store), str(BATCH))
    stopped = stage.program._start((), command, Hooks(stop=f"store.begin:{place}"))
    stopped.stopped()
    other = repairs(stage)
    stopped.go_on()
    reports = [json.loads(one.out) for one in (stopped.ended(), other)]
    assert sum(report["closed"] + report["claims"] for report in reports) == len(expected)
    check_repaired(stage, expected, left)
