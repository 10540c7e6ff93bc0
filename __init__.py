"""Safepoint: continue an AI-agent run safely after its process died in the middle of a tool call.

Two ways in, both over one store: `Session.run` and `Session.resume`, where Safepoint runs the loop; `Session.record`
and `Session.record_resume`, where you do. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .adapters.composition import Composition
    from .adapters.embedding import happenings as events
    from .adapters.embedding.blocking import SyncRuntime, open_sync
    from .adapters.embedding.blocking_run import SyncRecordedRun
    from .adapters.embedding.blocking_session import SyncSession
    from .adapters.embedding.configuration import Configuration as Configuration  # needs the extra `settings`
    from .adapters.embedding.messages import messages, step, tool_call
    from .adapters.embedding.own_process import OpenedBeforeFork
    from .adapters.embedding.parts import ConfigurationUnusable, WorkspaceUnusable
    from .adapters.embedding.recorded import RecordedRun
    from .adapters.embedding.runtime import Runtime
    from .adapters.embedding.runtime import open_runtime as open  # noqa: A004 (as `open` of other libraries)
    from .adapters.embedding.session import Session
    from .adapters.models.named import NamedModel
    from .adapters.settings import Settings
    from .adapters.tools.declaration import ToolDefinitionError
    from .adapters.tools.decorator import tool
    from .adapters.tools.promised_tool import contract
    from .application.budget import BudgetSpent
    from .application.call_answers import Answer, CallRefused, OutcomeNotDeclared, RunStopped
    from .application.child_runs import ChildRunExists, ParentNotOpen
    from .application.current_call import current_call
    from .application.decide_permission import UnknownQuestion
    from .application.host_phases import HostClosedMeanwhile
    from .application.open_call import OpenCall
    from .application.ownership import SessionBusy
    from .application.record_run import ResumeParked
    from .application.resume_run import Continued, Parked
    from .application.run_turn import SessionQuarantined
    from .application.settlement import SettlementRefused
    from .application.tool_boundary import ToolNotOver
    from .application.turn_context import HistoryTooLarge, HistoryUnusable
    from .application.unanswered_calls import CallsUnanswered, NoStepRecorded
    from .domain.errors import RefusedWithoutEffect, SafepointError, StoreError, WriteRefused
    from .domain.events.run import Budgets
    from .domain.events.tool import Effect, RecoveryMode
    from .domain.planning.facts import Drift
    from .domain.planning.outcome import Continue, Park
    from .domain.reasons import ParkReason
    from .ports.provider_failures import ProviderFailed, ProviderStreamIncomplete, ProviderUnusable
    from .ports.tool_catalog import ToolContext

__version__: Final = "0.1.0"

__all__ = [
    "Answer",
    "BudgetSpent",
    "Budgets",
    "CallRefused",
    "CallsUnanswered",
    "ChildRunExists",
    "Composition",
    "ConfigurationUnusable",
    "Continue",
    "Continued",
    "Drift",
    "Effect",
    "HistoryTooLarge",
    "HistoryUnusable",
    "HostClosedMeanwhile",
    "NamedModel",
    "NoStepRecorded",
    "OpenCall",
    "OpenedBeforeFork",
    "OutcomeNotDeclared",
    "ParentNotOpen",
    "Park",
    "ParkReason",
    "Parked",
    "ProviderFailed",
    "ProviderStreamIncomplete",
    "ProviderUnusable",
    "RecordedRun",
    "RecoveryMode",
    "RefusedWithoutEffect",
    "ResumeParked",
    "RunStopped",
    "Runtime",
    "SafepointError",
    "Session",
    "SessionBusy",
    "SessionQuarantined",
    "Settings",
    "SettlementRefused",
    "StoreError",
    "SyncRecordedRun",
    "SyncRuntime",
    "SyncSession",
    "ToolContext",
    "ToolDefinitionError",
    "ToolNotOver",
    "UnknownQuestion",
    "WorkspaceUnusable",
    "WriteRefused",
    "contract",
    "current_call",
    "events",
    "messages",
    "open",
    "open_sync",
    "step",
    "tool",
    "tool_call",
]

_HOMES: Final = {
    "adapters.composition": ("Composition",),
    "adapters.embedding.blocking": ("SyncRuntime", "open_sync"),
    "adapters.embedding.blocking_run": ("SyncRecordedRun",),
    "adapters.embedding.blocking_session": ("SyncSession",),
    "adapters.embedding.configuration": ("Configuration",),
    "adapters.embedding.messages": ("messages", "step", "tool_call"),
    "adapters.embedding.own_process": ("OpenedBeforeFork",),
    "adapters.embedding.parts": ("ConfigurationUnusable", "WorkspaceUnusable"),
    "adapters.embedding.recorded": ("RecordedRun",),
    "adapters.embedding.runtime": ("Runtime", "open_runtime"),
    "adapters.embedding.session": ("Session",),
    "adapters.models.named": ("NamedModel",),
    "adapters.settings": ("Settings",),
    "adapters.tools.declaration": ("ToolDefinitionError",),
    "adapters.tools.decorator": ("tool",),
    "adapters.tools.promised_tool": ("contract",),
    "application.budget": ("BudgetSpent",),
    "application.child_runs": ("ChildRunExists", "ParentNotOpen"),
    "application.current_call": ("current_call",),
    "application.decide_permission": ("UnknownQuestion",),
    "application.call_answers": ("Answer", "CallRefused", "OutcomeNotDeclared", "RunStopped"),
    "application.host_phases": ("HostClosedMeanwhile",),
    "application.open_call": ("OpenCall",),
    "application.ownership": ("SessionBusy",),
    "application.record_run": ("ResumeParked",),
    "application.resume_run": ("Continued", "Parked"),
    "application.run_turn": ("SessionQuarantined",),
    "application.settlement": ("SettlementRefused",),
    "application.tool_boundary": ("ToolNotOver",),
    "application.turn_context": ("HistoryTooLarge", "HistoryUnusable"),
    "application.unanswered_calls": ("CallsUnanswered", "NoStepRecorded"),
    "domain.errors": ("RefusedWithoutEffect", "SafepointError", "StoreError", "WriteRefused"),
    "domain.events.run": ("Budgets",),
    "domain.events.tool": ("Effect", "RecoveryMode"),
    "domain.planning.facts": ("Drift",),
    "domain.planning.outcome": ("Continue", "Park"),
    "domain.reasons": ("ParkReason",),
    "ports.provider_failures": ("ProviderFailed", "ProviderStreamIncomplete", "ProviderUnusable"),
    "ports.tool_catalog": ("ToolContext",),
}
_RENAMED: Final = {"open": "open_runtime"}
_MODULES: Final = {"events": "adapters.embedding.happenings"}
_OF_EXTRAS: Final = ("Configuration",)
"""Names that need more than the core dependencies, so that `import *` leaves them out."""

if not TYPE_CHECKING:  # checkers know the names above, and are not to believe in others

    def __getattr__(name: str) -> object:
        """Import a public name from its home when it is first used, so that `import safepoint` stays cheap."""
        if name not in __all__ and name not in _OF_EXTRAS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found: object
        if name in _MODULES:
            found = import_module(f".{_MODULES[name]}", __name__)
        else:
            wanted = _RENAMED.get(name, name)
            (home,) = (home for home, names in _HOMES.items() if wanted in names)
            found = getattr(import_module(f".{home}", __name__), wanted)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__, *_OF_EXTRAS})
