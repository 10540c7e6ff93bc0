"""The facts of an interrupted run that say what a person decided about drift, each with its notice. SPEC section 16."""

from __future__ import annotations

from typing import Final

from ..domain.commands import AppendLate
from ..domain.events.event import Json
from ..domain.events.outside import CheckpointAccepted, WorkspaceRebaselined, WorkspaceTransitioned
from ..domain.events.session import NoticePosted
from ..domain.identifiers import NoticeId, SessionId, derive_id
from ..domain.planning.facts import SegmentFacts
from ..domain.sentences import SentenceId
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
        by: str,
    ) -> None:
        """The present content is the baseline.

        Args:
            epoch: of the new baseline.
            paths: that differed, as far as they are known.
            by: who accepted it.
        """
        fact = WorkspaceRebaselined(
            **self._spine(source),
            workspace_identity=workspace_identity,
            workspace_epoch=epoch,
            **kept._asdict(),
            changed_paths=paths[:_PATHS_RECORDED_MAX],
        )
        told: dict[str, Json] = {"paths": [*(paths or (_ALL_FILES,))], "by": by}
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
