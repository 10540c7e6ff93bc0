"""What is looked at again after a kill, by every promise; and kills of the looking itself. SPEC sections 10 and 20.

Effects are counted from outside. However often reconciling dies, the next one finishes its work: one bundle for the
operation, and never a second effect.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from safepoint.ports.failpoints import Failpoint

from .harness.contract import OF_PROMISES
from .harness.fork_server import ForkServer
from .harness.program import KILLED, Hooks
from .harness.stage import SESSION, Stage, call, step
from .harness.tools import CONFIG, NEW, OLD, OTHERS, PAYMENT, Tool
from .harness.trial import check_record, codes, kill, look, verdicts, wait_until_over

KILLS = 20
KILLS_OF_SOAK = 400
TOOLS: Mapping[str, Tool] = {one.mode: one for one in (*OTHERS, PAYMENT) if one.name not in {"write_file", "edit_file"}}
CELLS = [(mode, point) for mode, by_point in OF_PROMISES.items() for point in by_point]


def begin(stage: Stage, tool: Tool, at: str) -> None:
    """Die in the middle of a call."""
    (stage.workspace / CONFIG).write_text(OLD)
    stage.play([step("I do it.", tool.call), step("Done.")])
    kill(stage, "run", "do it", at=at)
    wait_until_over(stage)


@pytest.mark.parametrize(("mode", "point"), CELLS, ids=[f"{mode}-{point}" for mode, point in CELLS])
def test_what_a_promise_lets_recovery_do_is_done_and_the_run_goes_on_or_waits_for_a_person(
    forked_stage: Stage, mode: str, point: Failpoint
) -> None:
    stage, tool, expected = forked_stage, TOOLS[mode], OF_PROMISES[mode][point]
    begin(stage, tool, str(point))
    record = stage.record
    assert (tool.effects(stage), len(stage.requests)) == (expected.effects[0], expected.requests[0])
    assert codes(look(stage)) == ["dangling_tool_state"]

    parks = expected.became.startswith("parked")
    resumed = stage.do("resume", "--reconcile").expect(3 if parks else 0)
    (operation,) = resumed["reconciled"]
    assert operation["observation"] == expected.observation
    assert became(operation) == expected.became
    assert (tool.effects(stage), len(stage.requests)) == (expected.effects[1], expected.requests[1])
    if parks:
        assert codes(resumed) == ["tool_recovery_parked"]
    check_record(stage, record)


def became(operation: dict[str, Any]) -> str:
    """As the contract writes it."""
    if operation["became"] == "parked":
        return f"parked: {operation['code']}"
    return f"{operation['became']}, an error" if operation["is_error"] else str(operation["became"])


def test_r3_124_a_command_that_was_killed_is_found_with_its_signal_and_never_with_exit_status_0(
    forked_stage: Stage,
) -> None:
    stage = forked_stage
    stage.play([step("I do it.", call("run_shell", command="echo paid >> effects.txt; kill -9 $$")), step("Done.")])
    kill(stage, "run", "do it", at="P4")
    wait_until_over(stage)
    (operation,) = stage.do("reconcile").expect(0)["operations"]
    assert (operation["observation"], operation["detail"]) == ("handle_settled", "it ended with signal 9")
    (answer,) = stage.record.of_session(SESSION, "tool.responded.v1")
    assert (answer["result"]["signal"], answer["result"]["exit_code"]) == (9, None)
    assert stage.effects() == ["paid"]


class Story(NamedTuple):
    """A call that was killed at its most doubtful instant, and what reconciling makes of it."""

    tool: Tool
    verdict: str
    deliveries: str = ""


COMPLETED = "completed / recovery_bundle_completed"
WRITING = Tool("write_file", "reconcile", call("write_file", path=CONFIG, content=NEW), OTHERS[0].effects)
STORIES = (
    Story(TOOLS["idempotent"], COMPLETED, "tool.redelivery_started.v1"),
    Story(WRITING, COMPLETED),
    Story(TOOLS["replay_safe"], COMPLETED),
    Story(TOOLS["idempotent"], COMPLETED, "tool.redelivery_started.v1"),
    Story(PAYMENT, "parked / contract_forbids_recovery"),
    Story(TOOLS["reattach"], COMPLETED),
)


REDELIVERED = STORIES[0]
DELIVERED_AT = ("tool.record_effect.after_effect", "P4", "P5")


@pytest.fixture(scope="session")
def hits_of_reconcile(tmp_path_factory: pytest.TempPathFactory, forks: ForkServer) -> dict[str, int]:
    """How many instants reconciling has, by the promise that it is about; undisturbed."""
    found = {}
    for story in STORIES:
        stage = Stage.in_folder(tmp_path_factory.mktemp("undisturbed") / "stage", forks)
        begin(stage, story.tool, "P4")
        trace = stage.folder / "rehearsal"
        stage.do("reconcile", hooks=Hooks(trace=trace))
        found[story.tool.mode] = len(trace.read_text().split())
        stage.clean_up()
    return found


@pytest.mark.parametrize("number", range(KILLS))
def test_a_reconcile_that_is_killed_twice_at_any_instant_is_finished_by_the_next(
    forked_stage: Stage, number: int, seed: int, hits_of_reconcile: dict[str, int]
) -> None:
    story = STORIES[number % len(STORIES)]
    check_kills(forked_stage, story, random.Random(f"{seed} reconcile {number}"), hits_of_reconcile)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_redelivery_that_is_killed_twice_at_any_instant_is_finished_by_the_next_with_the_same_key(
    forked_stage: Stage, number: int, seed: int, hits_of_reconcile: dict[str, int]
) -> None:
    """From every instant of the first delivery at which its effect may have happened."""
    at = DELIVERED_AT[number % len(DELIVERED_AT)]
    check_kills(forked_stage, REDELIVERED, random.Random(f"{seed} redelivery {number}"), hits_of_reconcile, at=at)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(KILLS, KILLS_OF_SOAK))
def test_many_reconciles_that_are_killed_twice_are_finished_by_the_next(
    forked_stage: Stage, number: int, seed: int, hits_of_reconcile: dict[str, int]
) -> None:
    story = STORIES[number % len(STORIES)]
    check_kills(forked_stage, story, random.Random(f"{seed} reconcile {number}"), hits_of_reconcile)


def check_kills(stage: Stage, story: Story, randomness: random.Random, hits: dict[str, int], *, at: str = "P4") -> None:
    """Kill a reconcile twice at random instants, and finish it."""
    begin(stage, story.tool, at)
    effects, record, requests = story.tool.effects(stage), stage.record, len(stage.requests)
    for _ in range(2):
        nth = randomness.randint(1, hits[story.tool.mode])
        died = stage.do("reconcile", hooks=Hooks(kill=f"random:{nth}"))
        killed = died.exit_code == KILLED
        assert killed or died.exit_code in {0, 3}  # what the first one finished leaves fewer instants to the second
        assert story.tool.effects(stage) == effects
        assert stage.record.begins_with(record), "a committed fact was lost or changed"
        record = stage.record
        if killed:
            look(stage)
    ended = stage.do("reconcile").document
    assert [one["code"] for one in ended["operations"] if one["became"] == "left"] in ([], ["parked"])
    parked = story.verdict.startswith("parked")
    assert [one["code"] for one in stage.do("reconcile").expect(3 if parked else 0)["operations"]] == [
        "parked"
    ] * parked
    assert verdicts(stage) == [story.verdict]
    assert len(stage.record.of_session(SESSION, "tool.recovery_decided.v1")) == 1
    assert len(stage.record.of_session(SESSION, "tool.reconciled.v1")) == 1
    started = len(stage.record.of_session(SESSION, "tool.redelivery_started.v1"))
    assert 1 <= started <= 3 if story.deliveries else started == 0
    assert (story.tool.effects(stage), len(stage.requests)) == (effects, requests)
    check_record(stage, record)


def test_a_resume_that_dies_while_it_reconciles_is_gone_on_with(forked_stage: Stage, seed: int) -> None:
    stage, tool = forked_stage, TOOLS["idempotent"]
    begin(stage, tool, "P4")
    killed_at = ["P3", "tool.record_effect.before_effect", "P4", "P10"]
    for point in killed_at:
        assert stage.do("resume", "--reconcile", hooks=Hooks(kill=point)).exit_code == KILLED, point
        assert codes(look(stage)) == ["dangling_tool_state"]
        assert tool.effects(stage) == 1
    resumed = stage.do("resume", "--reconcile").expect(0)
    assert (resumed["decision"], resumed["status"]) == ("continued", "completed")
    assert len(stage.record.of_session(SESSION, "tool.redelivery_started.v1")) == len(killed_at) + 1
    assert tool.effects(stage) == 1
    check_record(stage, stage.record)
