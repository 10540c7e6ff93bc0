"""What the gates need of a run's events, in one pass over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..events.event import RunEvent
from ..events.model import ModelStepCompleted
from ..events.outside import (
    BackgroundSettled,
    BackgroundStarted,
    PermissionClosed,
    PermissionDecided,
    PermissionRequested,
    WorkspaceRenewed,
    WorkspaceTransitioned,
)
from ..events.run import CancelRequested, ContinuationStarted, RunEnded, RunOpened


@dataclass(slots=True)
class Survey:
    """The facts of one run that gates ask for.

    Attributes:
        identities: how many execution identities its events have.
        terminals: its terminal events.
        open_permissions: questions that nobody decided and no stop closed.
        open_jobs: background work that is not settled and not detached.
        last_step: the model step that was completed last.
        workspace_identity, cwd: where the run was at its end.
    """

    identities: int = 0
    terminals: list[RunEnded] = field(default_factory=list)
    cancel_requested: bool = False
    open_permissions: dict[str, PermissionRequested] = field(default_factory=dict)
    open_jobs: dict[str, BackgroundStarted] = field(default_factory=dict)
    last_step: ModelStepCompleted | None = None
    workspace_identity: str | None = None
    cwd: str | None = None


_SURVEYED = frozenset(
    {
        RunOpened,
        ContinuationStarted,
        RunEnded,
        CancelRequested,
        PermissionRequested,
        PermissionDecided,
        PermissionClosed,
        BackgroundStarted,
        BackgroundSettled,
        WorkspaceTransitioned,
        WorkspaceRenewed,
    }
)


def survey(events: Sequence[RunEvent]) -> Survey:
    """Go over a run's events once."""
    seen = Survey(identities=_identities(events))
    # Exact types: `isinstance` is slow on pydantic models, and most events are none of these.
    for event in [event for event in events if type(event) in _SURVEYED]:
        if type(event) is RunOpened or type(event) is ContinuationStarted:
            seen.workspace_identity, seen.cwd = event.workspace_identity, event.cwd
        elif type(event) is RunEnded:
            seen.terminals.append(event)
        elif type(event) is PermissionRequested:
            seen.open_permissions[event.request_id] = event
        elif type(event) is PermissionDecided or type(event) is PermissionClosed:
            seen.open_permissions.pop(event.request_id, None)
        elif type(event) is BackgroundStarted:
            if not event.detached:
                seen.open_jobs[event.handle_id] = event
        elif type(event) is BackgroundSettled:
            seen.open_jobs.pop(event.handle_id, None)
        elif type(event) is WorkspaceTransitioned:
            seen.workspace_identity, seen.cwd = event.to_identity, event.path
        elif type(event) is WorkspaceRenewed:
            seen.workspace_identity = event.to_identity
        elif type(event) is CancelRequested:
            seen.cancel_requested = True
    seen.last_step = next((event for event in reversed(events) if type(event) is ModelStepCompleted), None)
    return seen


def _identities(events: Sequence[RunEvent]) -> int:
    if not events:
        return 0
    home = events[0]
    invocation_id, turn_id, run_id, session_id = home.invocation_id, home.turn_id, home.run_id, home.session_id
    strangers = {
        event.identity
        for event in events
        if event.invocation_id != invocation_id
        or event.turn_id != turn_id
        or event.run_id != run_id
        or event.session_id != session_id
    }
    return 1 + len(strangers)
