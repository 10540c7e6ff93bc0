"""The facts of an interrupted run that say what a person decided about drift, each with its notice. SPEC section 16."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from ..domain import canonical
from ..domain.commands import AppendLate
from ..domain.events.event import Json
from ..domain.events.outside import CheckpointAccepted, WorkspaceRebaselined, WorkspaceTransitioned
from ..domain.events.session import NoticePosted
from ..domain.identifiers import NoticeId, SessionId, derive_id
from ..domain.planning.facts import SegmentFacts
from ..domain.sentences import LISTED_MAX, SentenceId
from ..ports.checkpoints import Checkpoint
from ..ports.event_store import EventStore
from ..ports.failpoints import Failpoints
from ..ports.workspace import WorkspaceSeen
from .ledger import CommandLedger
from .lineage import reading_of
from .ownership import Owned
from .spines import RunSpine, Spines

TRANSITIONED: Final = "workspace.transitioned"
_PATHS_RECORDED_MAX: Final = 1_000
_PATHS_CHARS_MAX: Final = 64_000
"""Of all names together, in a fact and in what the model is told: names may be long, and an event has its bound."""
_SEPARATOR: Final = re.compile(r"[,\r\n]")
_ALL_FILES: Final = "every file that you rely on"


class DriftFacts:
    """Writes behind the end of the run that is interrupted; whoever does owns its session, and planned before.

    Raises (all that write):
        StoreError, WriteRefused: it could not be recorded; deciding again is safe.
    """

    def __init__(self, store: EventStore, ledger: CommandLedger, spines: Spines, failpoints: Failpoints) -> None:
        self._store = store
        self._ledger = ledger
        self._spines = spines
        self._failpoints = failpoints

    def source(self, session_id: SessionId) -> SegmentFacts | None:
        """The interrupted run as it stands; None where there is none, or it cannot be read."""
        head = self._ledger.session(session_id).head
        if head is None:
            return None
        with self._store.snapshot() as reader:
            reading = reading_of(reader, head.run_id)
        return reading if isinstance(reading, SegmentFacts) else None

    def rebaselined(
        self,
        owned: Owned,
        source: SegmentFacts,
        workspace_identity: str,
        kept: Checkpoint,
        *,
        epoch: int,
        paths: tuple[str, ...],
        total: int,
        by: str,
    ) -> None:
        """The present content is the baseline.

        Args:
            epoch: of the new baseline.
            paths: that differed, as far as they are known; `total` is how many there are.
            by: who accepted it.
        """
        fact = WorkspaceRebaselined(
            **self._spine(source),
            workspace_identity=workspace_identity,
            workspace_epoch=epoch,
            **kept._asdict(),
            changed_paths=_bounded(paths),
        )
        told: dict[str, Json] = {"paths": _to_read_again(_bounded(paths), max(total, len(paths))), "by": by}
        notice = self._notice(owned, fact.event_id, SentenceId.WORKSPACE_REBASELINED, told)
        self._write(owned, source, fact, notice)

    def transitioned(
        self,
        owned: Owned,
        source: SegmentFacts,
        from_identity: str,
        workspace: WorkspaceSeen,
        kept: Checkpoint,
        *,
        epoch: int,
        by: str,
    ) -> None:
        """The run goes on in another folder, which is then bound to what it holds.

        Args:
            workspace: the other folder.
            kept: what it holds.
            epoch: of the baseline, which stays.
            by: who decided it.
        """
        moved = WorkspaceTransitioned(
            **self._spine(source),
            from_identity=from_identity,
            to_identity=workspace.identity,
            workspace_epoch=epoch,
            path=workspace.canonical_path,
            checkpoint_ref=kept.ref,
        )
        told: dict[str, Json] = {"path": workspace.canonical_path, "by": by}
        notice = self._notice(owned, moved.event_id, SentenceId.WORKSPACE_TRANSITIONED, told)
        self._write(owned, source, moved, notice)
        self._failpoints.hit(TRANSITIONED)
        now = self.source(owned.session_id)
        assert now is not None
        accepted = CheckpointAccepted(
            **self._spine(source),
            workspace_identity=workspace.identity,
            workspace_epoch=epoch,
            high_water=now.ref.high_water,
            digest=now.ref.digest,
            **kept._asdict(),
        )
        self._write(owned, source, accepted, None)

    def _spine(self, source: SegmentFacts) -> RunSpine:
        assert source.opening is not None
        return self._spines.run(source.opening.identity)

    def _notice(self, owned: Owned, of: str, sentence: SentenceId, told: dict[str, Json]) -> NoticePosted:
        return NoticePosted(
            **self._spines.session(owned.session_id),
            notice_id=NoticeId(derive_id(of, "workspace")),
            sentence_id=sentence,
            parameters=told,
        )

    def _write(
        self,
        owned: Owned,
        source: SegmentFacts,
        fact: WorkspaceRebaselined | WorkspaceTransitioned | CheckpointAccepted,
        notice: NoticePosted | None,
    ) -> None:
        self._ledger.execute(AppendLate(*owned.guard, source.ref.run_id, fact, notice=notice))


def _bounded(paths: Sequence[str]) -> tuple[str, ...]:
    ends = accumulate(map(len, paths[:_PATHS_RECORDED_MAX]))
    return tuple(path for path, end in zip(paths, ends, strict=False) if end <= _PATHS_CHARS_MAX)


def _to_read_again(paths: Sequence[str], total: int) -> list[Json]:
    """Names for a sentence: one that could be taken for several stands in quotes; what is not named is counted."""
    few = paths if total <= LISTED_MAX else paths[: LISTED_MAX - 1]
    named: list[Json] = [canonical.encode(path).decode() if _SEPARATOR.search(path) else path for path in few]
    if not named:
        return [_ALL_FILES]
    return [*named, f"and {total - len(named)} more"] if total > len(named) else named
