"""A real socket between real processes, and what may come in through it. SPEC section 7."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safepoint.adapters.process.handover import HANDLERS_MAX, UnixSocketHandover
from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.adapters.process.socket_path import socket_address
from safepoint.ports.contract_kit.supervisor import eventually
from safepoint.ports.handover import HandoverUnavailable, Message, NoAnswer, Reply, WhyNoAnswer
from safepoint.ports.incarnations import Incarnation

from .conftest import Owner

SERVE = """
incarnation = FileLockIncarnations(locks).enter().incarnation
def handler(request):
    if request.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"pid": os.getpid()}
listener = UnixSocketHandover(locks).serve(incarnation, handler)
tell(incarnation.model_dump_json())
"""
COUNT_DESCRIPTORS = """
incarnation = FileLockIncarnations(locks).enter().incarnation
handover = UnixSocketHandover(locks)
before = len(os.listdir("/proc/self/fd"))
for _ in range(3):
    listener = handover.serve(incarnation, lambda request: request)
    handover.ask(incarnation, {}, 60.0)
    listener.close()
tell(len(os.listdir("/proc/self/fd")) - before)
"""
WAIT = "sys.stdin.readline()\n"
NOT_LISTENING = NoAnswer(WhyNoAnswer.NOT_LISTENING, may_have_been_handled=False)


@pytest.fixture
def handover(locks: Path) -> UnixSocketHandover:
    return UnixSocketHandover(locks)


@pytest.fixture
def incarnation(locks: Path) -> Iterator[Incarnation]:
    held = FileLockIncarnations(locks).enter()
    yield held.incarnation
    held.leave(keep_lock_file=False)


@pytest.fixture
def path(locks: Path, incarnation: Incarnation) -> Path:
    return locks / f"{incarnation.incarnation_id}.sock"


@pytest.fixture
def listening(handover: UnixSocketHandover, incarnation: Incarnation) -> Iterator[list[Message]]:
    asked: list[Message] = []

    def handle(request: Message) -> Message:
        asked.append(request)
        return {"asked": len(asked)}

    listener = handover.serve(incarnation, handle)
    yield asked
    listener.close()


def connect(connection: socket.socket, path: Path) -> None:
    with socket_address(path) as address:
        connection.connect(address)


def send_raw(path: Path, content: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60.0)
        connect(connection, path)
        received = b""
        try:
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                received += chunk
        except (BrokenPipeError, ConnectionResetError):
            pass
        return received


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\n",
        b"no json\n",
        b"[1, 2]\n",
        b'"text"\n',
        b"\xff\xfe\0\n",
        b'{"never": "ended"',
        b"[" * 60_000 + b"\n",
        b"x" * 2_000_000,
        b'{"a": "' + b"x" * 2_000_000 + b'"}\n',
    ],
    ids=lambda garbage: repr(garbage[:12]),
)
def test_garbage_is_survived_and_not_handled(
    handover: UnixSocketHandover, incarnation: Incarnation, path: Path, listening: list[Message], garbage: bytes
) -> None:
    assert b"reply" not in send_raw(path, garbage)
    assert listening == []
    assert handover.ask(incarnation, {"a": 1}, 60.0) == Reply({"asked": 1})


def test_whoever_connects_and_says_nothing_holds_up_a_bounded_number_of_places(
    handover: UnixSocketHandover, incarnation: Incarnation, path: Path, listening: list[Message]
) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(HANDLERS_MAX)]
    try:
        for connection in silent:
            connect(connection, path)
        busy = NoAnswer(WhyNoAnswer.BUSY, may_have_been_handled=False)
        assert eventually(lambda: handover.ask(incarnation, {}, 60.0) == busy)
    finally:
        for connection in silent:
            connection.close()
    assert eventually(lambda: isinstance(handover.ask(incarnation, {}, 60.0), Reply))
    assert listening


def test_many_may_ask_at_once(handover: UnixSocketHandover, incarnation: Incarnation, listening: list[Message]) -> None:
    replies = []

    def ask() -> None:
        answer = handover.ask(incarnation, {}, 60.0)
        if isinstance(answer, Reply):
            replies.append(answer.message["asked"])

    threads = [threading.Thread(target=ask) for _ in range(HANDLERS_MAX)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == len(listening) == HANDLERS_MAX


@pytest.mark.usefixtures("listening")
def test_only_its_user_may_connect(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_closing_waits_for_a_handler_that_runs(
    handover: UnixSocketHandover, incarnation: Incarnation, path: Path
) -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def handle(request: Message) -> Message:
        begun.set()
        may_end.wait(60.0)
        ended.set()
        return {}

    listener = handover.serve(incarnation, handle)
    asking = threading.Thread(target=handover.ask, args=(incarnation, {}, 60.0))
    asking.start()
    begun.wait(60.0)
    closing = threading.Thread(target=listener.close)
    closing.start()
    assert eventually(lambda: not path.exists())
    may_end.set()
    closing.join()
    assert ended.is_set()
    asking.join()


def test_a_handler_may_close_its_own_listener(handover: UnixSocketHandover, incarnation: Incarnation) -> None:
    closers: list[Callable[[], None]] = []

    def handle(request: Message) -> Message:
        closers[0]()
        return {"closed": True}

    closers.append(handover.serve(incarnation, handle).close)
    assert handover.ask(incarnation, {}, 60.0) == Reply({"closed": True})
    assert handover.ask(incarnation, {}, 60.0) == NOT_LISTENING


def test_listening_and_closing_keeps_no_descriptor(start_owner: Callable[[str], Owner]) -> None:
    owner = start_owner(COUNT_DESCRIPTORS)
    assert owner.hear() == "0"


def test_nobody_listens_for_another_process(handover: UnixSocketHandover, start_owner: Callable[[str], Owner]) -> None:
    owner = start_owner(SERVE + WAIT)
    other = Incarnation.model_validate_json(owner.hear())
    with pytest.raises(HandoverUnavailable):
        handover.serve(other, lambda request: request)


def test_a_command_reaches_another_process(handover: UnixSocketHandover, start_owner: Callable[[str], Owner]) -> None:
    owner = start_owner(SERVE + WAIT)
    other = Incarnation.model_validate_json(owner.hear())
    assert handover.ask(other, {}, 60.0) == Reply({"pid": owner.process.pid})


def test_a_stopped_process_gives_no_answer_in_time(
    handover: UnixSocketHandover, start_owner: Callable[[str], Owner]
) -> None:
    owner = start_owner(SERVE + WAIT)
    other = Incarnation.model_validate_json(owner.hear())
    owner.process.send_signal(signal.SIGSTOP)
    assert handover.ask(other, {}, 0.2) == NoAnswer(WhyNoAnswer.TIMED_OUT, may_have_been_handled=True)


def test_a_process_that_dies_while_it_handles_leaves_the_effect_open(
    handover: UnixSocketHandover, start_owner: Callable[[str], Owner]
) -> None:
    owner = start_owner(SERVE + WAIT)
    other = Incarnation.model_validate_json(owner.hear())
    broken_off = NoAnswer(WhyNoAnswer.BROKEN_OFF, may_have_been_handled=True)
    assert handover.ask(other, {"die": True}, 60.0) == broken_off
    owner.process.wait()
    assert handover.ask(other, {}, 60.0) == NOT_LISTENING


def test_a_forked_worker_neither_answers_nor_holds_its_parents_socket(
    handover: UnixSocketHandover, start_owner: Callable[[str], Owner]
) -> None:
    fork = "worker = os.fork()\nif worker == 0:\n    listener.close()\n    tell(os.getpid())\n    time.sleep(300)\n"
    owner = start_owner(SERVE + fork + WAIT)
    other = Incarnation.model_validate_json(owner.hear())
    worker = int(owner.hear())
    try:
        assert handover.ask(other, {}, 60.0) == Reply({"pid": owner.process.pid})
        owner.kill()
        assert handover.ask(other, {}, 60.0) == NOT_LISTENING
    finally:
        os.kill(worker, signal.SIGKILL)


def test_where_a_path_is_too_long_for_an_address_nothing_is_heard_and_the_owner_works_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    held = FileLockIncarnations(deep).enter()
    monkeypatch.setattr(sys, "platform", "darwin")  # Linux has a short cut to an open folder
    with pytest.raises(HandoverUnavailable, match="longer than 103 bytes"):
        UnixSocketHandover(deep).serve(held.incarnation, lambda request: request)
    assert UnixSocketHandover(deep).ask(held.incarnation, {}, 1.0) == NOT_LISTENING
    held.leave(keep_lock_file=False)
