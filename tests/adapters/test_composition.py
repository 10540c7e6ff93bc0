"""The runtime: what it is made of, what it leaves behind, and that half of it can be closed as well."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest
from dependency_injector import errors, providers

from safepoint.adapters import late_parts
from safepoint.adapters.composition import Composition
from safepoint.adapters.failpoints.null import NoFailpoints
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.settings import Settings
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.application.agent import Agent
from safepoint.application.cancel_run import Cancelled
from safepoint.application.live_runs import LiveRun
from safepoint.application.run_agent import Screen
from safepoint.domain.errors import StoreError, StoreMissing, StoreUnavailable
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import SessionId
from safepoint.ports.failpoints import Failpoints
from safepoint.ports.handover import Handler, Handover, HandoverUnavailable, Listener, Message, NoAnswer, Reply
from safepoint.ports.incarnations import Incarnation, Liveness

SESSION = SessionId("s1")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def settings(store: Path, *, read_only: bool = False, environment: Mapping[str, str] | None = None) -> Settings:
    return Settings(store, read_only=read_only, environment=environment or {})


def locks(store: Path) -> list[str]:
    folder = Path(f"{store}.locks")
    return sorted(path.suffix for path in folder.iterdir()) if folder.exists() else []


@tool()
def act() -> str:
    """Act."""
    return "acted"


def agent(folder: Path, *tools: Callable[..., object], model: PlannedModel | None = None) -> Agent:
    gate = AllowListGate([], DenyGate(), allow_all=True)
    return Agent(
        model or PlannedModel([says("done")]), FunctionCatalog(tools), gate, "system", folder, "workspace:v1:x"
    )


def turn(runtime: OpenedStore, with_agent: Agent, started: Callable[[LiveRun], None] = lambda live: None) -> RunStatus:
    async def main() -> RunStatus:
        result = await runtime.parts.run_turn()(SESSION, "hello", with_agent, Screen(), started)
        status: RunStatus = result.outcome.status
        return status

    return anyio.run(main)


def test_settings_are_demanded() -> None:
    with pytest.raises(errors.Error, match="settings"):
        Composition().check_dependencies()


def test_a_turn_runs_and_leaves_a_store_without_locks(store: Path, tmp_path: Path) -> None:
    with OpenedStore(settings(store)) as runtime:
        assert (
            turn(runtime, agent(tmp_path, act, model=PlannedModel([calls(("act", {})), says("done")]))) == "completed"
        )
        assert locks(store) == [".lock", ".sock"]
    assert locks(store) == []


def test_nothing_is_owned_before_it_is_needed(store: Path) -> None:
    with OpenedStore(settings(store)) as runtime:
        assert list(runtime.parts.inspect_sessions().every()) == []
    assert locks(store) == []


def test_closing_twice_is_closing_once(store: Path, tmp_path: Path) -> None:
    runtime = OpenedStore(settings(store))
    with runtime:
        turn(runtime, agent(tmp_path))
    runtime.close()
    runtime.close()


def test_what_cannot_be_opened_leaves_nothing(store: Path) -> None:
    store.mkdir()
    runtime = OpenedStore(settings(store))
    with pytest.raises(StoreError), runtime:
        pass
    runtime.close()
    assert list(store.parent.iterdir()) == [store]


def test_opening_that_fails_half_way_closes_what_was_opened(store: Path) -> None:
    runtime = OpenedStore(settings(store))

    def broken() -> object:
        raise RuntimeError("no ear today")

    runtime.parts.incarnations.override(providers.Callable(broken))
    with pytest.raises(RuntimeError, match="no ear today"), runtime:
        pass
    with pytest.raises(StoreUnavailable), runtime.parts.store().events.snapshot():
        pass


def test_reading_makes_no_store(store: Path) -> None:
    with pytest.raises(StoreMissing), OpenedStore(settings(store, read_only=True)):
        pass
    assert list(store.parent.iterdir()) == []


def test_a_reader_owns_nothing_and_writes_nothing(store: Path, tmp_path: Path) -> None:
    with OpenedStore(settings(store)) as runtime:
        turn(runtime, agent(tmp_path))
    before = store.read_bytes()
    with OpenedStore(settings(store, read_only=True)) as runtime:
        (summary,) = runtime.parts.inspect_sessions().every()
        assert summary.state == "completed"
        assert runtime.parts.verify_store()().sound
    assert store.read_bytes() == before
    assert locks(store) == []


class Stopped(BaseException):
    """The run is torn in the middle."""


def test_the_lock_file_stays_as_proof_of_death_while_a_session_names_this_life(store: Path, tmp_path: Path) -> None:
    """Without it, nobody could ever see that the owner of the open run has ended."""

    def tear(live: LiveRun) -> None:
        raise Stopped

    with OpenedStore(settings(store)) as runtime:
        with pytest.raises(Stopped):
            turn(runtime, agent(tmp_path), tear)
        owner = runtime.parts.ownership().incarnation
    assert locks(store) == [".lock"]
    with OpenedStore(settings(store)) as runtime:
        assert runtime.parts.incarnations().probe(owner) is Liveness.DEAD
        assert turn(runtime, agent(tmp_path)) == "completed"


def test_a_store_has_one_folder_of_locks_by_whatever_name(store: Path) -> None:
    other = store.with_name("other.sqlite")
    other.symlink_to(store)
    assert Settings(other).locks == Settings(store).locks


@pytest.mark.parametrize(("value", "enabled"), [(None, True), ("1", True), ("0", False), ("", True)])
def test_resuming_can_be_switched_off(store: Path, value: str | None, enabled: bool) -> None:
    environment = {} if value is None else {"SAFEPOINT_RESUME": value}
    assert settings(store, environment=environment).resume_enabled() is enabled


def test_failpoints_are_inert_unless_the_hooks_are_on(store: Path) -> None:
    off = OpenedStore(settings(store, environment={"SAFEPOINT_FAILPOINT": "P4"}))
    on = OpenedStore(settings(store, environment={"SAFEPOINT_FAILPOINT": "P4", "SAFEPOINT_TEST_HOOKS": "1"}))
    assert isinstance(off.parts.failpoints(), NoFailpoints)
    assert not isinstance(on.parts.failpoints(), NoFailpoints)


class Recording(Failpoints):
    """Keeps every point."""

    def __init__(self) -> None:
        self.points: list[str] = []

    def hit(self, point: str) -> None:
        """Note it."""
        self.points.append(point)


def test_the_store_tells_its_instants_and_names_the_commit_of_an_outcome(store: Path, tmp_path: Path) -> None:
    recording = Recording()
    runtime = OpenedStore(settings(store))
    runtime.parts.failpoints.override(providers.Object(recording))
    with runtime:
        turn(runtime, agent(tmp_path, act, model=PlannedModel([calls(("act", {})), says("done")])))
    assert recording.points.count("P5") == 1
    place = recording.points.index("P5")
    assert recording.points[place + 1] == "store.before_commit"
    assert recording.points.index("P2") < recording.points.index("P3") < place < recording.points.index("P6")
    assert any(point.startswith("store.statement") for point in recording.points)
    assert recording.points.count("P10") == 0


def test_another_process_stops_a_run_through_the_socket(store: Path, tmp_path: Path) -> None:
    with OpenedStore(settings(store)) as runtime:
        asked: list[Cancelled] = []

        @tool()
        async def wait() -> str:
            """Be stopped meanwhile."""
            await anyio.to_thread.run_sync(elsewhere)
            return "stopped"

        def elsewhere() -> None:
            with OpenedStore(settings(store)) as other:
                asked.append(other.parts.cancel_run()(SESSION, "somebody").cancelled)

        status = turn(runtime, agent(tmp_path, wait, model=PlannedModel([calls(("wait", {})), says("done")])))
    assert (asked, status) == ([Cancelled.STOPPING], RunStatus.CANCELLED)


class Deaf(Handover):
    """Cannot listen."""

    def serve(self, incarnation: Incarnation, handler: Handler) -> Listener:
        """Refuse."""
        raise HandoverUnavailable("the path is too long")

    def ask(self, incarnation: Incarnation, request: Message, timeout_seconds: float) -> Reply | NoAnswer:
        """Nobody is asked."""
        raise AssertionError


def test_who_cannot_listen_can_still_work_and_says_so(store: Path, tmp_path: Path) -> None:
    runtime = OpenedStore(settings(store))
    runtime.parts.handover.override(providers.Object(Deaf()))
    with runtime:
        assert runtime.deaf is None
        assert turn(runtime, agent(tmp_path)) == "completed"
        assert runtime.deaf == "the path is too long"


def test_importing_the_package_imports_no_library() -> None:
    code = (
        "import json, sys; before = set(sys.modules); import safepoint; print(json.dumps([*set(sys.modules) - before]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    loaded = {name.split(".")[0] for name in json.loads(ran.stdout)}
    assert not loaded & {"pydantic", "eventsourcing", "dependency_injector", "typer", "rich", "openai"}


def test_every_part_can_be_made(store: Path) -> None:
    """Most parts are imported when they are first made, by names that no checker reads."""
    with OpenedStore(settings(store)) as runtime:
        parts = runtime.parts.providers
        for provider in parts.values():
            provider()
    assert {"ledger", "plan_resume", "import_session"} <= parts.keys()


def test_a_part_that_is_imported_late_is_what_checkers_take_it_for() -> None:
    (choice,) = [node for node in ast.parse(Path(late_parts.__file__).read_text()).body if isinstance(node, ast.If)]
    imports = [node for node in choice.body if isinstance(node, ast.ImportFrom)]
    seen = {(name.asname, "." * node.level + (node.module or ""), name.name) for node in imports for name in node.names}
    made = set[tuple[str | None, str, str]]()
    for node in choice.orelse:
        assert isinstance(node, ast.Assign)
        assert isinstance(node.value, ast.Call)
        made.add((ast.unparse(node.targets[0]), *(ast.literal_eval(argument) for argument in node.value.args)))
    assert made == seen


def test_a_process_imports_only_what_its_first_dispatch_needs(store: Path) -> None:
    """A start costs what is imported: readers of foreign formats, planner and hosts wait until they are asked for."""
    program = (
        "import sys; from pathlib import Path\n"
        "from safepoint.adapters.opened_store import OpenedStore\n"
        "from safepoint.adapters.settings import Settings\n"
        "from safepoint.domain.identifiers import SessionId\n"
        f"with OpenedStore(Settings(Path({str(store)!r}))) as runtime:\n"
        "    runtime.parts.ledger(), runtime.parts.ownership().own(SessionId('s')), runtime.parts.spines()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    imported = {name for name in done.stdout.split() if name.startswith("safepoint.")}
    assert "safepoint.adapters.sqlite.store" in imported
    unneeded = ("interchange", "models", "tools", "planning", "replay", "host", "agent_loop", "resume_run", "cli")
    assert [name for name in imported if set(name.split(".")) & set(unneeded)] == []
