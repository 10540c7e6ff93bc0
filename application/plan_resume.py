"""Plans a resume: gathers every fact that the gates look at, and lets the domain decide. SPEC section 13.

Reads only. Where repair has not been done yet, the plan is made on what repair would write, so that looking tells what
resuming would do. A plan is no lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..domain.errors import StoreDamaged, StoreError
from ..domain.events.run import TOOL_BOUNDARY_PROTOCOL, Budgets, Protocol, RunOpened, RunStatus, Trigger
from ..domain.file_evidence import FileChange
from ..domain.identifiers import ClaimId, ExecutionIdentity, RunId, SessionId, run_stream, session_stream
from ..domain.planning.facts import (
    Candidate,
    Drift,
    ExistingContinuation,
    FreshIds,
    PlanFacts,
    SegmentFacts,
    SegmentReading,
    Standing,
    Unreadable,
)
from ..domain.planning.observations import (
    Authority,
    Busy,
    CheckpointFacts,
    ModelWindow,
    NotOver,
    RunningProcess,
    WorkspaceFound,
    WorkspaceUnknown,
)
from ..domain.planning.outcome import Plan
from ..domain.planning.planner import plan
from ..domain.reasons import ParkReason
from ..domain.replay.context import ContextHistory
from ..domain.sealing import DamagedEvent
from ..domain.session.state import Session
from ..ports.event_store import EventReader, EventStore
from ..ports.incarnations import Liveness
from ..ports.supervised import Overness
from ..ports.workspace import CouldNotLook, WorkspaceIdentity, WorkspaceMissing, WorkspaceRefused, WorkspaceSeen
from .agent import Agent
from .copied_folders import CopiedFolders
from .expected_content import Expected, LookAtFile, expected_of, facts_of
from .lineage import LineageBroken, broken_at, read_ancestors, read_earlier, reading_of
from .over import OverJudge
from .ownership import SessionOwnership
from .repair_preview import RepairPreview
from .states import load
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


@dataclass(slots=True)
class _Gathered:
    """What was read of the store."""

    candidate: Candidate | None = None
    session_unreadable: Unreadable | None = None
    lineage: tuple[SegmentReading, ...] = ()
    earlier: ContextHistory | None = None
    existing: ExistingContinuation | None = None
    behind_anchor: bool = False
    copied: bool = False
    repair_pending: bool = False
    ids_taken: set[str] = field(default_factory=set)


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
        self._ownership = ownership
        self._over = over
        self._workspaces = workspaces
        self._copied = CopiedFolders(workspaces, folders_of)
        self._preview = preview
        self._feature_enabled = feature_enabled
        self._protocol = protocol
        self._look_at_file = look_at_file

    @uncollected()
    def __call__(
        self, session_id: SessionId, agent: Agent, request: PlanRequest, fresh: FreshIds | None = None
    ) -> Planned:
        """Plan to continue a session's interrupted run.

        Args:
            fresh: what the continuation will be called, by the use case that owns the session for this; by default ids
                made from the boundary, for looking only.
        """
        busy, authority = None, Authority.HELD_OR_FREE
        not_over: tuple[NotOver, ...] = ()
        taken: tuple[str, ...] = ()
        try:
            busy, authority = self._owner(session_id, owned=fresh is not None)
            with self._store.snapshot() as reader:
                seen = self._read(reader, session_id, request, repairable=busy is None)
                seen.repair_pending &= authority is Authority.HELD_OR_FREE  # shown repaired, which nobody may do
                made = fresh or self._preview.ids(session_id, seen.lineage)
                taken = (made.run_id,) if reader.last(run_stream(made.run_id)) is not None else ()
            not_over = self._not_over(seen)
            workspace = self._workspace(str(agent.workspace), _recorded_folder(seen.lineage), self._copied)
        except StoreError as error:  # could not look is not the same as not there (F1)
            seen = _Gathered(session_unreadable=_unreadable(session_id, error))
            made = fresh or self._preview.ids(session_id, ())
            workspace = self._workspace(str(agent.workspace), None, None)
        segments = _whole(seen.lineage)
        expected = expected_of(segments)
        checkpoint = None if expected is None else self._checkpoint(agent, expected, segments, workspace)
        facts = self._facts(
            session_id, agent, request, made, seen, taken, not_over, busy, authority, workspace, checkpoint
        )
        changes = () if expected is None else tuple(expected.changes.values())
        return Planned(plan(facts), seen.repair_pending, checkpoint, changes, expected is None and bool(segments))

    def _owner(self, session_id: SessionId, *, owned: bool) -> tuple[Busy | None, Authority]:
        row, owner, liveness = self._ownership.owner_of(session_id)
        if row is None or row.incarnation_id is None:
            return None, Authority.HELD_OR_FREE
        if self._ownership.is_mine(row.incarnation_id):
            if owned or owner is None or not self._ownership.in_use(session_id):
                return None, Authority.HELD_OR_FREE
            return Busy(owner.pid, "this process works on it"), Authority.HELD_OR_FREE
        if liveness is Liveness.DEAD:
            return None, Authority.HELD_OR_FREE
        if liveness is Liveness.ALIVE and owner is not None:
            return Busy(owner.pid, f"process {owner.pid} on {owner.host} owns it"), Authority.HELD_OR_FREE
        return None, Authority.COULD_NOT_LOOK

    def _read(self, reader: EventReader, session_id: SessionId, request: PlanRequest, *, repairable: bool) -> _Gathered:
        seen = _Gathered()
        try:
            session = load(reader, session_stream(session_id)).session()
        except DamagedEvent as damage:
            head = RunId(session_id)
            seen.session_unreadable = Unreadable(ParkReason.SOURCE_RUN_UNREADABLE, head, damage.detail, damage.sequence)
            return seen
        if session.head is None:
            return seen
        run_id = request.run_id or session.head.run_id
        standing = reader.standing(run_id)
        seen.behind_anchor, seen.copied = standing.behind_anchor, standing.copied
        source = self._source(reader, session, run_id, seen, repairable=repairable)
        status = _status(source)
        seen.candidate = Candidate(run_id, status, session.head.run_id, run_id in session.abandoned)
        if not isinstance(source, Unreadable):
            seen.lineage = read_ancestors(reader, source)
        elif repairable or source.code is not ParkReason.RUNTIME_LEDGER_EMPTY:
            seen.lineage = (source,)  # else somebody begins it just now, which is what busy means
        if isinstance(source, SegmentFacts) and source.claimed is not None:
            seen.existing = self._existing(reader, source)
        seen.earlier = _earlier(reader, seen)
        if standing.behind_anchor or standing.copied:
            seen.repair_pending = False  # nobody may write the store: what repair would do is shown, and not done
        return seen

    def _source(
        self, reader: EventReader, session: Session, run_id: RunId, seen: _Gathered, *, repairable: bool
    ) -> SegmentReading:
        """The run to continue, as repair would leave it."""
        source = reading_of(reader, run_id)
        is_head = session.head is not None and session.head.run_id == run_id
        open_run = isinstance(source, SegmentFacts) and (_status(source) is None or _has_open_jobs(source))
        unstarted = isinstance(source, Unreadable) and source.code is ParkReason.RUNTIME_LEDGER_EMPTY
        if repairable and is_head and (open_run or unstarted) and run_id not in session.abandoned:
            repaired = self._preview.repaired(reader, session)
            if repaired is not None:
                seen.repair_pending = True
                return repaired
        return source

    def _existing(self, reader: EventReader, source: SegmentFacts) -> ExistingContinuation:
        """How far the continuation of a boundary came, from the first and terminal events of its target."""
        claimed = source.claimed
        assert claimed is not None
        target = reading_of(reader, claimed.target.run_id)
        if isinstance(target, Unreadable) and target.code is ParkReason.RUNTIME_LEDGER_EMPTY:
            standing = Standing.UNSTARTED
        elif _status(target) is not None:
            standing = Standing.ENDED
        else:
            starter = claimed.incarnation_id
            if isinstance(target, SegmentFacts) and target.opening is not None:
                starter = target.opening.incarnation_id
            dead = self._ownership.liveness_of(starter) is Liveness.DEAD
            standing = Standing.STARTED_BY_THE_DEAD if dead else Standing.STARTED
        return ExistingContinuation(claimed.claim_id, claimed.target.run_id, standing)

    def _facts(
        self,
        session_id: SessionId,
        agent: Agent,
        request: PlanRequest,
        fresh: FreshIds,
        seen: _Gathered,
        taken: tuple[str, ...],
        not_over: tuple[NotOver, ...],
        busy: Busy | None,
        authority: Authority,
        workspace: WorkspaceFound | WorkspaceUnknown,
        checkpoint: CheckpointFacts | None,
    ) -> PlanFacts:
        profile = agent.profile()
        window = agent.provider.profile().window_tokens
        return PlanFacts(
            session_id=session_id,
            fresh=fresh,
            candidate=seen.candidate,
            lineage=seen.lineage,
            workspace=workspace,
            checkpoint=checkpoint,
            profile=profile,
            tools=profile.tools,
            protocol=self._protocol,
            cwd=str(agent.workspace),
            feature_enabled=self._feature_enabled(),
            trigger=request.trigger,
            busy=busy,
            session_unreadable=seen.session_unreadable,
            expected_high_water=request.expected_high_water,
            earlier=seen.earlier,
            behind_anchor=seen.behind_anchor,
            adopt=request.adopt and not seen.copied,  # the store itself is adopted first, else nothing is written
            existing=seen.existing,
            authority=authority,
            not_over=not_over,
            drop_permissions=request.drop_permissions,
            budgets=request.budgets,
            accepted_drift=request.accepted_drift,
            window=None if window is None else ModelWindow(window),
            ids_taken=frozenset(taken),
        )

    def _not_over(self, seen: _Gathered) -> tuple[NotOver, ...]:
        states = (
            state
            for segment in seen.lineage
            if isinstance(segment, SegmentFacts)
            for state in self._over.not_over(segment.survey, segment.resolution)
        )
        return tuple(
            NotOver(
                state.operation_id,
                state.overness is Overness.COULD_NOT_LOOK,
                tuple(RunningProcess(process.pid, process.name) for process in state.processes),
            )
            for state in states
        )

    def _checkpoint(
        self,
        agent: Agent,
        expected: Expected,
        lineage: Sequence[SegmentFacts],
        workspace: WorkspaceFound | WorkspaceUnknown,
    ) -> CheckpointFacts:
        """What is bound to content is compared where it is the same workspace; elsewhere that is the reason to park."""
        same = isinstance(workspace, WorkspaceFound) and workspace.identity == lineage[-1].survey.workspace_identity
        folder = workspace.path if same and isinstance(workspace, WorkspaceFound) else None
        return facts_of(expected, lineage, agent.checkpoints, folder, self._look_at_file)

    def _workspace(
        self, path: str, recorded: str | None, copied: CopiedFolders | None
    ) -> WorkspaceFound | WorkspaceUnknown:
        match self._workspaces.observe(path):
            case WorkspaceSeen(identity=identity, canonical_path=canonical) as seen:
                other = None if copied is None else copied.other(seen, recorded)
                if other is not None:
                    detail = "two folders have this identity: one is a copy of the other"
                    return WorkspaceUnknown(ParkReason.WORKSPACE_COPY_AMBIGUOUS, (other, canonical), detail)
                return WorkspaceFound(identity, canonical)
            case WorkspaceMissing(what=what):
                detail = f"the {what.value} is not there"
                return WorkspaceUnknown(ParkReason.WORKSPACE_IDENTITY_MISSING, (path,), detail)
            case WorkspaceRefused(detail=detail):
                return WorkspaceUnknown(ParkReason.WORKSPACE_IDENTITY_MISSING, (path,), detail)
            case CouldNotLook(detail=detail):
                return WorkspaceUnknown(ParkReason.SAFETY_OBSERVATION_UNAVAILABLE, (path,), detail)


def _whole(lineage: Sequence[SegmentReading]) -> list[SegmentFacts]:
    """The lineage; empty where not all of it could be read: it does not say what its files should be."""
    segments = [segment for segment in lineage if isinstance(segment, SegmentFacts)]
    return segments if len(segments) == len(lineage) else []


def _recorded_folder(lineage: Sequence[SegmentReading]) -> str | None:
    source = lineage[-1] if lineage else None
    return source.survey.cwd if isinstance(source, SegmentFacts) else None


def _has_open_jobs(source: SegmentFacts) -> bool:
    return source.claimed is None and bool(source.survey.open_jobs)


def _status(source: SegmentReading) -> RunStatus | None:
    if isinstance(source, Unreadable):
        return None
    ended = source.survey.terminals
    return ended[-1].status if ended else None


def _earlier(reader: EventReader, seen: _Gathered) -> ContextHistory | None:
    """The turns before the lineage; what cannot be read of them stands in the lineage's place, first."""
    chain = [segment for segment in seen.lineage if isinstance(segment, SegmentFacts)]
    if len(chain) != len(seen.lineage) or not chain or not isinstance(chain[0].opening, RunOpened):
        return None  # a chain that breaks, or whose root is no opening event: the planner reports it
    try:
        return read_earlier(reader, chain)
    except LineageBroken as broken:
        damage: SegmentReading = Unreadable(ParkReason.RUNTIME_LINEAGE_MISSING, broken.run_id, broken.detail)
    except DamagedEvent as error:
        code = ParkReason.RUNTIME_LEDGER_UNREADABLE
        damage = Unreadable(code, broken_at(error), error.detail, error.sequence)
    seen.lineage = (damage, *seen.lineage)
    return None


def _unreadable(session_id: SessionId, error: StoreError) -> Unreadable:
    damaged = isinstance(error, StoreDamaged)
    code = ParkReason.SOURCE_RUN_UNREADABLE if damaged else ParkReason.STORE_UNAVAILABLE
    return Unreadable(code, RunId(session_id), error.detail)


def fresh_ids(claim_id: ClaimId, identity: ExecutionIdentity) -> FreshIds:
    """The ids of a continuation that is going to be."""
    return FreshIds(claim_id, identity.run_id, identity.turn_id, identity.invocation_id)
