"""Supervised operations as processes of this host. SPEC section 15.

What is promised, by platform. Linux: an operation is over when every descendant has ended, however it detached.
macOS: when its process group has; what makes a session of its own escapes, but keeps the inherited lock held unless
it closes it. Windows: refused.
Residual: a supervisor that is killed itself frees its lock before descendants that closed their duplicate have ended;
then the answer is COULD_NOT_LOOK for good, and a person decides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ...domain.identifiers import OperationId
from ...ports.supervised import OperationStatus, Overness, ProcessInfo, Progress
from ...ports.supervisor import SupervisedSlot, Supervisor, SupervisorUnavailable
from . import containment, file_lock, operation_proof, process_table, supervisor_main
from .fork_privacy import close_private, open_private
from .host_facts import HostFacts, read_host_facts
from .locks_folder import LocksFolder
from .supervised_slot import ProcessSlot

_PROGRAM = str(Path(supervisor_main.__file__).resolve())
FORGET_PATIENCE_SECONDS = 0.5  # an observer may hold the lock for a moment


class ProcessSupervisor(Supervisor):
    """Starts one supervisor process per operation.

    Args:
        folder: `<store>.locks`; made when the first operation is prepared.
        output_bytes_max: kept of each of standard output and standard error; the rest is counted and digested.
        result_bytes_max: bound on a function's encoded result.
        settle_seconds: how long what the main process started may take to end after it, before it counts as left
            running.
        containment_kind: `subreaper` or `process_group`; the platform's best by default.
        python: an interpreter of the same version.
        facts: of this host; tests give others.
    """

    def __init__(
        self,
        folder: Path,
        *,
        output_bytes_max: int = 512 * 1024,
        result_bytes_max: int = 2 * 1024 * 1024,
        settle_seconds: float = 0.1,
        containment_kind: str | None = None,
        python: str = sys.executable,
        facts: Callable[[], HostFacts] = read_host_facts,
    ) -> None:
        self._folder = LocksFolder(folder.absolute())
        self._bounds: dict[str, object] = {
            "output_bytes_max": output_bytes_max,
            "result_bytes_max": result_bytes_max,
            "settle_seconds": settle_seconds,
        }
        self._containment_kind = containment_kind or containment.best_kind()
        self._python = python
        self._facts = facts

    def prepare(self, operation_id: OperationId) -> SupervisedSlot:
        """Start the supervisor and wait until it holds the lock. See the port."""
        if self._containment_kind is None:
            raise SupervisorUnavailable(
                operation_id, f"the platform {sys.platform} has no containment that is known here"
            )
        try:
            self._folder.make()
            settings = self._settings(operation_id)
            process, to_supervisor, from_supervisor = _spawn([self._python, "-I", "-S", _PROGRAM, json.dumps(settings)])
        except OSError as error:
            raise SupervisorUnavailable(operation_id, str(error)) from error
        slot = ProcessSlot(
            operation_id,
            process,
            to_supervisor,
            from_supervisor,
            python=self._python,
            containment_kind=self._containment_kind,
            probe=lambda: self.probe_over(operation_id),
        )
        slot.await_ready()
        return slot

    def probe_over(self, operation_id: OperationId) -> Overness:
        """Look at the lock and at what its file says. See the port."""
        try:
            seen, here = file_lock.look(str(self._folder.lock(operation_id))), self._facts()
        except OSError:
            return Overness.COULD_NOT_LOOK
        if seen.held:
            return Overness.RUNNING
        proof = operation_proof.read(seen, operation_id)
        if proof is None or proof.get("host") != here.host:
            return Overness.COULD_NOT_LOOK
        if proof.get("boot_id") != here.boot_id:
            return Overness.OVER
        ended = proof.get("pid_namespace") == here.pid_namespace and proof.get("let_go") is True
        return Overness.OVER if ended else Overness.COULD_NOT_LOOK

    def who_holds(self, operation_id: OperationId) -> tuple[ProcessInfo, ...]:
        """List the supervisor and what it runs; where it was killed, whoever still has the lock open. See the port."""
        try:
            seen, table = file_lock.look(str(self._folder.lock(operation_id))), process_table.everything()
        except OSError:
            return ()
        proof = operation_proof.read(seen, operation_id)
        if not seen.held or proof is None:
            return ()
        holder = (proof.get("pid"), proof.get("process_start_time"))
        found = [process for process in table if (process.pid, process.start_time) == holder and not process.ended]
        if found:
            status = self.status(operation_id)
            main = None if status is None else status.pid
            found += containment.contained(proof.get("containment"), found[0].pid, main, table)
        else:
            found = [
                process for process in table if _has_open(process.pid, seen.inode, self._folder.lock(operation_id))
            ]
        return tuple(ProcessInfo(process.pid, process.start_time, process.name) for process in found)

    def status(self, operation_id: OperationId) -> OperationStatus | None:
        """Read the status file. See the port."""
        try:
            facts = json.loads(self._folder.status(operation_id).read_bytes())
            if facts.pop("operation_id") != operation_id:
                return None
            return OperationStatus(operation_id, Progress(facts.pop("progress")), **facts)
        except (OSError, KeyError, ValueError, TypeError, AttributeError):
            return None

    def forget(self, operation_id: OperationId) -> bool:
        """Remove the files while holding the lock. See the port."""
        path = self._folder.lock(operation_id)
        if path.exists():
            lock = file_lock.take(str(path), FORGET_PATIENCE_SECONDS)
            if lock is None:
                return False
            path.unlink(missing_ok=True)
            os.close(lock)
        self._folder.status(operation_id).unlink(missing_ok=True)
        return True

    def _settings(self, operation_id: OperationId) -> dict[str, object]:
        here = self._facts()
        return {
            "operation_id": operation_id,
            "lock": str(self._folder.lock(operation_id)),
            "status": str(self._folder.status(operation_id)),
            "owner_pid": os.getpid(),
            "containment": self._containment_kind,
            "host": here.host,
            "boot_id": here.boot_id,
            "pid_namespace": here.pid_namespace,
            **self._bounds,
        }


def _spawn(argv: list[str]) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start the program in a session of its own, so that the terminal's Ctrl-C ends neither it nor what it runs."""
    their_input, to_supervisor, from_supervisor, their_output = open_private(lambda: (*os.pipe(), *os.pipe()))
    try:
        process = subprocess.Popen(
            argv, stdin=their_input, stdout=their_output, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True
        )
    except BaseException:
        close_private(to_supervisor)
        close_private(from_supervisor)
        raise
    finally:
        close_private(their_input)
        close_private(their_output)
    return process, to_supervisor, from_supervisor


def _has_open(pid: int, inode: int, path: Path) -> bool:
    """Whether the process has this file open, as far as we may know."""
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if descriptor.readlink() == path and descriptor.stat().st_ino == inode:
                return True
    except OSError:
        pass
    return False
