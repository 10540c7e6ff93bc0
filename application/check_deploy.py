"""Which sessions a deploy with another tool catalog would strand: their tools are gone or changed. SPEC section 13.

The planner's own gate is asked, so what is said here is what a resume would say.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..domain.errors import SafepointError
from ..domain.events.event import Json
from ..domain.events.run import ToolProfile
from ..domain.identifiers import RunId, SessionId
from ..domain.planning.catalog import CATALOG_DOMAIN
from ..domain.planning.outcome import Park
from ..domain.reasons import ParkReason
from ..ports.cancel_signal import CancelSignal
from ..ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from ..ports.model_step import ModelPart
from ..ports.permission_gate import Denied, PermissionAnswer, PermissionGate, PermissionRequest
from ..ports.provider_failures import ProviderFailed
from ..ports.tool_catalog import Binding, ToolCatalog, ToolSpec, UnknownTool
from .agent import Agent
from .inspect_sessions import InspectSessions, SessionState, SessionSummary
from .plan_resume import PlanRequest, PlanResume

TOOLS_MAX: Final = 10_000
_LOOKED_AT: Final = frozenset({SessionState.RUNNING})
_UNREAD: Final = frozenset(
    {
        ParkReason.STORE_UNAVAILABLE,
        ParkReason.SOURCE_RUN_UNREADABLE,
        ParkReason.RUNTIME_LEDGER_UNREADABLE,
        ParkReason.RUNTIME_LEDGER_EMPTY,
        ParkReason.RUNTIME_LINEAGE_MISSING,
    }
)


class CatalogMalformed(SafepointError):
    """A catalog's document cannot be used; `detail` says why."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"it is no catalog: {detail}")
        self.detail = detail


class CatalogDocument(BaseModel):
    """The tools that a program offers, by digest: what a deploy is compared with."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    form: Literal["safepoint.catalog.v1"] = Field(alias="schema")
    tools: tuple[ToolProfile, ...] = Field(max_length=TOOLS_MAX)


def exported(catalog: ToolCatalog) -> dict[str, Json]:
    """The document of a catalog, for JSON."""
    tools = tuple(sorted((tool.profile for tool in catalog.tools()), key=lambda tool: tool.name))
    return {"schema": CATALOG_DOMAIN, "tools": [tool.model_dump() for tool in tools]}


def imported(text: str | bytes) -> tuple[ToolProfile, ...]:
    """The tools of a document.

    Raises:
        CatalogMalformed: it is none.
    """
    try:
        tools = CatalogDocument.model_validate_json(text).tools
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise CatalogMalformed(f"{'.'.join(map(str, first['loc'])) or 'document'}: {first['msg']}") from error
    if len({tool.name for tool in tools}) != len(tools):
        raise CatalogMalformed("two tools have one name")
    return tools


@dataclass(frozen=True, slots=True)
class Stranded:
    """A session whose run could not be continued with the catalog, until a person accepts the drift.

    Attributes:
        missing, changed: tools that its history uses.
    """

    session_id: SessionId
    run_id: RunId | None
    state: SessionState
    missing: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeployChecked:
    """What was found; `unread` are sessions that could not be judged, which is no proof that they are fine (F1)."""

    judged: int
    stranded: tuple[Stranded, ...]
    unread: tuple[SessionId, ...]


class CheckDeploy:
    """Compares every open or interrupted session with a catalog. Reads only."""

    def __init__(self, sessions: InspectSessions, plan: PlanResume) -> None:
        self._sessions = sessions
        self._plan = plan

    def __call__(
        self, tools: Sequence[ToolProfile], progress: Callable[[int, int], None] = lambda judged, stranded: None
    ) -> DeployChecked:
        """Judge them.

        Args:
            tools: of the program that is to be deployed.
            progress: told how many were judged, and how many of those would be stranded.

        Raises:
            StoreError: the list of sessions could not be read.
        """
        agent = Agent(_Nobody(), _Catalog(tools), _Nothing(), "", Path("/"), None)
        judged, stranded, unread = 0, list[Stranded](), list[SessionId]()
        for summary in self._sessions.every():
            if summary.state is SessionState.UNREADABLE:
                unread.append(summary.session_id)
            if summary.state not in _LOOKED_AT and not summary.state.may_be_resumed:
                continue
            judged += 1
            plan = self._plan(summary.session_id, agent, PlanRequest()).plan
            reasons = plan.reasons if isinstance(plan, Park) else ()
            if any(reason.code in _UNREAD for reason in reasons):
                unread.append(summary.session_id)
            stranded += (
                _stranded(summary, reason.detail)
                for reason in reasons
                if reason.code is ParkReason.TOOL_CATALOG_MISMATCH
            )
            progress(judged, len(stranded))
        return DeployChecked(judged, tuple(stranded), tuple(unread))


def _stranded(summary: SessionSummary, detail: object) -> Stranded:
    named = detail if isinstance(detail, dict) else {}
    missing, changed = (tuple(map(str, named.get(what, ()))) for what in ("missing", "changed"))
    return Stranded(summary.session_id, summary.head_run_id, summary.state, missing, changed)


class _Catalog(ToolCatalog):
    """Tools of which only the digests are known; none can be called."""

    def __init__(self, tools: Iterable[ToolProfile]) -> None:
        self._specs = [ToolSpec(one.name, "", {}, one.schema_digest, one.contract_digest) for one in tools]

    def tools(self) -> Sequence[ToolSpec]:
        """All of them."""
        return self._specs

    def bind(self, name: str, arguments: Json) -> Binding:
        """None can be called."""
        return UnknownTool(name)


class _Nobody(ModelProvider):
    """Answers nothing: the agent is for planning only."""

    def profile(self) -> ProviderProfile:
        """Nobody."""
        return ProviderProfile("nobody", "nobody")

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        """Refuse."""
        nothing: tuple[ModelPart, ...] = ()
        for part in nothing:
            yield part
        raise ProviderFailed("this provider is for planning only")

    async def aclose(self) -> None:
        """Nothing is held open."""


class _Nothing(PermissionGate):
    """Permits nothing: the agent is for planning only."""

    def policy_id(self) -> str:
        """Nothing."""
        return "deny"

    def by_policy(self, request: PermissionRequest) -> PermissionAnswer:
        """Refuse."""
        return Denied("policy", "this agent is for planning only")

    def decide(self, request: PermissionRequest, cancel: CancelSignal) -> PermissionAnswer:
        """Refuse."""
        return self.by_policy(request)
