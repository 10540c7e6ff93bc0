"""Child runs by their id: how one stands, and that a call begins one and no other. SPEC sections 5 and 11.

The id is made before T1 of the parent's call and recorded by it; the run is begun under exactly that id, or found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self, TypeAlias

from ..domain.child_runs import child_run_of, is_reserved
from ..domain.errors import SafepointError, StoreDamaged
from ..domain.events.event import Json
from ..domain.events.model import ModelText, UserMessage
from ..domain.events.run import RunEnded, RunOpened
from ..domain.identifiers import OperationId, RunId, SessionId, run_stream, session_stream
from ..domain.operation.state import Phase, operation_by_id
from ..domain.reasons import FailureClass
from ..domain.run.state import Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent
from ..ports.cancel_signal import CancelSignal
from ..ports.event_store import EventReader, EventStore
from ..ports.tool_catalog import ToolContext
from .agent_loop import RunOutcome
from .states import events_after, load, standing_of

CONTINUATIONS_MAX: Final = 64
"""How many continuations of a child run are followed."""


@dataclass(frozen=True, slots=True)
class ParentCall:
    """The call that starts a child run, while its implementation runs.

    Attributes:
        child_run: the id that its T1 recorded for the child.
        cancel: set when the call should stop, and its child with it.
    """

    session_id: SessionId
    run_id: RunId
    operation_id: OperationId
    child_run: RunId
    cancel: CancelSignal = field(repr=False, compare=False)

    @classmethod
    def of(cls, context: ToolContext) -> Self:
        """The call whose implementation was given this context.

        Raises:
            ValueError: its tool declares no child run, so that no id of one was recorded.
        """
        evidence: Json = context.evidence
        child = child_run_of(evidence)
        if child is None or not is_reserved(evidence):
            raise ValueError("no id of a child run was recorded for this call: declare its tool with child_run=True")
        return cls(context.identity.session_id, context.identity.run_id, context.operation_id, child, context.cancel)


class Absent(NamedTuple):
    """The store has nothing of the run."""


class Open(NamedTuple):
    """The run has not ended; nobody may be executing it any more."""

    session_id: SessionId
    run_id: RunId


class Interrupted(NamedTuple):
    """Repair ended the run; `superseded` where a later turn of its session has taken its place."""

    session_id: SessionId
    run_id: RunId
    superseded: bool


class Ended(NamedTuple):
    """The run came to an end of its own; `text` is what its last step said."""

    session_id: SessionId
    run_id: RunId
    ended: RunEnded
    text: str

    @property
    def outcome(self) -> RunOutcome:
        """As whoever ran it was told, without what was said for people alone."""
        failure = self.ended.failure_class
        known = None if failure is None else next((one for one in FailureClass if one == failure), None)
        return RunOutcome(self.ended.status, known, self.text)


class TooDeep(NamedTuple):
    """The run was continued more often than is followed; `run_id` is where that ended."""

    run_id: RunId


class AnotherRun(NamedTuple):
    """The run is there, and another call started it, or none."""

    run_id: RunId


ChildRun: TypeAlias = Absent | Open | Interrupted | Ended | TooDeep | AnotherRun


def child_run(reader: EventReader, run_id: RunId, parent: OperationId | None = None) -> ChildRun:
    """How a child run stands, over its continuations.

    Args:
        parent: the operation that must have started it; None for one that may have been started in any way.

    Raises:
        DamagedEvent, StoreDamaged: it cannot be read.
        StoreUnavailable: it could not be looked at.
    """
    for depth in range(CONTINUATIONS_MAX):
        run = _run(reader, run_id)
        if depth == 0 and run.opening is not None and parent is not None and _parent_of(run) != parent:
            return AnotherRun(run_id)
        if run.claimed is None:
            return _standing(reader, run_id, run)
        run_id = run.claimed.target.run_id
    return TooDeep(run_id)


def _standing(reader: EventReader, run_id: RunId, run: Run) -> ChildRun:
    """How a child run stands that nobody has continued."""
    if run.opening is None:
        return Absent()
    session_id = run.opening.session_id
    if run.ended is None:
        return Open(session_id, run_id)
    if run.ended.recovered:
        head = load(reader, session_stream(session_id)).session().head
        return Interrupted(session_id, run_id, superseded=head is not None and head.run_id != run_id)
    return Ended(session_id, run_id, run.ended, _last_words(reader, run_id))


def _run(reader: EventReader, run_id: RunId) -> Run:
    standing_of(reader, run_id)
    return load(reader, run_stream(run_id)).run()


def _parent_of(run: Run) -> OperationId | None:
    return run.opening.parent_operation_id if isinstance(run.opening, RunOpened) else None


def _last_words(reader: EventReader, run_id: RunId) -> str:
    step, texts = "", list[str]()
    for sealed in events_after(reader, run_stream(run_id), 0, FIRST_PREVIOUS_DIGEST):
        if isinstance(sealed.event, ModelText):
            if sealed.event.step_id != step:
                step, texts = sealed.event.step_id, []
            texts.append(sealed.event.text)
    return "".join(texts)


class ChildRunExists(SafepointError):
    """The call has begun its child run already: there is one for each call.

    Attributes:
        run_id: the child as it was begun.
        found: how it stands now, over its continuations.
        same: it was begun by the same request: in the same session, with the same message.
    """

    def __init__(self, run_id: RunId, found: ChildRun, *, same: bool) -> None:
        super().__init__(f"the call has begun run {run_id} already, {_said(found, same=same)}")
        self.run_id = run_id
        self.found = found
        self.same = same


class ParentNotOpen(SafepointError):
    """The call that would start the child run is answered, or gone: nothing more is started by it.

    Attributes:
        operation_id: which one.
    """

    def __init__(self, operation_id: OperationId) -> None:
        super().__init__(f"operation {operation_id} does not run any more, and starts no child run")
        self.operation_id = operation_id


def _said(found: ChildRun, *, same: bool) -> str:
    if not same:
        return "in another session or with another message; a call starts one child run"
    match found:
        case Interrupted(session_id=session_id):
            return f"and it was interrupted: resume session {session_id}"
        case Ended():
            return "and it has ended"
        case _:
            return "and it has not ended"


class ChildRuns:
    """Lets each call begin one child run."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def require_new(self, parent: ParentCall, session_id: SessionId, text: str) -> None:
        """Do nothing where the call may begin its child run; whoever begins it is refused where another was faster.

        Raises:
            ChildRunExists: it has begun it.
            ParentNotOpen: it has its outcome.
            StoreError: it could not be looked at, or is damaged.
        """
        try:
            self._require_new(parent, session_id, text)
        except DamagedEvent as error:
            raise StoreDamaged(str(error)) from error

    def _require_new(self, parent: ParentCall, session_id: SessionId, text: str) -> None:
        with self._store.snapshot() as reader:
            found = child_run(reader, parent.child_run, parent.operation_id)
            if not isinstance(found, Absent):
                same = _request_of(reader, parent.child_run) == (parent.operation_id, session_id, text)
                raise ChildRunExists(parent.child_run, found, same=same)
            operation = operation_by_id(load(reader, run_stream(parent.run_id)).run(), parent.operation_id)
        if operation is None or operation.phase is not Phase.DISPATCHED:
            raise ParentNotOpen(parent.operation_id)


def _request_of(reader: EventReader, run_id: RunId) -> tuple[OperationId | None, SessionId, str] | None:
    """What a run was begun with."""
    opened: RunOpened | None = None
    for sealed in events_after(reader, run_stream(run_id), 0, FIRST_PREVIOUS_DIGEST):
        match sealed.event:
            case RunOpened() as event:
                opened = event
            case UserMessage(steering=False, text=text):
                return None if opened is None else (opened.parent_operation_id, opened.session_id, text)
            case _:
                pass
    return None
