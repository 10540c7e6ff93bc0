"""Commands from other processes, over a Unix socket beside the incarnation's lock. SPEC section 7."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ...ports.handover import (
    Handler,
    Handover,
    HandoverUnavailable,
    Listener,
    Message,
    NoAnswer,
    Reply,
    WhyNoAnswer,
)
from ...ports.incarnations import Incarnation
from .fork_privacy import close_private, open_private
from .handover_lines import LineRefused, encode, receive_line, send_line
from .locks_folder import LocksFolder
from .socket_path import socket_address

REQUEST_SECONDS_MAX = 5.0  # for a request to arrive, and for a reply to be taken
CLOSE_SECONDS_MAX = 5.0
HANDLERS_MAX = 16


class UnixSocketHandover(Handover):
    """One line of JSON each way; only processes of this user (or root) are heard.

    Args:
        folder: `<store>.locks`, in which the incarnation's lock stands.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = LocksFolder(folder)

    def serve(self, incarnation: Incarnation, handler: Handler) -> Listener:
        """Open the socket and a thread that accepts. See the port."""
        if incarnation.pid != os.getpid():
            raise HandoverUnavailable("the incarnation is not a life of this process")
        path = self._folder.socket(incarnation.incarnation_id)
        try:
            self._folder.make()
            (descriptor,) = open_private(lambda: (_listen(path),))
        except OSError as error:
            raise HandoverUnavailable(str(error)) from error
        return _SocketListener(path, descriptor, handler)

    def ask(self, incarnation: Incarnation, request: Message, timeout_seconds: float) -> Reply | NoAnswer:
        """Connect, send, and wait for the reply. See the port."""
        deadline = time.monotonic() + timeout_seconds
        line = encode(request)
        if line is None:
            return NoAnswer(WhyNoAnswer.TOO_LARGE, may_have_been_handled=False)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.settimeout(timeout_seconds)
                with socket_address(self._folder.socket(incarnation.incarnation_id)) as address:
                    connection.connect(address)
            except TimeoutError:
                return NoAnswer(WhyNoAnswer.TIMED_OUT, may_have_been_handled=False)
            except BlockingIOError:
                return NoAnswer(WhyNoAnswer.BUSY, may_have_been_handled=False)
            except OSError:
                return NoAnswer(WhyNoAnswer.NOT_LISTENING, may_have_been_handled=False)
            try:
                with contextlib.suppress(BrokenPipeError):  # refused before it was read: the answer says why
                    send_line(connection, line, deadline)
                return _read_answer(receive_line(connection, deadline))
            except TimeoutError:
                return NoAnswer(WhyNoAnswer.TIMED_OUT, may_have_been_handled=True)
            except (OSError, LineRefused):
                return NoAnswer(WhyNoAnswer.BROKEN_OFF, may_have_been_handled=True)


class _SocketListener(Listener):
    def __init__(self, path: Path, descriptor: int, handler: Handler) -> None:
        self._path = path
        self._descriptor = descriptor
        self._wakened, self._wake = open_private(os.pipe)
        self._handler = handler
        self._owner_pid = os.getpid()
        self._places = threading.BoundedSemaphore(HANDLERS_MAX)
        self._closing = threading.Lock()
        self._closed = False
        self._handling: set[threading.Thread] = set()
        self._accepting = threading.Thread(target=self._accept_all, name="handover", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Take the socket away, wake the thread that accepts, wait for those that handle. See the port."""
        with self._closing:
            if self._closed or os.getpid() != self._owner_pid:
                return
            self._closed = True
        deadline = time.monotonic() + CLOSE_SECONDS_MAX
        with contextlib.suppress(OSError):  # a socket that nobody hears says no more than none
            self._path.unlink(missing_ok=True)
        close_private(self._wake)
        for thread in (self._accepting, *self._handling):
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _accept_all(self) -> None:
        with _borrowed(self._descriptor) as listening:
            listening.setblocking(False)
            poll = select.poll()
            poll.register(listening, select.POLLIN)
            poll.register(self._wakened, select.POLLIN)
            while not self._closed:
                poll.poll()
                try:
                    connection, _ = listening.accept()
                except BlockingIOError:
                    continue
                except OSError:
                    time.sleep(0.05)  # out of descriptors: others may give some back
                    continue
                thread = threading.Thread(target=self._handle, args=(connection,), name="handover", daemon=True)
                self._handling.add(thread)
                try:
                    thread.start()
                except RuntimeError:  # no more threads: this one is not heard
                    self._handling.discard(thread)
                    connection.close()
        close_private(self._descriptor)
        close_private(self._wakened)

    def _handle(self, connection: socket.socket) -> None:
        (descriptor,) = open_private(lambda: (connection.detach(),))
        try:
            with _borrowed(descriptor) as borrowed, contextlib.suppress(OSError, LineRefused):
                answer = self._answer(borrowed)
                send_line(borrowed, answer, time.monotonic() + REQUEST_SECONDS_MAX)
        finally:
            close_private(descriptor)
            self._handling.discard(threading.current_thread())

    def _answer(self, connection: socket.socket) -> bytes:
        if not _is_same_user(connection):
            return _refusal(WhyNoAnswer.NOT_LISTENING)
        if not self._places.acquire(blocking=False):
            return _refusal(WhyNoAnswer.BUSY)
        try:
            request = json.loads(receive_line(connection, time.monotonic() + REQUEST_SECONDS_MAX))
            if not isinstance(request, dict):
                return _refusal(WhyNoAnswer.GARBLED)
            try:
                answer = encode({"reply": dict(self._handler(request))})
            except Exception:  # noqa: BLE001  (whatever a handler raises must neither end the listener nor leak)
                return _refusal(WhyNoAnswer.HANDLER_FAILED)
            return answer or _refusal(WhyNoAnswer.HANDLER_FAILED)
        except (ValueError, RecursionError, TimeoutError):
            return _refusal(WhyNoAnswer.GARBLED)
        finally:
            self._places.release()


def _listen(path: Path) -> int:
    """Bind and listen, for this user alone; refused where the name is taken."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listening.fileno(), 0o600)  # before bind, which gives the file this mode (Linux)
        with socket_address(path) as address:
            listening.bind(address)
        path.chmod(0o600)
        listening.listen(HANDLERS_MAX)
        return listening.detach()
    except BaseException:
        listening.close()
        raise


@contextlib.contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    """A socket object for the time of the block, which does not own its descriptor."""
    borrowed = socket.socket(fileno=descriptor)
    try:
        yield borrowed
    finally:
        borrowed.detach()


def _is_same_user(connection: socket.socket) -> bool:
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the folder and the socket are closed to others
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], "little") in (0, os.geteuid())


def _refusal(why: WhyNoAnswer) -> bytes:
    return json.dumps({"refused": why.value}).encode("ascii")


def _read_answer(line: bytes) -> Reply | NoAnswer:
    try:
        answer = json.loads(line)
        if "refused" in answer:
            why = WhyNoAnswer(answer["refused"])
            return NoAnswer(why, may_have_been_handled=why is WhyNoAnswer.HANDLER_FAILED)
        if isinstance(answer["reply"], dict):
            return Reply(answer["reply"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return NoAnswer(WhyNoAnswer.GARBLED, may_have_been_handled=True)
