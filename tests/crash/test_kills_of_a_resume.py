"""Kills at the instants of a resume and of the making of a store: going on converges, and repeats nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from .harness.fork_server import ForkServer
from .harness.program import KILLED, Hooks
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, codes, kill, look, verdicts

KILLS = 16


@pytest.fixture(scope="session")
def hits_of_resume(tmp_path_factory: pytest.TempPathFactory, forks: ForkServer) -> list[str]:
    """The instants of a resume that nothing disturbs."""
    stage = Stage.in_folder(tmp_path_factory.mktemp("undisturbed") / "stage", forks)
    interrupt(stage)
    return stage.rehearse("resume")


def interrupt(stage: Stage) -> None:
    """A run that was killed when its one effect had its answer."""
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    kill(stage, "run", "pay", at="P6")


def check_kill_of_resume(stage: Stage, nth: int) -> None:
    """Kill a resume at its nth instant, then resume to the end."""
    interrupt(stage)
    died = stage.start("resume", hooks=Hooks(kill=f"random:{nth}"))
    assert died.ended().exit_code == KILLED
    record, requests = stage.record, len(stage.requests)
    look(stage)
    ended = record.ends(SESSION)[1:] == [["completed"]]
    resumed = stage.do("resume").expect(3 if ended else 0)
    assert codes(resumed) == (["resume_candidate_missing"] if ended else [])
    assert len(stage.requests) == requests + (0 if ended else 1)
    assert stage.effects() == ["paid"]
    assert verdicts(stage) == ["completed / matching_response"]
    assert stage.record.ends(SESSION)[-1] == ["completed"]
    check_record(stage, record)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_resume_that_is_killed_at_any_instant_is_resumed_to_the_same_end(
    forked_stage: Stage, number: int, seed: int, hits_of_resume: list[str]
) -> None:
    check_kill_of_resume(forked_stage, random.Random(f"{seed} resume {number}").randint(1, len(hits_of_resume)))


@pytest.mark.soak
def test_a_resume_that_is_killed_at_each_instant_is_resumed_to_the_same_end(
    tmp_path: Path, forks: ForkServer, hits_of_resume: list[str]
) -> None:
    for nth in range(1, len(hits_of_resume) + 1):
        check_kill_of_resume(Stage.in_folder(tmp_path / str(nth), forks), nth)


def test_a_store_whose_maker_or_first_owner_was_killed_at_any_instant_is_used_by_the_next(
    forked_stage: Stage, tmp_path: Path, forks: ForkServer
) -> None:
    forked_stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    before_the_first_commit = forked_stage.rehearse("run", "pay").index("store.after_commit")
    for nth in range(1, before_the_first_commit + 1):
        check_kill_of_first_run(Stage.in_folder(tmp_path / str(nth), forks), nth)


def check_kill_of_first_run(stage: Stage, nth: int) -> None:
    """Kill before anything is committed: nothing was there, and the same command starts anew."""
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    assert stage.do("run", "pay", hooks=Hooks(kill=f"random:{nth}")).exit_code == KILLED
    assert stage.record.streams == {}
    assert stage.do("run", "pay").expect(0)["status"] == "completed"
    assert (stage.effects(), len(stage.requests)) == (["paid"], 2)
    assert stage.look("verify").expect(0)["sound"]
