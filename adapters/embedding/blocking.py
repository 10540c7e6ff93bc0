"""The synchronous twin, for scripts: the same runtime on an event loop of its own, in a thread. SPEC section 17."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from ...application.repair_report import RepairReport
from ..composition import Composition
from ..settings import Settings
from .blocking_session import SyncSession
from .own_process import OpenedBeforeFork
from .parts import Keep, Model, Permission, Tools
from .portal import Portal
from .runtime import Runtime


class SyncRuntime:
    """As `Runtime`, for synchronous code: `with safepoint.open_sync(...) as runtime`.

    Attributes:
        parts: the composition: a provider is overridden before the runtime is entered.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._portal: Portal | None = None
        self.parts: Composition = runtime.parts

    def __enter__(self) -> Self:
        """See `Runtime.__aenter__`."""
        portal = Portal()
        try:
            self._opened = portal.opened(self._runtime)
            self._opened.__enter__()
        except BaseException:
            portal.close(cancel_remaining=True)
            raise
        self._portal = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See `Runtime.__aexit__`; in a fork of the process that opened it nothing is closed.

        Raises:
            OpenedBeforeFork: the block is left in such a fork, and not by an error.
        """
        portal = self._open_portal()
        if portal.is_forked:
            if error is None:
                raise OpenedBeforeFork
            return
        try:
            portal.end_left(but=self._opened)
            self._opened.__exit__(kind, error, traceback)
        finally:
            portal.close(cancel_remaining=error is not None)

    @property
    def beneath(self) -> tuple[Runtime, Portal]:
        """The runtime and the way to its event loop, for adapters of synchronous frameworks.

        Raises:
            RuntimeError: it is not open.
        """
        return self._runtime, self._open_portal()

    def session(self, session_id: str | None = None) -> SyncSession:
        """See `Runtime.session`."""
        portal = self._open_portal()
        return SyncSession(portal.call(self._runtime.session, session_id), portal)

    def repair(self) -> RepairReport:
        """See `Runtime.repair`."""
        return self._open_portal().call(self._runtime.repair)

    def _open_portal(self) -> Portal:
        if self._portal is None:
            raise RuntimeError("the runtime is not open: use it as `with`")
        return self._portal


def open_sync(
    store: str | os.PathLike[str] | Settings,
    *,
    workspace: str | os.PathLike[str] | None = None,
    model: Model = None,
    tools: Tools = (),
    system_prompt: str = "",
    permission: Permission = "allow",
    checkpoints: Keep = "auto",
) -> SyncRuntime:
    """As `open`, for a script without an event loop: `with safepoint.open_sync("agent.db") as runtime`.

    Args:
        store, workspace, model, tools, system_prompt, permission, checkpoints: as `open` takes them.

    Raises:
        ToolDefinitionError: a tool cannot be one as it is declared.
        ValueError: there is no such permission.
    """
    return SyncRuntime(
        Runtime(
            store,
            workspace=workspace,
            model=model,
            tools=tools,
            system_prompt=system_prompt,
            permission=permission,
            checkpoints=checkpoints,
        )
    )
