"""Parts of the container that are imported when they are first made: checkers see what each is, a process its name.

So a command that looks at a store imports nothing of what a run needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .later import later

if TYPE_CHECKING:
    from ..application.accept_drift import AcceptDrift as AcceptDrift
    from ..application.adopt_store import AdoptStore as AdoptStore
    from ..application.async_ledger import AsyncLedger as AsyncLedger
    from ..application.back_up_store import BackUpStore as BackUpStore
    from ..application.back_up_store import RestoreStore as RestoreStore
    from ..application.cancel_run import CancelRun as CancelRun
    from ..application.capture_content import CaptureContent as CaptureContent
    from ..application.check_deploy import CheckDeploy as CheckDeploy
    from ..application.child_runs import ChildRuns as ChildRuns
    from ..application.collect_garbage import CollectGarbage as CollectGarbage
    from ..application.commands_from_elsewhere import AtOwner as AtOwner
    from ..application.commands_from_elsewhere import CommandsFromElsewhere as CommandsFromElsewhere
    from ..application.copied_folders import CopiedFolders as CopiedFolders
    from ..application.decide_permission import DecidePermission as DecidePermission
    from ..application.deliver_again import DeliverAgain as DeliverAgain
    from ..application.drive_run import DriveRun as DriveRun
    from ..application.export_session import ExportSession as ExportSession
    from ..application.forget_session import ForgetSession as ForgetSession
    from ..application.give_up_run import GiveUpRun as GiveUpRun
    from ..application.import_session import ImportSession as ImportSession
    from ..application.inspect_runs import InspectRuns as InspectRuns
    from ..application.inspect_sessions import InspectSessions as InspectSessions
    from ..application.judge_history import HistoryReader as HistoryReader
    from ..application.late_outcome import LateOutcomes as LateOutcomes
    from ..application.live_runs import LiveRuns as LiveRuns
    from ..application.over import OverJudge as OverJudge
    from ..application.places import Places as Places
    from ..application.plan_resume import PlanResume as PlanResume
    from ..application.reconcile_operations import ReconcileOperations as ReconcileOperations
    from ..application.reconcile_session import ReconcileSession as ReconcileSession
    from ..application.reconcilers import Reconcilers as Reconcilers
    from ..application.record_run import RecordRun as RecordRun
    from ..application.record_settled_jobs import RecordSettledJobs as RecordSettledJobs
    from ..application.recorded_handles import RecordedHandles as RecordedHandles
    from ..application.repair_everything import RepairEverything as RepairEverything
    from ..application.repair_family import RepairFamily as RepairFamily
    from ..application.repair_preview import RepairPreview as RepairPreview
    from ..application.repair_session import RepairSession as RepairSession
    from ..application.resume_run import ResumeRun as ResumeRun
    from ..application.run_agent import RunAgent as RunAgent
    from ..application.run_turn import RunTurn as RunTurn
    from ..application.settle_operation import SettleOperation as SettleOperation
    from ..application.settle_workspace import SettleWorkspace as SettleWorkspace
    from ..application.start_turn import StartTurn as StartTurn
    from ..application.take_over import TakeOver as TakeOver
    from ..application.tidy_operations import TidyOperations as TidyOperations
    from ..application.uncertain_operations import UncertainOperations as UncertainOperations
    from ..application.verify_store import VerifyStore as VerifyStore
    from .git.checkpoints import GitCheckpoints as GitCheckpoints
    from .git.when_needed import GitWhenNeeded as GitWhenNeeded
    from .interchange.formats import history_formats as history_formats
    from .observation.chosen_sinks import sinks_from as sinks_from
    from .observation.guarded_sink import GuardedSink as GuardedSink
    from .process.background_work import SupervisedJobs as SupervisedJobs
    from .process.held_locks import held_locks as held_locks
    from .process.supervisor import ProcessSupervisor as ProcessSupervisor
    from .process.tool_ancestry import started_by_operation as started_by_operation
    from .sqlite.backup import SqliteBackup as SqliteBackup
    from .tools.builtin.carry_over import carry_over as carry_over
    from .tools.builtin.file_reconciler import FileReconciler as FileReconciler
    from .tools.builtin.state_at import state_at as state_at
    from .workspace.isolated_folders import FoldersInPlace as FoldersInPlace
    from .workspace.marker_identity import MarkerWorkspaceIdentity as MarkerWorkspaceIdentity
    from .workspace.naming import checkpoint_keys as checkpoint_keys
    from .workspace.naming import store_tag as store_tag
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
