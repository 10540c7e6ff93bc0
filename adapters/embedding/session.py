"""One conversation, as an embedding program works with it. SPEC sections 14 and 17."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial

from anyio.abc import TaskGroup

from ...application.agent import Agent
from ...application.child_runs import ParentCall
from ...application.live_runs import LiveRun
from ...application.open_call import OpenCall
from ...application.reconcile_operations import Hands
from ...application.record_run import RecordRun
from ...application.resume_run import Continued, Parked
from ...application.run_turn import TurnResult
from ...application.turn_context import ALL, ContextChoice
from ...domain.events.run import Budgets
from ...domain.identifiers import SessionId
from ...domain.planning.facts import Drift
from ...ports.provider_failures import ProviderUnusable
from ...ports.tool_catalog import ToolContext
from ..composition import Composition
from ..models.named import NamedModel
from .happenings import Happenings, RunBegan, RunFinished, Watch, Watchers
from .living_turns import LivingTurns
from .overseen_session import OverseenSession, plan_request
from .recorded import RecordedRun


class Session(OverseenSession):
    """A conversation; of `Runtime.session`. All methods belong to the event loop of the runtime, in the process that
    opened it (`OpenedBeforeFork`).

    Attributes:
        session_id: names it in the store.
    """

    def __init__(
        self, session_id: SessionId, parts: Composition, agent: Agent, tasks: TaskGroup, turns: LivingTurns
    ) -> None:
        super().__init__(session_id, parts, agent)
        self._tasks = tasks
        self._turns = turns
        self._watchers = Watchers(session_id)

    # ---- we run the loop --------------------------------------------------------------------------------------------

    async def run(
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> TurnResult:
        """Run one user message to its end.

        Args:
            text: the user's message, not empty.
            context: what of the earlier turns the model is shown; by default all.
            budgets: what the turn may use, its continuations included.
            watch: told what happens, as `events` are; what it raises changes nothing, and is passed over.
            parent: the call that starts it as its child run: the context of a tool that is declared with `child_run`,
                or the open call of such a tool. A call starts one: asked for the same again, what it came to is
                answered.

        Raises:
            ChildRunExists: the call has started its child run, in another session or with another message, or that has
                not ended.
            ParentNotOpen: the call has its outcome.
            HostClosedMeanwhile: the runtime was left before the run had ended: it is interrupted, and can be resumed.
            SessionBusy: another process, or another task of this one, works on the session.
            SessionQuarantined: its newest run is damaged.
            HistoryUnusable, HistoryTooLarge: the earlier turns cannot be shown; nothing was begun.
            ProviderUnusable: the runtime was opened without a model that can be asked; nothing was begun.
            StoreError, WriteRefused: the run was not begun, or could not be recorded any further.
        """
        run_turn = self._parts.run_turn()
        self._check_asked()
        screen, tell = self._watchers.screen(watch)
        result: TurnResult | None = None
        try:
            result = await self._turns.run(
                partial(
                    run_turn,
                    self.session_id,
                    text,
                    self._agent,
                    screen,
                    partial(_began, tell),
                    context=context,
                    budgets=budgets,
                    parent=_parent(parent),
                )
            )
        finally:
            tell(RunFinished(self.session_id, None if result is None else result.outcome))
        return result

    async def resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
        watch: Watch | None = None,
    ) -> Parked | Continued:
        """Continue the interrupted run in a new one, or say why it is parked.

        Args:
            accept_drift: what may differ from what the run recorded: `tools`, `model`, `provider`, `account`,
                `system_prompt`, `protocol`, `permission_policy`. It is recorded, and told to the model.
            drop_permissions: open questions are dropped without an answer.
            adopt: a run that the store cannot vouch for is continued knowingly.
            reconcile: operations without outcome are looked at again first, which may run readers and deliver
                idempotent calls again.
            budgets: what the turn may use from now on, its lineage included; by default as recorded.
            watch: told what happens.

        Raises:
            ProviderUnusable, HostClosedMeanwhile: as `run`.
            StoreError, WriteRefused: the store could not be written, or the new run not be recorded any further.
            ValueError: `accept_drift` names what cannot be accepted.
        """
        request = plan_request(accept_drift, drop_permissions, adopt, budgets)
        resume_run = self._parts.resume_run()
        self._check_asked()
        screen, tell = self._watchers.screen(watch)
        result: Parked | Continued | None = None
        try:
            began = partial(_began, tell)
            result = await self._turns.run(
                partial(resume_run, self.session_id, self._agent, screen, began, request, reconcile=reconcile)
            )
        finally:
            tell(RunFinished(self.session_id, result.outcome if isinstance(result, Continued) else None))
        return result

    def _check_asked(self) -> None:
        if isinstance(self._agent.provider, NamedModel):
            raise ProviderUnusable(
                "The runtime has no model that it could ask.",
                "Open it with `model=`; for a loop of your own, take `Session.record` or `record_resume`.",
            )

    def events(self) -> Happenings:
        """See what happens here from now on, until the next run has finished: an asynchronous iterator.

        Partial text and thinking, calls and their answers, progress of tools. Nothing of it is durable: what counts is
        what is recorded.
        """
        return self._watchers.watch()

    # ---- you run the loop -------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def record(
        self,
        text: str,
        *,
        context: ContextChoice = ALL,
        budgets: Budgets | None = None,
        parent: ToolContext | OpenCall | None = None,
    ) -> AsyncIterator[RecordedRun]:
        """A new turn for a loop of one's own: `async with session.record("Pay the bill.") as run`.

        Left normally the run ends completed, by an exception it ends failed; cancelled, or killed, it is interrupted
        and can be resumed.

        Args:
            text: the user's message, not empty.
            context: what of the earlier turns the model is shown; by default all.
            budgets: what the turn may use, its continuations included; `RecordedRun.check` watches them.
            parent: the call that starts it as its child run, as `run` takes it.

        Raises:
            ChildRunExists: the call has started its child run; `error.found` says how that stands.
            ParentNotOpen: the call has its outcome.
            SessionBusy, SessionQuarantined, HistoryUnusable, HistoryTooLarge: nothing was begun.
            StoreError, WriteRefused: the run was not begun, or could not be recorded any further.
        """
        record: RecordRun = self._parts.record_run()
        begun = record.turn(
            self.session_id, text, self._agent, self._tasks, context=context, budgets=budgets, parent=_parent(parent)
        )
        async with begun as run:
            yield RecordedRun(run, self._agent)

    @asynccontextmanager
    async def record_resume(
        self,
        *,
        accept_drift: Iterable[Drift | str] = (),
        drop_permissions: bool = False,
        adopt: bool = False,
        reconcile: bool = False,
        budgets: Budgets | None = None,
    ) -> AsyncIterator[RecordedRun]:
        """The continuation of the interrupted run for a loop of one's own; its history is what the model is shown.

        Args:
            accept_drift, drop_permissions, adopt, reconcile, budgets: as `resume` takes them.

        Raises:
            ResumeParked: it is not continued; `error.parked` has every reason.
            StoreError, WriteRefused: the run was not begun, or could not be recorded any further.
            ValueError: `accept_drift` names what cannot be accepted.
        """
        request = plan_request(accept_drift, drop_permissions, adopt, budgets)
        hands = Hands(self._agent.catalog, self._agent.workspace) if reconcile else None
        record: RecordRun = self._parts.record_run()
        async with record.resume(self.session_id, self._agent, self._tasks, request, hands) as run:
            yield RecordedRun(run, self._agent)


def _parent(given: ToolContext | OpenCall | None) -> ParentCall | None:
    return None if given is None else ParentCall.of(given.context if isinstance(given, OpenCall) else given)


def _began(tell: Watch, live: LiveRun) -> None:
    identity = live.recorder.identity
    tell(RunBegan(identity.session_id, identity.run_id))
