"""The runs that this process drives, so that a person can stop one from elsewhere. SPEC section 7, people."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

from ..domain.errors import WriteRefused
from ..domain.events.run import CancelRequested
from ..domain.identifiers import RequestId, RunId, SessionId
from ..domain.reasons import WriteRefusal
from ..ports.permission_gate import Allowed, Denied
from .open_questions import OpenQuestions
from .run_recorder import RunRecorder
from .stopping import Stopping


@dataclass(frozen=True, slots=True)
class LiveRun:
    """One run that is being driven, on the event loop of `token`."""

    recorder: RunRecorder
    stopping: Stopping
    token: EventLoopToken
    questions: OpenQuestions

    async def cancel(self, by: str) -> bool:
        """Record that a person stops the run, then tell its live work; nothing is dispatched after the record.

        Stopping twice is stopping once. Answers False when the run had ended by itself.

        Args:
            by: who stops it, for the record.

        Raises:
            StoreError: it could not be recorded; the live work is told to stop all the same.
        """
        if not self.stopping.ask(by):
            return True
        try:
            await self.recorder.append(CancelRequested(**self.recorder.spine(), by=by))
        except WriteRefused as refused:
            if refused.code is WriteRefusal.RUN_SEALED or self.recorder.ended:
                return False
            raise
        finally:
            self.stopping.request()
        return True

    def cancel_from_thread(self, by: str) -> bool:
        """As `cancel`, from a thread that is no event loop's.

        Raises:
            anyio.RunFinishedError: the run's event loop is gone.
        """
        return from_thread.run(self.cancel, by, token=self.token)

    def decide_from_thread(self, request_id: RequestId, answer: Allowed | Denied) -> bool:
        """Answer a question that a call waits for, from a thread that is no event loop's; False where none waits.

        Raises:
            anyio.RunFinishedError: the run's event loop is gone.
            StoreError, WriteRefused: the answer could not be recorded.
        """
        return from_thread.run(self.questions.decide, request_id, answer, token=self.token)


class LiveRuns:
    """Finds live runs by their session. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[SessionId, LiveRun] = {}

    @contextmanager
    def driving(self, recorder: RunRecorder, stopping: Stopping) -> Iterator[LiveRun]:
        """Hold a run here while it is driven; called on its event loop."""
        session_id = recorder.identity.session_id
        run = LiveRun(recorder, stopping, current_token(), OpenQuestions(recorder, stopping))
        with self._lock:
            self._runs[session_id] = run
        try:
            yield run
        finally:
            with self._lock:
                self._runs.pop(session_id, None)

    def get(self, session_id: SessionId) -> LiveRun | None:
        """The live run of a session, None when this process drives none."""
        with self._lock:
            return self._runs.get(session_id)

    def run_ids(self) -> tuple[RunId, ...]:
        """All runs that are driven now."""
        with self._lock:
            return tuple(run.recorder.run_id for run in self._runs.values())
