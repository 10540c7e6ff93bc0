"""The tools that a model may call, and what their owners promise about each call. SPEC section 8."""

from __future__ import annotations

import functools
import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..domain import tool_results
from ..domain.child_runs import child_run_of
from ..domain.errors import RefusedWithoutEffect
from ..domain.events.event import Json
from ..domain.events.run import ToolProfile
from ..domain.events.tool import Effect, Life, RecordedContract, RecoveryMode
from ..domain.identifiers import ExecutionIdentity, OperationId, RunId
from ..domain.tool_results import PreparedResult
from .cancel_signal import CancelSignal
from .failpoints import Failpoints
from .supervised import ProcessInfo, SupervisedExit, Work

Arguments: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is offered it; the digests do not depend on any order.

    Attributes:
        contract_digest: of what is promised and of the input schema: a permission is bound to it, and must not outlive
            either (F6).
    """

    name: str
    description: str
    input_schema: Mapping[str, Json]
    schema_digest: str
    contract_digest: str

    @property
    def profile(self) -> ToolProfile:
        """What the execution profile of a run keeps of it."""
        return ToolProfile(name=self.name, schema_digest=self.schema_digest, contract_digest=self.contract_digest)


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


def is_async(function: object) -> bool:
    """Whether calling it gives something to await, as far as that can be told; an object with one, too."""
    return _is(inspect.iscoroutinefunction, function)


def is_generator(function: object) -> bool:
    """Whether calling it runs nothing of it, as far as that can be told: a generator function, async or not."""
    return _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function)


def _is(kind: Callable[[object], bool], function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return kind(function) or kind(getattr(type(function), "__call__", None))  # noqa: B004 (it is what is called)


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether its first parameter is declared as a `ToolContext`: it then gets the call's before the arguments."""
    try:
        parameters = [*inspect.signature(function, eval_str=True).parameters.values()]
    except Exception:  # noqa: BLE001 (a signature or an annotation that cannot be read declares nothing)
        return False
    return bool(parameters) and parameters[0].annotation is ToolContext


def misfit(function: Callable[..., Any], arguments: Arguments) -> str | None:
    """Why the function cannot be called with these arguments by name, None where it can, or where nobody knows."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*([None] if takes_context(function) else []), **arguments)
    except TypeError as error:
        return str(error)
    return None


def calling(function: Callable[..., Any]) -> SyncCall | AsyncCall:
    """Carry a call out by a function that takes the arguments by name, and the context first where it declares one.

    A synchronous one runs in a thread.
    """
    first = takes_context(function)

    def run(arguments: Arguments, context: ToolContext) -> object:
        return function(context, **arguments) if first else function(**arguments)

    async def run_async(arguments: Arguments, context: ToolContext) -> object:
        awaitable: Awaitable[object] = function(context, **arguments) if first else function(**arguments)
        return await awaitable

    return AsyncCall(run_async) if is_async(function) else SyncCall(run)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCall:
    """One call whose arguments fit: what T1 records of it, what admission needs, and how it is run.

    Attributes:
        contract: resolved for these arguments; nothing later upgrades it.
        implementation: gets the arguments decoded from the stored event, not those that were bound.
        resource_key: calls that are not replay-safe and share it (or have none) run in call order.
        concurrency_limit: how many calls of this tool may run at once; None for any number.
        no_effect_errors: exceptions that mean "nothing happened", beside `RefusedWithoutEffect`.
        evidence_of: computes, before T1, what recovery will compare with; reads the workspace and changes nothing.
        format: makes strict JSON of what the implementation returned; it may fail or hang, so it is called within a
            bound.
        elsewhere: only a loop of others can carry it out; what stands for the implementation refuses.
        child_run: it starts a run of its own, whose id is made before T1 and is its evidence.
    """

    tool_name: str
    contract: RecordedContract
    implementation: Implementation
    resource_key: str | None = None
    timeout_seconds: float | None = None
    concurrency_limit: int | None = None
    writes_workspace: bool = True
    no_effect_errors: tuple[type[BaseException], ...] = ()
    evidence_of: Callable[[Workspace], Json] | None = field(default=None, repr=False)
    format: Callable[[object], object] | None = field(default=None, repr=False)
    elsewhere: bool = False
    child_run: bool = False

    def carried_out_by(self, function: Callable[..., Any]) -> BoundCall:
        """The same call, with a function that takes its arguments by name; what was promised stays."""
        return replace(self, implementation=calling(function), elsewhere=False)

    @property
    def life(self) -> Life:
        """Where the operation lives, which decides how its end is proven."""
        return Life.SUPERVISED if isinstance(self.implementation, SupervisedCall) else Life.TASK

    @property
    def needs_permission(self) -> bool:
        """True unless the call only reads."""
        return self.contract.mode is not RecoveryMode.REPLAY_SAFE

    def evidence(self, workspace: Workspace) -> Json:
        """What T1 records to compare with later, or None.

        Raises:
            RefusedWithoutEffect: the call cannot be made at all, such as a path outside the workspace.
        """
        return None if self.evidence_of is None else self.evidence_of(workspace)

    def returned(self, value: object) -> PreparedResult:
        """Prepare what the implementation returned.

        May take as long as `format` does, and never raises for what it does.
        """
        effect = self._effect(Effect.DONE)
        if self.format is not None and not inspect.isawaitable(value):
            try:
                value = self.format(value)
            except Exception as error:  # noqa: BLE001 (whatever a formatter does, the effect has happened and is recorded)
                return tool_results.unkept_result(f"formatting it raised {type(error).__name__}", effect=effect)
        if (what := not_done(value)) is not None:
            return tool_results.raised("TypeError", what, effect=self._effect(Effect.UNKNOWN))
        return tool_results.prepare_result(value, effect=effect)

    def raised(self, error: BaseException) -> PreparedResult:
        """Prepare an exception of the implementation: it proves nothing of the effect unless its type says so.

        R3, F7.
        """
        if isinstance(error, (RefusedWithoutEffect, *self.no_effect_errors)):
            return tool_results.refused(_message_of(error))
        return tool_results.raised(type(error).__name__, _message_of(error), effect=self._effect(Effect.UNKNOWN))

    def timed_out(self) -> PreparedResult:
        """Prepare the answer when `timeout_seconds` have passed."""
        return tool_results.timed_out(self.timeout_seconds or 0.0, effect=self._effect(Effect.UNKNOWN))

    def unformatted(self, seconds: float) -> PreparedResult:
        """Prepare the answer when `returned` did not come back within `seconds`."""
        return tool_results.unkept_result(
            f"formatting it took more than {seconds:g} s", effect=self._effect(Effect.DONE)
        )

    def _effect(self, otherwise: Effect) -> Effect:
        return otherwise if self.needs_permission else Effect.NONE


class UnknownTool(NamedTuple):
    """No tool has this name."""

    name: str


class SchemaMismatch(NamedTuple):
    """The arguments do not fit the tool's schema; `detail` names the places, without values."""

    name: str
    detail: str


Binding: TypeAlias = BoundCall | UnknownTool | SchemaMismatch


class ToolCatalog(Protocol):
    """Fixed for the life of a runtime. Methods may be called from several threads."""

    @abstractmethod
    def tools(self) -> Sequence[ToolSpec]:
        """All tools, in a fixed order, no name twice."""

    @abstractmethod
    def bind(self, name: str, arguments: Json) -> Binding:
        """Check a call's arguments and resolve its contract for them.

        Pure: no effect, no look at the world, the same answer each time. Arguments that the schema does not name are a
            mismatch.
        """


def not_done(value: object) -> str | None:
    """Why a function that returned this may have done nothing yet, None where it returned a value.

    What was never begun is closed: Python would complain about it in some other place.
    """
    if not (inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)):
        return None
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()
    return f"it returned a {type(value).__name__}, and nobody ran it to its end"


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (a foreign exception may not even be able to say what it is)
        return ""
