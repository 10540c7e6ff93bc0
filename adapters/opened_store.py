"""One opened store with the use cases over it; and the order in which it is closed. SPEC sections 15 and 17."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ..application.ownership import SessionOwnership
from ..application.paging import every
from ..domain.errors import SafepointError
from ..domain.identifiers import IncarnationId
from ..ports.views import OperationRow
from .composition import Composition
from .settings import Settings

if TYPE_CHECKING:
    from ..application.auto_resume import Automatic
    from ..application.host import Host, HostParts
    from ..application.repair_report import RepairStep


class OpenedStore:
    """One store, opened by this process, and the use cases over it; a context manager.

    What was opened is closed in reverse order, the incarnation's lock last, also when opening failed half way.

    Attributes:
        parts: the composition; a test or an embedder overrides a provider before the runtime is entered.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.parts = Composition(settings=settings)
        self.parts.check_dependencies()
        self._closing = ExitStack()
        self._ownership: SessionOwnership | None = None
        self._keep_lock_file = True

    def __enter__(self) -> Self:
        """Open the store; nothing is owned yet.

        Raises:
            StoreError: it cannot be opened; nothing was left behind.
        """
        try:
            store = self.parts.store()
            self._closing.callback(self._leave)
            self._closing.callback(store.close)
            self._ownership = self.parts.ownership()
            self._closing.callback(self._look_whether_needed_as_proof)
            self._closing.callback(self.parts.incarnations().stop_hearing)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def host(
        self,
        automatic: Automatic | None = None,
        *,
        progress: Callable[[RepairStep], None] = lambda step: None,
        drain_seconds: float | None = None,
    ) -> Host:
        """This store as a host, not opened yet: repaired strictly before it is ready. It is closed with the host.

        Args:
            automatic: how interrupted runs are continued, where the settings enable that.
            progress: told after each batch of repair.
            drain_seconds: how long live runs are waited for at the end; by default as long as a host does.
        """
        from ..application.host import DRAIN_SECONDS, Host

        enabled = self.settings.auto_resume_enabled()
        return Host(
            self._open_parts,
            self.close,
            automatic=automatic if enabled else None,
            progress=progress,
            drain_seconds=DRAIN_SECONDS if drain_seconds is None else drain_seconds,
        )

    def _open_parts(self) -> HostParts:
        from ..application.host import HostParts

        self.__enter__()
        parts = self.parts
        return HostParts(
            parts.repair_everything(),
            parts.run_turn(),
            parts.resume_run(),
            parts.ownership(),
            parts.store().views,
            parts.sink(),
        )

    @property
    def deaf(self) -> str | None:
        """Why a `cancel` from another process cannot be heard here, None while it can or nothing is owned."""
        deaf: str | None = self.parts.incarnations().deaf
        return deaf

    def close(self) -> None:
        """Stop listening, close the store, end this life; idempotent."""
        self._closing.close()

    def _leave(self) -> None:
        """End this life as soon as no tool lives on in a thread of this process: until then it has not ended."""
        if self._ownership is not None:
            leave = partial(self._ownership.leave, keep_lock_file=self._keep_lock_file)
            self.parts.live_operations().when_nothing_lives(leave)

    def _look_whether_needed_as_proof(self) -> None:
        """The lock file stays while a session names this life as its owner, or a delivery of it has no outcome.

        Without it, nobody could ever see that this process has ended. In doubt it stays.
        """
        ownership, store = self._ownership, self.parts.store()
        if ownership is None or not ownership.begun:
            return
        me = ownership.incarnation.incarnation_id
        try:
            owned = every(lambda after: store.owned_sessions(after=after), "", lambda row: row.session_id)
            open_ = every(lambda after: store.views.unsettled(after=after), None, lambda row: row.key)
            live = self.parts.live_operations()
            self._keep_lock_file = (
                len(live) > 0
                or any(row.incarnation_id == me for row in owned)
                # Whoever only repaired need not go through all that others left in doubt.
                or (live.any_began and any(row.outcome_event_id is None and self._delivered(row, me) for row in open_))
            )
        except SafepointError:
            return

    def _delivered(self, row: OperationRow, me: IncarnationId) -> bool:
        """Whether this life dispatched an operation, or delivered it again, of which its row has only the event."""
        if row.incarnation_id == me:
            return True
        if row.redeliveries_event_id is None or row.run_id is None:
            return False
        run = self.parts.ledger().run(row.run_id)
        return any(one.incarnation_id == me for one in run.deliveries_of(row.operation_id))
