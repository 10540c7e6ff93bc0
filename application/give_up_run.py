"""A person gives up a session's damaged run, so that the session may go on without it. SPEC section 11."""

from __future__ import annotations

from dataclasses import dataclass

from ..domain.commands import AbandonRun
from ..domain.errors import SafepointError, StoreDamaged
from ..domain.events.session import RunAbandoned
from ..domain.identifiers import OperationId, RunId, SessionId
from ..ports.event_store import EventStore
from .ledger import Ledger
from .ownership import Owned, SessionOwnership
from .repair_session import RepairKind, RepairSession
from .spines import Spines
from .states import readable


class NothingToGiveUp(SafepointError):
    """The session's newest run is not damaged: it is repaired, resumed or followed like any other."""

    def __init__(self, session_id: SessionId) -> None:
        super().__init__(f"the newest run of session {session_id} is not damaged")
        self.session_id = session_id


class SessionDamaged(SafepointError):
    """The session's own record is damaged, so that nothing can be written into it; `detail` says where."""

    def __init__(self, session_id: SessionId, detail: str) -> None:
        super().__init__(f"the record of session {session_id} itself is damaged: {detail}")
        self.session_id = session_id
        self.detail = detail


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What was given up.

    Attributes:
        last_good_sequence: up to where the run can be read.
        damage: what is wrong behind that; empty where it was given up before.
        watched: its operations whose effect the session watches from now on.
        before: it was given up before, and nothing was written.
    """

    session_id: SessionId
    run_id: RunId
    last_good_sequence: int
    damage: str
    watched: tuple[OperationId, ...]
    before: bool = False


class GiveUpRun:
    """Writes into the session that its damaged run is abandoned; the run itself stays as it is."""

    def __init__(
        self, store: EventStore, ledger: Ledger, ownership: SessionOwnership, repair: RepairSession, spines: Spines
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._ownership = ownership
        self._repair = repair
        self._spines = spines

    def __call__(self, session_id: SessionId, *, by: str, note: str) -> GivenUp:
        """Give the session's newest run up; it is then not open, and never a source of anything.

        Args:
            by, note: who gives it up, and why; for the record.

        Raises:
            NothingToGiveUp: it is not damaged. Nothing was written of it; what was left open was repaired.
            SessionDamaged: the session itself cannot be written.
            SessionBusy: its owner lives, or could not be looked at.
            StoreError: it could not be read or written; giving up again is safe.
        """
        with self._ownership.held(session_id) as owned:
            return self._give_up(owned, by, note)

    def _give_up(self, owned: Owned, by: str, note: str) -> GivenUp:
        quarantined = self._repair(owned).kind is RepairKind.QUARANTINED
        try:
            session = self._ledger.session(owned.session_id)
        except StoreDamaged as error:
            raise SessionDamaged(owned.session_id, error.detail) from error
        head = session.head
        if head is not None and head.run_id in session.abandoned:
            return self._given_up(owned, head.run_id, 0, "", before=True)
        if head is None or not quarantined:
            raise NothingToGiveUp(owned.session_id)
        with self._store.snapshot() as reader:
            run, damage, _ = readable(reader, head.run_id)
        abandoned = RunAbandoned(
            **self._spines.session(owned.session_id),
            run_id=head.run_id,
            by=by,
            note=note,
            last_good_sequence=run.sequence,
        )
        self._ledger.execute(AbandonRun(*owned.guard, head.run_id, abandoned))
        return self._given_up(owned, head.run_id, run.sequence, damage or "it has no event", before=False)

    def _given_up(self, owned: Owned, run_id: RunId, sequence: int, damage: str, *, before: bool) -> GivenUp:
        watched = self._ledger.session(owned.session_id).watched.values()
        operations = tuple(effect.operation_id for effect in watched if effect.run_id == run_id)
        return GivenUp(owned.session_id, run_id, sequence, damage, operations, before)
