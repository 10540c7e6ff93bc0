"""What the facts of runs name outside the store: checkpoints, and the folders that runs worked in. SPEC section 16."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final

from ..domain.events.event import Event
from ..domain.events.outside import CheckpointAccepted, WorkspaceRebaselined, WorkspaceTransitioned
from ..domain.events.run import ContinuationStarted, RunOpened
from ..domain.forgetting import FORGOTTEN_TOPIC
from ..domain.identifiers import RunId, run_of, run_stream
from ..domain.sealing import DamagedEvent, StoredRecord
from ..domain.unsealing import event_of
from ..ports.checkpoints import Checkpoints, Kept, KeptCheckpoint, WhyUnsupported
from ..ports.event_store import EventReader
from ..ports.store_keeping import StoreKeeping
from .paging import every
from .run_checkpoints import why_not

_PAGE: Final = 200
_TOPICS: Final = frozenset(
    cls.topic
    for cls in (CheckpointAccepted, WorkspaceRebaselined, WorkspaceTransitioned, RunOpened, ContinuationStarted)
)
_SUSPECT: Final = b"workspace."
"""Stands in the bytes of every fact about a workspace, whatever damage made of its topic."""


@dataclass(slots=True)
class NamedContent:
    """What was named.

    Attributes:
        folders: where runs worked; `bound` are those of runs that name a checkpoint, `made` those that were made
            from one for a run to go on in.
    """

    refs: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)

    def add(self, reader: EventReader, run_id: RunId) -> bool:
        """Take in what a run names; False where a fact of it cannot be read. Its chain is not looked at."""
        readable, of_run = True, NamedContent()
        for row in _rows(reader, run_stream(run_id)):
            if row.topic == FORGOTTEN_TOPIC:
                continue
            try:
                if row.topic in _TOPICS or _SUSPECT in row.state:
                    of_run._take(event_of(row))
            except DamagedEvent:
                readable = False
        self.refs |= of_run.refs
        self.folders |= of_run.folders
        self.made |= of_run.made
        if of_run.refs:
            self.bound |= of_run.folders
        return readable

    def _take(self, event: Event) -> None:
        match event:
            case CheckpointAccepted() | WorkspaceRebaselined():
                self.refs.add(event.ref)
            case WorkspaceTransitioned():
                self.folders.add(event.path)
                if event.checkpoint_ref:
                    self.refs.add(event.checkpoint_ref)
                    self.made.add(event.path)
            case RunOpened() | ContinuationStarted():
                self.folders.add(event.cwd)
            case _:
                pass

    def is_used(self, path: str) -> bool:
        """Whether a run worked in a folder, or below it."""
        return any(PurePath(one).is_relative_to(path) for one in self.folders)

    def artifacts(self, checkpoints: Checkpoints) -> tuple[dict[str, KeptCheckpoint], tuple[tuple[str, str], ...]]:
        """Every checkpoint that is kept for one of the folders, by its ref, each with a folder by which it is reached;
        and the folders that could not be looked at, with the reason. One that is no repository, and of which no fact
        says that it was one, has none.
        """
        found: dict[str, KeptCheckpoint] = {}
        not_looked: list[tuple[str, str]] = []
        for folder in sorted(self.folders):
            answer = checkpoints.kept(folder)
            if isinstance(answer, Kept):
                found.update({one.checkpoint.ref: one._replace(folder=folder) for one in answer.checkpoints})
            elif folder in self.bound or getattr(answer, "why", None) is not WhyUnsupported.NOT_A_REPOSITORY:
                not_looked.append((folder, why_not(answer)))
        return found, tuple(not_looked)


def every_run(keeping: StoreKeeping) -> Iterator[RunId]:
    """All runs of a store, by id."""
    for stream in every(lambda after: keeping.streams(after=after), run_stream(RunId("")), lambda stream: stream):
        run_id = run_of(stream)
        if run_id is None:
            return
        yield run_id


def _rows(reader: EventReader, stream: str) -> Iterator[StoredRecord]:
    return every(lambda after: reader.read(stream, after=after, limit=_PAGE), 0, lambda row: row.version)
