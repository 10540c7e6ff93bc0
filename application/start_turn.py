"""Starts a new turn: the user's message, its history, and the right to call the provider. SPEC sections 12 and 14."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from anyio import to_thread

from ..domain.commands import OpenRun
from ..domain.errors import SafepointError, StoreDamaged, StoreUnavailable
from ..domain.events.model import HostMessage, UserMessage
from ..domain.events.run import TOOL_BOUNDARY_PROTOCOL, Context, Protocol, RunOpened
from ..domain.events.session import GrantPosted, RunAdmitted, RunKind, SessionOpened
from ..domain.identifiers import ExecutionIdentity, RunId
from ..domain.replay.context import told_of
from ..domain.replay.history import History
from ..domain.replay.items import Item
from ..domain.replay.origin import origin_of
from ..domain.sealing import DamagedEvent
from ..ports.event_store import EventStore
from .agent import Agent
from .async_ledger import AsyncLedger
from .ledger import Receipt
from .lineage import read_context, read_segment
from .ownership import Owned
from .spines import Spines
from .start_proof import StartAttempt, StartProof


class HistoryUnusable(SafepointError):
    """No history can be made of earlier turns; a person may leave those runs out.

    Attributes:
        run_ids: of the runs that are in the way.
    """

    def __init__(self, run_ids: tuple[RunId, ...]) -> None:
        super().__init__(f"the record of earlier runs cannot be shown to a model: {', '.join(run_ids)}")
        self.run_ids = run_ids


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that has its first commit.

    Attributes:
        history: what the provider is shown before the run's own items.
        grants: decisions of a person that the first commit took over.
    """

    identity: ExecutionIdentity
    owned: Owned
    receipt: Receipt
    proof: StartProof
    history: tuple[Item, ...]
    grants: tuple[GrantPosted, ...] = ()


class StartTurn:
    """Opens an ordinary run in a session that this process owns.

    Args:
        protocol: declared by every run; None where the store is not the durable T1/T2 sink (SPEC section 5).
    """

    def __init__(
        self,
        store: EventStore,
        ledger: AsyncLedger,
        spines: Spines,
        protocol: Protocol | None = TOOL_BOUNDARY_PROTOCOL,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._spines = spines
        self._protocol = protocol

    async def __call__(
        self, owned: Owned, agent: Agent, text: str, *, leave_out: frozenset[RunId] = frozenset()
    ) -> Begun:
        """Admit and open a run with its user message, in one commit.

        Args:
            owned: the right to write the session, which was repaired before.
            agent: what the run is executed with.
            text: the user's message, not empty.
            leave_out: damaged runs whose turns the person wants left out of the history.

        Raises:
            HistoryUnusable: an earlier turn cannot be shown.
            WriteRefused: the session is open, or has another owner.
            StoreError: as the ledger says.
        """
        session = await self._ledger.session(owned.session_id)
        head = None if session.head is None else session.head.run_id
        context, history = await to_thread.run_sync(partial(self._context, head, agent, leave_out))
        identity = self._spines.identity(owned.session_id)
        attempt = StartAttempt(self._command(owned, identity, agent, text, context))
        try:
            receipt, proof = await attempt(self._ledger)
        except StoreUnavailable:
            receipt, proof = await attempt(self._ledger)  # now it can be known whether the first one was kept
        assert proof is not None  # its ids are of this attempt alone, and it has not given the proof before
        granted = (await self._ledger.session(owned.session_id)).granted
        return Begun(identity, owned, receipt, proof, history, tuple(granted.values()))

    def _context(
        self, head: RunId | None, agent: Agent, leave_out: frozenset[RunId]
    ) -> tuple[Context | None, tuple[Item, ...]]:
        if head is None:
            return None, ()
        try:
            with self._store.snapshot() as reader:
                segment = read_segment(reader, head)
                if segment is None:
                    return None, ()
                earlier = read_context(reader, segment, leave_out)
        except DamagedEvent as damage:
            raise StoreDamaged(str(damage)) from damage
        if earlier.blocked:
            raise HistoryUnusable(tuple(run_id for run_id, _ in earlier.blocked))
        shown = History(origin_of(agent.profile()))
        for shown_segment in earlier.segments:
            shown.add(shown_segment)
        context = Context(previous=segment.ref, left_out=tuple(sorted(leave_out)), unsettled=earlier.unsettled)
        return context, shown.replay().items

    def _command(
        self, owned: Owned, identity: ExecutionIdentity, agent: Agent, text: str, context: Context | None
    ) -> OpenRun:
        opened = RunOpened(
            **self._spines.run(identity),
            cwd=str(agent.workspace),
            workspace_identity=agent.workspace_identity,
            profile=agent.profile(),
            protocol=self._protocol,
            incarnation_id=owned.incarnation_id,
            epoch=owned.epoch,
            context=context,
        )
        admitted = RunAdmitted(
            **self._spines.session(identity.session_id),
            run_id=identity.run_id,
            turn_id=identity.turn_id,
            invocation_id=identity.invocation_id,
            kind=RunKind.TURN,
        )
        told = () if context is None else told_of(context, 0)
        return OpenRun(
            owned.session_id,
            owned.incarnation_id,
            owned.epoch,
            opened=opened,
            message=UserMessage(**self._spines.run(identity), text=text),
            admitted=admitted,
            session_opened=SessionOpened(**self._spines.session(identity.session_id)),
            host_messages=tuple(
                HostMessage(
                    **self._spines.run(identity),
                    sentence_id=one.sentence_id,
                    parameters=one.parameters,
                    text=one.text,
                )
                for one in told
            ),
        )
