"""The tools that a model may call, and what their owners promise about each call. SPEC section 8."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..domain import tool_results
from ..domain.errors import RefusedWithoutEffect
from ..domain.events.event import Json
from ..domain.events.run import ToolProfile
from ..domain.events.tool import Effect, Life, RecordedContract, RecoveryMode
from ..domain.tool_results import PreparedResult
from .tool_call import (
    Arguments,
    AsyncCall,
    Implementation,
    LeftRunning,
    OutcomeNotSeen,
    Settled,
    SupervisedCall,
    SyncCall,
    ToolContext,
    Workspace,
)
from .tool_functions import calling, not_done

__all__ = [
    "Arguments",
    "AsyncCall",
    "Binding",
    "BoundCall",
    "Implementation",
    "LeftRunning",
    "OutcomeNotSeen",
    "SchemaMismatch",
    "Settled",
    "SupervisedCall",
    "SyncCall",
    "ToolCatalog",
    "ToolContext",
    "ToolSpec",
    "UnknownTool",
    "Workspace",
    "calling",
]
"""The parts of a call stand in `ports.tool_call`; whoever writes a catalog finds them here, too."""


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


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (a foreign exception may not even be able to say what it is)
        return ""
