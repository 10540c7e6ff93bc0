"""Starts a new turn: the user's message, its history, and the right to call the provider. SPEC sections 12 and 14."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from anyio import to_thread

from ..domain.budgets import NOTHING, Used
from ..domain.commands import OpenRun
from ..domain.errors import StoreUnavailable, WriteRefused
from ..domain.events.model import HostMessage, UserMessage
from ..domain.events.run import TOOL_BOUNDARY_PROTOCOL, Budgets, BudgetSet, Protocol, RunOpened
from ..domain.events.session import GrantPosted, RunAdmitted, RunKind, SessionOpened
from ..domain.identifiers import ClaimId, ExecutionIdentity, RunId
from ..domain.replay.items import Item
from ..ports.checkpoints import Checkpoint, NotKept
from ..ports.event_store import EventStore
from .agent import Agent
from .async_ledger import AsyncLedger
from .child_runs import ParentCall
from .ledger import Receipt
from .ownership import Owned
from .spines import Spines
from .start_proof import StartAttempt, StartProof
from .turn_context import ALL, ContextChoice, MakeTurnContext, TurnContext

READ_MAX = 16
"""How often a session's history is read anew because the session moved on meanwhile."""


@dataclass(frozen=True, slots=True)
class BoundContent:
    """The content of the workspace that a run is bound to from its start. SPEC section 16.

    Attributes:
        kept: what the folder holds, kept already; None where that is still to be captured.
        epoch: of its baseline, 0 or more.
    """

    kept: Checkpoint | None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that has its first commit.

    Attributes:
        history: what the provider is shown before the run's own items.
        grants: decisions of a person that the first commit took over.
        budgets: what its turn may use, None where it is not bounded.
        used: what its lineage used before it.
        content: None where it is bound to none.
        not_bound: why it is bound to none, where it was to be if that is possible.
        claim_id: what a continuation was begun by, None of an ordinary run.
        parent: the call that started it, of a child run.
    """

    identity: ExecutionIdentity
    owned: Owned
    receipt: Receipt
    proof: StartProof
    history: tuple[Item, ...]
    grants: tuple[GrantPosted, ...] = ()
    budgets: Budgets | None = None
    used: Used = NOTHING
    content: BoundContent | None = None
    claim_id: ClaimId | None = None
    not_bound: NotKept | None = None
    parent: ParentCall | None = None


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
        self._context = MakeTurnContext(store)
        self._ledger = ledger
        self._spines = spines
        self._protocol = protocol

    async def __call__(
        self,
        owned: Owned,
        agent: Agent,
        text: str,
        choice: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ParentCall | None = None,
    ) -> Begun:
        """Admit and open a run with its user message, in one commit.

        Args:
            owned: the right to write the session, which was repaired before.
            agent: what the run is executed with.
            text: the user's message, not empty.
            choice: what a person or the host says of the history.
            budgets: what the turn may use, its continuations included.
            parent: the call that starts it, as a child run under the id that its T1 recorded.

        Raises:
            HistoryUnusable, HistoryTooLarge: the earlier turns cannot be shown.
            WriteRefused: the session is open, or has another owner.
            StoreError: as the ledger says.
        """
        identity = self._spines.identity(owned.session_id)
        if parent is not None:
            identity = identity._replace(run_id=parent.child_run)
        for _ in range(READ_MAX):
            context = await self._read(owned, identity.run_id, agent, text, choice)
            attempt = StartAttempt(self._command(owned, identity, agent, text, context, budgets, parent))
            try:
                receipt, proof = await attempt(self._ledger)
            except StoreUnavailable:
                receipt, proof = await attempt(self._ledger)  # now it can be known whether the first one was kept
            except WriteRefused:
                if await self._is_newest(owned, context):
                    raise
                continue  # a tool that nobody waits for any more told its outcome meanwhile: read that, too
            assert proof is not None  # its ids are of this attempt alone, and it has not given the proof before
            granted = tuple((await self._ledger.session(owned.session_id)).granted.values())
            return Begun(identity, owned, receipt, proof, context.history, granted, budgets, parent=parent)
        raise StoreUnavailable(f"the session moved on {READ_MAX} times while its history was read; try again")

    async def _read(self, owned: Owned, new_run: RunId, agent: Agent, text: str, choice: ContextChoice) -> TurnContext:
        session = await self._ledger.session(owned.session_id)
        head = None if session.head is None else session.head.run_id
        make = partial(self._context, owned.session_id, head, new_run, agent, text, choice, given_up=session.abandoned)
        return await to_thread.run_sync(make)

    async def _is_newest(self, owned: Owned, context: TurnContext) -> bool:
        """Whether the session still ends where the history that was read of it does."""
        head = (await self._ledger.session(owned.session_id)).head
        if head is None or context.recorded is None:
            return True
        read, run = context.recorded.previous, await self._ledger.run(head.run_id)
        return (read.run_id, read.high_water) == (head.run_id, run.sequence)

    def _command(
        self,
        owned: Owned,
        identity: ExecutionIdentity,
        agent: Agent,
        text: str,
        context: TurnContext,
        budgets: Budgets | None,
        parent: ParentCall | None,
    ) -> OpenRun:
        opened = RunOpened(
            **self._spines.run(identity),
            cwd=str(agent.workspace),
            workspace_identity=agent.workspace_identity,
            profile=agent.profile(),
            protocol=self._protocol,
            incarnation_id=owned.incarnation_id,
            epoch=owned.epoch,
            parent_session_id=None if parent is None else parent.session_id,
            parent_run_id=None if parent is None else parent.run_id,
            parent_operation_id=None if parent is None else parent.operation_id,
            context=context.recorded,
        )
        admitted = RunAdmitted(
            **self._spines.session(identity.session_id),
            run_id=identity.run_id,
            turn_id=identity.turn_id,
            invocation_id=identity.invocation_id,
            kind=RunKind.TURN if parent is None else RunKind.CHILD,
        )
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
                for one in context.told
            ),
            budget=None if budgets is None else BudgetSet(**self._spines.run(identity), budgets=budgets),
        )
