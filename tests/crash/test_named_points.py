"""The crash contract: a kill at each named point, with exact counts. SPEC section 20, docs/crash-contract.md."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from safepoint.ports.failpoints import Failpoint

from .harness.contract import EXPECTED, OF_CONTINUATIONS, OF_RUNS, Expectation, Resume, Verdict
from .harness.stage import SESSION, Stage, step
from .harness.tools import OTHERS, PAYMENT, Tool
from .harness.trial import Death, check_record, codes, kill, look, verdicts, wait_until_over


@pytest.mark.parametrize("point", OF_RUNS, ids=str)
def test_after_a_kill_at_a_point_of_a_run_all_is_as_the_crash_contract_says(stage: Stage, point: Failpoint) -> None:
    check_point(stage, PAYMENT, point)


@pytest.mark.parametrize("point", OF_RUNS, ids=str)
@pytest.mark.parametrize("tool", OTHERS, ids=lambda tool: f"{tool.name}-{tool.mode}")
def test_tools_with_another_contract_or_none_are_judged_by_the_same_facts(
    forked_stage: Stage, tool: Tool, point: Failpoint
) -> None:
    check_point(forked_stage, tool, point)


def check_point(stage: Stage, tool: Tool, point: Failpoint) -> None:
    """Kill at a point of a run with one call of a tool."""
    stage.play([step("I do it.", tool.call), step("Done.")])
    death = kill(stage, "run", "do it", at=point)
    ends = [["completed"]] if point is Failpoint.AFTER_TERMINAL else [[]]
    assert death.record.ends(SESSION) == ends, "a terminal event although it was killed before"
    check_row(stage, tool, EXPECTED[point], death)


@pytest.mark.parametrize("point", ["P1", "P4", "P6", "P8"])
def test_looking_with_the_real_program_says_what_it_will_do_and_changes_no_byte(stage: Stage, point: str) -> None:
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    kill(stage, "run", "pay", at=point)
    before = stage.fingerprint
    plans = [stage.do("plan") for _ in range(2)]
    verified = stage.do("verify").expect(0)
    assert stage.fingerprint == before
    assert plans[0].document == plans[1].document == look(stage)
    assert verified["sound"]
    resumed = [stage.do("resume") for _ in range(2)]
    assert resumed[0].exit_code == plans[0].exit_code
    assert codes(resumed[0].document) == codes(plans[0].document)
    assert codes(resumed[1].expect(3)) == (codes(plans[0].document) or ["resume_candidate_missing"])
    assert len(stage.requests) == EXPECTED[Failpoint(point)].requests[1]


@pytest.mark.parametrize("point", OF_CONTINUATIONS, ids=str)
def test_after_a_kill_at_a_point_of_a_continuation_all_is_as_the_crash_contract_says(
    stage: Stage, point: Failpoint
) -> None:
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    kill(stage, "run", "pay", at="P6")
    death = kill(stage, "resume", at=point)
    ended_already = point is Failpoint.CONTINUATION_ENDED
    assert death.record.ends(SESSION) == [["failed"], ["completed"] if ended_already else []]
    check_row(stage, PAYMENT, EXPECTED[point], death)


def check_row(stage: Stage, tool: Tool, expected: Expectation, death: Death) -> None:
    """Compare what was counted with a row of the table."""
    effects = expected.effects if tool.has_effect else (0, 0)
    assert (tool.effects(stage), death.requests) == (effects[0], expected.requests[0]), "right after the kill"
    if tool.name == "run_shell":
        wait_until_over(stage)
    plan = look(stage)
    assert verdicts(stage) == ([] if expected.verdict is Verdict.NO_CALL else [expected.verdict])
    check_decision(plan, expected.resume)
    assert all(operation["over"] == "over" for operation in plan["operations"])

    exit_code = 0 if expected.resume is Resume.CONTINUES else 3
    resumed = stage.do("resume").expect(exit_code)
    check_decision(resumed, expected.resume)
    assert (tool.effects(stage), len(stage.requests)) == (effects[1], expected.requests[1]), "after the resume"
    check_record(stage, death.record)

    nothing_left = expected.resume is not Resume.PARKS
    again = stage.look("plan").expect(3)
    assert codes(again) == ["resume_candidate_missing" if nothing_left else "dangling_tool_state"]


def check_decision(document: dict[str, Any], resume: Resume) -> None:
    """Continue, or the one reason to park."""
    assert codes(document) == ([] if resume.code is None else [resume.code])
    assert document["decision"] in ({"continue", "continued"} if resume.code is None else {"park", "parked"})


def test_a_response_that_was_written_and_not_committed_cannot_be_told_from_one_that_was_not_written(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    seen = []
    for point in ("P4", "P5"):
        stage = Stage.in_folder(tmp_path_factory.mktemp(point) / "stage")
        stage.play([step("I pay.", PAYMENT.call), step("Done.")])
        death = kill(stage, "run", "pay", at=point)
        streams = [[(fact.sequence, fact.topic) for fact in facts] for facts in death.record.streams.values()]
        seen.append((sorted(streams), without_names(look(stage), stage), stage.effects(), death.requests))
    assert seen[0] == seen[1]


def without_names(plan: dict[str, Any], stage: Stage) -> str:
    """What a plan says, with every id, digest, time and path taken out."""
    said = json.dumps(plan, sort_keys=True).replace(str(stage.folder), "FOLDER")
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32,64}", "ID", said)


def test_a_call_that_was_not_executed_is_told_so_and_happens_once_when_the_model_asks_again(stage: Stage) -> None:
    stage.play([step("I pay.", PAYMENT.call), step("I pay now.", PAYMENT.call), step("Done.")])
    death = kill(stage, "run", "pay", at="P1")
    resumed = stage.do("resume").expect(0)
    assert resumed["status"] == "completed"
    answers = stage.record.of_session(SESSION, "tool.responded.v1")
    assert [(answer["code"], answer["effect"]) for answer in answers] == [
        ("not_executed_interrupted", "none"),
        (None, "done"),
    ]
    assert stage.effects() == ["paid"]
    check_record(stage, death.record)


@pytest.mark.parametrize(
    ("instant", "effects"),
    [
        ("tool.record_effect.before_effect", 0),
        ("tool.record_effect.after_effect", 1),
        ("tool.write_file.before_effect", 0),
        ("tool.write_file.temporary_written", 0),
        ("tool.write_file.after_effect", 1),
        ("tool.edit_file.before_effect", 0),
        ("tool.edit_file.temporary_written", 0),
        ("tool.edit_file.after_effect", 1),
    ],
)
def test_a_kill_inside_of_a_tool_leaves_all_of_its_effect_or_nothing_and_parks(
    forked_stage: Stage, instant: str, effects: int
) -> None:
    stage = forked_stage
    tool = next(tool for tool in (PAYMENT, *OTHERS) if instant.startswith(f"tool.{tool.name}."))
    stage.play([step("I do it.", tool.call), step("Done.")])
    death = kill(stage, "run", "do it", at=instant)
    expected = Expectation((effects, effects), (1, 1), Verdict.INDETERMINATE, Resume.PARKS)
    check_row(stage, tool, expected, death)
