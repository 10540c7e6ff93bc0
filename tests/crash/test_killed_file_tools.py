"""File tools, really killed, and looked up by the real program. SPEC section 10, F8; docs/file-evidence.md.

The whole matrix runs in one process (`tests/adapters/tools/test_file_reconciler.py`); here are some of its cells with
SIGKILL, a store, and the resume that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from safepoint.ports.failpoints import Failpoint

from ..adapters.tools.file_matrix import EVENTS, SHOWN, STORIES, Cell, Story, cells, prepare, world
from .harness.contract import OF_FILES
from .harness.stage import SESSION, Stage, step
from .harness.trial import check_record, codes, kill, look

FINALIZED = ("matches_expected_state", "already_satisfied")
REASONS = {"matches_prior_state": "reconcile_matches_prior_state", "diverged": "reconcile_diverged"}
POINTS: Mapping[str, str] = {
    "before the effect": "tool.{tool}.before_effect",
    "temporary written": "tool.{tool}.temporary_written",
    "after the effect": "tool.{tool}.after_effect",
    "T2 missing": "P5",
}


def chosen(cell: Cell) -> bool:
    """Every tool at every instant, and at the last one also after somebody else was there."""
    return cell.event == "nothing" or (cell.instant, cell.event) == ("T2 missing", "edited")


def cell_name(cell: Cell) -> str:
    """For the report of the tests."""
    return f"{cell.story.name}, {cell.instant}, {cell.event}"


def killed(stage: Stage, story: Story, instant: str) -> None:
    """Die in the middle of the call."""
    prepare(stage.workspace, story)
    stage.play([step("I do it.", {"tool": story.tool, "args": dict(story.arguments)}), step("Done.")])
    kill(stage, "run", "do it", at=POINTS[instant].format(tool=story.tool))


def reconciled(stage: Stage) -> dict[str, Any]:
    """What `safepoint reconcile` says of the one call."""
    answered = stage.do("reconcile")
    (operation,) = answered.document["operations"]
    assert answered.exit_code == (0 if operation["became"] == "completed" else 3)
    return dict(operation)


@pytest.mark.parametrize(
    "cell", [*filter(chosen, cells())], ids=lambda cell: f"{cell.story.name}, {cell.instant}, {cell.event}"
)
def test_a_killed_call_is_finalized_by_evidence_or_parked_and_no_file_is_written(
    forked_stage: Stage, cell: Cell
) -> None:
    stage, story = forked_stage, cell.story
    killed(stage, story, cell.instant)
    record = stage.record
    EVENTS[cell.event](stage.workspace / story.subject(cell.instant), story)
    before = world(stage.workspace)
    assert codes(look(stage)) == ["dangling_tool_state"]

    operation = reconciled(stage)
    finalized = cell.expected in FINALIZED
    assert operation["observation"] == cell.expected, SHOWN[cell.expected]
    assert operation["became"] == ("completed" if finalized else "parked")
    assert operation["code"] == (None if finalized else REASONS[cell.expected])
    temporary = {path for path in before if path.endswith(".tmp")}
    assert len(temporary) == (cell.instant == "temporary written")
    after = world(stage.workspace)
    assert after == {path: seen for path, seen in before.items() if path not in temporary}

    resumed = stage.do("resume").expect(0 if finalized else 3)
    assert codes(resumed) == ([] if finalized else ["tool_recovery_parked"])
    assert len(stage.requests) == (2 if finalized else 1)
    assert world(stage.workspace) == after
    check_record(stage, record)


@pytest.mark.parametrize("point", OF_FILES, ids=str)
@pytest.mark.parametrize("name", ["replace", "append", "move"])
def test_at_each_point_between_t1_and_t2_a_look_settles_what_the_crash_contract_says(
    forked_stage: Stage, name: str, point: Failpoint
) -> None:
    stage, expected, story = forked_stage, OF_FILES[point], next(one for one in STORIES if one.name == name)
    prepare(stage.workspace, story)
    started = world(stage.workspace)
    stage.play([step("I do it.", {"tool": story.tool, "args": dict(story.arguments)}), step("Done.")])
    death = kill(stage, "run", "do it", at=point)

    def counted() -> tuple[int, int]:
        return int(contents(world(stage.workspace)) != contents(started)), len(stage.requests)

    assert counted() == (expected.effects[0], expected.requests[0])
    completes = expected.became == "completed"
    resumed = stage.do("resume", "--reconcile").expect(0 if completes else 3)
    (operation,) = resumed["reconciled"]
    assert operation["observation"] == expected.observation
    assert ": ".join(filter(None, (operation["became"], operation["code"]))) == expected.became
    assert counted() == (expected.effects[1], expected.requests[1])
    check_record(stage, death.record)


def contents(seen: dict[str, tuple[object, ...]]) -> dict[str, object]:
    """What the files hold, without the marker that a run makes."""
    return {path: held for path, (_, _, _, held) in seen.items() if held is not None and not path.startswith(".safe")}


@pytest.mark.parametrize("name", ["edit", "append", "delete", "move"])
def test_a_finalized_call_answers_the_model_as_if_nothing_had_happened(stage: Stage, name: str) -> None:
    story = next(one for one in STORIES if one.name == name)
    killed(stage, story, "T2 missing")
    resumed = stage.do("resume", "--reconcile").expect(0)
    assert [one["observation"] for one in resumed["reconciled"]] == ["matches_expected_state"]
    (response,) = stage.record.of_session(SESSION, "tool.responded.v1")
    (dispatch,) = stage.record.of_session(SESSION, "tool.dispatched.v1")
    assert (response["result"], response["is_error"], response["effect"]) == (
        dispatch["evidence"]["result"],
        False,
        "done",
    )
    assert len(stage.requests) == 2


@pytest.mark.parametrize("instant", ["before the effect", "temporary written", "T2 missing"])
@pytest.mark.parametrize("point", ["P10", "store.before_commit", "store.after_commit", "store.after_anchor"])
def test_a_reconcile_that_is_killed_is_finished_by_the_next_one_and_writes_no_file_either(
    forked_stage: Stage, instant: str, point: str
) -> None:
    stage, story = forked_stage, next(one for one in STORIES if one.name == "edit")
    killed(stage, story, instant)
    before = world(stage.workspace)
    kill(stage, "reconcile", at=point)
    stage.do("reconcile")
    facts = stage.record.of_session(SESSION, "tool.recovery_decided.v1")
    assert [fact["disposition"] for fact in facts] == ["completed" if instant == "T2 missing" else "parked"]
    after = world(stage.workspace)
    assert after == {path: seen for path, seen in before.items() if not path.endswith(".tmp")}
    assert codes(stage.look("plan").document) == ([] if instant == "T2 missing" else ["tool_recovery_parked"])
