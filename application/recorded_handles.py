"""Finds again what a `reattach` call started, by the handle that T1 recorded. SPEC sections 10 and 11.

Two handles are known to everybody: a supervised operation is one itself, since its supervisor writes down, durably, how
far its main process got; and a child run is found by its run id in this store.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from ..domain import canonical
from ..domain.child_runs import child_run_of, is_reserved
from ..domain.errors import StoreError
from ..domain.events.event import Json
from ..domain.events.run import RunStatus
from ..domain.events.tool import Effect, Life, Observation
from ..domain.identifiers import OperationId, RunId
from ..domain.sealing import DamagedEvent
from ..domain.tool_results import PreparedResult, prepare_result, refused
from ..ports.event_store import EventStore
from ..ports.reconciler import AskedOperation, Observed, Reconciler
from ..ports.supervised import OperationStatus, Progress
from ..ports.supervisor import Supervisor
from .child_runs import Absent, AnotherRun, Ended, Interrupted, Open, TooDeep, child_run
from .states import standing_of

_OUTPUT_LOST: Final = "not kept: the process that read it died before it was recorded"


class RecordedHandles(Reconciler):
    """Looks up supervised operations and child runs, whatever their contract is called.

    Args:
        supervisor: kept the status of supervised operations.
        store: has child runs.
    """

    reconciler_id = "safepoint.recorded_handles"
    version = 1

    def __init__(self, supervisor: Supervisor, store: EventStore) -> None:
        self._supervisor = supervisor
        self._store = store

    @property
    def contract_ids(self) -> Collection[str]:
        """None of its own: it is asked where nobody knows the contract."""
        return ()

    def observe(self, asked: AskedOperation) -> Observed:
        """Look the handle up; a child run that cannot be read has not come to its end, as far as anybody knows."""
        child = child_run_of(asked.evidence)
        if child is not None:
            try:
                return self._child(asked, child)
            except (StoreError, DamagedEvent) as error:
                return Observed(Observation.HANDLE_RUNNING, detail=f"run {child} cannot be read: {error}")
        if asked.dispatch.life is Life.SUPERVISED:
            return self._supervised(asked.operation_id)
        return Observed(Observation.HANDLE_UNKNOWN, detail="no handle was recorded that can be looked up here")

    def tidy(self, asked: AskedOperation) -> None:
        """Nothing is left to remove: lock and status go with the operation's outcome."""

    def _supervised(self, operation_id: OperationId) -> Observed:
        status = self._supervisor.status(operation_id)
        if status is None:
            return Observed(Observation.HANDLE_UNKNOWN, detail="what its supervisor wrote down is not there")
        digest = _digest(_facts(status))
        match status.progress:
            case Progress.STARTED:
                detail = "it was started, and how it ended was not written down"
                return Observed(Observation.HANDLE_UNKNOWN, None, digest, detail)
            case Progress.NEVER_STARTED:
                answer = refused("its process was never started")
                return Observed(Observation.HANDLE_SETTLED, answer, digest, "it was never started")
            case Progress.EXITED:
                end = f"signal {status.signal}" if status.exit_code is None else f"exit status {status.exit_code}"
                return Observed(Observation.HANDLE_SETTLED, _ended(status), digest, f"it ended with {end}")

    def _child(self, asked: AskedOperation, run_id: RunId) -> Observed:
        reserved = is_reserved(asked.evidence)
        with self._store.snapshot() as reader:
            found = child_run(reader, run_id, asked.operation_id if reserved else None)
            vouched = reserved and not standing_of(reader, asked.dispatch.run_id).foreign
        match found:
            case Absent() if vouched:  # only the call itself could have begun it, and that is over
                answer = refused("the run that it was to start was never begun")
                detail = f"run {run_id} was never begun"
                return Observed(Observation.HANDLE_SETTLED, answer, _digest({"absent": run_id}), detail)
            case Absent():
                return Observed(Observation.HANDLE_UNKNOWN, detail=f"this store has nothing of run {run_id}")
            case AnotherRun():
                return Observed(Observation.HANDLE_UNKNOWN, detail=f"run {run_id} was not started by this call")
            case Open():
                return Observed(Observation.HANDLE_RUNNING, detail=f"run {found.run_id} has not ended")
            case Interrupted():
                return _interrupted(found)
            case TooDeep():
                detail = f"run {found.run_id} was continued more often than is followed"
                return Observed(Observation.HANDLE_RUNNING, detail=detail, ends_never=True)
            case Ended():
                return _of_ended(found)


def _interrupted(child: Interrupted) -> Observed:
    where = f"run {child.run_id} of session {child.session_id} was interrupted"
    if child.superseded:
        detail = f"{where}, and a later turn has taken its place"
        return Observed(Observation.HANDLE_RUNNING, detail=detail, ends_never=True)
    detail = f"{where}, and can be continued"
    return Observed(Observation.HANDLE_RUNNING, detail=detail, waits_for=child.session_id)


def _of_ended(child: Ended) -> Observed:
    """What a child run came to: how it ended, and the text of its last step."""
    status, failure = child.ended.status, child.ended.failure_class
    facts: dict[str, Json] = {
        "run_id": child.run_id,
        "status": status.value,
        "failure_class": None if failure is None else str(failure),
        "text": child.text,
    }
    told = prepare_result(facts)
    failed = status is not RunStatus.COMPLETED
    answer = PreparedResult(told.result, failed, Effect.DONE, told.code, told.original_length, told.original_digest)
    detail = f"run {child.run_id} ended {status.value}"
    return Observed(Observation.HANDLE_SETTLED, answer, _digest(facts), detail)


def _ended(status: OperationStatus) -> PreparedResult:
    """The answer of a supervised call whose end is known, and whose output died with the process that read it."""
    return prepare_result({"exit_code": status.exit_code, "signal": status.signal, "output": _OUTPUT_LOST})


def _facts(status: OperationStatus) -> Mapping[str, Json]:
    return {
        "operation_id": status.operation_id,
        "progress": status.progress.value,
        "pid": status.pid,
        "exit_code": status.exit_code,
        "signal": status.signal,
        "exited_at": status.exited_at,
    }


def _digest(facts: Mapping[str, Json]) -> str:
    return canonical.sha256_hex(canonical.encode(dict(facts)))
