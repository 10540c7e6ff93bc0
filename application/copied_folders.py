"""Whether a folder that is at hand is the workspace of a run, or may be a copy of it. SPEC section 16, ADR 0070."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ..domain.errors import SafepointError, StoreDamaged
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


def twin_at(workspaces: WorkspaceIdentity, seen: WorkspaceSeen, recorded: str) -> WorkspaceSeen | None:
    """The folder that a run worked in, where it is still there with the same identity: then this one is no move."""
    there = workspaces.observe(recorded) if recorded != seen.canonical_path else None
    if not isinstance(there, WorkspaceSeen):
        return None
    return there if (there.identity, there.canonical_path) == (seen.identity, recorded) else None


class WorkspaceCopied(SafepointError):
    """Two folders are one workspace, and nobody said which of them is a copy; nothing was begun.

    Attributes:
        folders: both, the one at hand last.
    """

    def __init__(self, other: str, here: str) -> None:
        super().__init__(f"the same marker is in {other} and in {here}")
        self.folders = (other, here)


class CopiedFolders:
    """Finds other folders with the marker of one, among those that runs of the store began in.

    Args:
        folders_of: names these, for a workspace.
    """

    def __init__(self, workspaces: WorkspaceIdentity, folders_of: Callable[[str], Sequence[str]]) -> None:
        self._workspaces = workspaces
        self._folders_of = folders_of

    def other(self, seen: WorkspaceSeen, recorded: str | None = None) -> str | None:
        """One that is there with the same marker; None where a person said that the one at hand is the workspace, and
        not that the other is, too.

        Args:
            recorded: where the run in question is by its facts: that it is there counts, whatever was said before.

        Raises:
            StoreUnavailable: it could not be looked at.
        """
        if recorded is not None and twin_at(self._workspaces, seen, recorded) is not None:
            return recorded
        known: Sequence[str] = ()
        with suppress(StoreDamaged):  # of the views, which are made again from the events: nobody knows one now
            known = self._folders_of(seen.identity)
        twins = (twin_at(self._workspaces, seen, folder) for folder in known)
        rivals = (one for one in twins if one is not None and (one.adopted or not seen.adopted))
        return next((one.canonical_path for one in rivals), None)

    def require_one(self, folder: str) -> None:
        """Make sure before a new turn that its folder is no copy, nor has one.

        Raises:
            WorkspaceCopied: it is, or has.
            StoreUnavailable: it could not be looked at.
        """
        seen = self._workspaces.observe(folder)
        if isinstance(seen, WorkspaceSeen) and (other := self.other(seen)) is not None:
            raise WorkspaceCopied(other, seen.canonical_path)


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
