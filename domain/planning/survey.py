"""What the gates need of a run's events, in one pass over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from ..budgets import Spending
from ..events.event import RunEvent
from ..events.model import ModelStepCompleted
from ..events.outside import (
    BackgroundSettled,
    BackgroundStarted,
    CheckpointAccepted,
    PermissionClosed,
    PermissionDecided,
    PermissionRequested,
    WorkspaceRebaselined,
    WorkspaceRenewed,
    WorkspaceTransitioned,
)
from ..events.run import BudgetSet, ContinuationStarted, RunEnded, RunOpened
from ..events.tool import (
    Life,
    RecoveryMode,
    Statement,
    ToolAttested,
    ToolCalled,
    ToolDispatched,
    ToolRedeliveryStarted,
    ToolResponded,
)
from ..identifiers import ExecutionIdentity, HandleId, IncarnationId, OperationId


class Delivery(NamedTuple):
    """One time that an operation was handed to its implementation: by which process life, and as which kind of work."""

    operation_id: OperationId
    life: Life
    incarnation_id: IncarnationId


class Baseline(NamedTuple):
    """What the files of a workspace were accepted to be: by a checkpoint, or by a person. SPEC section 16."""

    carrier: str
    ref: str
    tree_id: str
    policy_hash: str


PATHS_READ_MAX = 10_000


class Survey:
    """The facts of one run that gates ask for. Events are fed in order, and not kept.

    Attributes:
        length: how many events were fed.
        opening: the first event, None where it is no opening.
        identities: the execution identities of its events.
        terminals: its terminal events.
        open_permissions: questions that nobody decided and no stop closed.
        open_jobs: background work that is not settled and not detached.
        deliveries: of every operation that was dispatched, in order.
        declared_over: how many deliveries of an operation, from the first, a person has said to be over.
        last_step: the model step that was completed last.
        spending: what the run used, and what it may use.
        workspace_identity, cwd: where the run was at its end.
        workspace_epoch: how often the baseline was set anew; None where no fact says it.
        baseline: the newest that this run accepted, None where it accepted none.
        written: what was dispatched since then and may have changed files; nothing before the first baseline.
        wrote_unbound: names of the tools that may have changed files before it.
        paths_read: arguments of calls since the first baseline that only read, the first `PATHS_READ_MAX` of them.
    """

    __slots__ = (
        "_calls",
        "_newest",
        "baseline",
        "cwd",
        "declared_over",
        "deliveries",
        "identities",
        "last_step",
        "length",
        "open_jobs",
        "open_permissions",
        "opening",
        "paths_read",
        "spending",
        "terminals",
        "workspace_epoch",
        "workspace_identity",
        "written",
        "wrote_unbound",
    )

    def __init__(self, events: Iterable[RunEvent] = ()) -> None:
        self.length = 0
        self.opening: RunOpened | ContinuationStarted | None = None
        self.identities: set[ExecutionIdentity] = set()
        self.terminals: list[RunEnded] = []
        self.open_permissions: dict[str, PermissionRequested] = {}
        self.open_jobs: dict[HandleId, BackgroundStarted] = {}
        self.deliveries: dict[OperationId, tuple[Delivery, ...]] = {}
        self.declared_over: dict[OperationId, int] = {}
        self.last_step: ModelStepCompleted | None = None
        self.spending = Spending()
        self.workspace_identity: str | None = None
        self.cwd: str | None = None
        self.workspace_epoch: int | None = None
        self.baseline: Baseline | None = None
        self.written: dict[OperationId, ToolDispatched] = {}
        self.wrote_unbound: set[str] = set()
        self.paths_read: set[str] = set()
        self._calls: dict[str, ToolCalled] = {}
        self._newest: ExecutionIdentity | None = None
        for event in events:
            self.feed(event, event.identity)

    def feed(self, event: RunEvent, identity: ExecutionIdentity) -> None:
        """Take in the next event and the identity that it has."""
        self.length += 1
        if identity is not self._newest:
            self.identities.add(identity)
            self._newest = identity
        take = self._TAKE.get(type(event))
        if take is not None:
            take(self, event)

    def _take_opening(self, event: RunOpened | ContinuationStarted) -> None:
        if self.length == 1:
            self.opening = event
        self.workspace_identity, self.cwd = event.workspace_identity, event.cwd
        self.spending.feed(event)

    def _take_end(self, event: RunEnded) -> None:
        self.terminals.append(event)
        self.spending.feed(event)

    def _take_step(self, event: ModelStepCompleted) -> None:
        self.last_step = event
        self.spending.feed(event)

    def _take_delivery(self, event: ToolDispatched | ToolRedeliveryStarted) -> None:
        fields = event.__dict__  # much quicker than attributes of a pydantic model
        operation_id = fields["operation_id"]
        self.spending.feed(event)
        # As calling the class would, in half the time.
        delivery = tuple.__new__(Delivery, (operation_id, fields["life"], fields["incarnation_id"]))
        self.deliveries[operation_id] = (*self.deliveries.get(operation_id, ()), delivery)
        if type(event) is ToolDispatched:
            self._take_touch(event)

    def _take_touch(self, event: ToolDispatched) -> None:
        """What a dispatch may do to files; of a run that is bound to none, no event is kept."""
        fields = event.__dict__
        writes = fields["contract"].mode is not RecoveryMode.REPLAY_SAFE
        if self.baseline is None:
            if writes:
                self.wrote_unbound.add(fields["tool_name"])
            return
        call = self._calls.pop(event.call_id, None)
        if writes:
            self.written[event.operation_id] = event
        elif call is not None and isinstance(call.args, dict) and len(self.paths_read) < PATHS_READ_MAX:
            self.paths_read.update(value for value in call.args.values() if isinstance(value, str))

    def _take_call(self, event: ToolCalled) -> None:
        if self.baseline is not None:
            self._calls[event.call_id] = event

    def _take_statement(self, event: ToolAttested) -> None:
        if event.statement is Statement.OVER:
            self.declared_over[event.operation_id] = len(self.deliveries.get(event.operation_id, ()))

    def _take_question(self, event: PermissionRequested) -> None:
        self.open_permissions[event.request_id] = event
        self.spending.feed(event)

    def _take_answer(self, event: PermissionDecided | PermissionClosed) -> None:
        self.open_permissions.pop(event.request_id, None)
        self.spending.feed(event)

    def _take_use(self, event: BudgetSet) -> None:
        self.spending.feed(event)

    def _take_answer_of_call(self, event: ToolResponded) -> None:
        if self._calls:
            self._calls.pop(event.call_id, None)
        self.spending.feed(event)

    def _take_job(self, event: BackgroundStarted) -> None:
        if not event.detached:
            self.open_jobs[event.handle_id] = event

    def _take_job_end(self, event: BackgroundSettled) -> None:
        self.open_jobs.pop(event.handle_id, None)

    def _take_transition(self, event: WorkspaceTransitioned) -> None:
        self.workspace_identity, self.cwd = event.to_identity, event.path
        self.workspace_epoch = event.workspace_epoch

    def _take_baseline(self, event: CheckpointAccepted | WorkspaceRebaselined) -> None:
        self.workspace_epoch = event.workspace_epoch
        self.baseline = Baseline(event.carrier, event.ref, event.tree_id, event.policy_hash)
        self.written = {}

    def _take_renewal(self, event: WorkspaceRenewed) -> None:
        self.workspace_identity = event.to_identity

    # By exact type: most events are none of these.
    _TAKE: ClassVar[Mapping[type[RunEvent], Callable[[Any, Any], None]]] = {
        ToolDispatched: _take_delivery,
        ToolCalled: _take_call,
        ToolResponded: _take_answer_of_call,
        BudgetSet: _take_use,
        ToolRedeliveryStarted: _take_delivery,
        ToolAttested: _take_statement,
        ModelStepCompleted: _take_step,
        RunOpened: _take_opening,
        ContinuationStarted: _take_opening,
        RunEnded: _take_end,
        PermissionRequested: _take_question,
        PermissionDecided: _take_answer,
        PermissionClosed: _take_answer,
        BackgroundStarted: _take_job,
        BackgroundSettled: _take_job_end,
        CheckpointAccepted: _take_baseline,
        WorkspaceRebaselined: _take_baseline,
        WorkspaceTransitioned: _take_transition,
        WorkspaceRenewed: _take_renewal,
    }
