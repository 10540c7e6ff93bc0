"""Supervised operations that run on threads, with processes that exist in memory alone."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...domain.identifiers import OperationId
from ...ports.supervised import (
    CapturedOutput,
    FunctionCall,
    FunctionReturned,
    OperationStatus,
    Overness,
    ProcessInfo,
    Progress,
    SupervisedExit,
    Work,
)
from ...ports.supervisor import SupervisedSlot, Supervisor, SupervisorLost, SupervisorUnavailable, WorkNotStarted
from .function_calls import call_function

_pids = itertools.count(5001)
SIGTERM = 15
EXITED_AT = "2026-01-01T00:00:00.000000Z"


@dataclass
class Run:
    """One running program, as the program sees it.

    Attributes:
        stdout: what it has written so far.
        asked_to_end: set when it should end.
    """

    work: Work
    operation: _Operation
    stdout: bytearray = field(default_factory=bytearray)
    asked_to_end: threading.Event = field(default_factory=threading.Event)

    def leave_running(self, name: str) -> ProcessInfo:
        """Start a process that lives on when the program has ended, until `finish` or the end of the operation."""
        return self.operation.add(name)

    def finish(self, process: ProcessInfo) -> None:
        """Let such a process end."""
        self.operation.remove(process)


Program = Callable[[Run], int | None]
"""Returns its exit code, or None for a program that a signal ended."""


@dataclass
class _Operation:
    """The lock of an operation, and what runs under it."""

    operation_id: OperationId
    supervisor: ProcessInfo = field(default_factory=lambda: ProcessInfo(next(_pids), 0, "supervisor"))
    processes: list[ProcessInfo] = field(default_factory=list)
    news: threading.Condition = field(default_factory=threading.Condition)
    supervised: bool = True  # the supervisor lives and holds the lock
    started: bool = False
    ended_on_request: bool = False
    run: Run | None = None
    exit: SupervisedExit | None = None
    status: OperationStatus | None = None
    overness: Overness = Overness.RUNNING

    def is_decided(self) -> bool:
        return self.exit is not None or self.overness is not Overness.RUNNING

    def add(self, name: str) -> ProcessInfo:
        process = ProcessInfo(next(_pids), 0, name)
        with self.news:
            self.processes.append(process)
        return process

    def remove(self, process: ProcessInfo) -> None:
        with self.news:
            if process in self.processes:
                self.processes.remove(process)
            self.let_go_when_empty()

    def let_go_when_empty(self) -> None:
        if self.supervised and not self.processes and (self.exit is not None or not self.started):
            self.supervised = False
            self.overness = Overness.OVER
        self.news.notify_all()


class MemorySupervisor(Supervisor):
    """Runs programs by their names; several objects over the same operations are several processes.

    Args:
        programs: by the first word of a command. Functions are called for real.
        shared: another object's operations.

    Attributes:
        refuses: what is missing here, when nothing can be supervised.
    """

    def __init__(
        self, programs: Mapping[str, Program] | None = None, *, shared: MemorySupervisor | None = None
    ) -> None:
        self.programs = dict(programs or {})
        self.refuses: str | None = None
        self._operations: dict[OperationId, _Operation] = {} if shared is None else shared.operations()
        self._mine: list[_Operation] = []

    def operations(self) -> dict[OperationId, _Operation]:
        """What is known of operations; supervisors that share it stand for processes over one folder of locks."""
        return self._operations

    def prepare(self, operation_id: OperationId) -> SupervisedSlot:
        """Hold the lock."""
        earlier = self._operations.get(operation_id)
        if self.refuses is not None:
            raise SupervisorUnavailable(operation_id, self.refuses)
        if earlier is not None and earlier.overness is Overness.RUNNING:
            raise SupervisorUnavailable(operation_id, "an earlier delivery of this operation still runs")
        operation = self._operations[operation_id] = _Operation(operation_id)
        self._mine.append(operation)
        return _MemorySlot(operation, self)

    def probe_over(self, operation_id: OperationId) -> Overness:
        """Look at the lock."""
        operation = self._operations.get(operation_id)
        return Overness.COULD_NOT_LOOK if operation is None else operation.overness

    def who_holds(self, operation_id: OperationId) -> tuple[ProcessInfo, ...]:
        """List the supervisor and what it runs."""
        operation = self._operations.get(operation_id)
        if operation is None or operation.overness is not Overness.RUNNING:
            return ()
        return (operation.supervisor, *operation.processes)

    def status(self, operation_id: OperationId) -> OperationStatus | None:
        """What was written down."""
        operation = self._operations.get(operation_id)
        return None if operation is None else operation.status

    def forget(self, operation_id: OperationId) -> bool:
        """Remove what is known, unless the lock is held."""
        if self.probe_over(operation_id) is Overness.RUNNING:
            return False
        self._operations.pop(operation_id, None)
        return True

    def die(self) -> None:
        """Let the owner be killed: what was prepared is never started, what was started goes on."""
        for operation in self._mine:
            if not operation.started:
                never_start(operation)

    def lose_supervisor(self, operation_id: OperationId) -> None:
        """Let the supervisor of an operation be killed: what it started goes on, and nobody can tell."""
        operation = self._operations[operation_id]
        with operation.news:
            operation.supervised = False
            operation.overness = Overness.COULD_NOT_LOOK
            operation.news.notify_all()


class _MemorySlot(SupervisedSlot):
    def __init__(self, operation: _Operation, supervisor: MemorySupervisor) -> None:
        self._operation = operation
        self._supervisor = supervisor
        self._asked_to_start = False

    def start(self, work: Work) -> None:
        """Start the program on a thread."""
        operation = self._operation
        with operation.news:
            if self._asked_to_start:
                raise ValueError(f"operation {operation.operation_id} has been started already")
            self._asked_to_start = True
            if operation.overness is Overness.OVER:
                raise WorkNotStarted(operation.operation_id, "its supervisor was asked to end before")
            if not operation.supervised:
                raise SupervisorLost(operation.operation_id)
            name = "python" if isinstance(work, FunctionCall) else work.argv[0]
            program = self._supervisor.programs.get(name)
            if program is None and not isinstance(work, FunctionCall):
                never_start(operation)
                raise WorkNotStarted(operation.operation_id, f"{name}: no such program")
            operation.started = True
            run = operation.run = Run(work, operation)
            main = operation.add(name)
            operation.status = OperationStatus(
                operation.operation_id, Progress.STARTED, main.pid, main.process_start_time, _digest(work)
            )
        threading.Thread(target=_run_program, args=(program, run, main), name=name, daemon=True).start()

    def wait(self, timeout_seconds: float | None = None) -> SupervisedExit | None:
        """Wait for the program."""
        operation = self._operation
        with operation.news:
            operation.news.wait_for(operation.is_decided, timeout_seconds)
            if operation.exit is None and operation.overness is not Overness.RUNNING:
                raise SupervisorLost(operation.operation_id)
            return operation.exit

    def end(self, *, grace_seconds: float = 2.0, timeout_seconds: float = 30.0) -> Overness:
        """Ask the program to end, and end what it left."""
        operation = self._operation
        with operation.news:
            if not operation.started:
                never_start(operation)
            elif operation.run is not None and operation.supervised:
                operation.ended_on_request = True
                operation.run.asked_to_end.set()
                operation.news.wait_for(operation.is_decided, timeout_seconds)
                if operation.exit is not None:
                    operation.processes.clear()
                operation.let_go_when_empty()
            return operation.overness

    def release(self) -> None:
        """Let go; the lock file goes."""
        if self._asked_to_start:
            raise ValueError(f"operation {self._operation.operation_id} has been started")
        self._operation.overness = Overness.COULD_NOT_LOOK
        self._operation.supervised = False

    def living(self) -> tuple[ProcessInfo, ...]:
        """List the processes of the program."""
        return tuple(self._operation.processes) if self._operation.supervised else ()


def never_start(operation: _Operation) -> None:
    """Let go of an operation without work; its lock file stays."""
    with operation.news:
        if operation.supervised:
            operation.status = OperationStatus(operation.operation_id, Progress.NEVER_STARTED)
            operation.let_go_when_empty()


def _run_program(program: Program | None, run: Run, main: ProcessInfo) -> None:
    operation = run.operation
    outcome = call_function(run.work) if isinstance(run.work, FunctionCall) else None
    code = program(run) if program is not None else int(not isinstance(outcome, FunctionReturned))
    with operation.news:
        operation.processes.remove(main)
        left = () if operation.ended_on_request else tuple(operation.processes)
        operation.exit = SupervisedExit(
            exit_code=code,
            signal=SIGTERM if code is None else None,
            stdout=CapturedOutput(bytes(run.stdout), len(run.stdout), None),
            stderr=CapturedOutput(b"", 0, None),
            left_running=bool(left),
            living=left,
            ended_on_request=operation.ended_on_request,
            outcome=outcome,
        )
        operation.status = OperationStatus(
            operation.operation_id,
            Progress.EXITED,
            main.pid,
            main.process_start_time,
            _digest(run.work),
            exit_code=code,
            signal=operation.exit.signal,
            exited_at=EXITED_AT,
            left_running=bool(left),
        )
        operation.let_go_when_empty()


def _digest(work: Work) -> str:
    argv = (work.module, work.qualname) if isinstance(work, FunctionCall) else work.argv
    return hashlib.sha256(json.dumps(argv).encode("ascii")).hexdigest()
