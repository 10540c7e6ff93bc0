"""Supervised operations whose owners, programs and supervisors are really killed. SPEC section 15 and F19."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safepoint.adapters.process import process_table, supervisor_main
from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.domain.identifiers import OperationId
from safepoint.ports.contract_kit.supervisor import eventually
from safepoint.ports.supervised import Command, Overness, ProcessInfo, Progress, SupervisedExit
from safepoint.ports.supervisor import SupervisedSlot, SupervisorLost, SupervisorUnavailable, WorkNotStarted

from .conftest import Daemon, Owner

OPERATION = OperationId("op-1")
START = """
slot = ProcessSupervisor(locks).prepare("op-1")
tell("ready")
sys.stdin.readline()
slot.start(Command({argv!r}))
tell("started")
"""
COUNT_WHAT_IS_LEFT = """
import threading
from safepoint.adapters.process import process_table
supervisor = ProcessSupervisor(locks)
before = len(os.listdir("/proc/self/fd"))
for number in range(3):
    slot = supervisor.prepare(f"op-{number}")
    slot.start(Command(("true",)))
    slot.wait()
    slot.end()
    supervisor.prepare(f"released-{number}").release()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
left = [process.name for process in process_table.everything() if process.parent == os.getpid()]
tell(len(os.listdir("/proc/self/fd")) - before, left)
"""
WAIT = "sys.stdin.readline()\n"
StartOwner = Callable[[str], Owner]


def shell(script: str, *arguments: str) -> Command:
    return Command(("bash", "-c", script, "bash", *arguments))


def names(processes: tuple[ProcessInfo, ...]) -> set[str]:
    return {process.name for process in processes}


def lives(pid: int) -> bool:
    process = process_table.find(pid)
    return process is not None and not process.ended


@pytest.fixture
def supervisor(locks: Path) -> ProcessSupervisor:
    return ProcessSupervisor(locks)


@pytest.fixture
def slot(supervisor: ProcessSupervisor) -> Iterator[SupervisedSlot]:
    slot = supervisor.prepare(OPERATION)
    yield slot
    slot.end(grace_seconds=0.0)


def run(slot: SupervisedSlot, command: Command) -> SupervisedExit:
    slot.start(command)
    ended = slot.wait(60.0)
    assert ended is not None
    return ended


class TestTheOwnerDies:
    def test_an_operation_is_not_over_until_the_last_detached_grandchild_has_ended(
        self, supervisor: ProcessSupervisor, start_owner: StartOwner, daemon: Daemon
    ) -> None:
        bash_starts_python = ("bash", "-c", '"$@"; exit 3', "bash", *daemon.argv)
        owner = start_owner(START.format(argv=bash_starts_python) + "slot.wait()\ntell('exited')\n" + WAIT)
        owner.hear()
        owner.let_go_on()
        assert [owner.hear(), owner.hear()] == ["started", "exited"]
        owner.kill()
        assert supervisor.probe_over(OPERATION) is Overness.RUNNING
        assert daemon.pid in {process.pid for process in supervisor.who_holds(OPERATION)}
        assert not supervisor.forget(OPERATION)
        with pytest.raises(SupervisorUnavailable):
            supervisor.prepare(OPERATION)
        daemon.end()
        assert eventually(lambda: supervisor.probe_over(OPERATION) is Overness.OVER)
        status = supervisor.status(OPERATION)
        assert status is not None
        assert (status.progress, status.exit_code, status.left_running) == (Progress.EXITED, 3, False)

    def test_the_program_goes_on_and_its_exit_is_written_down(
        self, supervisor: ProcessSupervisor, start_owner: StartOwner, tmp_path: Path
    ) -> None:
        script = 'while [ ! -e "$1" ]; do sleep 0.01; done; yes | head -c 1000000; echo done > "$2"; exit 5'
        argv = ("bash", "-c", script, "bash", str(tmp_path / "go"), str(tmp_path / "effect"))
        owner = start_owner(START.format(argv=argv) + WAIT)
        owner.hear()
        owner.let_go_on()
        assert owner.hear() == "started"
        owner.kill()
        assert supervisor.probe_over(OPERATION) is Overness.RUNNING
        (tmp_path / "go").touch()
        assert eventually(lambda: supervisor.probe_over(OPERATION) is Overness.OVER)
        assert (tmp_path / "effect").read_text() == "done\n"
        status = supervisor.status(OPERATION)
        assert status is not None
        assert (status.progress, status.exit_code) == (Progress.EXITED, 5)

    def test_before_the_start_nothing_is_ever_started(
        self, supervisor: ProcessSupervisor, start_owner: StartOwner, tmp_path: Path, locks: Path
    ) -> None:
        owner = start_owner(START.format(argv=("touch", str(tmp_path / "effect"))) + WAIT)
        assert owner.hear() == "ready"
        assert supervisor.probe_over(OPERATION) is Overness.RUNNING
        owner.kill()
        assert eventually(lambda: supervisor.probe_over(OPERATION) is Overness.OVER)
        status = supervisor.status(OPERATION)
        assert status is not None
        assert status.progress is Progress.NEVER_STARTED
        assert not (tmp_path / "effect").exists()
        assert (locks / "op-1.lock").exists()

    def test_a_forked_worker_of_the_owner_does_not_hide_its_death(
        self, supervisor: ProcessSupervisor, start_owner: StartOwner
    ) -> None:
        fork = "worker = os.fork()\nif worker == 0:\n    time.sleep(300)\ntell(worker)\n"
        owner = start_owner("slot = ProcessSupervisor(locks).prepare('op-1')\n" + fork + WAIT)
        worker = int(owner.hear())
        try:
            owner.kill()
            assert eventually(lambda: supervisor.probe_over(OPERATION) is Overness.OVER)
            assert lives(worker)
        finally:
            os.kill(worker, signal.SIGKILL)

    def test_an_owner_that_is_stopped_keeps_nothing_from_being_over(
        self, supervisor: ProcessSupervisor, start_owner: StartOwner, tmp_path: Path
    ) -> None:
        script = 'while [ ! -e "$1" ]; do sleep 0.01; done; head -c 900000 /dev/zero'
        argv = ("bash", "-c", script, "bash", str(tmp_path / "go"))
        owner = start_owner(START.format(argv=argv) + WAIT)
        owner.hear()
        owner.let_go_on()
        assert owner.hear() == "started"
        owner.process.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        assert eventually(lambda: supervisor.probe_over(OPERATION) is Overness.OVER)

    def test_an_interrupt_from_the_terminal_reaches_the_owner_alone(
        self, supervisor: ProcessSupervisor, start_owner: StartOwner
    ) -> None:
        ignore = "signal.signal(signal.SIGINT, lambda *_: tell('interrupted'))\n"
        owner = start_owner(ignore + START.format(argv=("sleep", "300")) + WAIT + "tell(slot.end().value)\n")
        owner.hear()
        owner.let_go_on()
        assert owner.hear() == "started"
        os.killpg(owner.process.pid, signal.SIGINT)
        assert owner.hear() == "interrupted"
        assert "sleep" in names(supervisor.who_holds(OPERATION))
        owner.let_go_on()
        assert owner.hear() == "over"


class TestTheProgramEnds:
    def test_by_a_signal_which_is_no_exit_code(self, slot: SupervisedSlot) -> None:
        ended = run(slot, shell("kill -KILL $$"))
        assert (ended.exit_code, ended.signal, ended.ended_on_request) == (None, signal.SIGKILL, False)

    def test_after_signalling_its_own_group_which_is_not_its_supervisors(self, slot: SupervisedSlot) -> None:
        ended = run(slot, shell("trap '' TERM; kill -TERM 0; sleep 0.3; exit 6"))
        assert (ended.exit_code, ended.ended_on_request) == (6, False)

    def test_with_a_broken_pipe_as_programs_expect_it(self, slot: SupervisedSlot) -> None:
        ended = run(slot, shell("set -o pipefail; yes | head -n 1; exit $?"))
        assert (ended.exit_code, ended.stdout.data, ended.stderr.data) == (128 + signal.SIGPIPE, b"y\n", b"")

    def test_with_more_output_than_is_kept(self, locks: Path) -> None:
        slot = ProcessSupervisor(locks, output_bytes_max=1000).prepare(OPERATION)
        ended = run(slot, shell("yes | head -c 5000000; printf err >&2"))
        assert (ended.exit_code, ended.stdout.data, ended.stdout.total_bytes) == (0, b"y\n" * 500, 5_000_000)
        assert ended.stdout.truncated
        # sha256 of "y\n" 2,500,000 times
        assert ended.stdout.sha256 == "57df44217289329c2d201dffb0c1ad8dc742f74a604dc6cf8f47a2d3e8dbd032"
        assert (ended.stderr.data, ended.stderr.truncated, ended.stderr.sha256) == (b"err", False, None)

    def test_having_read_all_of_its_input(self, slot: SupervisedSlot) -> None:
        ended = run(slot, Command(("wc", "-c"), stdin=b"x" * 1_000_000))
        assert ended.stdout.data.strip() == b"1000000"

    def test_without_reading_its_input(self, slot: SupervisedSlot) -> None:
        assert run(slot, Command(("true",), stdin=b"x" * 1_000_000)).exit_code == 0

    def test_while_a_grandchild_holds_its_output_open(
        self, slot: SupervisedSlot, supervisor: ProcessSupervisor
    ) -> None:
        ended = run(slot, shell("echo before; sleep 300 & echo after"))
        assert (ended.exit_code, ended.stdout.data, ended.left_running) == (0, b"before\nafter\n", True)
        assert names(ended.living) == {"sleep"}
        assert supervisor.probe_over(OPERATION) is Overness.RUNNING

    def test_while_a_grandchild_floods_its_output(self, slot: SupervisedSlot) -> None:
        ended = run(slot, shell("yes & exit 4"))
        assert (ended.exit_code, ended.left_running) == (4, True)
        assert slot.end(grace_seconds=0.0) is Overness.OVER

    def test_and_leaves_no_process_and_no_descriptor_in_its_owner(self, start_owner: StartOwner) -> None:
        owner = start_owner(COUNT_WHAT_IS_LEFT)
        assert owner.hear() == "0 []"


class TestTheProgramIsEnded:
    def test_with_everything_that_ignores_signals_and_made_sessions(self, slot: SupervisedSlot) -> None:
        script = "trap '' TERM; setsid bash -c \"trap '' TERM; sleep 300 & sleep 300\" & setsid sleep 300 & sleep 300"
        slot.start(shell(script))
        assert eventually(lambda: len(slot.living()) >= 6)
        everything = slot.living()
        assert slot.end(grace_seconds=0.1) is Overness.OVER
        assert not [process for process in everything if lives(process.pid)]
        ended = slot.wait(0.0)
        assert ended is not None
        assert (ended.ended_on_request, ended.left_running) == (True, False)

    def test_while_it_is_stopped(self, slot: SupervisedSlot) -> None:
        slot.start(shell("kill -STOP $$; sleep 300"))
        assert eventually(lambda: any(process_is_stopped(process.pid) for process in slot.living()))
        assert slot.end() is Overness.OVER

    def test_while_it_starts_more_and_more(self, slot: SupervisedSlot) -> None:
        slot.start(shell("for i in $(seq 200); do (trap '' TERM; setsid sleep 300) & done; sleep 300"))
        assert eventually(lambda: len(slot.living()) >= 20)
        assert slot.end(grace_seconds=0.0) is Overness.OVER

    def test_having_been_given_time_to_do_so_in_order(self, slot: SupervisedSlot) -> None:
        slot.start(shell("trap 'echo in order; exit 9' TERM; echo ready; while :; do sleep 0.01; done"))
        assert eventually(lambda: "sleep" in names(slot.living()))
        assert slot.end(grace_seconds=30.0) is Overness.OVER
        ended = slot.wait(0.0)
        assert ended is not None
        assert (ended.exit_code, ended.ended_on_request) == (9, True)
        assert ended.stdout.data.endswith(b"in order\n")

    def test_by_a_person_who_ends_the_supervisor(self, slot: SupervisedSlot, supervisor: ProcessSupervisor) -> None:
        slot.start(shell("sleep 300 & sleep 300"))
        assert eventually(lambda: len(slot.living()) == 3)
        os.kill(supervisor.who_holds(OPERATION)[0].pid, signal.SIGTERM)
        ended = slot.wait(60.0)
        assert ended is not None
        assert (ended.signal, ended.ended_on_request) == (signal.SIGTERM, True)
        assert eventually(lambda: supervisor.probe_over(OPERATION) is Overness.OVER)


class TestTheSupervisorIsKilled:
    """It can be, and then its lock is free: what is still known, and what nobody may conclude."""

    def kill_supervisor(self, supervisor: ProcessSupervisor) -> None:
        os.kill(supervisor.who_holds(OPERATION)[0].pid, signal.SIGKILL)

    def test_the_lock_stays_held_by_whoever_inherited_it(
        self, slot: SupervisedSlot, supervisor: ProcessSupervisor
    ) -> None:
        slot.start(shell("sleep 300; true"))
        assert eventually(lambda: "sleep" in names(slot.living()))
        left = slot.living()
        try:
            self.kill_supervisor(supervisor)
            with pytest.raises(SupervisorLost):
                slot.wait()
            assert supervisor.probe_over(OPERATION) is Overness.RUNNING
            assert slot.end() is Overness.RUNNING
            assert set(supervisor.who_holds(OPERATION)) == set(left)
        finally:
            for process in left:
                os.kill(process.pid, signal.SIGKILL)

    def test_a_free_lock_is_no_proof_that_anything_ended(
        self, slot: SupervisedSlot, supervisor: ProcessSupervisor, daemon: Daemon
    ) -> None:
        run(slot, Command(daemon.argv))
        self.kill_supervisor(supervisor)
        assert eventually(lambda: supervisor.probe_over(OPERATION) is Overness.COULD_NOT_LOOK)
        assert lives(daemon.pid)
        daemon.end()
        assert eventually(lambda: not lives(daemon.pid))
        assert supervisor.probe_over(OPERATION) is Overness.COULD_NOT_LOOK

    def test_before_the_start_it_is_told_that_nobody_knows(
        self, slot: SupervisedSlot, supervisor: ProcessSupervisor
    ) -> None:
        self.kill_supervisor(supervisor)
        with pytest.raises(SupervisorLost):
            slot.start(shell("true"))


class TestTheStart:
    @pytest.mark.parametrize(
        "command",
        [
            Command(("/no/such/program",)),
            Command(("true",), cwd="/no/such/folder"),
            Command(("/etc/passwd",)),
            Command(("echo", "a\0b")),
            Command(("",)),
            Command(()),
        ],
    )
    def test_that_fails_says_so_and_is_over(
        self, slot: SupervisedSlot, supervisor: ProcessSupervisor, command: Command
    ) -> None:
        with pytest.raises(WorkNotStarted):
            slot.start(command)
        assert slot.end() is Overness.OVER
        assert supervisor.probe_over(OPERATION) is Overness.OVER

    def test_takes_place_in_the_folder_and_environment_that_were_given(
        self, slot: SupervisedSlot, tmp_path: Path
    ) -> None:
        environment = {"PATH": os.defpath, "A": "1", "B": "\udcff"}
        ended = run(slot, Command(("env", "-0"), cwd=str(tmp_path), environment=environment))
        assert set(ended.stdout.data.split(b"\0")) >= {b"A=1", b"B=\xff"}
        assert b"HOME=" not in ended.stdout.data

    def test_takes_place_in_the_owners_folder_and_environment_otherwise(
        self, slot: SupervisedSlot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("SET_AFTER_PREPARE", "yes")
        ended = run(slot, shell("pwd; echo $SET_AFTER_PREPARE"))
        assert ended.stdout.data == f"{tmp_path}\nyes\n".encode()

    def test_writes_no_argument_environment_input_or_output_to_disk(
        self, slot: SupervisedSlot, locks: Path, supervisor: ProcessSupervisor
    ) -> None:
        command = Command(
            ("cat", "-", "secret-1"), environment={"PATH": os.defpath, "S": "secret-2"}, stdin=b"secret-3"
        )
        run(slot, command)
        assert supervisor.status(OPERATION) is not None
        for path in locks.iterdir():
            assert b"secret" not in path.read_bytes()
            assert path.stat().st_mode & 0o077 == 0

    def test_that_fails_for_want_of_an_interpreter_is_refused_before_t1(self, locks: Path) -> None:
        with pytest.raises(SupervisorUnavailable):
            ProcessSupervisor(locks, python="/no/such/python").prepare(OPERATION)
        with pytest.raises(SupervisorUnavailable, match="did not become ready"):
            ProcessSupervisor(locks, python="/bin/false").prepare(OPERATION)

    def test_that_has_no_folder_for_its_lock_is_refused_before_t1(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(SupervisorUnavailable):
            ProcessSupervisor(tmp_path / "file").prepare(OPERATION)


@pytest.mark.parametrize("listens", [True, False])
def test_a_supervisor_whose_owner_died_before_it_was_looked_at_ends_and_lets_its_lock_go(
    supervisor: ProcessSupervisor, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    """Its pipes may be held by a forked child of the owner, or have no other end any more."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    supervisor._folder.make()
    with monkeypatch.context() as as_the_dead:
        as_the_dead.setattr(os, "getpid", lambda: dead.pid)
        settings = json.dumps(supervisor._settings(OPERATION))
    program = subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor_main.__file__, settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert program.stdin is not None
    assert program.stdout is not None
    if not listens:
        program.stdin.close()
        program.stdout.close()
    try:
        assert program.wait(30) == 0
    finally:
        program.kill()
        program.wait()
        program.stdin.close()
        program.stdout.close()
    assert supervisor.probe_over(OPERATION) is Overness.OVER


def process_is_stopped(pid: int) -> bool:
    process = process_table.find(pid)
    return process is not None and process.stopped
