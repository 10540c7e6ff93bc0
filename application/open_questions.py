"""The questions of one live run that wait for a person, so that one can answer from elsewhere. SPEC section 7, F4, F6.

Whoever answers first counts: the gate that asks here, or a person at another terminal. The answer is durable before
the call that waits learns of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from ..domain.events.outside import PermissionDecided
from ..domain.identifiers import RequestId
from ..ports.permission_gate import Allowed, Denied
from .run_recorder import RunRecorder
from .stopping import Stopping


class OpenQuestion:
    """One question; used on the event loop of its run alone.

    Attributes:
        waiting: the scope in which its call waits for the gate; None before and after.
        taken: somebody's answer counts already.
        over: set when its call waits no more; what counts is durable then, or could not be recorded.
    """

    def __init__(self) -> None:
        self.waiting: anyio.CancelScope | None = None
        self.taken = False
        self.over = anyio.Event()
        self._answered = anyio.Event()
        self._answer: Allowed | Denied | Exception | None = None

    def take(self) -> bool:
        """Be the one whose answer counts; False when somebody was before."""
        taken, self.taken = self.taken, True
        return not taken

    def settle(self, answer: Allowed | Denied | Exception) -> None:
        """Say what was recorded from elsewhere, or why it could not be."""
        self._answer = answer
        self._answered.set()
        if self.waiting is not None:
            self.waiting.cancel()

    async def answered(self) -> Allowed | Denied:
        """Wait until the answer from elsewhere is durable.

        Raises:
            StoreError, WriteRefused: it could not be recorded.
        """
        await self._answered.wait()
        assert self._answer is not None
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class OpenQuestions:
    """Finds the questions of a live run by request."""

    def __init__(self, recorder: RunRecorder, stopping: Stopping) -> None:
        self._recorder = recorder
        self._stopping = stopping
        self._open: dict[RequestId, OpenQuestion] = {}

    @contextmanager
    def waiting(self, request_id: RequestId) -> Iterator[OpenQuestion]:
        """Hold a question here while its call waits: from before its request is durable, when nobody knows its id."""
        question = self._open[request_id] = OpenQuestion()
        try:
            yield question
        finally:
            del self._open[request_id]
            question.over.set()

    def is_taken(self, request_id: RequestId) -> bool:
        """True where an answer to a question that waits counts already, durable or about to be."""
        question = self._open.get(request_id)
        return question is not None and question.taken

    async def record(self, request_id: RequestId, answer: Allowed | Denied) -> None:
        """Make an answer durable.

        Raises:
            StoreError, WriteRefused: it could not be recorded.
        """
        await self._recorder.append(
            PermissionDecided(
                **self._recorder.spine(),
                request_id=request_id,
                approved=isinstance(answer, Allowed),
                decided_by=answer.by,
            )
        )

    async def decide(self, request_id: RequestId, answer: Allowed | Denied) -> bool:
        """Answer from elsewhere; False where no call waits for this question any more, or somebody was faster.

        Raises:
            StoreError, WriteRefused: the answer could not be recorded; the call that waits fails as well.
        """
        question = self._open.get(request_id)
        if question is None or self._stopping.is_set():
            return False
        if not question.take():
            await question.over.wait()  # so that it can be told what counts
            return False
        try:
            await self.record(request_id, answer)
        except Exception as error:
            question.settle(error)
            raise
        question.settle(answer)
        return True
