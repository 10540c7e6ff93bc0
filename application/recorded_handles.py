"""Finds again what a `reattach` call started, by the handle that T1 recorded. SPEC sections 10 and 11.

Two handles are known to everybody: a supervised operation is one itself, since its supervisor writes down, durably, how
far its main process got; and a child run is found by its run id in this store.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from ..domain import canonical
from ..domain.errors import StoreError
from ..domain.events.event import Json
from ..domain.events.model import ModelText
from ..domain.events.run import RunEnded, RunStatus
from ..domain.events.tool import Effect, Life, Observation
from ..domain.identifiers import OperationId, RunId, run_stream
from ..domain.run.state import Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent
from ..domain.tool_results import PreparedResult, prepare_result, refused
from ..ports.event_store import EventReader, EventStore
from ..ports.reconciler import AskedOperation, Observed, Reconciler
from ..ports.supervised import OperationStatus, Progress
from ..ports.supervisor import Supervisor
from .states import events_after, load, standing_of

CHILD_RUN: Final = "child_run"
"""Member of a dispatch's evidence: the id of the run that the call starts in this store, in a session of its own."""
DEPTH_MAX: Final = 64
"""How many continuations of a child run are followed."""
_OUTPUT_LOST: Final = "not kept: the process that read it died before it was recorded"


def child_run_evidence(run_id: RunId) -> dict[str, Json]:
    """What a tool that starts a child run gives as its evidence, before it does."""
    return {CHILD_RUN: run_id}


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
        child = asked.evidence.get(CHILD_RUN) if isinstance(asked.evidence, dict) else None
        if isinstance(child, str) and child:
            try:
                return self._child(RunId(child))
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

    def _child(self, run_id: RunId) -> Observed:
        with self._store.snapshot() as reader:
            for _ in range(DEPTH_MAX):
                run = _run(reader, run_id)
                if run.claimed is None:
                    return _of_child(reader, run_id, run)
                run_id = run.claimed.target.run_id
        return Observed(Observation.HANDLE_RUNNING, detail=f"run {run_id} was continued more often than is followed")


def _run(reader: EventReader, run_id: RunId) -> Run:
    standing_of(reader, run_id)
    return load(reader, run_stream(run_id)).run()


def _of_child(reader: EventReader, run_id: RunId, run: Run) -> Observed:
    """How a child run stands that nobody has continued."""
    if run.opening is None:
        return Observed(Observation.HANDLE_UNKNOWN, detail=f"this store has nothing of run {run_id}")
    if run.ended is None:
        return Observed(Observation.HANDLE_RUNNING, detail=f"run {run_id} has not ended")
    if run.ended.recovered:
        where = f"run {run_id} of session {run.opening.session_id}"
        return Observed(Observation.HANDLE_RUNNING, detail=f"{where} was interrupted, and can be continued")
    facts = _told(reader, run_id, run.ended)
    failed = run.ended.status is not RunStatus.COMPLETED
    prepared = prepare_result(facts)
    answer = PreparedResult(
        prepared.result, failed, Effect.DONE, prepared.code, prepared.original_length, prepared.original_digest
    )
    detail = f"run {run_id} ended {run.ended.status.value}"
    return Observed(Observation.HANDLE_SETTLED, answer, _digest(facts), detail)


def _told(reader: EventReader, run_id: RunId, ended: RunEnded) -> dict[str, Json]:
    """What a child run came to: how it ended, and the text of its last step."""
    step, texts = "", list[str]()
    for sealed in events_after(reader, run_stream(run_id), 0, FIRST_PREVIOUS_DIGEST):
        if isinstance(sealed.event, ModelText):
            if sealed.event.step_id != step:
                step, texts = sealed.event.step_id, []
            texts.append(sealed.event.text)
    failure = None if ended.failure_class is None else str(ended.failure_class)
    return {"run_id": run_id, "status": ended.status.value, "failure_class": failure, "text": "".join(texts)}


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
