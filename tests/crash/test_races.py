"""Two to four processes that want the same session at the same moment: one wins, and the others are told."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from .harness.program import Ended, Hooks, Started
from .harness.record import Record
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import codes, kill

RACES = 50
"""Of each of two kinds of two processes; beside them stand those of two to four processes."""
MIXED_RACES, MIXED_RACES_OF_A_SOAK = 100, 800
RACES_PER_TEST = 10
TRANSACTIONS_BEFORE_THE_PROVIDER = 5
"""Registering, taking the session, repair, claim or admission, start: a process waits before one of them."""

START, TURN, RESUME, TAKE_OVER = ("run", "pay"), ("run", "and now?"), ("resume",), ("takeover",)

Report = Callable[[str, object], None]


@contextmanager
def interrupted(stage: Stage, numbers: range) -> Iterator[list[str]]:
    """Sessions that were killed at P6, in one store; in the end everything in it must be sound."""
    stage.play([step("I pay.", PAYMENT.call), *(step(f"{number} more.") for number in range(1, 10))])
    sessions = [f"s{number}" for number in numbers]
    for session in sessions:
        kill(stage, "run", "pay", at="P6", session=session)
    before = stage.record
    yield sessions
    assert stage.record.begins_with(before)
    assert stage.effects() == ["paid"] * len(sessions)
    assert stage.look("verify").expect(0)["sound"]


def race(
    stage: Stage, session: str, randomness: random.Random, *commands: tuple[str, ...], victim: int | None = None
) -> list[Ended]:
    """Start processes, let each stop itself before one of its transactions, and let all go on at once.

    A take-over would end those that stand still, so it is started when the others go on. The victim is killed before
    a later transaction, if it comes that far.
    """
    started: dict[int, Started] = {}
    for number, command in enumerate(commands):
        if command != TAKE_OVER:
            place = randomness.randint(1, TRANSACTIONS_BEFORE_THE_PROVIDER)
            death = randomness.randint(place + 1, place + TRANSACTIONS_OF_A_TURN) if number == victim else None
            hooks = Hooks(stop=f"store.begin:{place}", kill="" if death is None else f"store.begin:{death}")
            started[number] = stage.start(*command, hooks=hooks, session=session)
    waiting = [number for number, one in started.items() if one.stopped(or_ended=True)]
    waiting += [number for number, command in enumerate(commands) if command == TAKE_OVER]
    randomness.shuffle(waiting)
    for number in waiting:
        if number in started:
            started[number].go_on()
        else:
            started[number] = stage.start(*commands[number], session=session)
    return [started[number].ended() for number in range(len(commands))]


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


MIXES: Sequence[tuple[tuple[str, ...], ...]] = (
    (TURN, RESUME),
    (TURN, TAKE_OVER),
    (TURN, TURN, RESUME),
    (TURN, RESUME, TAKE_OVER),
    (RESUME, RESUME, TAKE_OVER),
    (TURN, RESUME, RESUME, RESUME),
    (TURN, TURN, RESUME, TAKE_OVER),
)
"""Who races for one session, again and again; a take-over repairs, and ends whoever works on the session."""
STARTS: Sequence[int] = (2, 3, 4)
"""How many race to begin a session that does not exist."""
KILLED_PER_RACE = 0.7
"""How likely it is that one of the processes of a race is killed, before one of its transactions."""
TRANSACTIONS_OF_A_TURN = 11
ENDED_BY_SIGNAL = {-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM}
TOLD: Mapping[int, set[str]] = {
    0: set(),
    3: {"resume_candidate_missing", "dangling_tool_state", "source_superseded"},
    5: {
        *("session_busy", "owner_fenced", "takeover_refused", "store_unavailable"),
        *("resume_candidate_missing", "dangling_tool_state"),
    },
}
"""What a process may be told, by its exit code, that is neither killed nor ended by a take-over."""


def race_on(stage: Stage, numbers: range, seed: int, record_property: Report) -> None:
    """Let processes race for one session, race after race; some of them are killed, and the next race begins there."""
    payments = [step(f"{number} I pay.", PAYMENT.call) if number % 2 else step(f"{number}.") for number in range(1, 99)]
    stage.play(payments)
    kill(stage, "run", "pay", at="P6")
    before = stage.record
    for number in numbers:
        randomness = random.Random(f"{seed} mixed {number}")
        mix = MIXES[number % len(MIXES)]
        victim = randomness.randrange(len(mix)) if randomness.random() < KILLED_PER_RACE else None
        ended = race(stage, SESSION, randomness, *mix, victim=victim)
        kind = " + ".join(verb for verb, *_ in mix)
        record_property(f"{len(mix)} processes: {kind}", sorted(end_of(one) for one in ended))
        record = stage.record
        assert record.begins_with(before), "a committed fact was lost or changed"
        before = record
        check_race(stage, record)
    stage.do("run", "still there?").expect(0)
    check_ends_of(stage)


def end_of(ended: Ended) -> str:
    """What a process was told, if it lived to be told anything."""
    if ended.exit_code in ENDED_BY_SIGNAL:
        return "ended"
    code, said = (0, "") if ended.exit_code == 0 else told(ended)
    assert set(said.split(",")) - {""} <= TOLD[code], ended
    return said or "done"


def check_race(stage: Stage, record: Record) -> None:
    """One answered request for a step, one child of a boundary, and no effect without its dispatch or beside it."""
    asked = Counter((request["run_id"], request["model_steps"]) for request in stage.requests)
    assert set(asked.values()) <= {1}, f"asked twice: {asked}"
    assert not [request for request in stage.requests if "refused" in request]
    claims = record.of_session(SESSION, "run.claimed.v1")
    assert len({claim["boundary_digest"] for claim in claims}) == len(claims), "a boundary was claimed twice"
    targets = [claim["target"]["run_id"] for claim in claims]
    admitted = record.of_stream(f"session:{SESSION}", "session.run_admitted.v1")
    assert [one["run_id"] for one in admitted if one["kind"] == "continuation"] == targets
    dispatched = len(record.of_session(SESSION, "tool.dispatched.v1"))
    answered = [one for one in record.of_session(SESSION, "tool.responded.v1") if one["effect"] == "done"]
    assert len(answered) <= len(stage.effects()) <= dispatched


def check_ends_of(stage: Stage) -> None:
    """Each run has one terminal event, and all that is stored verifies."""
    record = stage.record
    assert [len(ends) for ends in record.ends(SESSION)] == [1] * len(record.run_ids(SESSION))
    assert stage.look("verify").expect(0)["sound"]


@pytest.mark.parametrize("first", range(0, MIXED_RACES, RACES_PER_TEST))
def test_of_two_to_four_processes_one_goes_on_at_a_time_and_no_session_is_lost(
    forked_stage: Stage, first: int, seed: int, record_property: Report
) -> None:
    race_on(forked_stage, range(first, first + RACES_PER_TEST), seed, record_property)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(MIXED_RACES, MIXED_RACES + MIXED_RACES_OF_A_SOAK, RACES_PER_TEST))
def test_of_many_more_processes_one_goes_on_at_a_time_and_no_session_is_lost(
    forked_stage: Stage, first: int, seed: int, record_property: Report
) -> None:
    race_on(forked_stage, range(first, first + RACES_PER_TEST), seed, record_property)


@pytest.mark.parametrize("processes", STARTS)
def test_of_processes_that_begin_one_session_each_turn_has_its_own_history_and_its_own_effect(
    forked_stage: Stage, processes: int, seed: int, record_property: Report
) -> None:
    stage = forked_stage
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])

    ended = race(stage, "new", random.Random(f"{seed} start {processes}"), *([START] * processes))

    outcomes = [told(one) for one in ended]
    record_property(f"{processes} starts", sorted(outcomes))
    assert (0, "") in outcomes
    assert set(outcomes) <= {(0, ""), (5, "session_busy")}
    assert stage.effects() == ["paid"] * outcomes.count((0, ""))
    assert stage.record.ends("new") == [["completed"]] * outcomes.count((0, ""))
