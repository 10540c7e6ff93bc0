"""Two processes that want the same session at the same moment: one wins, and the other is told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .harness.program import Ended, Hooks
from .harness.record import Record
from .harness.stage import Stage, step
from .harness.tools import PAYMENT
from .harness.trial import codes, kill

RACES = 50
RACES_PER_TEST = 10
TRANSACTIONS_BEFORE_THE_PROVIDER = 5
"""Registering, taking the session, repair, claim or admission, start: a process waits before one of them."""

Report = Callable[[str, object], None]


@contextmanager
def interrupted(stage: Stage, numbers: range) -> Iterator[list[str]]:
    """Sessions that were killed at P6, in one store; in the end everything in it must be sound."""
    stage.play([step("I pay.", PAYMENT.call), step("Done."), step("Again."), step("And again.")])
    sessions = [f"s{number}" for number in numbers]
    for session in sessions:
        kill(stage, "run", "pay", at="P6", session=session)
    before = stage.record
    yield sessions
    assert stage.record.begins_with(before)
    assert stage.effects() == ["paid"] * len(sessions)
    assert stage.look("verify").expect(0)["sound"]


def race(stage: Stage, session: str, randomness: random.Random, *commands: tuple[str, ...]) -> list[Ended]:
    """Start processes, let each stop itself before one of its transactions, and let all go on at once."""
    started = []
    for command in commands:
        place = randomness.randint(1, TRANSACTIONS_BEFORE_THE_PROVIDER)
        started.append(stage.start(*command, hooks=Hooks(stop=f"store.begin:{place}"), session=session))
    waiting = [one for one in started if one.stopped(or_ended=True)]
    randomness.shuffle(waiting)
    for one in waiting:
        one.go_on()
    return [one.ended() for one in started]


def told(ended: Ended) -> tuple[int, str]:
    """The exit code, and why it did not go on."""
    document = ended.expect(ended.exit_code)
    if "reasons" not in document:
        return ended.exit_code, document["code"]
    return ended.exit_code, ",".join([*codes(document), *document.get("changed", ())])


def requests_of(stage: Stage, record: Record, session: str) -> list[dict[str, Any]]:
    """What the provider was asked in a session: once per recorded step, never twice for the same."""
    runs = record.run_ids(session)
    requests = [request for request in stage.requests if request["run_id"] in runs]
    asked = Counter((request["run_id"], request["model_steps"]) for request in requests)
    assert set(asked.values()) == {1}, f"asked twice: {asked}"
    assert len(requests) == len(record.of_session(session, "model.step_completed.v1"))
    assert not [request for request in requests if "refused" in request]
    return requests


def check_ends(record: Record, session: str, statuses: list[str]) -> None:
    """Each run has one terminal event."""
    assert record.ends(session) == [[status] for status in statuses]


@pytest.mark.parametrize("first", range(0, RACES, RACES_PER_TEST))
def test_r3_078_r3_077_r3_039_of_two_processes_that_resume_one_session_one_goes_on_and_the_other_is_told(
    forked_stage: Stage, first: int, seed: int, record_property: Report
) -> None:
    stage = forked_stage
    with interrupted(stage, range(first, first + RACES_PER_TEST)) as sessions:
        for session in sessions:
            both = race(stage, session, random.Random(f"{seed} {session}"), ("resume",), ("resume",))
            outcomes = sorted(told(one) for one in both)
            record_property("resume and resume", outcomes[1])
            assert outcomes[0] == (0, "")
            assert outcomes[1] in {(3, "resume_candidate_missing"), (5, "session_busy")}
            record = stage.record
            check_ends(record, session, ["failed", "completed"])
            assert len(requests_of(stage, record, session)) == 2


@pytest.mark.parametrize("first", range(0, RACES, RACES_PER_TEST))
def test_of_a_new_turn_and_a_resume_at_one_moment_one_goes_first_and_nothing_is_lost(
    forked_stage: Stage, first: int, seed: int, record_property: Report
) -> None:
    stage = forked_stage
    with interrupted(stage, range(first, first + RACES_PER_TEST)) as sessions:
        for session in sessions:
            turn, resume = race(
                stage, session, random.Random(f"{seed} turn {session}"), ("run", "and now?"), ("resume",)
            )
            outcomes = told(turn), told(resume)
            record_property("new turn and resume", outcomes)
            check_turn_and_resume(stage, session, *outcomes)


def check_turn_and_resume(stage: Stage, session: str, turn: tuple[int, str], resume: tuple[int, str]) -> None:
    """Both may go on only where one had ended before the other began."""
    record = stage.record
    kinds = [fact["kind"] for fact in record.of_stream(f"session:{session}", "session.run_admitted.v1")][1:]
    check_ends(record, session, ["failed"] + ["completed"] * len(kinds))
    requests_of(stage, record, session)
    match turn, resume:
        case (0, ""), (0, ""):
            assert kinds == ["continuation", "turn"]
        case (0, ""), (3, "resume_candidate_missing") | (5, "session_busy"):
            assert kinds == ["turn"]
        case (5, "session_busy"), (0, ""):
            assert kinds == ["continuation"]
        case _:
            pytest.fail(f"turn {turn}, resume {resume}, admitted {kinds}")
