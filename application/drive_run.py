"""Drives a run that has its first commit, so that people elsewhere can stop it, and gives its session up at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from threading import Thread

from anyio import RunFinishedError

from ..domain.errors import StoreError, WriteRefused
from ..domain.events.run import RunStatus
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from .agent import Agent
from .agent_loop import RunOutcome
from .child_runs import ParentCall
from .in_thread import in_thread
from .live_operations import LiveOperations
from .live_runs import LiveRun, LiveRuns
from .ownership import Owned, SessionOwnership
from .run_agent import RunAgent, Screen
from .run_recorder import RunRecorder
from .start_turn import Begun
from .stopping import BOUND_SECONDS, CallCancel, Stopping


class DriveRun:
    """The end of running a turn and of resuming one.

    Args:
        live: says what is left of a session's operations in this process.
        cancel_bound_seconds: how long live tools are waited for when the run is stopped, 0 or more.
    """

    def __init__(
        self,
        run_agent: RunAgent,
        ownership: SessionOwnership,
        live_runs: LiveRuns,
        live: LiveOperations,
        sink: LifecycleSink,
        *,
        cancel_bound_seconds: float = BOUND_SECONDS,
    ) -> None:
        self._run_agent = run_agent
        self._ownership = ownership
        self._live_runs = live_runs
        self._live = live
        self._sink = sink
        self._cancel_bound_seconds = cancel_bound_seconds

    async def __call__(
        self, begun: Begun, agent: Agent, screen: Screen, started: Callable[[LiveRun], None]
    ) -> RunOutcome:
        """Drive to the terminal event.

        Args:
            started: told how to stop the run, before the first model step.

        Raises:
            StoreError, WriteRefused: the run could not be recorded any further; repair will close it.
        """
        async with self.driving(begun) as run:
            started(run)
            outcome = await self._run_agent(begun, run.recorder, agent, screen, run.stopping, run.questions)
        self.tell_outcome(begun, outcome)
        return outcome

    @asynccontextmanager
    async def driving(self, begun: Begun) -> AsyncIterator[LiveRun]:
        """Hold a run while somebody drives it, our loop or another's; its session is given up at the end."""
        stopping = Stopping(bound_seconds=self._cancel_bound_seconds)
        recorder = self._run_agent.recorder(begun)
        self._tell(LifecycleKind.EXECUTION_STARTED, begun)
        try:
            with self._live_runs.driving(recorder, stopping) as live_run, _stopped_with(begun.parent, live_run):
                yield live_run
        except BaseException as error:
            self._tell(LifecycleKind.EXECUTION_FAILED, begun, error_class=type(error).__name__)
            raise
        finally:
            await in_thread(partial(self._give_up, begun.owned, recorder))

    def tell_outcome(self, begun: Begun, outcome: RunOutcome) -> None:
        """Tell operators how a run ended that nothing was raised out of."""
        kind = LifecycleKind.EXECUTION_COMPLETED if outcome.failure is None else LifecycleKind.EXECUTION_FAILED
        code = outcome.failure or (None if outcome.status is RunStatus.COMPLETED else outcome.status)
        self._tell(kind, begun, code)

    def _give_up(self, owned: Owned, recorder: RunRecorder) -> None:
        """End the use case, and release the session as soon as nothing of it is open or lives here. SPEC section 7."""
        self._ownership.keep(owned)
        if recorder.ended:
            self._live.when_over(owned.session_id, partial(self._ownership.give_up_unused, owned.session_id))

    def _tell(
        self,
        kind: LifecycleKind,
        begun: Begun,
        code: str | None = None,
        *,
        error_class: str | None = None,
    ) -> None:
        self._sink.record(
            LifecycleEvent(
                kind=kind,
                session_id=begun.identity.session_id,
                run_id=begun.identity.run_id,
                claim_id=begun.claim_id,
                codes=() if code is None else (code,),
                error_class=error_class,
            )
        )


@contextmanager
def _stopped_with(parent: ParentCall | None, run: LiveRun) -> Iterator[None]:
    """Stop a child run when the call that started it should stop, by the same person."""
    if parent is None or not isinstance(parent.cancel, CallCancel):  # a process of its own is ended as a whole
        yield
        return
    cancel = parent.cancel

    def stop() -> None:
        Thread(target=_stop, args=(run, cancel.by), name="safepoint stop child", daemon=True).start()

    with cancel.followed(stop):
        yield


def _stop(run: LiveRun, by: str) -> None:
    with suppress(RunFinishedError, CancelledError, StoreError, WriteRefused):  # whoever drives it sees that, too
        run.cancel_from_thread(by)
