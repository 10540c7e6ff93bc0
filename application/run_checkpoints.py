"""Binds a run to its workspace's content: captured while nothing is under way, accepted by one fact. SPEC section 16.

At the start, before the first T1 of a step that may write, after the last T2 of a step that wrote, and before the
terminal event. An artifact without its fact is an orphan, and collected later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from ..domain.errors import SafepointError, WriteRefused
from ..domain.events.outside import CheckpointAccepted
from ..domain.events.tool import RecoveryMode, ToolDispatched
from ..domain.identifiers import SessionId
from ..domain.operation.state import Phase, unanswered_of
from ..domain.reasons import WriteRefusal
from ..ports.checkpoints import Capture, Checkpoint, Checkpoints, NotKept, Unsupported
from ..ports.failpoints import Failpoints
from ..ports.tool_catalog import BoundCall
from .before_dispatch import refusal
from .in_thread import in_thread
from .preflight import Refused
from .run_recorder import RunRecorder

TRIES_MAX: Final = 3
CAPTURED: Final = "checkpoint.captured"
ACCEPTED: Final = "checkpoint.accepted"


class CheckpointsUnusable(SafepointError):
    """The folder cannot be kept as was asked for; nothing was begun. `answer` says why."""

    def __init__(self, answer: NotKept) -> None:
        super().__init__(f"its content cannot be kept: {why_not(answer)}")
        self.answer = answer


class BoundToNothing(SafepointError):
    """Something was to be decided about drift in a run that accepted no checkpoint: nobody looked, nothing was done."""

    def __init__(self, session_id: SessionId) -> None:
        super().__init__(f"the interrupted run of session {session_id} is bound to no content")
        self.session_id = session_id


def why_not(answer: NotKept) -> str:
    """One sentence without a stop."""
    if not isinstance(answer, Unsupported):
        return answer.detail
    return f"{answer.why}: {answer.detail}" + (f" ({', '.join(answer.paths)})" if answer.paths else "")


class WorkspaceBound(NamedTuple):
    """The workspace that a run is bound to the content of; `epoch` says how often its baseline was set anew."""

    folder: str
    identity: str
    epoch: int


class NoCheckpoints:
    """A run that is not bound to any content, and was never said to be."""

    async def at_start(self) -> None:
        """Do nothing."""

    async def before_step(self, calls: Iterable[object]) -> str | None:
        """Nothing stands in the way of a write."""
        return None

    async def when_settled(self) -> None:
        """Do nothing."""


UNBOUND: Final = NoCheckpoints()


class RunCheckpoints(NoCheckpoints):
    """Keeps and accepts the content of one run's workspace.

    Args:
        recorder: of the run.
        checkpoints: where the content is kept.
        workspace: that the run works in.
        new_key: names a new checkpoint.
        kept: what the folder holds at the start and is kept already; by default that is captured.
        tell: told what could not be kept, for the screen.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        checkpoints: Checkpoints,
        failpoints: Failpoints,
        workspace: WorkspaceBound,
        new_key: Callable[[], str],
        kept: Checkpoint | None,
        tell: Callable[[str, str], None],
    ) -> None:
        self._recorder = recorder
        self._checkpoints = checkpoints
        self._failpoints = failpoints
        self._workspace = workspace
        self._folder = workspace.folder
        self._new_key = new_key
        self._kept = kept
        self._tell = tell
        self._accepted: Checkpoint | None = None
        self._fed = 0
        self._dirty = False

    async def at_start(self) -> None:
        """Accept what the folder holds before the first model step."""
        if self._kept is not None:
            await self._accept(self._kept)
        else:
            await self._keep()

    async def before_step(self, calls: Iterable[object]) -> str | None:
        """Accept what the folder holds before the first T1 of a step that may write.

        Args:
            calls: of the step, as far as they could be bound.

        Returns:
            Why no call of it that may write can be dispatched: the promised mode is not replaced by a weaker one (R18).

        Raises:
            StoreError, WriteRefused: the fact could not be written.
        """
        if not any(isinstance(call, BoundCall) and may_write(call) for call in calls):
            return None
        return await self._keep()

    async def when_settled(self) -> None:
        """Accept what the folder holds after the last T2 of a step, or before the terminal event, if anything wrote."""
        if self._is_dirty() and (detail := await self._keep()) is not None:
            self._tell("checkpoint", f"could not be made: {detail}")

    async def _keep(self) -> str | None:
        for _ in range(TRIES_MAX):
            run = await self._recorder.run()
            if run.jobs or any(one.phase is Phase.DISPATCHED for one in unanswered_of(run)):
                return None  # what is under way may write: the last one stands, and says how far it covers
            captured: Capture = await in_thread(partial(self._checkpoints.capture, self._folder, self._new_key()))
            if not isinstance(captured, Checkpoint):
                return why_not(captured)
            self._failpoints.hit(CAPTURED)
            if await self._settled_on(captured):
                return None
        return "the run went on meanwhile"

    async def _settled_on(self, captured: Checkpoint) -> bool:
        known = self._accepted
        if known is None or captured._replace(ref=known.ref) != known:
            return await self._accept(captured)
        done = not self._is_dirty() or await self._accept(known)
        await in_thread(partial(self._checkpoints.remove, self._folder, captured.ref))
        return done

    async def _accept(self, checkpoint: Checkpoint) -> bool:
        high_water, digest = self._recorder.boundary
        fact = CheckpointAccepted(
            **self._recorder.spine(),
            workspace_identity=self._workspace.identity,
            workspace_epoch=self._workspace.epoch,
            high_water=high_water,
            digest=digest,
            carrier=checkpoint.carrier,
            ref=checkpoint.ref,
            tree_id=checkpoint.tree_id,
            policy_hash=checkpoint.policy_hash,
        )
        try:
            await self._recorder.append(fact)
        except WriteRefused as refused:
            if refused.code is not WriteRefusal.TRANSITION_SHAPE_CONFLICT:
                raise
            return False  # something was written in between: the content is looked at again
        self._failpoints.hit(ACCEPTED)
        self._is_dirty()
        self._accepted, self._dirty = checkpoint, False
        return True

    def _is_dirty(self) -> bool:
        """Whether anything was dispatched since the last one that may have changed files."""
        events = self._recorder.events
        for event in events[self._fed :]:
            if type(event) is ToolDispatched and event.contract.mode is not RecoveryMode.REPLAY_SAFE:
                self._dirty = True
        self._fed = len(events)
        return self._dirty


def without_writes(calls: Iterable[BoundCall | Refused], why: str) -> list[BoundCall | Refused]:
    """The calls of a step, with a refusal in the place of each that may change files of the workspace."""
    refused = refusal(f"the workspace could not be kept as it was before this: {why}")
    return [refused if isinstance(call, BoundCall) and may_write(call) else call for call in calls]


def may_write(call: BoundCall) -> bool:
    """Whether a call may change files of the workspace, as its owner says."""
    return call.needs_permission and call.writes_workspace
