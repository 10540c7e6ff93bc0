"""The one place that knows which adapter stands behind which port. SPEC section 3, STYLE section 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dependency_injector import containers, providers

from ..application.ledger import Ledger
from ..application.live_operations import LiveOperations
from ..application.open_ends import is_open
from ..application.ownership import SessionOwnership
from ..application.spines import Spines
from ..domain.events.run import TOOL_BOUNDARY_PROTOCOL
from ..ports.event_store import EventStore
from ..ports.failpoints import Failpoints
from ..ports.handover import Handler
from .failpoints.killing import failpoints_from
from .failpoints.null import NoFailpoints
from .failpoints.store_points import StorePoints
from .later import later
from .process.handover import UnixSocketHandover
from .process.heard_incarnations import HeardIncarnations
from .process.incarnations import FileLockIncarnations
from .settings import Settings
from .sqlite.store import SqliteStore, open_reader, open_store
from .system.clock import SystemClock
from .system.ids import Uuid7Ids

if TYPE_CHECKING:
    from ..application.accept_drift import AcceptDrift
    from ..application.adopt_store import AdoptStore
    from ..application.async_ledger import AsyncLedger
    from ..application.back_up_store import BackUpStore, RestoreStore
    from ..application.cancel_run import CancelRun
    from ..application.capture_content import CaptureContent
    from ..application.check_deploy import CheckDeploy
    from ..application.child_runs import ChildRuns
    from ..application.collect_garbage import CollectGarbage
    from ..application.commands_from_elsewhere import AtOwner, CommandsFromElsewhere, Handled
    from ..application.copied_folders import CopiedFolders
    from ..application.decide_permission import DecidePermission
    from ..application.deliver_again import DeliverAgain
    from ..application.drive_run import DriveRun
    from ..application.export_session import ExportSession
    from ..application.forget_session import ForgetSession
    from ..application.give_up_run import GiveUpRun
    from ..application.import_session import ImportSession
    from ..application.inspect_runs import InspectRuns
    from ..application.inspect_sessions import InspectSessions
    from ..application.judge_history import HistoryReader
    from ..application.late_outcome import LateOutcomes
    from ..application.live_runs import LiveRuns
    from ..application.over import OverJudge
    from ..application.places import Places
    from ..application.plan_resume import PlanResume
    from ..application.reconcile_operations import ReconcileOperations
    from ..application.reconcile_session import ReconcileSession
    from ..application.reconcilers import Reconcilers
    from ..application.record_run import RecordRun
    from ..application.record_settled_jobs import RecordSettledJobs
    from ..application.recorded_handles import RecordedHandles
    from ..application.repair_everything import RepairEverything
    from ..application.repair_family import RepairFamily
    from ..application.repair_preview import RepairPreview
    from ..application.repair_session import RepairSession
    from ..application.resume_run import ResumeRun
    from ..application.run_agent import RunAgent
    from ..application.run_turn import RunTurn
    from ..application.settle_operation import SettleOperation
    from ..application.settle_workspace import SettleWorkspace
    from ..application.start_turn import StartTurn
    from ..application.take_over import TakeOver
    from ..application.tidy_operations import TidyOperations
    from ..application.uncertain_operations import UncertainOperations
    from ..application.verify_store import Verification, VerifyStore
    from .git.checkpoints import GitCheckpoints
    from .git.when_needed import GitWhenNeeded
    from .interchange.formats import history_formats
    from .observation.chosen_sinks import sinks_from
    from .observation.guarded_sink import GuardedSink
    from .process.background_work import SupervisedJobs
    from .process.held_locks import held_locks
    from .process.supervisor import ProcessSupervisor
    from .process.tool_ancestry import started_by_operation
    from .sqlite.backup import SqliteBackup
    from .tools.builtin.carry_over import carry_over
    from .tools.builtin.file_reconciler import FileReconciler
    from .tools.builtin.state_at import state_at
    from .workspace.isolated_folders import FoldersInPlace
    from .workspace.marker_identity import MarkerWorkspaceIdentity
    from .workspace.naming import checkpoint_keys, store_tag
else:  # most processes need few of them: each is imported when it is first made
    AcceptDrift = later("..application.accept_drift", "AcceptDrift")
    AdoptStore = later("..application.adopt_store", "AdoptStore")
    AsyncLedger = later("..application.async_ledger", "AsyncLedger")
    BackUpStore = later("..application.back_up_store", "BackUpStore")
    RestoreStore = later("..application.back_up_store", "RestoreStore")
    CancelRun = later("..application.cancel_run", "CancelRun")
    CaptureContent = later("..application.capture_content", "CaptureContent")
    CollectGarbage = later("..application.collect_garbage", "CollectGarbage")
    CheckDeploy = later("..application.check_deploy", "CheckDeploy")
    ChildRuns = later("..application.child_runs", "ChildRuns")
    AtOwner = later("..application.commands_from_elsewhere", "AtOwner")
    CommandsFromElsewhere = later("..application.commands_from_elsewhere", "CommandsFromElsewhere")
    CopiedFolders = later("..application.copied_folders", "CopiedFolders")
    DecidePermission = later("..application.decide_permission", "DecidePermission")
    DeliverAgain = later("..application.deliver_again", "DeliverAgain")
    DriveRun = later("..application.drive_run", "DriveRun")
    ExportSession = later("..application.export_session", "ExportSession")
    ForgetSession = later("..application.forget_session", "ForgetSession")
    GiveUpRun = later("..application.give_up_run", "GiveUpRun")
    ImportSession = later("..application.import_session", "ImportSession")
    InspectRuns = later("..application.inspect_runs", "InspectRuns")
    InspectSessions = later("..application.inspect_sessions", "InspectSessions")
    HistoryReader = later("..application.judge_history", "HistoryReader")
    LateOutcomes = later("..application.late_outcome", "LateOutcomes")
    LiveRuns = later("..application.live_runs", "LiveRuns")
    OverJudge = later("..application.over", "OverJudge")
    Places = later("..application.places", "Places")
    PlanResume = later("..application.plan_resume", "PlanResume")
    ReconcileOperations = later("..application.reconcile_operations", "ReconcileOperations")
    ReconcileSession = later("..application.reconcile_session", "ReconcileSession")
    Reconcilers = later("..application.reconcilers", "Reconcilers")
    RecordRun = later("..application.record_run", "RecordRun")
    RecordSettledJobs = later("..application.record_settled_jobs", "RecordSettledJobs")
    RecordedHandles = later("..application.recorded_handles", "RecordedHandles")
    RepairEverything = later("..application.repair_everything", "RepairEverything")
    RepairFamily = later("..application.repair_family", "RepairFamily")
    RepairPreview = later("..application.repair_preview", "RepairPreview")
    RepairSession = later("..application.repair_session", "RepairSession")
    ResumeRun = later("..application.resume_run", "ResumeRun")
    RunAgent = later("..application.run_agent", "RunAgent")
    RunTurn = later("..application.run_turn", "RunTurn")
    SettleOperation = later("..application.settle_operation", "SettleOperation")
    SettleWorkspace = later("..application.settle_workspace", "SettleWorkspace")
    StartTurn = later("..application.start_turn", "StartTurn")
    TakeOver = later("..application.take_over", "TakeOver")
    TidyOperations = later("..application.tidy_operations", "TidyOperations")
    UncertainOperations = later("..application.uncertain_operations", "UncertainOperations")
    VerifyStore = later("..application.verify_store", "VerifyStore")
    GitCheckpoints = later(".git.checkpoints", "GitCheckpoints")
    GitWhenNeeded = later(".git.when_needed", "GitWhenNeeded")
    history_formats = later(".interchange.formats", "history_formats")
    sinks_from = later(".observation.chosen_sinks", "sinks_from")
    GuardedSink = later(".observation.guarded_sink", "GuardedSink")
    SupervisedJobs = later(".process.background_work", "SupervisedJobs")
    held_locks = later(".process.held_locks", "held_locks")
    ProcessSupervisor = later(".process.supervisor", "ProcessSupervisor")
    started_by_operation = later(".process.tool_ancestry", "started_by_operation")
    SqliteBackup = later(".sqlite.backup", "SqliteBackup")
    FileReconciler = later(".tools.builtin.file_reconciler", "FileReconciler")
    carry_over = later(".tools.builtin.carry_over", "carry_over")
    state_at = later(".tools.builtin.state_at", "state_at")
    checkpoint_keys = later(".workspace.naming", "checkpoint_keys")
    store_tag = later(".workspace.naming", "store_tag")
    FoldersInPlace = later(".workspace.isolated_folders", "FoldersInPlace")
    MarkerWorkspaceIdentity = later(".workspace.marker_identity", "MarkerWorkspaceIdentity")


def _store(settings: Settings, points: StorePoints, failpoints: Failpoints) -> SqliteStore:
    if settings.read_only:
        return open_reader(settings.store)
    return open_store(settings.store, on_point=None if isinstance(failpoints, NoFailpoints) else points.on_point)


def _events(store: SqliteStore, points: StorePoints, failpoints: Failpoints) -> EventStore:
    return store.events if isinstance(failpoints, NoFailpoints) else points.watched(store.events)


def _verify(file: Path) -> Verification:
    store = open_reader(file)
    try:
        return VerifyStore(store.events, store, store.owners, store.projections)()
    finally:
        store.close()


def _answer_seconds() -> float:
    from ..application.commands_from_elsewhere import ANSWER_SECONDS

    return ANSWER_SECONDS


def _heard(
    cancel_run: CancelRun, decide_permission: DecidePermission, settle_operation: SettleOperation
) -> Mapping[str, Handled]:
    """What is done about each command that another process sends."""
    from ..application import cancel_run as cancelling
    from ..application import decide_permission as deciding
    from ..application import settle_operation as settling

    return {
        cancelling.COMMAND: cancel_run.answer,
        deciding.COMMAND: decide_permission.answer,
        settling.COMMAND: settle_operation.answer,
    }


def _answer(commands: Callable[[], CommandsFromElsewhere]) -> Handler:
    return commands().answer


class Composition(containers.DeclarativeContainer):
    """Every part, made when it is first asked for; use cases are made anew each time."""

    settings = providers.Dependency(instance_of=Settings)

    clock = providers.Singleton(SystemClock)
    ids = providers.Singleton(Uuid7Ids)
    sinks = providers.Singleton(sinks_from, settings.provided.environment)
    sink = providers.Singleton(GuardedSink, sinks)
    failpoints = providers.Singleton(failpoints_from, settings.provided.environment)
    store_points = providers.Singleton(StorePoints, failpoints)
    store = providers.Singleton(_store, settings, store_points, failpoints)
    events = providers.Singleton(_events, store, store_points, failpoints)

    supervisor = providers.Singleton(ProcessSupervisor, settings.provided.locks)
    handover = providers.Singleton(UnixSocketHandover, settings.provided.locks)
    jobs = providers.Singleton(SupervisedJobs, supervisor)
    workspaces = providers.Singleton(MarkerWorkspaceIdentity, ids)
    copied_folders = providers.Factory(CopiedFolders, workspaces, store.provided.views.folders_of)
    in_repositories = providers.Singleton(
        GitCheckpoints, settings.provided.checkpoints, clock, settings.provided.own_files
    )
    checkpoints = providers.Singleton(GitWhenNeeded, in_repositories.provider)

    new_key = providers.Singleton(checkpoint_keys, store, ids)
    isolated = providers.Singleton(FoldersInPlace, settings.provided.isolated, new_key)
    capture_content = providers.Singleton(CaptureContent, new_key)

    commands_from_elsewhere = providers.Factory(CommandsFromElsewhere)
    started_by_operation = providers.Callable(started_by_operation, settings.provided.locks)
    incarnations = providers.Singleton(
        HeardIncarnations,
        providers.Singleton(FileLockIncarnations, settings.provided.locks),
        handover,
        providers.Callable(_answer, commands_from_elsewhere.provider).provider,
    )

    live_operations = providers.Singleton(LiveOperations)
    live_runs = providers.Singleton(LiveRuns)
    spines = providers.Singleton(Spines, clock, ids)
    ledger = providers.Singleton(Ledger, events, store.provided.owners)
    async_ledger = providers.Singleton(AsyncLedger, ledger)
    ownership = providers.Singleton(
        SessionOwnership,
        store.provided.owners,
        incarnations,
        ledger.provided.forget,
        live_operations.provided.of,
        providers.Callable(is_open, ledger).provider,
    )
    at_owner = providers.Factory(AtOwner, ownership, handover, answer_seconds=providers.Callable(_answer_seconds))
    over = providers.Factory(OverJudge, ownership, supervisor, live_operations)

    repair_session = providers.Factory(RepairSession, ledger, spines, sink)
    repair_family = providers.Factory(RepairFamily, repair_session, ownership, store.provided.views)
    repair_everything = providers.Factory(
        RepairEverything, ledger, ownership, repair_session, store, store.provided.views, live_operations
    )
    settle_jobs = providers.Factory(RecordSettledJobs, ledger, spines, jobs)
    reconcilers = providers.Singleton(Reconcilers, providers.List(providers.Singleton(FileReconciler)))
    reconcile_operations = providers.Factory(
        ReconcileOperations,
        async_ledger,
        providers.Factory(UncertainOperations, events, ledger, over, workspaces, copied_folders),
        providers.Factory(
            DeliverAgain,
            async_ledger,
            spines,
            supervisor,
            live_operations,
            providers.Factory(LateOutcomes, ledger, spines, live_operations),
            failpoints,
        ),
        reconcilers,
        providers.Factory(RecordedHandles, supervisor, events),
        supervisor,
        spines,
        sink,
        observe_seconds_max=settings.provided.observe_seconds_max,
    )
    reconcile_session = providers.Factory(
        ReconcileSession,
        store.provided.views,
        ownership,
        repair_family,
        settle_jobs,
        reconcile_operations,
        live_operations,
    )
    # The store is the durable sink of T1 and T2, so runs may declare the protocol (SPEC section 5).
    start_turn = providers.Factory(StartTurn, events, async_ledger, spines, TOOL_BOUNDARY_PROTOCOL)
    places = providers.Singleton(Places)
    run_agent = providers.Factory(
        RunAgent,
        async_ledger,
        spines,
        ids,
        failpoints,
        supervisor,
        jobs,
        live_operations,
        places=places,
        capture=capture_content,
    )
    drive_run = providers.Factory(
        DriveRun,
        run_agent,
        ownership,
        live_runs,
        live_operations,
        sink,
        cancel_bound_seconds=settings.provided.cancel_bound_seconds,
    )
    child_runs = providers.Factory(ChildRuns, events)
    run_turn = providers.Factory(
        RunTurn, ownership, repair_family, start_turn, drive_run, capture_content, copied_folders, child_runs
    )
    cancel_run = providers.Factory(CancelRun, ledger, ownership, repair_family, live_runs, at_owner, spines)
    decide_permission = providers.Factory(
        DecidePermission, ledger, ownership, repair_family, live_runs, at_owner, spines, store.provided.views
    )
    tidy_operations = providers.Factory(TidyOperations, reconcilers, workspaces)
    settle_operation = providers.Factory(
        SettleOperation,
        events,
        store.provided.views,
        ledger,
        ownership,
        repair_session,
        live_runs,
        over,
        supervisor,
        at_owner,
        spines,
        sink,
        tidy_operations,
    )
    commands_from_elsewhere.add_args(providers.Callable(_heard, cancel_run, decide_permission, settle_operation))
    settle_workspace = providers.Factory(
        SettleWorkspace, events, store.provided.views, ledger, ownership, repair_family, workspaces, spines
    )
    give_up_run = providers.Factory(GiveUpRun, events, ledger, ownership, repair_session, spines)
    take_over = providers.Factory(TakeOver, ownership, repair_session, store)
    plan_resume = providers.Factory(
        PlanResume,
        events,
        ownership,
        over,
        workspaces,
        providers.Factory(RepairPreview, jobs),
        feature_enabled=settings.provided.resume_enabled,
        protocol=TOOL_BOUNDARY_PROTOCOL,
        folders_of=store.provided.views.folders_of,
        look_at_file=providers.Object(state_at),
    )
    resume_run = providers.Factory(
        ResumeRun,
        async_ledger,
        ownership,
        repair_family,
        settle_jobs,
        plan_resume,
        drive_run,
        spines,
        ids,
        failpoints,
        sink,
        reconcile_operations,
        capture_content,
    )
    accept_drift = providers.Factory(
        AcceptDrift,
        events,
        ledger,
        ownership,
        repair_family,
        plan_resume,
        workspaces,
        spines,
        ids,
        failpoints,
        new_key,
        isolated.provided.new,
        providers.Object(carry_over),
        isolated.provided.holds,
    )
    record_run = providers.Factory(RecordRun, run_turn, resume_run, drive_run, run_agent, settings.provided.store)
    collect_garbage = providers.Factory(
        CollectGarbage,
        events,
        store,
        store.provided.views,
        checkpoints,
        isolated,
        clock,
        failpoints,
        providers.Callable(store_tag, store).provider,
    )
    forget_session = providers.Factory(
        ForgetSession,
        events,
        store,
        store.provided.views,
        ownership,
        repair_session,
        over,
        checkpoints,
        isolated,
        store.provided.forgetting,
        clock,
        failpoints,
        tidy_operations,
    )
    inspect_sessions = providers.Factory(InspectSessions, events, store.provided.views, ownership)
    check_deploy = providers.Factory(CheckDeploy, inspect_sessions, plan_resume)
    inspect_runs = providers.Factory(InspectRuns, events, store.provided.views, over)
    read_history = providers.Singleton(HistoryReader, providers.Callable(history_formats))
    export_session = providers.Factory(ExportSession, events)
    import_session = providers.Factory(ImportSession, events, store.provided.events, ownership, read_history)
    verify_store = providers.Factory(VerifyStore, events, store, store.provided.owners, store.provided.projections)
    projections = store.provided.projections
    adopt_store = providers.Factory(AdoptStore, store, clock)
    backup = providers.Singleton(SqliteBackup, settings.provided.store)
    back_up_store = providers.Factory(BackUpStore, backup, providers.Object(_verify))
    restore_store = providers.Factory(
        RestoreStore,
        backup,
        providers.Object(_verify),
        providers.Callable(held_locks, settings.provided.locks).provider,
        clock,
    )
