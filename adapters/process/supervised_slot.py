"""The owner's end of one supervision: a slot whose lock is held by the supervisor process. SPEC section 15."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from ...domain.identifiers import OperationId
from ...ports.supervised import CapturedOutput, FunctionCall, Overness, ProcessInfo, SupervisedExit, Work
from ...ports.supervisor import SupervisedSlot, SupervisorLost, SupervisorUnavailable, WorkNotStarted
from . import containment, process_table
from .fork_privacy import close_private
from .function_channel import read_outcome, worker_command

READY_SECONDS_MAX = 60.0


class ProcessSlot(SupervisedSlot):
    """Talks to a supervisor process in JSON lines; a thread of its own reads what it says.

    Args:
        to_supervisor, from_supervisor: pipe ends made with `open_private`, owned from now on.
        probe: asks the operation's lock, for when the supervisor cannot be asked any more.
    """

    def __init__(
        self,
        operation_id: OperationId,
        process: subprocess.Popen[bytes],
        to_supervisor: int,
        from_supervisor: int,
        *,
        python: str,
        containment_kind: str,
        probe: Callable[[], Overness],
    ) -> None:
        self._operation_id = operation_id
        self._process = process
        self._to_supervisor = to_supervisor
        self._from_supervisor = from_supervisor
        self._python = python
        self._containment_kind = containment_kind
        self._probe = probe
        self._news = threading.Condition()
        self._said: dict[str, dict[str, Any]] = {}  # the last message of each kind
        self._silent = False  # the supervisor has closed its end
        self._asked_to_start = False
        self._writing = threading.Lock()
        threading.Thread(target=self._listen, name=f"supervisor of {operation_id}", daemon=True).start()

    def await_ready(self) -> None:
        """Wait until the lock is held.

        Raises:
            SupervisorUnavailable: it is not, and the supervisor has ended.
        """
        if self._await("ready", "unavailable", timeout_seconds=READY_SECONDS_MAX) == "ready":
            return
        self._process.kill()
        self._await(timeout_seconds=READY_SECONDS_MAX)
        detail = self._said.get("unavailable", {}).get("detail", "the supervisor program did not become ready")
        raise SupervisorUnavailable(self._operation_id, str(detail))

    def start(self, work: Work) -> None:
        """Start the work. See the port."""
        with self._news:
            if self._asked_to_start:
                raise ValueError(f"operation {self._operation_id} has been started already")
            self._asked_to_start = True
        try:
            command = worker_command(work, self._python) if isinstance(work, FunctionCall) else work
            cwd = command.cwd or os.getcwd()  # noqa: PTH109
        except (ValueError, OSError) as error:
            self._tell({"do": "end", "grace_seconds": 0.0})
            raise WorkNotStarted(self._operation_id, str(error)) from error
        digest = hashlib.sha256(json.dumps(command.argv).encode("ascii")).hexdigest()
        self._tell(
            {
                "do": "start",
                "argv": command.argv,
                "argv_digest": digest,
                "cwd": cwd,
                "environment": dict(os.environ if command.environment is None else command.environment),
                "stdin": base64.b64encode(command.stdin).decode("ascii"),
                "wants_result": isinstance(work, FunctionCall),
            }
        )
        match self._await("started", "start_failed", "over"):
            case "started":
                return
            case "start_failed":
                raise WorkNotStarted(self._operation_id, str(self._said["start_failed"]["detail"]))
            case "over":
                raise WorkNotStarted(self._operation_id, "its supervisor was asked to end before")
            case _:
                raise SupervisorLost(self._operation_id)

    def wait(self, timeout_seconds: float | None = None) -> SupervisedExit | None:
        """Wait for the main process. See the port."""
        said = self._await("exited", timeout_seconds=timeout_seconds)
        if said is not None:
            return _read_exit(self._said["exited"])
        if self._silent:
            raise SupervisorLost(self._operation_id)
        return None

    def end(self, *, grace_seconds: float = 2.0, timeout_seconds: float = 30.0) -> Overness:
        """End all processes. See the port."""
        self._tell({"do": "end", "grace_seconds": grace_seconds})
        if self._await("over", "start_failed", timeout_seconds=timeout_seconds) is not None:
            return Overness.OVER
        return self._probe()

    def release(self) -> None:
        """Let go of a slot without work. See the port."""
        with self._news:
            if self._asked_to_start:
                raise ValueError(f"operation {self._operation_id} has been started")
        self._tell({"do": "release"})
        self._await(timeout_seconds=READY_SECONDS_MAX)

    def living(self) -> tuple[ProcessInfo, ...]:
        """List what lives below the supervisor. See the port."""
        if self._silent:
            return ()
        main = self._said.get("started", {}).get("pid")
        found = containment.contained(self._containment_kind, self._process.pid, main, process_table.everything())
        return tuple(ProcessInfo(process.pid, process.start_time, process.name) for process in found)

    def _tell(self, message: dict[str, object]) -> None:
        line = memoryview(json.dumps(message).encode("ascii") + b"\n")
        with self._writing:
            try:
                while line and not self._silent:
                    line = line[os.write(self._to_supervisor, line) :]
            except OSError:
                return  # it has gone, which the listener sees as well

    def _await(self, *kinds: str, timeout_seconds: float | None = None) -> str | None:
        """Wait until one of these was said, and name it; None when the supervisor fell silent or time is up."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        with self._news:
            while True:
                for kind in kinds:
                    if kind in self._said:
                        return kind
                left = None if deadline is None else deadline - time.monotonic()
                if self._silent or (left is not None and left <= 0):
                    return None
                self._news.wait(left)

    def _listen(self) -> None:
        received = bytearray()
        while chunk := _read(self._from_supervisor):
            received += chunk
            *lines, received = received.split(b"\n")
            with self._news:
                for line in lines:
                    message = json.loads(line)
                    self._said[message["is"]] = message
                self._news.notify_all()
        self._process.wait()
        with self._writing, self._news:
            self._silent = True
            close_private(self._to_supervisor)
            close_private(self._from_supervisor)
            self._news.notify_all()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1024 * 1024)
    except OSError:
        return b""


def _read_exit(said: dict[str, Any]) -> SupervisedExit:
    return SupervisedExit(
        exit_code=said["exit_code"],
        signal=said["signal"],
        stdout=_read_output(said["stdout"]),
        stderr=_read_output(said["stderr"]),
        left_running=said["left_running"],
        living=tuple(ProcessInfo(*process) for process in said["living"]),
        ended_on_request=said["ended_on_request"],
        outcome=None if said["result"] is None else read_outcome(_read_output(said["result"])),
    )


def _read_output(said: dict[str, Any]) -> CapturedOutput:
    return CapturedOutput(base64.b64decode(said["data"]), said["total_bytes"], said["sha256"])
