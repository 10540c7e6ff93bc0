"""T1, T2 and COMMIT that fail while the program lives. SPEC R6, R7 and section 7."""

from __future__ import annotations

from pathlib import Path

import pytest

from .harness.instants import nth_of
from .harness.mischief import Mischief, fenced, locked, no_room, unreadable_anchor
from .harness.program import Ended, Hooks
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, codes, look, verdicts

FAULTS = pytest.mark.parametrize(
    ("mischief", "exit_code", "code"),
    [(no_room, 1, "store_full"), (locked, 5, "store_unavailable"), (fenced, 5, "owner_fenced")],
    ids=["full", "locked", "fenced"],
)
INDETERMINATE = ["indeterminate / dispatch_without_response"]
NOT_DISPATCHED = ["definitely_not_dispatched / new_protocol_before_dispatch"]
PAID = (step("I pay.", PAYMENT.call), step("Done."))


def instant_of_t1(folder: Path, point: str) -> str:
    """The hit of a store's point in the transaction of T1."""
    rehearsal = Stage.in_folder(folder / "rehearsal")
    rehearsal.play(PAID)
    return f"random:{nth_of(rehearsal.rehearse('run', 'pay'), point, after='P1')}"


def run_with(stage: Stage, mischief: Mischief, at: str) -> Ended:
    """Run a turn that stands still at an instant while something is done to its store."""
    stage.play(PAID)
    started = stage.start("run", "pay", hooks=Hooks(stop=at, trace=stage.folder / "trace"))
    started.stopped()
    with mischief(stage, started):
        started.go_on()
        return started.ended()


def hits(stage: Stage) -> list[str]:
    """The instants that were reached."""
    return (stage.folder / "trace").read_text().split()


@FAULTS
def test_r3_171_where_t1_fails_the_implementation_is_called_zero_times(
    stage: Stage, mischief: Mischief, exit_code: int, code: str
) -> None:
    ended = run_with(stage, mischief, "P1")
    assert ended.expect(exit_code)["code"] == code
    assert stage.effects() == []
    assert "P3" not in hits(stage)
    assert len(stage.requests) == 1
    before = stage.record
    assert verdicts(stage) == NOT_DISPATCHED
    resumed = stage.do("resume").expect(0)
    assert resumed["decision"] == "continued"
    assert stage.effects() == []
    check_record(stage, before)


@FAULTS
def test_r3_171_where_t2_fails_the_model_never_sees_the_result_and_the_outcome_is_unknown(
    stage: Stage, mischief: Mischief, exit_code: int, code: str
) -> None:
    ended = run_with(stage, mischief, "P4")
    assert ended.expect(exit_code)["code"] == code
    assert stage.effects() == ["paid"]
    assert len(stage.requests) == 1
    before = stage.record
    assert verdicts(stage) == INDETERMINATE
    assert codes(look(stage)) == ["dangling_tool_state"]
    assert codes(stage.do("resume").expect(3)) == ["dangling_tool_state"]
    assert (stage.effects(), len(stage.requests)) == (["paid"], 1)
    check_record(stage, before)


def test_where_the_commit_of_t1_fails_the_implementation_is_called_zero_times(stage: Stage, tmp_path: Path) -> None:
    ended = run_with(stage, no_room, instant_of_t1(tmp_path, "store.before_commit"))
    assert hits(stage)[-1] == "store.before_commit"
    assert ended.expect(1)["code"] == "store_full"
    assert (stage.effects(), len(stage.requests)) == ([], 1)
    before = stage.record
    assert verdicts(stage) == NOT_DISPATCHED
    assert stage.do("resume").expect(0)["decision"] == "continued"
    assert stage.effects() == []
    check_record(stage, before)


def test_where_the_commit_of_t2_fails_the_model_never_sees_the_result(stage: Stage) -> None:
    ended = run_with(stage, no_room, "P5")
    assert ended.expect(1)["code"] == "store_full"
    assert (stage.effects(), len(stage.requests)) == (["paid"], 1)
    before = stage.record
    assert verdicts(stage) == INDETERMINATE
    assert codes(stage.do("resume").expect(3)) == ["dangling_tool_state"]
    check_record(stage, before)


def test_where_t1_is_committed_and_the_anchor_cannot_be_raised_the_implementation_is_called_zero_times(
    stage: Stage, tmp_path: Path
) -> None:
    ended = run_with(stage, unreadable_anchor, instant_of_t1(tmp_path, "store.after_commit"))
    assert "P3" not in hits(stage)
    assert ended.expect(5)["code"] == "store_unavailable"
    assert (stage.effects(), len(stage.requests)) == ([], 1)
    before = stage.record
    assert [fact["tool_name"] for fact in before.of_session(SESSION, "tool.dispatched.v1")] == ["record_effect"]
    assert verdicts(stage) == INDETERMINATE
    assert codes(stage.do("resume").expect(3)) == ["dangling_tool_state"]
    assert stage.effects() == []
    check_record(stage, before)
