"""One run: the resolver's verdicts, whether operations are over, facts within bounds, and what lies before damage."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.model_provider import calls, says
from safepoint.adapters.tools.decorator import tool
from safepoint.application.inspect_runs import InspectRuns, RunSeen
from safepoint.application.timeline import FULL_CHARS, PREVIEW_CHARS
from safepoint.domain.identifiers import RunId
from safepoint.domain.recovery.verdict import VerdictStatus
from safepoint.domain.sealing import StoredRecord
from safepoint.ports.supervised import Overness

from .wiring import Process, go


@tool(recovery="replay_safe")
def look(place: str) -> str:
    """Look."""
    return f"saw {place}"


def inspect(process: Process, run_id: RunId, *, facts_max: int = 0, full: bool = False) -> RunSeen:
    seen = InspectRuns(process.events_store, process.world.store.views, process.over)(
        run_id, facts_max=facts_max, full=full
    )
    assert seen is not None
    return seen


def finished(text: str = "done", place: str = "here") -> tuple[Process, RunId]:
    process = Process()
    result = go(lambda: process.turn("hello", [calls(("look", {"place": place})), says(text)], [look]))
    return process, result.run_id


def test_an_answered_call_is_completed_and_over() -> None:
    process, run_id = finished()
    seen = inspect(process, run_id)
    (operation,) = seen.operations
    assert (operation.verdict.status, operation.over.overness) == (VerdictStatus.COMPLETED, Overness.OVER)
    assert seen.unsettled == ()


def test_an_operation_is_not_over_while_its_process_lives_and_over_when_it_is_dead() -> None:
    seen_alive: list[RunSeen] = []
    process = Process()
    observer = Process(process.world)

    @tool()
    def act() -> str:
        """Act."""
        seen_alive.append(inspect(observer, process.head()))
        process.die()
        raise SystemExit  # an answer like any other; the world sees a dead process

    process.events_store.fail_at("tool.responded.v1", None)
    with pytest.raises(BaseException):  # noqa: B017, PT011 (whatever ends it: it is dead)
        go(lambda: process.turn("hello", [calls(("act", {}))], [act]))
    (alive,) = seen_alive[0].operations
    assert (alive.verdict.status, alive.over.overness) == (VerdictStatus.INDETERMINATE, Overness.RUNNING)
    (dead,) = inspect(observer, process.head()).operations
    assert (dead.verdict.status, dead.over.overness) == (VerdictStatus.INDETERMINATE, Overness.OVER)
    assert dead.unsettled


def test_the_newest_facts_are_told_in_order_within_the_limit() -> None:
    process, run_id = finished()
    every = [event.event_id for event in process.events(run_id)]
    seen = inspect(process, run_id, facts_max=3)
    assert [fact.event_id for fact in seen.facts] == every[-3:]
    assert (seen.facts_left_out, seen.high_water) == (len(every) - 3, len(every))
    assert inspect(process, run_id).facts == ()


def test_texts_are_previewed_and_arguments_and_results_only_measured() -> None:
    process, run_id = finished(text="x" * 1_000, place="secret")
    facts = inspect(process, run_id, facts_max=100).facts
    (said,) = [fact for fact in facts if fact.topic == "model.text.v1"]
    assert (len(said.content["text"].text), said.content["text"].chars) == (PREVIEW_CHARS, 1_000)
    assert said.content["text"].cut
    assert "secret" not in repr(facts)
    (called,) = [fact for fact in facts if fact.topic == "tool.called.v1"]
    assert called.sizes == {"args": len('{"place":"secret"}')}
    (answered,) = [fact for fact in facts if fact.topic == "tool.responded.v1"]
    assert answered.sizes == {"result": len("saw secret")}


def test_asked_for_in_full_they_are_shown_up_to_a_bound() -> None:
    place = "y" * (FULL_CHARS + 1)
    process, run_id = finished(place=place)
    facts = inspect(process, run_id, facts_max=100, full=True).facts
    (answered,) = [fact for fact in facts if fact.topic == "tool.responded.v1"]
    shown = answered.content["result"]
    assert (len(shown.text), shown.chars) == (FULL_CHARS, len(f"saw {place}"))


def test_facts_name_the_mode_the_model_and_no_digest_of_a_profile() -> None:
    process, run_id = finished()
    by_topic = {fact.topic: fact for fact in inspect(process, run_id, facts_max=100).facts}
    assert by_topic["tool.dispatched.v1"].facts["mode"] == "replay_safe"
    assert {"provider", "model"} <= by_topic["run.opened.v1"].facts.keys()
    assert "profile" not in by_topic["run.opened.v1"].facts


def test_what_lies_before_damage_is_shown_and_a_missing_dispatch_proves_nothing_then() -> None:
    process, run_id = finished()
    topics = [event.topic for event in process.events(run_id)]
    dispatched = topics.index("tool.dispatched.v1")
    tables = process.world.store._tables
    place = tables.streams[f"run:{run_id}"][dispatched]
    record = tables.records[place]
    tables.records[place] = StoredRecord(record.stream, record.version, record.topic, b"{}")
    seen = inspect(process, run_id, facts_max=100)
    assert [fact.topic for fact in seen.facts] == topics[:dispatched]
    assert seen.damage is not None
    assert seen.damage.code == "runtime_ledger_unreadable"
    (operation,) = seen.operations
    assert operation.verdict.status is VerdictStatus.INDETERMINATE


def test_an_unknown_run_is_none() -> None:
    process = Process()
    look_at = InspectRuns(process.events_store, process.world.store.views, process.over)
    assert look_at(RunId("nobody")) is None
