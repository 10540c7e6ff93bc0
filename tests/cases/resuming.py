"""Whole processes over adapters in memory that can also plan and resume: what the field reports are driven through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.memory.model_provider import Planned, PlannedModel
from safepoint.adapters.memory.tables import Failure
from safepoint.adapters.memory.workspace import MemoryWorkspaces
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.agent import Agent
from safepoint.application.ownership import Owned
from safepoint.application.plan_resume import Planned as PlannedResume
from safepoint.application.plan_resume import PlanRequest, PlanResume
from safepoint.application.record_settled_jobs import RecordSettledJobs
from safepoint.application.repair_preview import RepairPreview
from safepoint.application.resume_run import Continued, Parked, ResumeRun
from safepoint.application.run_agent import Screen
from safepoint.application.run_turn import TurnResult
from safepoint.domain.commands import AppendLate
from safepoint.domain.errors import StoreError
from safepoint.domain.events.outside import PermissionDecided, PermissionRequested
from safepoint.domain.events.session import GrantPosted
from safepoint.domain.events.tool import ToolCalled, ToolResponded
from safepoint.domain.identifiers import GrantId, RunId
from safepoint.domain.planning.outcome import Park, Plan
from safepoint.domain.reasons import ParkReason
from safepoint.ports.model_provider import ModelProvider
from safepoint.ports.permission_gate import PermissionGate
from safepoint.ports.tool_catalog import ToolCatalog
from safepoint.ports.workspace import WorkspaceSeen

from ..application.wiring import ALLOW_ALL, SESSION, Process, World, go
from ..domain.facts import Facts

FOLDER = "/w"
T2 = ToolResponded.topic
Tools = ToolCatalog | Iterable[Callable[..., Any]]
Model = ModelProvider | Sequence[Planned]


@dataclass
class SharedWorld(World):
    """What processes share, workspaces too."""

    workspaces: MemoryWorkspaces = field(init=False)

    def __post_init__(self) -> None:
        self.workspaces = MemoryWorkspaces(self.ids)
        self.workspaces.make_folder(FOLDER)


class ResumingProcess(Process):
    """One process that runs turns, plans and resumes."""

    def __init__(self, shared: SharedWorld | None = None, **more: Any) -> None:
        self.shared = shared or SharedWorld()
        super().__init__(self.shared, **more)
        jobs = self.shared.jobs
        self.settle_jobs = RecordSettledJobs(self.ledger, self.spines, jobs)
        self.plan_resume = PlanResume(
            self.events_store, self.ownership, self.over, self.shared.workspaces, RepairPreview(jobs)
        )
        self.resume_run = ResumeRun(
            self.async_ledger,
            self.ownership,
            self.repair,
            self.settle_jobs,
            self.plan_resume,
            self.drive,
            self.spines,
            self.shared.ids,
            self.failpoints,
            self.sink,
            self.reconcile_operations,
        )

    def agent(self, model: Model, tools: Tools = (), gate: PermissionGate = ALLOW_ALL) -> Agent:
        """An agent in the shared workspace."""
        seen = self.shared.workspaces.ensure(FOLDER)
        assert isinstance(seen, WorkspaceSeen)
        provider = PlannedModel(list(model)) if isinstance(model, Sequence) else model
        catalog = FunctionCatalog(tools) if isinstance(tools, Iterable) else tools
        return Agent(provider, catalog, gate, "Be careful.", Path(FOLDER), seen.identity)

    def runs(self, text: str, model: Model, tools: Tools = (), **more: Any) -> TurnResult:
        """As `turn`, on an event loop of its own."""
        return go(partial(self.turn, text, model, tools, **more))

    def is_interrupted(self, text: str, model: Model, tools: Tools = (), *, at: str = T2, **more: Any) -> RunId:
        """Run a turn until a kind of event cannot be written, and be killed; the run has no end."""
        self.events_store.fail_at(at, Failure.UNAVAILABLE)
        with pytest.raises(StoreError):
            self.runs(text, model, tools, **more)
        self.die()
        return self.head(more.get("session_id", SESSION))

    def plans(
        self,
        tools: Tools = (),
        *,
        model: Model = (),
        gate: PermissionGate = ALLOW_ALL,
        request: PlanRequest | None = None,
    ) -> PlannedResume:
        """Plan to continue the session."""
        return self.plan_resume(SESSION, self.agent(model, tools, gate), request or PlanRequest())

    def resumes(
        self, model: Model, tools: Tools = (), *, gate: PermissionGate = ALLOW_ALL, request: PlanRequest | None = None
    ) -> Parked | Continued:
        """Continue the session, or park."""
        return go(partial(self.resume_run, SESSION, self.agent(model, tools, gate), Screen(), request=request))

    def continues(self, model: Model, tools: Tools = (), **more: Any) -> Continued:
        """Continue, which must be possible."""
        resumed = self.resumes(model, tools, **more)
        assert isinstance(resumed, Continued), resumed
        return resumed

    def parks(self, model: Model, tools: Tools = (), **more: Any) -> tuple[ParkReason, ...]:
        """Be parked, without having asked the model, and say with which codes."""
        provider = PlannedModel(list(model)) if isinstance(model, Sequence) else model
        resumed = self.resumes(provider, tools, **more)
        assert isinstance(resumed, Parked), resumed
        assert isinstance(provider, PlannedModel)
        assert provider.asked == []
        return resumed.codes

    def facts_about(self, run_id: RunId, owned: Owned) -> Facts:
        """What makes further facts and commands about a run that was recorded."""
        facts = Facts(run_id, session=owned.session_id, incarnation=owned.incarnation_id, epoch=owned.epoch, maker="x")
        (facts.identity,) = self.segment(run_id).survey.identities
        facts.called = {call.call_id: call for call in self.of(run_id, ToolCalled)}
        return facts

    def decides(self, run_id: RunId, *, approved: bool) -> GrantId:
        """Let a person decide the open question of an ended run, as the use case for that will."""
        (asked,) = self.of(run_id, PermissionRequested)
        grant_id = self.shared.ids.fresh(GrantId)
        owned = self.ownership.own(SESSION)
        bound: dict[str, Any] = {
            name: getattr(asked, name) for name in ("request_id", "tool_name", "call_id", "args_hash")
        }
        said: dict[str, Any] = {"approved": approved, "decided_by": "ada", "grant_id": grant_id}
        fact = PermissionDecided(**self.spines.run(asked.identity), request_id=asked.request_id, **said)
        grant = GrantPosted(
            **self.spines.session(SESSION),
            **bound,
            **said,
            contract_digest=asked.contract_digest,
            repeats=asked.repeats,
        )
        try:
            self.ledger.execute(AppendLate(owned.session_id, owned.incarnation_id, owned.epoch, run_id, fact, grant))
        finally:
            self.ownership.release(owned)
        return grant_id


def codes_of(plan: Plan) -> list[str]:
    """The codes that a plan parks with; none when it continues."""
    return [reason.code.value for reason in plan.reasons] if isinstance(plan, Park) else []
