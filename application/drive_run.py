"""Drives a run that has its first commit, visibly to people elsewhere, and gives its session up when nothing is left open."""

from __future__ import annotations

from collections.abc import Callable

from anyio import to_thread

from ..domain.identifiers import RunId, SessionId
from ..ports.lifecycle_sink import LifecycleEvent, LifecycleKind, LifecycleSink
from .agent import Agent
from .agent_loop import RunOutcome
from .live_runs import LiveRun, LiveRuns
from .over import LiveOperations
from .ownership import Owned, SessionOwnership
from .run_agent import RunAgent, Screen
from .start_turn import Begun
from .stopping import Stopping


class DriveRun:
    """The end of running a turn and of resuming one.

    Args:
        cancel_bound_seconds: how long live tools are waited for when the run is stopped.
    """

    def __init__(
        self,
        run_agent: RunAgent,
        ownership: SessionOwnership,
        live_runs: LiveRuns,
        live: LiveOperations,
        sink: LifecycleSink,
        *,
        cancel_bound_seconds: float = 10.0,
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
        stopping = Stopping(bound_seconds=self._cancel_bound_seconds)
        recorder = self._run_agent.recorder(begun)
        identity = begun.identity
        self._tell(LifecycleKind.EXECUTION_STARTED, identity.session_id, identity.run_id)
        try:
            with self._live_runs.driving(recorder, stopping) as live_run:
                started(live_run)
                outcome = await self._run_agent(begun, recorder, agent, screen, stopping)
        except BaseException as error:
            self._ownership.keep(begun.owned)
            self._tell(
                LifecycleKind.EXECUTION_FAILED, identity.session_id, identity.run_id, error_class=type(error).__name__
            )
            raise
        kind = LifecycleKind.EXECUTION_COMPLETED if outcome.failure is None else LifecycleKind.EXECUTION_FAILED
        self._tell(kind, identity.session_id, identity.run_id, outcome.failure)
        await to_thread.run_sync(self._give_up, begun.owned)
        return outcome

    def _give_up(self, owned: Owned) -> None:
        """Release the session unless something of the run still lives in this process. SPEC section 7."""
        if len(self._live):
            self._ownership.keep(owned)
        else:
            self._ownership.release(owned)

    def _tell(
        self,
        kind: LifecycleKind,
        session_id: SessionId,
        run_id: RunId,
        code: str | None = None,
        error_class: str | None = None,
    ) -> None:
        codes = () if code is None else (code,)
        self._sink.record(
            LifecycleEvent(kind=kind, session_id=session_id, run_id=run_id, codes=codes, error_class=error_class)
        )
