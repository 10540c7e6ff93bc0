"""What the owner of a function promises about it as a tool. SPEC section 8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from ...domain.events.event import Json
from ...domain.events.tool import RecoveryMode
from ...ports.tool_catalog import Workspace

ATTRIBUTE = "__safepoint_tool__"
"""Where the declaration stands on the function, which itself stays what it was."""

NO_GENERATOR = "it is a generator: calling it runs nothing of it; let it return its result"

ValueT = TypeVar("ValueT")

ByArguments: TypeAlias = Callable[[Mapping[str, Any]], ValueT]
"""A pure function of the typed arguments, defaults included."""


class ToolDefinitionError(TypeError):
    """A function cannot be a tool as it is declared; said when it is registered, never in the middle of a run.

    Attributes:
        function: its name.
        detail: what is wrong, and what to do.
    """

    def __init__(self, function: str, detail: str) -> None:
        super().__init__(f"{function} cannot be a tool: {detail}")
        self.function = function
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What is declared; `decorator.tool` documents each."""

    name: str | None = None
    description: str | None = None
    recovery: RecoveryMode | ByArguments[RecoveryMode | str] = RecoveryMode.OUTCOME_UNKNOWN
    contract_id: str | None = None
    version: int = 1
    resource_key: str | ByArguments[str | None] | None = None
    timeout_seconds: float | None = None
    concurrency_limit: int | None = None
    key_valid_seconds: int | None = None
    no_effect_errors: tuple[type[BaseException], ...] = ()
    repeat_free: bool = False
    supervised: bool | None = None
    writes_workspace: bool | ByArguments[bool] | None = None
    child_run: bool = False
    evidence: Callable[[Mapping[str, Any], Workspace], Json] | None = field(default=None, repr=False)
    format_result: Callable[[Any], object] | None = field(default=None, repr=False)


def declaration_of(function: Callable[..., Any]) -> Declaration:
    """Return what was declared; a function without a declaration promises nothing."""
    found = getattr(function, ATTRIBUTE, None)
    return found if isinstance(found, Declaration) else Declaration()


def checked_declaration(function: Callable[..., Any] | str, declared: dict[str, Any]) -> Declaration:
    """Make a declaration of what was given, of a function or of a tool by its name.

    Raises:
        ToolDefinitionError: it contradicts itself.
    """
    name = function if isinstance(function, str) else getattr(function, "__qualname__", repr(function))

    def wrong(detail: str) -> ToolDefinitionError:
        return ToolDefinitionError(name, detail)

    recovery = declared.get("recovery", RecoveryMode.OUTCOME_UNKNOWN)
    if not callable(recovery):
        try:
            declared["recovery"] = RecoveryMode(recovery)
        except ValueError as error:
            raise wrong(f"{recovery!r} is no recovery mode; one of {', '.join(RecoveryMode)}") from error
    declaration = Declaration(**declared)
    for bound in ("version", "timeout_seconds", "concurrency_limit", "key_valid_seconds"):
        value = getattr(declaration, bound)
        if value is not None and not value > 0:
            raise wrong(f"{bound} must be more than 0, not {value}")
    if not callable(declaration.recovery):
        idempotent = declaration.recovery is RecoveryMode.IDEMPOTENT
        if idempotent and declaration.key_valid_seconds is None:
            raise wrong("idempotent needs key_valid_seconds: how long its receiver knows a key")
        if not idempotent and declaration.key_valid_seconds is not None:
            raise wrong("key_valid_seconds means something for idempotent only")
    if declaration.child_run and declaration.recovery is not RecoveryMode.REATTACH:
        raise wrong("child_run needs recovery='reattach': the child is found again by its run id")
    if declaration.child_run and declaration.evidence is not None:
        raise wrong("child_run is evidence itself: the id of the child's run")
    return declaration
