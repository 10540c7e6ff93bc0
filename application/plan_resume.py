"""Plans a resume: gathers every fact that the gates look at, and lets the domain decide. SPEC section 13.

Reads only. Where repair has not been done yet, the plan is made on what repair would write, so that looking tells what
resuming would do. A plan is no lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..domain.errors import StoreError
from ..domain.events.run import TOOL_BOUNDARY_PROTOCOL, Budgets, Protocol, Trigger
from ..domain.file_evidence import FileChange
from ..domain.identifiers import ClaimId, ExecutionIdentity, RunId, SessionId, run_stream
from ..domain.planning.facts import (
    Drift,
    FreshIds,
    PlanFacts,
)
from ..domain.planning.observations import (
    Authority,
    CheckpointFacts,
    ModelWindow,
    WorkspaceFound,
    WorkspaceUnknown,
)
from ..domain.planning.outcome import Plan
from ..domain.planning.planner import plan
from ..ports.event_store import EventStore
from ..ports.workspace import WorkspaceIdentity
from .agent import Agent
from .copied_folders import CopiedFolders
from .expected_content import LookAtFile, expected_of
from .over import OverJudge
from .ownership import SessionOwnership
from .plan_record import PlanRecord, ReadPlanRecord, unreadable
from .plan_world import PlanWorld, WorldSeen
from .repair_preview import RepairPreview
from .uncollected import uncollected


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a person, or the host, asks for.

    Attributes:
        run_id: the run to continue; by default the session's head.
        expected_high_water: what the caller saw, None where it expects nothing.
        accepted_drift: what may differ from the recorded profile.
        drop_permissions: open questions are dropped without an answer.
        budgets: what the turn may use from now on, what its lineage has used included; by default as it was recorded.
        adopt: foreign runs are continued knowingly.
    """

    run_id: RunId | None = None
    expected_high_water: int | None = None
    accepted_drift: frozenset[Drift] = frozenset()
    drop_permissions: bool = False
    budgets: Budgets | None = None
    adopt: bool = False
    trigger: Trigger = Trigger.PERSON


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and whether repair is still to be done before it can be carried out.

    Attributes:
        checkpoint: the content that the lineage is bound to, and what was seen of it; None where it is bound to none.
        changes: what settled operations left since.
        bound_to_nothing: the whole lineage could be read, and accepted no checkpoint: nobody looks at the files.
    """

    plan: Plan
    repair_pending: bool = False
    checkpoint: CheckpointFacts | None = None
    changes: tuple[FileChange, ...] = ()
    bound_to_nothing: bool = False


class PlanResume:
    """Makes plans; safe to call at any time, by anybody, any number of times.

    Args:
        feature_enabled: asked at each plan (SPEC section 17, `SAFEPOINT_RESUME`).
        protocol: what the store lets a continuation declare.
        folders_of: names the folders in which runs of a workspace began.
        look_at_file: says what stands at a path, where a settled operation left something since the last checkpoint.
    """

    def __init__(
        self,
        store: EventStore,
        ownership: SessionOwnership,
        over: OverJudge,
        workspaces: WorkspaceIdentity,
        preview: RepairPreview,
        *,
        feature_enabled: Callable[[], bool] = lambda: True,
        protocol: Protocol | None = TOOL_BOUNDARY_PROTOCOL,
        folders_of: Callable[[str], Sequence[str]] = lambda identity: (),
        look_at_file: LookAtFile = lambda folder, path: None,
    ) -> None:
        self._store = store
        self._record = ReadPlanRecord(ownership, preview)
        self._world = PlanWorld(ownership, over, workspaces, CopiedFolders(workspaces, folders_of), look_at_file)
        self._preview = preview
        self._feature_enabled = feature_enabled
        self._protocol = protocol

    @uncollected()
    def __call__(
        self, session_id: SessionId, agent: Agent, request: PlanRequest, fresh: FreshIds | None = None
    ) -> Planned:
        """Plan to continue a session's interrupted run.

        Args:
            fresh: what the continuation will be called, by the use case that owns the session for this; by default ids
                made from the boundary, for looking only.
        """
        seen = WorldSeen()
        try:
            seen.busy, seen.authority = self._world.owner(session_id, owned=fresh is not None)
            with self._store.snapshot() as reader:
                record = self._record(reader, session_id, request.run_id, repairable=seen.busy is None)
                record.repair_pending &= seen.authority is Authority.HELD_OR_FREE  # shown repaired, which nobody may do
                made = fresh or self._preview.ids(session_id, record.lineage)
                record.is_id_taken = reader.last(run_stream(made.run_id)) is not None
            seen.not_over = self._world.not_over(record.lineage)
            workspace = self._world.workspace(str(agent.workspace), record.recorded_folder)
        except StoreError as error:  # could not look is not the same as not there (F1)
            record = PlanRecord(session_unreadable=unreadable(session_id, error))
            made = fresh or self._preview.ids(session_id, ())
            workspace = self._world.folder_alone(str(agent.workspace))
        lineage = record.whole
        expected = expected_of(lineage)
        if expected is not None:
            seen.checkpoint = self._world.checkpoint(expected, lineage, agent.checkpoints, workspace)
        facts = self._facts(session_id, agent, request, made, record, seen, workspace)
        changes = () if expected is None else tuple(expected.changes.values())
        unbound = expected is None and bool(lineage)
        return Planned(plan(facts), record.repair_pending, seen.checkpoint, changes, unbound)

    def _facts(
        self,
        session_id: SessionId,
        agent: Agent,
        request: PlanRequest,
        fresh: FreshIds,
        record: PlanRecord,
        seen: WorldSeen,
        workspace: WorkspaceFound | WorkspaceUnknown,
    ) -> PlanFacts:
        profile = agent.profile()
        window = agent.provider.profile().window_tokens
        return PlanFacts(
            session_id=session_id,
            fresh=fresh,
            candidate=record.candidate,
            lineage=record.lineage,
            workspace=workspace,
            checkpoint=seen.checkpoint,
            profile=profile,
            tools=profile.tools,
            protocol=self._protocol,
            cwd=str(agent.workspace),
            feature_enabled=self._feature_enabled(),
            trigger=request.trigger,
            busy=seen.busy,
            session_unreadable=record.session_unreadable,
            expected_high_water=request.expected_high_water,
            earlier=record.earlier,
            behind_anchor=record.behind_anchor,
            adopt=request.adopt and not record.copied,  # the store itself is adopted first, else nothing is written
            existing=record.existing,
            authority=seen.authority,
            not_over=seen.not_over,
            drop_permissions=request.drop_permissions,
            budgets=request.budgets,
            accepted_drift=request.accepted_drift,
            window=None if window is None else ModelWindow(window),
            ids_taken=frozenset({fresh.run_id} if record.is_id_taken else ()),
        )


def fresh_ids(claim_id: ClaimId, identity: ExecutionIdentity) -> FreshIds:
    """The ids of a continuation that is going to be."""
    return FreshIds(claim_id, identity.run_id, identity.turn_id, identity.invocation_id)
