"""A person's words, killed at every instant: said or not said, never half of it, and once. SPEC sections 10 and 20."""

from __future__ import annotations

from contextlib import closing

from safepoint.adapters.sqlite.store import open_reader

from .harness.program import KILLED, Ended, Hooks
from .harness.stage import SESSION, Stage, step
from .harness.tools import PAYMENT
from .harness.trial import check_record, kill, verdicts

INSTANTS_MAX = 200
UNKNOWN = ["indeterminate / dispatch_without_response"]
ATTESTED = ["completed / attested_completed"]


def settle(stage: Stage, operation_id: str, hooks: Hooks) -> Ended:
    words = ("--completed", "paid", "--by", "ada", "--note", "seen", "--store", str(stage.store), "--json")
    return stage.program.run("settle", operation_id, *words, hooks=hooks)


def views_are_what_the_events_make(stage: Stage) -> bool:
    with closing(open_reader(stage.store)) as store:
        return list(store.projections.differences()) == []


def test_a_settlement_killed_at_any_instant_was_said_or_was_not_and_saying_it_again_converges(
    forked_stage: Stage,
) -> None:
    stage = forked_stage
    stage.play([step("I pay.", PAYMENT.call), step("Done.")])
    kill(stage, "run", "pay", at="P4")
    stage.do("resume").expect(3)  # its run is closed, so that whatever is written from here on is the settlement
    before = stage.record
    (dispatched,) = before.of_session(SESSION, "tool.dispatched.v1")
    said = 0
    for nth in range(1, INSTANTS_MAX):
        ended = settle(stage, str(dispatched["operation_id"]), Hooks(kill=f"random:{nth}"))
        stands = stage.record.of_session(SESSION, "tool.attested.v1")
        assert len(stands) == len(stage.record.of_session(SESSION, "tool.responded.v1"))
        assert verdicts(stage) == (ATTESTED if stands else UNKNOWN)
        assert views_are_what_the_events_make(stage)
        said = said or (nth if stands else 0)
        if not stands:
            assert stage.record == before
        if ended.exit_code != KILLED:
            break
    else:
        raise AssertionError("it does not come to an end")
    assert said > 10, "it was killed at each instant before its commit"
    assert ended.expect(0)["recorded"] == "before"
    assert len(stage.record.of_session(SESSION, "tool.attested.v1")) == 1
    assert stage.do("resume").expect(0)["status"] == "completed"
    assert stage.effects() == ["paid"]
    check_record(stage, before)
