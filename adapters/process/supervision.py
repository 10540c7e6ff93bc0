"""What the supervisor does: hold the lock, run one program, let go when the last of its processes has ended.

SPEC section 15. One thread, one poll loop. Standard library only, and of that little: its start is part of every T1.
"""

from __future__ import annotations

import binascii
import os
import select
import time

from . import containment, file_lock, operation_proof, process_table, status_file, work_process
from .captured_stream import DRAIN_READS_MAX
from .owner_link import OwnerLink

KILL_EVERY_SECONDS = 0.02
UNKILLABLE_AFTER_SECONDS = 5.0  # then the owner is told that something cannot be ended


class Supervision:
    """One operation, from the lock to the last process."""

    def __init__(
        self,
        settings: dict[str, object],
        link: OwnerLink,
        lock: int,
        tree: containment.SubreaperTree | containment.ProcessGroup,
        alarm: int,
    ) -> None:
        self._settings = settings
        self._lock_path = str(settings["lock"])
        self._output_bytes_max = int(str(settings["output_bytes_max"]))
        self._result_bytes_max = int(str(settings["result_bytes_max"]))
        self._settle_seconds = float(str(settings["settle_seconds"]))
        self._status = status_file.StatusFile(str(settings["status"]), str(settings["operation_id"]))
        self._link = link
        self._lock: int | None = lock
        self._tree = tree
        self._alarm = alarm
        self._work: work_process.WorkProcess | None = None
        self._wait_status: int | None = None
        self._report_at = 0.0
        self._reported = False
        self._left_running = False
        self._kill_at: float | None = None
        self._over = False
        self.asked_to_end = False  # set by a signal

    def run(self) -> None:
        """Serve the owner until nothing is left to hold the lock for."""
        self._link.send({"is": "ready", "pid": os.getpid()})
        while not self._over:
            if self._work is None and (self._link.gone or self.asked_to_end):
                self._never_started()  # before any wait: of an owner that died before it was looked at nothing comes
                break
            ready = self._wait()
            for message in self._link.receive(ready):
                self._obey(message)
            self._link.flush()
            if self._work is not None:
                self._serve(self._work, ready)
        self._link.flush_all()

    def _obey(self, message: dict[str, object]) -> None:
        match message["do"]:
            case "start" if self._work is None and not self._over and not self._link.gone:
                self._start(message)
            case "end" if not self._over:
                self._end(float(str(message["grace_seconds"])))
            case "release" if self._work is None and not self._over:
                if self._lock is not None and file_lock.names(self._lock_path, self._lock):
                    os.unlink(self._lock_path)  # noqa: PTH108
                self._let_go()
            case _:
                pass

    def _start(self, message: dict[str, object]) -> None:
        assert self._lock is not None
        argv, environment, cwd = message["argv"], message["environment"], message["cwd"]
        program = work_process.Program(
            [str(argument) for argument in argv] if isinstance(argv, list) else [],
            None if cwd is None else str(cwd),
            {str(name): str(value) for name, value in environment.items()} if isinstance(environment, dict) else None,
            binascii.a2b_base64(str(message["stdin"])),
            wants_result=bool(message["wants_result"]),
        )
        try:
            self._work = work_process.start(program, self._lock, self._output_bytes_max, self._result_bytes_max)
        except OSError as error:
            self._status.write("never_started")
            self._let_go({"is": "start_failed", "detail": f"{error.filename}: {error.strerror}"})
            return
        found = process_table.find(self._work.pid)
        start_time = None if found is None else found.start_time
        facts = {"pid": self._work.pid, "process_start_time": start_time, "argv_digest": message["argv_digest"]}
        self._status.write("started", **facts)
        self._link.send({"is": "started", "pid": self._work.pid})

    def _serve(self, work: work_process.WorkProcess, ready: dict[int, int]) -> None:
        if work.hungry_stdin in ready:
            work.feed()
        for stream in work.streams:
            if stream.descriptor in ready:
                stream.read()
        childless = self._reap(work)
        now = time.monotonic()
        if self.asked_to_end:
            self._end(grace_seconds=2.0)
        if self._kill_at is not None and now >= self._kill_at and not childless:
            self._kill(work)
        if self._wait_status is None:
            return
        empty = self._tree.is_empty(childless=childless, main=work.pid)
        if not self._reported and (empty or now >= self._report_at):
            self._report(work, left_running=not empty)
        if empty:
            self._let_go()

    def _reap(self, work: work_process.WorkProcess) -> bool:
        """Collect who has ended; True when no child is left at all."""
        while True:
            try:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == work.pid:
                self._wait_status = wait_status
                if self._kill_at is None:
                    self._report_at = time.monotonic() + self._settle_seconds

    def _end(self, grace_seconds: float) -> None:
        work = self._work
        if work is None:
            self._never_started()
            return
        if self._kill_at is not None:
            return
        self._kill_at = time.monotonic() + grace_seconds
        self._report_at = self._kill_at + UNKILLABLE_AFTER_SECONDS
        try:
            containment.ask_to_end(self._tree.living(work.pid))
        except OSError:
            self._kill_at = time.monotonic()

    def _kill(self, work: work_process.WorkProcess) -> None:
        try:
            self._tree.kill(work.pid)
        except OSError:
            return  # tried again at once

    def _report(self, work: work_process.WorkProcess, *, left_running: bool) -> None:
        """Tell the owner how the main process ended and what it wrote; what is written later is discarded."""
        assert self._wait_status is not None
        self._reported = True
        self._left_running = left_running
        for stream in work.streams:
            stream.read(reads_max=DRAIN_READS_MAX)
        code = os.waitstatus_to_exitcode(self._wait_status)
        ended = {
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "left_running": left_running,
        }
        self._status.write("exited", exited_at=status_file.now(), **ended)
        self._link.send(
            {
                "is": "exited",
                **ended,
                "stdout": work.stdout.report(),
                "stderr": work.stderr.report(),
                "result": None if work.result is None else work.result.report(),
                "living": self._living(work) if left_running else [],
                "ended_on_request": self._kill_at is not None,
            }
        )

    def _living(self, work: work_process.WorkProcess) -> list[list[object]]:
        try:
            return [[process.pid, process.start_time, process.name] for process in self._tree.living(work.pid)]
        except OSError:
            return []

    def _never_started(self) -> None:
        if not self._over:
            self._status.write("never_started")
            self._let_go()

    def _let_go(self, last_words: dict[str, object] | None = None) -> None:
        """Write that nothing is left, release the lock, then say so."""
        if self._left_running:
            self._status.write("exited", left_running=False)
        if self._lock is not None:
            operation_proof.write(self._lock, self._settings, let_go=True)
            os.close(self._lock)
            self._lock = None
        self._over = True
        self._link.send(last_words or {"is": "over"})

    def _wait(self) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._alarm, select.POLLIN)
        self._link.register(poll)
        work = self._work
        if work is not None:
            for stream in work.streams:
                if stream.descriptor is not None:
                    poll.register(stream.descriptor, select.POLLIN)
            if work.hungry_stdin is not None:
                poll.register(work.hungry_stdin, select.POLLOUT)
        ready = dict(poll.poll(self._poll_milliseconds()))
        if self._alarm in ready:
            os.read(self._alarm, 4096)
        return ready

    def _poll_milliseconds(self) -> int | None:
        now = time.monotonic()
        waits = [seconds for seconds in (self._link.recheck_seconds, self._tree.recheck_seconds) if seconds is not None]
        if self._kill_at is not None:
            every = KILL_EVERY_SECONDS if now < self._kill_at + UNKILLABLE_AFTER_SECONDS else 1.0
            waits.append(max(self._kill_at - now, every))
        if self._wait_status is not None and not self._reported:
            waits.append(max(self._report_at - now, 0.0))
        return int(min(waits) * 1000) + 1 if waits else None
