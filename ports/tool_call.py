"""One call of a tool: what its implementation is given, where it runs, and what its end is. SPEC section 8."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..domain.child_runs import child_run_of
from ..domain.events.event import Json
from ..domain.identifiers import ExecutionIdentity, OperationId, RunId
from ..domain.tool_results import PreparedResult
from .cancel_signal import CancelSignal
from .failpoints import Failpoints
from .supervised import ProcessInfo, SupervisedExit, Work

Arguments: TypeAlias = Mapping[str, Json]


class Workspace(NamedTuple):
    """The folder that a run works in, as evidence is made for it.

    Attributes:
        path: absolute.
        identity: as it was observed when the run began; None where the folder has none.
    """

    path: Path
    identity: str | None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What an implementation may know of its call. F20.

    Attributes:
        idempotency_key: the same for every delivery of this operation.
        workspace: the run's folder, absolute.
        cancel: set when the tool should stop; it has a bounded time to do so.
        report: takes a line of progress for the user; not durable, never waits.
        evidence: what T1 recorded to compare with later; None where the tool computes none.
        redelivery: the key was delivered before, and what came of that is not known. What is returned then is taken for
            the outcome of all deliveries: return only what answers the keyed call itself, and raise for anything that
            may have been said before the key was looked at (a token that has expired). ADR 0056.
    """

    identity: ExecutionIdentity
    operation_id: OperationId
    idempotency_key: str
    workspace: Path
    cancel: CancelSignal
    report: Callable[[str], None]
    failpoints: Failpoints
    evidence: Json = None
    redelivery: bool = False

    @property
    def child_run(self) -> RunId | None:
        """The id that T1 recorded for the run that this call starts; None where the tool declares no child run."""
        return child_run_of(self.evidence)

    def cancelled(self) -> bool:
        """True when the tool should stop."""
        return self.cancel.is_set()

    def failpoint(self, point: str) -> None:
        """Say that an instant is reached where a crash is interesting; does nothing in production."""
        self.failpoints.hit(point)


class OutcomeNotSeen(Exception):
    """Raised by an `AsyncCall` whose work goes on, or may go on, where nobody sees it: a server that did not answer.

    Nothing is recorded of the outcome, and the operation stays indeterminate; of a reader it is an error like others.

    Attributes:
        when_over: takes who is to be told, from a thread, once nothing of the work can run any more; None where nobody
            will know, so that it counts as running until this process ends.
    """

    def __init__(self, message: str = "", *, when_over: Callable[[Callable[[], None]], None] | None = None) -> None:
        super().__init__(message)
        self.when_over = when_over


class SyncCall(NamedTuple):
    """Runs in a thread of the owner."""

    run: Callable[[Arguments, ToolContext], object]


class AsyncCall(NamedTuple):
    """Runs in the owner's event loop."""

    run: Callable[[Arguments, ToolContext], Awaitable[object]]


class LeftRunning(NamedTuple):
    """Work that goes on after the tool returned: what `background.started` records."""

    handle: dict[str, Json]
    detached: bool


class Settled(NamedTuple):
    """What T2 records of a supervised call, and what of it goes on."""

    result: PreparedResult
    left_running: LeftRunning | None = None


@dataclass(frozen=True, slots=True)
class SupervisedCall:
    """Runs in processes of its own, through the supervisor port.

    Attributes:
        work: what to start.
        settle: reads the end of the main process.
        detach: for a call that does not await its main process: makes the answer from the processes that run after
            `start`. None for all others.
    """

    work: Callable[[Arguments, ToolContext], Work]
    settle: Callable[[SupervisedExit, ToolContext], Settled]
    detach: Callable[[Sequence[ProcessInfo], ToolContext], Settled] | None = None


Implementation: TypeAlias = SyncCall | AsyncCall | SupervisedCall
