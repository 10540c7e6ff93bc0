"""Adapters of ours, each with one thing made wrong: test_the_kit_catches_what_is_wrong runs the kit on them.

The name of this file keeps pytest from collecting it by itself: every class here is meant to fail.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from safepoint.adapters.failpoints.null import NoFailpoints
from safepoint.adapters.interchange.transcript import TranscriptFormat
from safepoint.adapters.memory import event_store as memory_events
from safepoint.adapters.memory.background_work import MemoryJobs
from safepoint.adapters.memory.backup import MemoryBackup
from safepoint.adapters.memory.checkpoints import MemoryCheckpoints
from safepoint.adapters.memory.clock import ManualClock
from safepoint.adapters.memory.event_store import MemoryEventStore, MemoryStore
from safepoint.adapters.memory.forgetting import MemoryForgetting
from safepoint.adapters.memory.handover import MemoryHandover
from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.memory.incarnations import MemoryIncarnations
from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.memory.projections import MemoryProjections
from safepoint.adapters.memory.session_owners import MemorySessionOwners
from safepoint.adapters.memory.supervisor import MemorySupervisor
from safepoint.adapters.memory.tables import MemoryTables
from safepoint.adapters.memory.tool_catalog import MemoryTool
from safepoint.adapters.memory.views import MemoryViews
from safepoint.adapters.memory.workspace import MemoryWorkspaces
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.workspace.isolated_folders import FoldersInPlace
from safepoint.domain.events.outside import JobStatus
from safepoint.ports.background_work import JobSettled, JobUnknown
from safepoint.ports.checkpoints import Compared, Materialized, TargetUnusable
from safepoint.ports.event_store import Fenced, Stored
from safepoint.ports.handover import NoAnswer
from safepoint.ports.incarnations import Liveness
from safepoint.ports.permission_gate import Allowed
from safepoint.ports.session_owners import Ownership
from safepoint.ports.supervised import Overness
from safepoint.ports.workspace import Absent, CouldNotLook, WorkspaceMissing

from . import (
    test_background_work,
    test_checkpoints,
    test_clock,
    test_event_store,
    test_failpoints,
    test_handover,
    test_history_format,
    test_ids,
    test_incarnations,
    test_isolated_folders,
    test_lifecycle_sink,
    test_permission_gate,
    test_run_importer,
    test_session_forgetting,
    test_session_owners,
    test_store_backup,
    test_store_keeping,
    test_supervisor,
    test_tool_catalog,
    test_views,
    test_workspace,
)

Method = Callable[..., Any]


class Wrong(NamedTuple):
    """A part that keeps its contract, and what is made wrong about it.

    Attributes:
        right: its own tests, which pass.
        part, method: what is replaced.
        wrongly: makes the wrong method from the right one.
        caught_by: the test of the kit that must fail.
        raising: the error that it fails with, where the wrong part itself raises it.
    """

    right: type
    part: type
    method: str
    wrongly: Callable[[Method], Method]
    caught_by: str
    raising: str = ""


def answering(change: Callable[[Any], Any]) -> Callable[[Method], Method]:
    """Give another answer than the right one."""
    return lambda right: lambda *given, **named: change(right(*given, **named))


def instead(method: Method) -> Callable[[Method], Method]:
    """Do something else."""
    return lambda right: method


def event_by_event(self: MemoryEventStore, commit: Any) -> Any:
    """Keep the events of a commit one by one, until one does not fit."""
    for sealed in commit.events:
        one = commit._replace(events=(sealed,))
        refusal = self._tables.why_not(one)
        if refusal is not None:
            return refusal
        self._tables.keep(one)
    return Stored()


def of_now(right: Method) -> Method:
    """Look at the store as it is whenever it is read."""

    def open_view(self: Any, tables: MemoryTables) -> None:
        right(self, tables)
        self._records_seen = 10**9

    return open_view


def whatever_was_seen(self: MemorySessionOwners, session_id: Any, incarnation_id: Any, seen: Any) -> Ownership:
    """Take a session although somebody else took it meanwhile."""
    present = self._tables.owners.get(session_id)
    taken = Ownership(session_id, incarnation_id, 1 if present is None else present.epoch + 1)
    self._tables.owners[session_id] = taken
    return taken


def while_in_use(right: Method) -> Method:
    """Replace a store whoever works on it."""

    def restore(self: MemoryBackup, *given: Any) -> Any:
        self._shelf._users.clear()
        return right(self, *given)

    return restore


def made_by_looking(right: Method) -> Method:
    """Give a folder an identity as soon as it is looked at."""

    def observe(self: MemoryWorkspaces, path: str) -> Any:
        if self._folders.get(path, "") is None and path not in self._unreadable:
            self._folders[path] = self._ids.fresh(str)
        return right(self, path)

    return observe


def loudly(right: Method) -> Method:
    """Raise where a damaged file is read."""

    def read(self: Any, data: bytes, session_id: Any = None) -> Any:
        data.decode()
        return right(self, data, session_id)

    return read


def by_turns(right: Method) -> Method:
    """Name a history anew each time."""
    numbers = itertools.count()
    return lambda *given: replace(right(*given), session_id=f"history-{next(numbers)}")


def anywhere(self: FoldersInPlace, path: str) -> None:
    """Remove whatever is named, gently."""
    if Path(path).is_dir() and path:
        Path(path).rename(f"{path}.gone")


MEMORY = test_event_store.TestMemory
IN_MEMORY = test_workspace.TestMemoryWorkspaces
WRONG: dict[str, Wrong] = {
    "EventStoreWithoutFence": Wrong(
        MEMORY,
        MemoryTables,
        "why_not",
        answering(lambda answer: None if isinstance(answer, Fenced) else answer),
        "test_a_guard_that_is_not_the_owner_is_fenced",
    ),
    "EventStoreThatKeepsHalf": Wrong(
        MEMORY,
        MemoryEventStore,
        "_keep",
        instead(event_by_event),
        "test_a_commit_refused_at_its_last_event_leaves_nothing_of_its_first",
    ),
    "EventStoreWithoutViews": Wrong(
        MEMORY, memory_events._MemoryReader, "__init__", of_now, "test_a_view_does_not_show_later_commits"
    ),
    "EventStoreWithShortPages": Wrong(
        MEMORY,
        memory_events._MemoryReader,
        "read",
        answering(lambda rows: rows[:100]),
        "test_a_page_is_full_unless_its_stream_ends",
    ),
    "SessionOwnersThatDoNotCompare": Wrong(
        test_session_owners.TestMemory,
        MemorySessionOwners,
        "take",
        instead(whatever_was_seen),
        "test_whoever_looked_too_early_gets_nothing",
    ),
    "ViewsOldestFirst": Wrong(
        test_views.TestMemory,
        MemoryViews,
        "sessions",
        answering(lambda rows: rows[::-1]),
        "test_sessions_are_listed_newest_first_page_by_page",
    ),
    "ViewsThatSeeNoDoubt": Wrong(
        test_views.TestMemory,
        MemoryViews,
        "unsettled",
        answering(lambda rows: ()),
        "test_what_is_unsettled_is_listed_until_it_is_settled",
    ),
    "ProjectionsThatAreEmptied": Wrong(
        test_views.TestMemory,
        MemoryProjections,
        "_build",
        answering(lambda built: ({name: {} for name in built[0]}, built[1])),
        "test_rebuilding_gives_the_same_views",
    ),
    "StoreKeepingThatMiscounts": Wrong(
        test_store_keeping.TestMemory,
        MemoryStore,
        "condition",
        answering(lambda condition: condition._replace(events=condition.events + 1)),
        "test_the_condition_counts_events",
    ),
    "RunImporterThatVouches": Wrong(
        test_run_importer.TestMemory,
        MemoryEventStore,
        "import_runs",
        instead(lambda self, commit: self.append([commit])[0]),
        "test_imported_runs_are_foreign",
    ),
    "SessionForgettingThatOnlySaysSo": Wrong(
        test_session_forgetting.TestMemory,
        MemoryForgetting,
        "forget",
        lambda right: lambda self, session_ids, **said: right(self, (), **said),
        "test_every_event_gives_way_to_a_tombstone_that_says_who_and_keeps_its_digest",
    ),
    "StoreBackupUnderOthersFeet": Wrong(
        test_store_backup.TestMemory,
        MemoryBackup,
        "restore",
        while_in_use,
        "test_a_store_in_use_is_not_replaced",
    ),
    "StoreBackupThatDoesNotLook": Wrong(
        test_store_backup.TestMemory,
        MemoryBackup,
        "_checked",
        lambda right: lambda self, source, unfinished, check: right(self, source, unfinished, lambda *_: None),
        "test_a_copy_that_is_not_liked_leaves_nothing",
    ),
    "WorkspaceIdentityMadeByLooking": Wrong(
        IN_MEMORY, MemoryWorkspaces, "observe", made_by_looking, "test_looking_makes_no_identity"
    ),
    "WorkspaceIdentityThatGuesses": Wrong(
        IN_MEMORY,
        MemoryWorkspaces,
        "observe",
        answering(lambda seen: WorkspaceMissing(Absent.FOLDER, seen.path) if isinstance(seen, CouldNotLook) else seen),
        "test_not_being_able_to_look_is_not_finding_nothing",
    ),
    "CheckpointsThatSeeNoDrift": Wrong(
        test_checkpoints.TestMemoryCheckpoints,
        MemoryCheckpoints,
        "verify",
        answering(lambda answer: Compared((), 0, same_policy=True) if isinstance(answer, Compared) else answer),
        "test_every_path_that_differs_is_named_with_how_it_differs",
    ),
    "CheckpointsThatAreWrittenOutAnywhere": Wrong(
        test_checkpoints.TestMemoryCheckpoints,
        MemoryCheckpoints,
        "materialize",
        answering(lambda made: Materialized(made.path) if isinstance(made, TargetUnusable) else made),
        "test_nothing_is_written_into_the_workspace",
    ),
    "IncarnationsThatAssumeDeath": Wrong(
        test_incarnations.TestMemoryIncarnations,
        MemoryIncarnations,
        "probe",
        answering(lambda seen: Liveness.DEAD if seen is Liveness.COULD_NOT_LOOK else seen),
        "test_without_its_lock_file_nobody_is_dead",
    ),
    "HandoverThatIsSure": Wrong(
        test_handover.TestMemoryHandover,
        MemoryHandover,
        "ask",
        answering(
            lambda answer: replace(answer, may_have_been_handled=False) if isinstance(answer, NoAnswer) else answer
        ),
        "test_a_handler_that_takes_too_long_leaves_the_effect_open",
    ),
    "SupervisorThatTakesNothingForOver": Wrong(
        test_supervisor.TestMemorySupervisor,
        MemorySupervisor,
        "probe_over",
        answering(lambda seen: Overness.OVER if seen is Overness.COULD_NOT_LOOK else seen),
        "test_an_operation_that_was_never_prepared_cannot_be_looked_at",
    ),
    "BackgroundWorkThatEndedWell": Wrong(
        test_background_work.TestMemoryJobs,
        MemoryJobs,
        "observe",
        answering(
            lambda seen: [JobSettled(JobStatus.COMPLETED, 0) if isinstance(one, JobSettled) else one for one in seen]
        ),
        "test_a_job_that_was_killed_never_looks_as_if_it_had_ended_well",
    ),
    "BackgroundWorkThatKnowsAll": Wrong(
        test_background_work.TestMemoryJobs,
        MemoryJobs,
        "observe",
        answering(lambda seen: [JobSettled(JobStatus.UNKNOWN) if one == JobUnknown() else one for one in seen]),
        "test_an_unknown_handle_is_neither_running_nor_settled",
    ),
    "ClockWithoutMicroseconds": Wrong(
        test_clock.TestManualClock,
        ManualClock,
        "now",
        answering(lambda text: text.replace(".000000", "")),
        "test_wall_time_has_the_one_form_of_the_record",
    ),
    "IdsThatComeAgain": Wrong(
        test_ids.TestCountingIds,
        CountingIds,
        "fresh",
        instead(lambda self, kind: kind("1")),
        "test_threads_never_get_the_same_id",
    ),
    "FailpointsThatKnowOnlyTheirOwn": Wrong(
        test_failpoints.TestNoFailpoints,
        NoFailpoints,
        "hit",
        instead(lambda self, point: {"P0": 0}[point]),
        "test_free_points_can_be_hit_and_passed",
        raising="KeyError",
    ),
    "LifecycleSinkThatWantsAll": Wrong(
        test_lifecycle_sink.TestCollectingSink,
        CollectingSink,
        "record",
        instead(lambda self, event: event.run_id.encode()),
        "test_every_kind_is_taken_with_little_and_with_all",
        raising="AttributeError",
    ),
    "PermissionGateThatAllowsARepeat": Wrong(
        test_permission_gate.TestAllowAll,
        AllowListGate,
        "by_policy",
        instead(lambda self, request: Allowed("list")),
        "test_no_policy_allows_the_repeat_of_an_unsettled_effect",
    ),
    "ToolCatalogThatTakesAnything": Wrong(
        test_tool_catalog.TestMemoryCatalog,
        MemoryTool,
        "_fits",
        instead(lambda self, name, arguments: True),
        "test_misfits_are_named_and_nothing_else",
    ),
    "HistoryFormatThatRaises": Wrong(
        test_history_format.TestHistoryFormats,
        TranscriptFormat,
        "read",
        loudly,
        "test_a_file_with_a_damaged_byte_anywhere_is_read_without_an_error",
        raising="UnicodeDecodeError",
    ),
    "HistoryFormatThatNamesAnew": Wrong(
        test_history_format.TestHistoryFormats,
        TranscriptFormat,
        "read",
        by_turns,
        "test_the_same_bytes_give_the_same_history",
    ),
    "IsolatedFoldersThatRemoveAnything": Wrong(
        test_isolated_folders.TestFoldersInPlace,
        FoldersInPlace,
        "remove",
        instead(anywhere),
        "test_what_is_none_of_them_is_never_removed",
    ),
}


def tests_of(name: str, wrong: Wrong) -> type:
    """The right part's own tests, on the wrong part."""

    @pytest.fixture(autouse=True)
    def make_wrong(self: object, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wrong.part, wrong.method, wrong.wrongly(getattr(wrong.part, wrong.method)))

    return type(f"Test{name}", (wrong.right,), {"make_wrong": make_wrong, "__module__": __name__})


globals().update({f"Test{name}": tests_of(name, wrong) for name, wrong in WRONG.items()})
