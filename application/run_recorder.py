"""Writes one run's facts: fills in identity, ids and time, and carries the owner's epoch. SPEC sections 5 and 7.

Whoever drives an agent, our loop or another's, records through this and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..domain.canonical import decode_canonical
from ..domain.commands import (
    AnyCommand,
    Append,
    CommitOutcome,
    EndRun,
    OrdinaryFact,
    PrepareTool,
    RecordStep,
    RefuseCall,
    StepFact,
)
from ..domain.errors import StoreDamaged
from ..domain.events.event import Json, RunEvent
from ..domain.events.outside import BackgroundStarted
from ..domain.events.run import ContinuationStarted, RunEnded, RunStatus
from ..domain.events.tool import ToolCalled, ToolDispatched, ToolResponded
from ..domain.identifiers import ExecutionIdentity, RunId
from ..domain.reasons import FailureClass
from ..domain.run.state import Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST
from ..domain.session.state import Session
from ..ports.failpoints import Failpoint, Failpoints
from .async_ledger import AsyncLedger
from .ledger import Receipt
from .ownership import Owned
from .spines import RunSpine, Spines
from .task_queue import TaskQueue


class RunRecorder:
    """The writing side of one open run.

    Args:
        ledger: executes the commands.
        identity: of the run.
        owned: the right to write its session.
        begun: the receipt of its first commit.
    """

    def __init__(
        self,
        ledger: AsyncLedger,
        spines: Spines,
        failpoints: Failpoints,
        identity: ExecutionIdentity,
        owned: Owned,
        begun: Receipt,
    ) -> None:
        self.identity = identity
        self.owned = owned
        self._guard = owned.guard
        self._ledger = ledger
        self._writer: TaskQueue | None = None
        self._spines = spines
        self._failpoints = failpoints
        self._events: list[RunEvent] = []
        self._ahead: dict[int, tuple[RunEvent, str]] = {}
        self._digest = FIRST_PREVIOUS_DIGEST
        self._stored_calls: dict[str, bytes] = {}
        self._ended = False
        self._remember(begun)
        self._first_step_of_continuation = isinstance(self.events[0], ContinuationStarted)

    @property
    def run_id(self) -> RunId:
        """The run that is recorded."""
        return self.identity.run_id

    @property
    def events(self) -> Sequence[RunEvent]:
        """The facts of this run that are durable, in order and without a gap.

        Answers of commands that were under way at once may come in another order: what is ahead of a gap waits for it.
        """
        return self._events

    @property
    def boundary(self) -> tuple[int, str]:
        """How many facts are durable, and the digest that names this prefix."""
        return len(self._events), self._digest

    @property
    def ended(self) -> bool:
        """True once this recorder wrote the terminal event."""
        return self._ended

    def stored_arguments(self, call_id: str) -> dict[str, Json]:
        """A call's arguments decoded from its stored bytes, so that what was hashed is what is used. SPEC section 6.

        Raises:
            StoreDamaged: they are not there.
        """
        fields = decode_canonical(self._stored_calls[call_id])
        args = fields.get("args") if isinstance(fields, dict) else None
        if not isinstance(args, dict):
            raise StoreDamaged(f"call {call_id} of run {self.run_id} was stored without arguments")
        return args

    def spine(self) -> RunSpine:
        """Identity, a fresh event id and the present time, for a new fact."""
        return self._spines.run(self.identity)

    async def session(self) -> Session:
        """The session's state as the ledger knows it."""
        return await self._ledger.session(self.identity.session_id)

    async def run(self) -> Run:
        """The run's state as the ledger knows it."""
        return await self._ledger.run(self.identity.run_id)

    async def append(self, *facts: OrdinaryFact) -> Receipt:
        """Write ordinary facts."""
        return await self._execute(Append(*self._guard, run_id=self.run_id, facts=facts))

    async def record_step(self, facts: Sequence[StepFact]) -> Receipt:
        """Write one completed model step."""
        self._failpoints.hit(Failpoint.BEFORE_T1)
        receipt = await self._execute(RecordStep(*self._guard, run_id=self.run_id, facts=tuple(facts)))
        self._failpoints.hit(Failpoint.STEP_RECORDED)
        if self._first_step_of_continuation:
            self._first_step_of_continuation = False
            self._failpoints.hit(Failpoint.FIRST_STEP)
        return receipt

    async def refuse(self, response: ToolResponded) -> Receipt:
        """Answer a call before T1."""
        return await self._execute(RefuseCall(*self._guard, run_id=self.run_id, response=response))

    async def prepare(self, dispatch: ToolDispatched) -> Receipt:
        """T1."""
        receipt = await self._execute(PrepareTool(*self._guard, run_id=self.run_id, dispatch=dispatch))
        self._failpoints.hit(Failpoint.T1_COMMITTED)
        return receipt

    async def outcome(self, response: ToolResponded, left_running: BackgroundStarted | None = None) -> Receipt:
        """T2."""
        self._failpoints.hit(Failpoint.EFFECT_DONE)
        command = CommitOutcome(*self._guard, run_id=self.run_id, response=response, left_running=left_running)
        receipt = await self._execute(command)
        self._failpoints.hit(Failpoint.T2_COMMITTED)
        return receipt

    async def end(
        self, status: RunStatus, failure: FailureClass | None = None, *, stopped_by: str | None = None
    ) -> Receipt:
        """Write the terminal event, with the closings that go before it."""
        ended = RunEnded(
            **self.spine(),
            status=status,
            failure_class=failure,
            incarnation_id=self.owned.incarnation_id,
            epoch=self.owned.epoch,
        )
        self._failpoints.hit(Failpoint.BEFORE_TERMINAL)
        receipt = await self._execute(EndRun(*self._guard, run_id=self.run_id, ended=ended, stopped_by=stopped_by))
        self._failpoints.hit(Failpoint.AFTER_TERMINAL)
        return receipt

    async def _execute(self, command: AnyCommand) -> Receipt:
        if self._writer is None:
            self._writer = self._ledger.here()  # a run is driven in one event loop
        receipt = await self._writer.execute(command)
        self._remember(receipt)
        return receipt

    def _remember(self, receipt: Receipt) -> None:
        for sealed in receipt.events:
            if isinstance(sealed.event, RunEvent) and sealed.event.run_id == self.run_id:
                if sealed.sequence > len(self._events):
                    self._ahead[sealed.sequence] = (sealed.event, sealed.digest)
                if isinstance(sealed.event, ToolCalled):
                    self._stored_calls[sealed.event.call_id] = sealed.state
                elif isinstance(sealed.event, ToolResponded):
                    self._stored_calls.pop(sealed.event.call_id, None)
                elif isinstance(sealed.event, RunEnded):
                    self._ended = True
        while (following := self._ahead.pop(len(self._events) + 1, None)) is not None:
            event, self._digest = following
            self._events.append(event)
