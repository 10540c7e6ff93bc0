"""The writing side of a run remembers what is durable, in order, whatever order the answers come in."""

from __future__ import annotations

from safepoint.adapters.memory.model_provider import says
from safepoint.application.ledger import Receipt
from safepoint.application.run_recorder import RunRecorder
from safepoint.domain.commands import Append
from safepoint.domain.events.outside import WorkspaceRenewed

from .wiring import SESSION, Process, go


def recorder_of(process: Process) -> RunRecorder:
    async def begin() -> RunRecorder:
        begun = await process.start(process.ownership.own(SESSION), process.agent([says("done")]), "hello")
        return RunRecorder(
            process.async_ledger, process.spines, process.failpoints, begun.identity, begun.owned, begun.receipt
        )

    return go(begin)


def written(process: Process, recorder: RunRecorder, note: str) -> Receipt:
    """A fact of the run whose answer the recorder has not seen yet."""
    fact = WorkspaceRenewed(**recorder.spine(), from_identity=note, to_identity=note)
    owned = recorder.owned
    return process.ledger.execute(Append(owned.session_id, owned.incarnation_id, owned.epoch, recorder.run_id, (fact,)))


def test_what_is_ahead_of_a_gap_waits_until_the_gap_is_closed() -> None:
    process = Process()
    recorder = recorder_of(process)
    begun = list(recorder.events)
    assert [event.topic for event in begun] == ["run.opened.v1", "message.user.v1"]
    receipts = [written(process, recorder, note) for note in ("a", "b", "c", "d")]
    for position in (3, 1):
        recorder._remember(receipts[position])
        assert list(recorder.events) == begun
    recorder._remember(receipts[0])
    assert len(recorder.events) == 4
    recorder._remember(receipts[2])
    assert list(recorder.events) == process.events(recorder.run_id)


def test_an_answer_that_comes_twice_is_remembered_once() -> None:
    process = Process()
    recorder = recorder_of(process)
    receipt = written(process, recorder, "a")
    for _ in range(3):
        recorder._remember(receipt)
    assert list(recorder.events) == process.events(recorder.run_id)
