"""A run of somebody else's loop is bound to its workspace's content as one of ours is: no mode is weakened (R18)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from safepoint.application.recorded_run import RecordedRun
from safepoint.domain.canonical import encode
from safepoint.domain.events.outside import CheckpointAccepted
from safepoint.ports.checkpoints import WhyUnsupported
from safepoint.ports.model_step import CallBlock, StepFinished, TextBlock

from .content import Bound, Files
from .test_record_run import Recording, unwrapped
from .test_run_checkpoints import DONE, READ, WRITE
from .wiring import SESSION, World, check_sound, go


def asks(*calls: tuple[str, dict[str, str]]) -> StepFinished:
    blocks = [CallBlock(f"c{n}", name, encode(args).decode()) for n, (name, args) in enumerate(calls, 1)]
    return StepFinished(blocks=tuple(blocks) or (TextBlock("done"),), finish_reason="stop")


@pytest.fixture
def files() -> Files:
    files = Files(World())
    Bound(files).agent([])  # makes the marker
    return files


class RecordingBound(Bound, Recording):
    """A process whose loop is somebody else's, and keeps the content of its workspace."""

    def works_elsewhere(self, loop: Callable[[RecordedRun], Awaitable[None]]) -> RecordedRun:
        async def main() -> RecordedRun:
            async with unwrapped() as tasks, self.record.turn(SESSION, "go", self.bound(), tasks) as run:
                await loop(run)
            return run

        return go(main)


async def writes_and_reads(run: RecordedRun) -> None:
    await run.model_step(asks(("write", {"path": "a.txt", "text": "new"})))
    async with run.tool_call("c1") as operation:
        operation.result("written")
    await run.model_step(asks(("read", {"path": "b.txt"})))
    await run.call("c1")
    await run.model_step(asks())


def test_the_facts_stand_where_those_of_our_own_loop_stand(files: Files) -> None:
    ours = Bound(files)
    ours.works(WRITE, READ, DONE)
    theirs = RecordingBound(Files(World()))
    run = theirs.works_elsewhere(writes_and_reads)
    assert theirs.topics(run.identity.run_id) == [
        topic for topic in ours.topics(ours.head()) if topic != "session.opened"
    ]
    check_sound(theirs, run.identity.run_id)


def test_a_write_is_refused_where_the_promised_copy_cannot_be_made_any_more(files: Files) -> None:
    process = RecordingBound(files)

    async def loop(run: RecordedRun) -> None:
        await anyio.lowlevel.checkpoint()
        files.checkpoints.refuse("/nowhere", WhyUnsupported.SUBMODULES)
        await run.model_step(asks(("write", {"path": "a.txt", "text": "x"}), ("read", {"path": "b.txt"})))
        assert "submodules" in str((await run.call("c1")).result)
        assert (await run.call("c2")).result == "b"

    run = process.works_elsewhere(loop)
    assert files.written == 0
    assert len(process.of(run.identity.run_id, CheckpointAccepted)) == 1


def test_a_last_answer_is_followed_by_its_copy_at_once(files: Files) -> None:
    process = RecordingBound(files)

    async def loop(run: RecordedRun) -> None:
        await run.model_step(asks(("write", {"path": "a.txt", "text": "x"}), ("write", {"path": "b.txt", "text": "y"})))
        await run.call("c1")
        assert process.topics(run.identity.run_id)[-1] == "tool.responded"
        await run.call("c2")
        assert process.topics(run.identity.run_id)[-1] == "workspace.checkpoint_accepted"

    process.works_elsewhere(loop)
