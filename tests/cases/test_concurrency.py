"""Field reports: two of them at once. SPEC sections 7, 14 and 15, R12."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice

import pytest

from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.application.begin_continuation import claim_of
from safepoint.application.states import events_after
from safepoint.domain.errors import WriteRefused
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import run_stream
from safepoint.domain.planning.outcome import Continue
from safepoint.domain.reasons import ParkReason, WriteRefusal
from safepoint.domain.sealing import FIRST_PREVIOUS_DIGEST

from ..adapters.cli.program import PAY, Program, ended
from ..application.counted_tools import Counted
from ..application.wiring import SESSION
from ..crash.harness.program import wait_for
from ..crash.harness.record import read_record
from ..domain.facts import Facts
from .programs import codes_in, interrupted, resume
from .resuming import ResumingProcess, SharedWorld
from .stores import Writing

P = ParkReason
ACT = calls(("act", {"n": 1}))


def test_r3_039_an_old_list_of_work_gives_no_right_to_do_it() -> None:
    """R1 and R2 read the same candidates; R1 claims and finishes; R2 acts on its old plan."""
    world, act = SharedWorld(), Counted()
    first = ResumingProcess(world)
    first.runs("go", [ACT], [act.function])
    second = ResumingProcess(world)
    old = second.plans([act.function]).plan
    assert isinstance(old, Continue)
    done = ResumingProcess(world).continues([says("done")], [act.function])
    before = [second.stored_bytes(run_id) for run_id in (old.source.run_id, done.run_id)]
    owned = second.ownership.own(SESSION)
    with pytest.raises(WriteRefused) as refused:
        second.ledger.execute(claim_of(owned, old, second.spines))
    second.ownership.release(owned)
    assert refused.value.code is WriteRefusal.RUN_CLAIMED
    assert second.parks([], [act.function]) == (P.RESUME_CANDIDATE_MISSING,)
    assert [second.stored_bytes(run_id) for run_id in (old.source.run_id, done.run_id)] == before
    assert second.stored_bytes(old.target.run_id) == []
    assert act.calls == [1]


def test_r3_075_what_an_owner_writes_after_another_took_over_is_refused(writing: Writing) -> None:
    """P1 is stopped after T1; P2 takes over and writes; P1 goes on and writes."""
    stopped = writing.own(Facts("r", session="s", incarnation="i1"))
    writing.do(stopped.open_run(), stopped.record(stopped.step("A")), stopped.prepare(stopped.dispatch("A")))
    its_outcome, its_end = stopped.commit(stopped.outcome("A")), stopped.end(RunStatus.COMPLETED)
    another = writing.another()
    taker = another.own(Facts("r", session="s", incarnation="i2", maker="x"))
    assert writing.refuses(its_outcome) is WriteRefusal.OWNER_FENCED, "although its place in the stream is still free"
    another.do(taker.end())
    before = another.events(taker)
    for late in (its_outcome, its_end, stopped.append(stopped.user("more", steering=True))):
        assert writing.refuses(late) is WriteRefusal.OWNER_FENCED
    assert writing.events(stopped) == before
    assert another.verdict(taker, "A").status == "indeterminate"


def test_r3_077_two_processes_that_resume_at_once_make_one_child() -> None:
    world, act = SharedWorld(), Counted()
    ResumingProcess(world).runs("go", [ACT], [act.function])
    both, outcomes = threading.Barrier(2), []
    models = [PlannedModel([says("done")]) for _ in range(2)]

    def resumes(model: PlannedModel) -> None:
        process = ResumingProcess(world)
        both.wait(30)
        outcomes.append(process.resumes(model, [act.function]))

    threads = [threading.Thread(target=resumes, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(type(one).__name__ for one in outcomes) == ["Continued", "Parked"]
    assert sum(len(model.asked) for model in models) == 1
    assert len(world.store.views.continuations(SESSION)) == 1
    assert act.calls == [1]


def test_r3_078_the_second_of_two_resumes_of_one_session_is_told_that_it_is_busy(program: Program) -> None:
    """The first one works; the second one comes meanwhile."""
    interrupted(program, "P7", PAY)
    program.script({"text": "I do it.", "calls": [PAY]}, {"text": "All done.", "delay_seconds": 3})
    first = program.start(*resume(program))
    wait_for("the first resume asks no model", lambda: program.requests == 2)
    second = program(*resume(program), "--json")
    assert (second.code, codes_in(second)) == (5, ["session_busy"])
    assert (ended(first).code, program.requests) == (0, 2)
    assert len(read_record(program.store).run_ids("s1")) == 2
    assert program.effects == ["paid"]


def test_r3_082_a_reader_that_is_left_open_blocks_no_writer_and_sees_no_change(writing: Writing) -> None:
    """An iteration over facts is begun and kept open; another task appends."""
    run = writing.own(Facts("r", session="s"))
    writing.do(run.open_run(), run.record(run.step("A")))
    seen = writing.events(run)
    with writing.store.events.snapshot() as reader:
        facts = events_after(reader, run_stream(run.run_id), 0, FIRST_PREVIOUS_DIGEST)
        first = [sealed.event for sealed in islice(facts, 1)]
        another = writing.another()
        writes = threading.Thread(
            target=another.do, args=(run.prepare(run.dispatch("A")), run.commit(run.outcome("A")), run.end())
        )
        writes.start()
        writes.join(30)
        assert not writes.is_alive(), "the writer waits for a reader"
        assert first + [sealed.event for sealed in facts] == seen
        assert len(list(reader.read(run_stream(run.run_id)))) == len(seen)
    assert _topics(writing.events(run))[-3:] == ["tool.dispatched.v1", "tool.responded.v1", "run.ended.v1"]


def _topics(events: Sequence[object]) -> list[str]:
    return [event.topic for event in events]  # type: ignore[attr-defined]
