"""Starts the supervised program. SPEC section 15."""

from __future__ import annotations

import fcntl
import os
import signal

from .captured_stream import CapturedStream

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would cost 4 ms
    from typing import NoReturn

_HIGH = 64  # descriptors are moved above those that the program gets
_RESTORED = ("SIGPIPE", "SIGXFSZ", "SIGXFZ", "SIGHUP", "SIGINT", "SIGTERM", "SIGCHLD")


class WorkProcess:
    """The program that runs, and our ends of its pipes."""

    __slots__ = ("_stdin", "_unwritten", "pid", "result", "stderr", "stdout")

    def __init__(
        self,
        pid: int,
        stdin: int | None,
        unwritten: bytes,
        stdout: CapturedStream,
        stderr: CapturedStream,
        result: CapturedStream | None,
    ) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.result = result
        self._stdin = stdin
        self._unwritten = unwritten

    @property
    def streams(self) -> list[CapturedStream]:
        """What is read from it."""
        return [stream for stream in (self.stdout, self.stderr, self.result) if stream is not None]

    @property
    def hungry_stdin(self) -> int | None:
        """The descriptor that still wants input, or None."""
        return self._stdin

    def feed(self) -> None:
        """Write what fits of its input, and close it after the last byte or when nobody reads."""
        if self._stdin is None:
            return
        try:
            self._unwritten = self._unwritten[os.write(self._stdin, self._unwritten[:65536]) :]
        except BlockingIOError:
            return
        except OSError:
            self._unwritten = b""
        if not self._unwritten:
            os.close(self._stdin)
            self._stdin = None


class Program:
    """What to start; a missing folder or environment is that of the supervisor, which inherited the owner's."""

    __slots__ = ("argv", "cwd", "environment", "stdin", "wants_result")

    def __init__(
        self, argv: list[str], cwd: str | None, environment: dict[str, str] | None, stdin: bytes, *, wants_result: bool
    ) -> None:
        self.argv = argv
        self.cwd = cwd
        self.environment = environment
        self.stdin = stdin
        self.wants_result = wants_result


def start(program: Program, lock: int, output_bytes_max: int, result_bytes_max: int) -> WorkProcess:
    """Start the program in a session of its own; returns when it has replaced our image.

    It inherits a duplicate of the lock: if the supervisor is killed, the lock stays held by every descendant that
    does not close what it inherits.

    Raises:
        OSError: it could not be started (no such program, folder or permission; no more processes); nothing of it ran.
    """
    stdin_read, stdin_write = os.pipe() if program.stdin else (os.open(os.devnull, os.O_RDONLY), None)
    stdout_read, stdout_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    result_read, result_write = os.pipe() if program.wants_result else (None, None)
    failure_read, failure_write = os.pipe()
    theirs = [stdin_read, stdout_write, stderr_write, *([] if result_write is None else [result_write])]
    try:
        pid = os.fork()
        if pid == 0:
            _become(program, theirs, lock, failure_write)
        os.close(failure_write)
        failure_write = -1
        failure = os.read(failure_read, 4096)
        if failure:
            os.waitpid(pid, 0)
            number, _, what = failure.decode("utf-8", "surrogateescape").partition(" ")
            raise OSError(int(number), os.strerror(int(number)), what)
    except OSError:
        for descriptor in (stdin_write, stdout_read, stderr_read, result_read, failure_write):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        raise
    finally:
        for descriptor in (*theirs, failure_read):
            os.close(descriptor)
    if stdin_write is not None:
        os.set_blocking(stdin_write, False)
    return WorkProcess(
        pid,
        stdin_write,
        program.stdin,
        CapturedStream(stdout_read, output_bytes_max),
        CapturedStream(stderr_read, output_bytes_max),
        None if result_read is None else CapturedStream(result_read, result_bytes_max),
    )


def _become(program: Program, theirs: list[int], lock: int, failure: int) -> NoReturn:
    """In the child: take the places and become the program; never returns."""
    what = "the process"
    try:
        os.setsid()  # what the program sends to its own group must not reach the supervisor
        failure = fcntl.fcntl(failure, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH) for descriptor in theirs]
        os.set_inheritable(fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, _HIGH), True)
        for place, descriptor in enumerate(high):
            os.dup2(descriptor, place)
        signal.set_wakeup_fd(-1)
        for name in _RESTORED:  # ignored signals stay ignored over exec: a broken pipe would no longer end a program
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        what = program.cwd or "the working folder"
        if program.cwd is not None:
            os.chdir(program.cwd)
        what = program.argv[0]
        os.execvpe(program.argv[0], program.argv, os.environ if program.environment is None else program.environment)
    except OSError as error:
        os.write(failure, f"{error.errno or 5} {what}".encode("utf-8", "surrogateescape")[:4096])
    except BaseException as error:  # noqa: BLE001  (such as a NUL in an argument: whatever it is, exec did not happen)
        os.write(failure, f"22 {what}: {error}".encode("utf-8", "replace")[:4096])
    finally:
        os._exit(127)  # never back into the supervisor's loop
