"""What is made ready before T1, while it is certain that nothing has happened yet: evidence and a supervisor."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial

from ..domain.child_runs import reserved_child_run
from ..domain.errors import RefusedWithoutEffect
from ..domain.events.event import Json
from ..domain.events.tool import Life, ToolCalled, ToolDispatched
from ..domain.identifiers import OperationId, RunId
from ..domain.operation.watch_list import is_certain
from ..domain.reasons import ResponseCode
from ..domain.tool_results import refused
from ..ports.ids import Ids
from ..ports.supervisor import SupervisedSlot, Supervisor
from ..ports.tool_catalog import BoundCall, Workspace
from .abandonable_call import AbandonableCall, Raised, Returned
from .in_thread import in_thread
from .preflight import Admitted, Refused
from .run_recorder import RunRecorder
from .stopping import Stopping
from .tool_facts import dispatch_of


@dataclass(frozen=True, slots=True)
class Ready:
    """A dispatch that can be written; a supervised one holds its lock already.

    Attributes:
        settled_before: the operation of the same turn whose key it is delivered with, although that has its outcome.
    """

    bound: BoundCall
    dispatch: ToolDispatched
    slot: SupervisedSlot | None = None
    settled_before: OperationId | None = None


class BeforeDispatch:
    """Makes admitted calls of one run ready.

    Args:
        workspace: the run's folder.
    """

    def __init__(
        self, recorder: RunRecorder, supervisor: Supervisor, ids: Ids, stopping: Stopping, workspace: Workspace
    ) -> None:
        self._recorder = recorder
        self._supervisor = supervisor
        self._ids = ids
        self._stopping = stopping
        self._workspace = workspace

    async def ready(self, call: ToolCalled, admitted: Admitted) -> Ready | Refused | None:
        """Compute evidence and hold the operation's lock; None when the run was stopped meanwhile."""
        operation_id = self._ids.fresh(OperationId)
        bound = admitted.bound
        computed = await self._evidence(bound)
        if not isinstance(computed, Returned):
            return None if computed is None else _refused(computed.error)
        incarnation_id = self._recorder.owned.incarnation_id
        try:
            dispatch = dispatch_of(self._recorder.spine(), call, admitted, operation_id, incarnation_id, computed.value)
        except ValueError:
            return refusal("what it would be compared with later is not strict JSON")
        settled = None if admitted.again is None or not is_certain(admitted.again) else admitted.again.operation_id
        if bound.life is not Life.SUPERVISED:
            return Ready(bound, dispatch, None, settled)
        try:
            slot = await in_thread(partial(self._supervisor.prepare, operation_id))
        except Exception as error:  # noqa: BLE001 (whatever is wrong with it, nothing was started)
            return _refused(error)
        return Ready(bound, dispatch, slot, settled)

    async def _evidence(self, bound: BoundCall) -> Returned[Json] | Raised | None:
        """The tool's own code: it may raise anything, and is not waited for after the bound of a stop."""
        if bound.child_run:
            return Returned(reserved_child_run(self._ids.fresh(RunId)))
        if bound.evidence_of is None:
            return Returned(None)
        computing = AbandonableCall(partial(bound.evidence, self._workspace), "safepoint evidence")
        if not computing.start():
            return Raised(RuntimeError("there is no room for another thread"))
        scope = self._stopping.after_bound()
        try:
            with scope:
                await computing.finished()
        finally:
            self._stopping.done(scope)
            computing.give_up()
        return computing.ended


async def let_go(slot: SupervisedSlot | None) -> None:
    """Release the lock of an operation without work."""
    if slot is not None:
        with contextlib.suppress(Exception):  # it ends with this process at the latest
            await in_thread(slot.release)


def refusal(detail: str) -> Refused:
    """Make the answer to a call that was refused before it did anything."""
    return Refused(ResponseCode.REFUSED_WITHOUT_EFFECT, str(refused(detail).result))


def _refused(error: BaseException) -> Refused:
    said = str(error)
    return refusal(said if isinstance(error, RefusedWithoutEffect) else f"{type(error).__name__}: {said}")
