"""Whether a folder that is at hand is the workspace of a run, or may be a copy of it. SPEC section 16, ADR 0070."""

from __future__ import annotations

from typing import NamedTuple

from ..domain.events.run import ContinuationStarted, RunOpened
from ..domain.identifiers import RunId
from ..domain.planning.facts import SegmentFacts
from ..ports.event_store import EventReader
from ..ports.workspace import WorkspaceIdentity, WorkspaceSeen
from .lineage import reading_of


class RunsPlace(NamedTuple):
    """Where a run worked, by its facts, and which workspace that was; None where nothing says it."""

    folder: str | None
    identity: str | None


def is_elsewhere_too(workspaces: WorkspaceIdentity, seen: WorkspaceSeen, recorded: str) -> bool:
    """Whether the folder that a run worked in is still there with the same identity: then this one is no move."""
    there = workspaces.observe(recorded) if recorded != seen.canonical_path else None
    return isinstance(there, WorkspaceSeen) and (there.identity, there.canonical_path) == (seen.identity, recorded)


def place_of_operations(reader: EventReader, run_id: RunId, opening: RunOpened | ContinuationStarted) -> RunsPlace:
    """Where to look for what the operations of a run did: where it worked, or what a person has said to be that folder.

    A folder that was made for a run to go on in apart is another one: its operations were carried out before.

    Raises:
        StoreUnavailable: it could not be looked at.
    """
    begun = RunsPlace(opening.cwd, opening.workspace_identity)
    reading = reading_of(reader, run_id)
    if not isinstance(reading, SegmentFacts):
        return begun  # whoever looks at the run is told
    ended = RunsPlace(reading.survey.cwd, reading.survey.workspace_identity)
    moved_alone, renamed_alone = ended.identity == begun.identity, ended.folder == begun.folder
    return ended if moved_alone or renamed_alone else begun
