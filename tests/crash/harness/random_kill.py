"""One kill at a random instant, and everything that must hold after it, exactly."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .instants import Instant, class_of
from .program import Hooks, wait_for
from .record import Record
from .scenarios import ONE_CALL, Scenario
from .stage import SESSION, Stage
from .trial import Death, check_record, codes, look, verdicts, wait_until_over, watch_death

WORK_SECONDS_MAX = 0.2


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What was committed about one call."""

    called: bool
    dispatched: bool
    responded: bool

    @property
    def verdict(self) -> str | None:
        """The resolver's verdict, which follows from these facts alone."""
        if not self.called:
            return None
        if self.responded:
            return "completed / matching_response"
        if self.dispatched:
            return "indeterminate / dispatch_without_response"
        return "definitely_not_dispatched / new_protocol_before_dispatch"


def try_instant(instant: Instant, stage: Stage, randomness: random.Random) -> str:
    """Kill, look, resume, and check; returns the class in which the kill really fell."""
    try:
        scenario = instant.scenario
        scenario.prepare(stage)
        death, hits = _die(stage, instant, randomness)
        _check_death(stage, scenario, death, hits)
        if scenario.leaves:
            _check_what_is_left_behind(stage, death, hits)
        _check_resume(stage, scenario, death)
        return class_of(hits)
    finally:
        stage.clean_up()


def _die(stage: Stage, instant: Instant, randomness: random.Random) -> tuple[Death, list[str]]:
    trace = stage.folder / "trace"
    if instant.nth is None:
        started = stage.start("run", "do it", hooks=Hooks(trace=trace))
        wait_for("the grandchild does not start", lambda: stage.sleeper.is_there)
        time.sleep(randomness.uniform(0, WORK_SECONDS_MAX))
        started.send(signal.SIGKILL)
    else:
        if instant.point_class in {"P7", "P8", "P9"}:
            stage.sleeper.release()  # before its end the run waits for what it left behind
        # What runs at once is committed together or not, so there may be fewer hits than in the undisturbed run.
        at_last = "" if instant.scenario is ONE_CALL else ",P9"
        started = stage.start("run", "do it", hooks=Hooks(kill=f"random:{instant.nth}{at_last}", trace=trace))
    return watch_death(stage, started), trace.read_text().split()


def facts_of_calls(record: Record, scenario: Scenario) -> list[CallFacts]:
    """What was committed about each call of the killed run."""
    (run_id,) = record.run_ids(SESSION)
    by_topic: dict[str, set[str]] = {}
    for fact in record.run(run_id):
        if fact.topic.startswith("tool."):
            by_topic.setdefault(fact.topic, set()).add(fact.fields["call_id"])
    topics = ("tool.called.v1", "tool.dispatched.v1", "tool.responded.v1")
    ids = [f"call_1_{place}" for place in range(1, len(scenario.calls) + 1)]
    return [CallFacts(*(call_id in by_topic.get(topic, ()) for topic in topics)) for call_id in ids]


def _committed_after(point: str, hits: Sequence[str]) -> bool:
    return point in hits and "store.after_commit" in hits[hits.index(point) :]


def _check_death(stage: Stage, scenario: Scenario, death: Death, hits: Sequence[str]) -> None:
    """The facts are exactly those whose commit was reached, and the effects those whose instant was."""
    calls = facts_of_calls(death.record, scenario)
    effects = scenario.effects(stage)
    if len(calls) == 1:
        reached = [_committed_after(point, hits) for point in ("P0", "P1", "P5")]
        assert calls[0] == CallFacts(*reached), "what is committed is not what had been reached"
    if not scenario.leaves:
        done, begun = (hits.count(f"tool.record_effect.{instant}_effect") for instant in ("after", "before"))
        assert done <= sum(effects) <= (begun if len(calls) > 1 else done)
        for facts, count in zip(calls, effects, strict=True):
            allowed = {1} if facts.responded else {0, 1} if facts.dispatched else {0}
            assert count in allowed, f"{count} effects of {facts}"
    assert verdicts(stage) == [facts.verdict for facts in calls if facts.called]
    assert death.record.ends(SESSION) == [["completed"] if _committed_after("P8", hits) else []]


def _check_what_is_left_behind(stage: Stage, death: Death, hits: Sequence[str]) -> None:
    """As long as anything that it started runs, the operation is not over; nothing is settled or continued past it."""
    sleeper, pid = stage.sleeper, stage.sleeper.pid
    waited_for = hits[-1] == "P3" and pid is not None
    assert (pid is not None) == ("P4" in hits or waited_for), "the shell runs between P3 and P4"
    if pid is not None and not sleeper.released:
        _check_while_it_lives(stage, pid, answered=_committed_after("P5", hits))
    sleeper.release()
    sleeper.ended()
    assert len(stage.effects()) == (0 if pid is None else 1)
    wait_until_over(stage)


def _check_while_it_lives(stage: Stage, pid: int, *, answered: bool) -> None:
    expected = ["effect_may_be_running", "background_operation_pending"]
    if not answered:
        expected = ["dangling_tool_state", "effect_may_be_running"]
    plan = look(stage)
    assert codes(plan) == expected
    (running,) = [reason for reason in plan["reasons"] if reason["code"] == "effect_may_be_running"]
    assert pid in running["detail"]["pids"]
    assert [operation["over"] for operation in plan["operations"]] == ["running"]
    assert codes(stage.do("resume").expect(3)) == expected
    assert stage.sleeper.is_there, "resuming ended what was left behind"
    assert stage.effects() == []


def _check_resume(stage: Stage, scenario: Scenario, death: Death) -> None:
    calls = facts_of_calls(death.record, scenario)
    effects = scenario.effects(stage)
    unknown = [facts for facts in calls if facts.dispatched and not facts.responded]
    ended = death.record.ends(SESSION) == [["completed"]]
    plan = look(stage)
    resumed = stage.do("resume").expect(3 if unknown or ended else 0)
    if unknown or ended:
        expected = ["dangling_tool_state"] * len(unknown) or ["resume_candidate_missing"]
        assert codes(plan) == codes(resumed) == expected
        assert (scenario.effects(stage), len(stage.requests)) == (effects, death.requests)
    else:
        assert (plan["decision"], resumed["decision"], resumed["status"]) == ("continue", "continued", "completed")
        played_anew = not calls[0].called
        assert scenario.effects(stage) == ([1] * len(calls) if played_anew else [int(f.responded) for f in calls])
        assert len(stage.requests) == death.requests + (2 if played_anew else 1)
    check_record(stage, death.record)
