"""The one place that knows which adapter stands behind which port. SPEC section 3, STYLE section 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dependency_injector import containers, providers

from ..application.ledger import Ledger
from ..application.live_operations import LiveOperations
from ..application.open_ends import end_of
from ..application.ownership import SessionOwnership
from ..application.spines import Spines
from ..domain.events.run import TOOL_BOUNDARY_PROTOCOL
from ..ports.event_store import EventStore
from ..ports.failpoints import Failpoints
from ..ports.handover import Handler
from . import late_parts as late
from .failpoints.killing import failpoints_from
from .failpoints.null import NoFailpoints
from .failpoints.store_points import StorePoints
from .process.handover import UnixSocketHandover
from .process.heard_incarnations import HeardIncarnations
from .process.incarnations import FileLockIncarnations
from .settings import Settings
from .sqlite.store import SqliteStore, open_reader, open_store
from .system.clock import SystemClock
from .system.ids import Uuid7Ids

if TYPE_CHECKING:
    from ..application.commands_from_elsewhere import Handled
    from ..application.verify_store import Verification


def _store(settings: Settings, points: StorePoints, failpoints: Failpoints) -> SqliteStore:
    if settings.read_only:
        return open_reader(settings.store)
    return open_store(settings.store, on_point=None if isinstance(failpoints, NoFailpoints) else points.on_point)


def _events(store: SqliteStore, points: StorePoints, failpoints: Failpoints) -> EventStore:
    return store.events if isinstance(failpoints, NoFailpoints) else points.watched(store.events)


def _verify(file: Path) -> Verification:
    store = open_reader(file)
    try:
        return late.VerifyStore(store.events, store, store.owners, store.projections)()
    finally:
        store.close()


def _answer_seconds() -> float:
    from ..application.commands_from_elsewhere import ANSWER_SECONDS

    return ANSWER_SECONDS


def _heard(
    cancel_run: late.CancelRun, decide_permission: late.DecidePermission, settle_operation: late.SettleOperation
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


def _answer(commands: Callable[[], late.CommandsFromElsewhere]) -> Handler:
    return commands().answer


class Composition(containers.DeclarativeContainer):
    """Every part, made when it is first asked for; use cases are made anew each time."""

    settings = providers.Dependency(instance_of=Settings)

    clock = providers.Singleton(SystemClock)
    ids = providers.Singleton(Uuid7Ids)
    sinks = providers.Singleton(late.sinks_from, settings.provided.environment)
    sink = providers.Singleton(late.GuardedSink, sinks)
    failpoints = providers.Singleton(failpoints_from, settings.provided.environment)
    store_points = providers.Singleton(StorePoints, failpoints)
    store = providers.Singleton(_store, settings, store_points, failpoints)
    events = providers.Singleton(_events, store, store_points, failpoints)

    supervisor = providers.Singleton(late.ProcessSupervisor, settings.provided.locks)
    handover = providers.Singleton(UnixSocketHandover, settings.provided.locks)
    jobs = providers.Singleton(late.SupervisedJobs, supervisor)
    workspaces = providers.Singleton(late.MarkerWorkspaceIdentity, ids)
    copied_folders = providers.Factory(late.CopiedFolders, workspaces, store.provided.views.folders_of)
    in_repositories = providers.Singleton(
        late.GitCheckpoints, settings.provided.checkpoints, clock, settings.provided.own_files
    )
    checkpoints = providers.Singleton(late.GitWhenNeeded, in_repositories.provider)

    new_key = providers.Singleton(late.checkpoint_keys, store, ids)
    isolated = providers.Singleton(late.FoldersInPlace, settings.provided.isolated, new_key)
    capture_content = providers.Singleton(late.CaptureContent, new_key)

    commands_from_elsewhere = providers.Factory(late.CommandsFromElsewhere)
    started_by_operation = providers.Callable(late.started_by_operation, settings.provided.locks)
    incarnations = providers.Singleton(
        HeardIncarnations,
        providers.Singleton(FileLockIncarnations, settings.provided.locks),
        handover,
        providers.Callable(_answer, commands_from_elsewhere.provider).provider,
    )

    live_operations = providers.Singleton(LiveOperations)
    live_runs = providers.Singleton(late.LiveRuns)
    spines = providers.Singleton(Spines, clock, ids)
    ledger = providers.Singleton(Ledger, events, store.provided.owners)
    async_ledger = providers.Singleton(late.AsyncLedger, ledger)
    ownership = providers.Singleton(
        SessionOwnership,
        store.provided.owners,
        incarnations,
        ledger.provided.forget,
        live_operations.provided.of,
        providers.Callable(end_of, ledger).provider,
        live_operations.provided.when_over,
    )
    at_owner = providers.Factory(late.AtOwner, ownership, handover, answer_seconds=providers.Callable(_answer_seconds))
    over = providers.Factory(late.OverJudge, ownership, supervisor, live_operations)

    repair_session = providers.Factory(late.RepairSession, ledger, spines, sink)
    repair_family = providers.Factory(late.RepairFamily, repair_session, ownership, store.provided.views)
    repair_everything = providers.Factory(
        late.RepairEverything, ledger, ownership, repair_session, store, store.provided.views
    )
    settle_jobs = providers.Factory(late.RecordSettledJobs, ledger, spines, jobs)
    reconcilers = providers.Singleton(late.Reconcilers, providers.List(providers.Singleton(late.FileReconciler)))
    reconcile_operations = providers.Factory(
        late.ReconcileOperations,
        async_ledger,
        providers.Factory(late.UncertainOperations, events, ledger, over, workspaces, copied_folders),
        providers.Factory(
            late.DeliverAgain,
            async_ledger,
            spines,
            supervisor,
            live_operations,
            providers.Factory(late.LateOutcomes, ledger, spines, live_operations),
            failpoints,
        ),
        reconcilers,
        providers.Factory(late.RecordedHandles, supervisor, events),
        supervisor,
        spines,
        sink,
        observe_seconds_max=settings.provided.observe_seconds_max,
    )
    reconcile_session = providers.Factory(
        late.ReconcileSession,
        store.provided.views,
        ownership,
        repair_family,
        settle_jobs,
        reconcile_operations,
        live_operations,
    )
    # The store is the durable sink of T1 and T2, so runs may declare the protocol (SPEC section 5).
    start_turn = providers.Factory(late.StartTurn, events, async_ledger, spines, TOOL_BOUNDARY_PROTOCOL)
    places = providers.Singleton(late.Places)
    run_agent = providers.Factory(
        late.RunAgent,
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
        late.DriveRun,
        run_agent,
        ownership,
        live_runs,
        live_operations,
        sink,
        cancel_bound_seconds=settings.provided.cancel_bound_seconds,
    )
    child_runs = providers.Factory(late.ChildRuns, events)
    run_turn = providers.Factory(
        late.RunTurn, ownership, repair_family, start_turn, drive_run, capture_content, copied_folders, child_runs
    )
    cancel_run = providers.Factory(late.CancelRun, ledger, ownership, repair_family, live_runs, at_owner, spines)
    decide_permission = providers.Factory(
        late.DecidePermission, ledger, ownership, repair_family, live_runs, at_owner, spines, store.provided.views
    )
    tidy_operations = providers.Factory(late.TidyOperations, reconcilers, workspaces)
    settle_operation = providers.Factory(
        late.SettleOperation,
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
        late.SettleWorkspace, events, store.provided.views, ledger, ownership, repair_family, workspaces, spines
    )
    give_up_run = providers.Factory(late.GiveUpRun, events, ledger, ownership, repair_session, spines)
    take_over = providers.Factory(late.TakeOver, ownership, repair_session, store)
    plan_resume = providers.Factory(
        late.PlanResume,
        events,
        ownership,
        over,
        workspaces,
        providers.Factory(late.RepairPreview, jobs),
        feature_enabled=settings.provided.resume_enabled,
        protocol=TOOL_BOUNDARY_PROTOCOL,
        folders_of=store.provided.views.folders_of,
        look_at_file=providers.Object(late.state_at),
    )
    resume_run = providers.Factory(
        late.ResumeRun,
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
        late.AcceptDrift,
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
        providers.Object(late.carry_over),
        isolated.provided.holds,
    )
    record_run = providers.Factory(late.RecordRun, run_turn, resume_run, drive_run, run_agent, settings.provided.store)
    collect_garbage = providers.Factory(
        late.CollectGarbage,
        events,
        store,
        store.provided.views,
        checkpoints,
        isolated,
        clock,
        failpoints,
        providers.Callable(late.store_tag, store).provider,
    )
    forget_session = providers.Factory(
        late.ForgetSession,
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
    inspect_sessions = providers.Factory(late.InspectSessions, events, store.provided.views, ownership)
    check_deploy = providers.Factory(late.CheckDeploy, inspect_sessions, plan_resume)
    inspect_runs = providers.Factory(late.InspectRuns, events, store.provided.views, over)
    read_history = providers.Singleton(late.HistoryReader, providers.Callable(late.history_formats))
    export_session = providers.Factory(late.ExportSession, events)
    import_session = providers.Factory(late.ImportSession, events, store.provided.events, ownership, read_history)
    verify_store = providers.Factory(late.VerifyStore, events, store, store.provided.owners, store.provided.projections)
    projections = store.provided.projections
    adopt_store = providers.Factory(late.AdoptStore, store, clock)
    backup = providers.Singleton(late.SqliteBackup, settings.provided.store)
    back_up_store = providers.Factory(late.BackUpStore, backup, providers.Object(_verify))
    restore_store = providers.Factory(
        late.RestoreStore,
        backup,
        providers.Object(_verify),
        providers.Callable(late.held_locks, settings.provided.locks).provider,
        clock,
    )
