"""Every implementation of `Supervisor` keeps its contract."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from safepoint.adapters.memory.supervisor import MemorySupervisor, Run
from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.domain.identifiers import OperationId
from safepoint.ports.contract_kit.supervisor import OPERATION, Commands, SupervisorContract
from safepoint.ports.supervised import Command, Overness, Progress
from safepoint.ports.supervisor import SupervisorUnavailable, WorkNotStarted

# Forks twice, closes every descriptor and waits for a file to vanish; the second fork makes no session of its own
# where the group is
# what is watched.
DETACH = """
import os, sys, time
path, own_session = sys.argv[1], sys.argv[2] == "own-session"
if os.fork() == 0:
    if own_session:
        os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1024)
        while os.path.exists(path):
            time.sleep(0.01)
    os._exit(0)
os.wait()
"""


class RealCommands(Commands):
    def __init__(self, marker: Path, *, own_session: bool) -> None:
        self._marker = marker
        self._how = "own-session" if own_session else "same-group"
        marker.touch()

    def print_and_exit(self, text: str, code: int) -> Command:
        return Command(("sh", "-c", 'printf %s "$1"; exit "$2"', "sh", text, str(code)))

    def run_until_ended(self) -> Command:
        return Command(("sleep", "300"))

    def leave_a_process(self) -> Command:
        return Command((sys.executable, "-c", DETACH, str(self._marker), self._how))

    def let_it_end(self) -> None:
        self._marker.unlink(missing_ok=True)


class TestProcessSupervisor(SupervisorContract):
    kind = "subreaper"

    @pytest.fixture
    def supervisor(self, tmp_path: Path) -> ProcessSupervisor:
        return ProcessSupervisor(tmp_path / "store.locks", containment_kind=self.kind)

    @pytest.fixture
    def observer(self, tmp_path: Path) -> ProcessSupervisor:
        return ProcessSupervisor(tmp_path / "store.locks", containment_kind=self.kind)

    @pytest.fixture
    def commands(self, tmp_path: Path) -> Iterator[RealCommands]:
        commands = RealCommands(tmp_path / "marker", own_session=self.kind == "subreaper")
        yield commands
        commands.let_it_end()


class TestProcessSupervisorByProcessGroup(TestProcessSupervisor):
    kind = "process_group"


class MemoryCommands(Commands):
    def __init__(self) -> None:
        self._may_end = threading.Event()

    def print_and_exit(self, text: str, code: int) -> Command:
        return Command(("print", text, str(code)))

    def run_until_ended(self) -> Command:
        return Command(("sleep",))

    def leave_a_process(self) -> Command:
        return Command(("detach",))

    def let_it_end(self) -> None:
        self._may_end.set()

    def programs(self) -> MemorySupervisor:
        return MemorySupervisor({"print": self._print, "sleep": self._sleep, "detach": self._detach})

    def _print(self, run: Run) -> int:
        assert isinstance(run.work, Command)
        run.stdout += run.work.argv[1].encode()
        return int(run.work.argv[2])

    def _sleep(self, run: Run) -> None:
        run.asked_to_end.wait(60.0)

    def _detach(self, run: Run) -> int:
        left = run.leave_running("daemon")

        def finish_when_it_may() -> None:
            self._may_end.wait(60.0)
            run.finish(left)

        threading.Thread(target=finish_when_it_may, daemon=True).start()
        return 0


class TestMemorySupervisor(SupervisorContract):
    @pytest.fixture
    def commands(self) -> Iterator[MemoryCommands]:
        commands = MemoryCommands()
        yield commands
        commands.let_it_end()

    @pytest.fixture
    def supervisor(self, commands: MemoryCommands) -> MemorySupervisor:
        return commands.programs()

    @pytest.fixture
    def observer(self, supervisor: MemorySupervisor) -> MemorySupervisor:
        return MemorySupervisor(supervisor.programs, shared=supervisor)

    def test_when_its_owner_dies_what_was_prepared_is_never_started(
        self, supervisor: MemorySupervisor, observer: MemorySupervisor, commands: MemoryCommands
    ) -> None:
        prepared = supervisor.prepare(OPERATION)
        running = supervisor.prepare(OperationId("other"))
        running.start(commands.run_until_ended())
        supervisor.die()
        assert observer.probe_over(OPERATION) is Overness.OVER
        assert observer.probe_over(OperationId("other")) is Overness.RUNNING
        status = observer.status(OPERATION)
        assert status is not None
        assert status.progress is Progress.NEVER_STARTED
        with pytest.raises(WorkNotStarted):
            prepared.start(commands.print_and_exit("too late", 0))
        running.end()

    def test_when_its_supervisor_is_killed_nobody_can_tell(
        self, supervisor: MemorySupervisor, observer: MemorySupervisor, commands: MemoryCommands
    ) -> None:
        slot = supervisor.prepare(OPERATION)
        slot.start(commands.leave_a_process())
        supervisor.lose_supervisor(OPERATION)
        assert observer.probe_over(OPERATION) is Overness.COULD_NOT_LOOK
        assert slot.end() is Overness.COULD_NOT_LOOK
        commands.let_it_end()
        assert observer.probe_over(OPERATION) is Overness.COULD_NOT_LOOK

    def test_where_nothing_can_be_supervised_it_says_so(self, supervisor: MemorySupervisor) -> None:
        supervisor.refuses = "no subreaper here"
        with pytest.raises(SupervisorUnavailable, match="no subreaper here"):
            supervisor.prepare(OPERATION)
