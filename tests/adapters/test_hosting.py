"""A runtime as a host, over a real store: what is opened, repaired, given back, and when the lock goes. SPEC 15, 17."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from safepoint.adapters.memory.model_provider import PlannedModel
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.adapters.settings import AUTO_RESUME_VARIABLE, RESUME_VARIABLE, Settings
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.application.agent import Agent
from safepoint.application.auto_resume import Automatic, Interrupted
from safepoint.application.host import Host
from safepoint.application.host_phases import Phase
from safepoint.application.resume_run import Parked
from safepoint.application.run_agent import Screen
from safepoint.domain.errors import StoreError
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import OperationId, SessionId
from safepoint.domain.reasons import ParkReason
from safepoint.ports.incarnations import Incarnation, Liveness
from safepoint.ports.workspace import WorkspaceSeen

from ..domain.facts import Facts


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def leave_open(store: Path, session: str = "s", *, parent: Facts | None = None, ended: bool = False) -> Facts:
    """A run that its process leaves open, or ended and did not give up."""
    with OpenedStore(Settings(store)) as runtime:
        owned = runtime.parts.ownership().own(SessionId(session))
        facts = Facts(f"r-{session}", session=session, incarnation=owned.incarnation_id, epoch=owned.epoch)
        command = facts.open_run()
        if parent is not None:
            parents = {"parent_session_id": parent.session_id, "parent_run_id": parent.run_id}
            opened = facts.opened(**parents, parent_operation_id=parent.operation("c"))
            command = facts.open_run(opened=opened, admitted=facts.admitted("child"))  # type: ignore[arg-type]
        runtime.parts.ledger().execute(command)
        if ended:
            runtime.parts.ledger().execute(facts.end(RunStatus.COMPLETED))
        runtime.parts.ownership().keep(owned)
    return facts


def status(store: Path, session: str) -> tuple[str | None, str | None]:
    with OpenedStore(Settings(store, read_only=True)) as runtime:
        row = runtime.parts.store().views.session(SessionId(session))
        assert row is not None
        return row.head_status, row.head_failure_class


def liveness(store: Path, incarnation: Incarnation) -> Liveness:
    """What another process sees."""
    return FileLockIncarnations(Settings(store).locks).probe(incarnation)


async def opened_and_closed(host: Host) -> None:
    async with host:
        pass


def test_a_host_repairs_what_was_left_and_is_ready_and_nothing_is_held_when_it_is_closed(store: Path) -> None:
    leave_open(store)
    runtime = OpenedStore(Settings(store))
    host = runtime.host()
    lives: list[tuple[Phase, Liveness]] = []

    async def work() -> None:
        async with host:
            assert host.report.runs_closed == 1
            me = runtime.parts.ownership().incarnation
            lives.append((host.phase, liveness(store, me)))
        lives.append((host.phase, liveness(store, me)))
        runtime.close()

    anyio.run(work)
    assert lives == [(Phase.READY, Liveness.ALIVE), (Phase.CLOSED, Liveness.COULD_NOT_LOOK)]  # its file is gone
    assert status(store, "s") == ("failed", "app_restarted")


def test_an_opening_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").mkdir()
    host = OpenedStore(Settings(tmp_path / "store.sqlite")).host()
    with pytest.raises(StoreError):
        anyio.run(opened_and_closed, host)
    assert host.phase is Phase.CLOSED
    assert [path.name for path in tmp_path.iterdir()] == ["store.sqlite"]


def test_the_lock_is_held_until_no_tool_lives_on_in_a_thread_of_the_process(store: Path) -> None:
    runtime = OpenedStore(Settings(store))
    with runtime:
        me = runtime.parts.ownership().incarnation
        live = runtime.parts.live_operations()
        for operation in ("one", "two"):
            live.began(OperationId(operation), SessionId("s"))
    runtime.close()
    assert liveness(store, me) is Liveness.ALIVE
    live.ended(OperationId("one"))
    assert liveness(store, me) is Liveness.ALIVE
    live.ended(OperationId("two"))
    assert liveness(store, me) is Liveness.DEAD


@pytest.mark.parametrize(
    ("setting", "environment", "enabled"),
    [
        (None, {}, False),
        (None, {AUTO_RESUME_VARIABLE: "1"}, True),
        (None, {AUTO_RESUME_VARIABLE: "0"}, False),
        (True, {}, True),
        (False, {AUTO_RESUME_VARIABLE: "1"}, False),
        (True, {RESUME_VARIABLE: "0"}, False),
        (None, {AUTO_RESUME_VARIABLE: "1", RESUME_VARIABLE: "1"}, True),
        (None, {RESUME_VARIABLE: "1"}, False),
    ],
)
def test_auto_resume_is_a_setting_of_its_own(
    store: Path, setting: bool | None, environment: dict[str, str], enabled: bool
) -> None:
    leave_open(store)
    settings = Settings(store, auto_resume=setting, environment=environment)
    asked: list[Interrupted] = []
    host = OpenedStore(settings).host(Automatic(asked.append))

    async def work() -> None:
        async with host:
            await host.recovered()

    anyio.run(work)
    assert settings.auto_resume_enabled() is enabled
    assert asked == ([Interrupted(SessionId("s"), Facts("r-s").run_id)] if enabled else [])


def test_a_command_on_a_session_repairs_the_sessions_of_its_child_runs(store: Path) -> None:
    parent = leave_open(store, "s")
    leave_open(store, "child", parent=parent)
    leave_open(store, "other")
    with OpenedStore(Settings(store)) as runtime:
        runtime.parts.cancel_run()(SessionId("s"), "Ada")
    assert status(store, "child") == ("cancelled", None)
    assert status(store, "s") == ("cancelled", None)
    assert status(store, "other") == (None, None)


def test_a_resume_that_parks_repairs_the_sessions_of_child_runs_all_the_same(store: Path) -> None:
    parent = leave_open(store, "s", ended=True)
    leave_open(store, "child", parent=parent)
    with OpenedStore(Settings(store)) as runtime:
        seen = runtime.parts.workspaces().ensure(str(store.parent))
        assert isinstance(seen, WorkspaceSeen)
        agent = Agent(PlannedModel([]), FunctionCatalog([]), DenyGate(), "", store.parent, seen.identity)
        parked = anyio.run(runtime.parts.resume_run(), SessionId("s"), agent, Screen())
    assert isinstance(parked, Parked)
    assert ParkReason.RESUME_CANDIDATE_MISSING in parked.codes
    assert status(store, "child") == ("failed", "app_restarted")
