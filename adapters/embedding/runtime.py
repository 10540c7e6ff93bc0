"""One store, opened by an embedding program, with the agent that works in it. SPEC section 17."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from ...application.agent import Agent
from ...application.in_thread import in_thread, waited_out
from ...application.repair_report import RepairReport, RepairStep
from ...domain.identifiers import SessionId, parse_id
from ..composition import Composition
from ..opened_store import OpenedStore
from ..settings import Settings
from .living_turns import LivingTurns
from .own_process import OpenedBeforeFork, OwnProcess
from .parts import Keep, Model, Permission, Tools, catalog_of, gate_of, model_of, placed
from .session import Session


class Runtime:
    """An open store, and the agent that works in it; of `open`, an asynchronous context manager, entered once.

    Attributes:
        parts: the composition: a provider is overridden before the runtime is entered, see `docs/library.md`.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | Settings,
        *,
        workspace: str | os.PathLike[str] | None = None,
        model: Model = None,
        tools: Tools = (),
        system_prompt: str = "",
        permission: Permission = "allow",
        checkpoints: Keep = "auto",
    ) -> None:
        settings = store if isinstance(store, Settings) else Settings(Path(store).absolute())
        self._opened = OpenedStore(settings)
        self.parts: Composition = self._opened.parts
        self._model = model
        self._catalog = catalog_of(tools)
        self._gate = gate_of(permission)
        self._system_prompt = system_prompt
        self._workspace = workspace
        self._checkpoints = checkpoints
        self._agent: Agent | None = None
        self._own = OwnProcess()
        self._tasks: TaskGroup | None = None
        self._turns: LivingTurns
        self._sessions: WeakValueDictionary[SessionId, Session] = WeakValueDictionary()

    async def __aenter__(self) -> Self:
        """Open the store; it is made where there is none, in a folder that is there.

        Raises:
            StoreError: it cannot be opened.
            WorkspaceUnusable: the folder cannot be the workspace.
            ProviderUnusable, ValueError: there is no such model, or its key is missing.
        """
        if self._tasks is not None:
            raise RuntimeError("a runtime is entered once")
        self._own = OwnProcess()
        model = model_of(self._model)
        await in_thread(self._open, undo=lambda _: self._opened.close())
        try:
            settings: Settings = self.parts.settings()
            self._agent = await to_thread.run_sync(
                placed,
                model,
                self._catalog,
                self._gate,
                self._system_prompt,
                self._workspace,
                settings.store,
                self.parts.workspaces(),
                self.parts.checkpoints,
                self._checkpoints,
            )
            self._turns = LivingTurns()
            self._tasks = anyio.create_task_group()
            await self._tasks.__aenter__()
        except BaseException:
            await in_thread(self._opened.close)
            raise
        return self

    def _open(self) -> None:
        self._opened.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Interrupt the turns that still run, close the store, and the lock last.

        They raise `HostClosedMeanwhile`, and can be resumed; calls that somebody still carries out are left
        indeterminate.

        Raises:
            OpenedBeforeFork: the block is left in a fork of the process that opened it, and not by an error. Nothing is
                closed there.
        """
        if not self._own.is_this:
            if error is None:
                raise OpenedBeforeFork
            return
        tasks, agent = self._tasks, self._agent
        assert tasks is not None
        assert agent is not None
        try:
            tasks.cancel_scope.cancel()
            cancelled = await waited_out(self._turns.end)
            await tasks.__aexit__(None, None, None)
            if cancelled is not None:
                raise cancelled
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    await agent.provider.aclose()
            finally:
                await in_thread(self._opened.close)

    @property
    def agent(self) -> Agent:
        """What runs are executed with.

        Raises:
            RuntimeError: the runtime is not open.
            OpenedBeforeFork: it was opened by the process that this one was forked from.
        """
        self._own.check()
        if self._agent is None:
            raise RuntimeError("the runtime is not open: use it as `async with`")
        return self._agent

    def session(self, session_id: str | None = None) -> Session:
        """A conversation; the same object for the same name, while somebody holds it. Nothing is read or written.

        Args:
            session_id: 1 to 200 characters, none of them a control character; None for a new one with a fresh name.

        Raises:
            RuntimeError: the runtime is not open.
            ValueError: it cannot be a name.
        """
        if self._tasks is None:
            raise RuntimeError("the runtime is not open: use it as `async with`")
        named: SessionId = (
            self.parts.ids().fresh(SessionId) if session_id is None else SessionId(parse_id(session_id, "session id"))
        )
        known = self._sessions.get(named)
        if known is None:
            known = self._sessions[named] = Session(named, self.parts, self.agent, self._tasks, self._turns)
        return known

    async def repair(self, progress: Callable[[RepairStep], None] = lambda step: None) -> RepairReport:
        """Bring everything that dead processes left open in this store to a clear end; idempotent. SPEC section 11.

        Running and resuming repair their own session first; a program that hosts many repairs all of them at its start.

        Args:
            progress: told after each batch, from a thread.

        Raises:
            StoreUnavailable, StoreFull, StoreNotAdopted: the store could not be written; doing it again goes on.
        """
        report: RepairReport = await to_thread.run_sync(partial(self.parts.repair_everything(), progress))
        return report


def open_runtime(
    store: str | os.PathLike[str] | Settings,
    *,
    workspace: str | os.PathLike[str] | None = None,
    model: Model = None,
    tools: Tools = (),
    system_prompt: str = "",
    permission: Permission = "allow",
    checkpoints: Keep = "auto",
) -> Runtime:
    """Open a store for one program: `async with safepoint.open("agent.db", tools=[pay]) as runtime`. SPEC section 17.

    Args:
        store: the database file; it is made where there is none. Or settings that name it, with what else they say.
        workspace: the folder that the tools work in; it gets a marker, by which it is known again. None where they work
            in no folder.
        model: a provider, or `openai:NAME`, `anthropic:NAME`, `scripted:FILE`; for a loop of one's own a `NamedModel`,
            or None.
        tools: functions, declared with `tool` or not (then they promise nothing); `contract`s of tools that a loop of
            one's own carries out; or a catalog.
        system_prompt: of the model. A resume with another one is parked.
        permission: `allow`: every tool that is given here, but no repeat of an effect that is not settled. `ask`: what
            may have an effect waits for a person's `Session.decide`, or for `safepoint approve`. `deny`: nothing but
            reading. Or a gate of one's own.
        checkpoints: whether new turns are bound to the content of the workspace, which a resume compares (see
            `docs/workspace.md`). `auto`: where Git can keep it and it is not large. `git`: else nothing is begun.

    Raises:
        ToolDefinitionError: a tool cannot be one as it is declared.
        ValueError: there is no such permission.
    """
    return Runtime(
        store,
        workspace=workspace,
        model=model,
        tools=tools,
        system_prompt=system_prompt,
        permission=permission,
        checkpoints=checkpoints,
    )
