"""A process that writes to a store and may be killed: run by the tests beside it.

Usage: writer_program.py PATH COMMAND [ARGUMENT …]; prints one line per fact that the test looks at.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from safepoint.adapters.sqlite.store import SqliteStore, open_reader, open_store
from safepoint.domain.errors import StoreError, StoreUnavailable
from safepoint.ports.contract_kit.recorded_runs import RecordedSession
from safepoint.ports.event_store import Stored


def say(*words: object) -> None:
    """Print at once: the process may not live to flush."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def begin(store: SqliteStore, name: str) -> RecordedSession:
    """Own a session and open its first run."""
    one = RecordedSession(name)
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    return one


def write(path: Path, name: str, commits: str) -> None:
    """Write so many commits to a session of its own, and say each that was answered."""
    store = open_store(path, busy_timeout_seconds=60)
    one = begin(store, name)
    for n in range(int(commits)):
        one.keep(store.events, one.text(f"{n}"))
        say("kept", n)
    store.close()


def write_for_ever(path: Path, name: str) -> None:
    """Write commit after commit to a session of its own, until killed."""
    store = open_store(path, busy_timeout_seconds=60)
    one = begin(store, name)
    say("begun")
    n = 0
    while True:
        n += 1
        one.keep(store.events, one.text(f"{n}"))


def write_and_die(path: Path, commits: str) -> None:
    """Write, then die with everything open."""
    store = open_store(path)
    one = begin(store, "one")
    for n in range(int(commits)):
        one.keep(store.events, one.text(f"{n}"))
    say("dying")
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(path: Path, point: str) -> None:
    """Die at an instant of the second transaction that keeps events."""
    armed = False

    def on_point(reached: str) -> None:
        if armed and reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    store = open_store(path, on_point=on_point)
    one = begin(store, "one")
    armed = True
    one.keep(store.events, one.text("never answered"))


def die_everywhere(path: Path) -> None:
    """For each instant of one transaction of two commits, a store of its own whose writer dies there."""
    n = 0
    while True:
        n += 1
        child = os.fork()
        if child == 0:
            _die_at_instant(path.with_name(f"{path.name}-{n}"), n)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            say("instants", n - 1, "status", os.WEXITSTATUS(status))
            return


def _die_at_instant(path: Path, instant: int) -> None:
    reached: list[str] | None = None

    def on_point(point: str) -> None:
        if reached is None:
            return
        reached.append(point)
        if len(reached) == instant:
            say("died", instant, point)
            os.kill(os.getpid(), signal.SIGKILL)

    store = open_store(path, on_point=on_point)
    one, two = begin(store, "one"), begin(store, "two")
    commits = [
        made.commit(made.called(call), made.dispatched(call), made.responded(call))
        for made, call in ((one, "x"), (two, "y"))
    ]
    reached = []
    answers = store.events.append(commits)
    store.close()
    os._exit(0 if answers == [Stored(), Stored()] else 1)


def fill(path: Path, bytes_max: str) -> None:
    """Write until the files may grow no more; say what was answered and what was raised."""
    store = open_store(path)
    one = begin(store, "one")
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(bytes_max), resource.RLIM_INFINITY))
    kept = 0
    try:
        while True:
            one.keep(store.events, one.text("x" * 20_000))
            kept += 1
    except StoreError as error:
        say("kept", kept, type(error).__name__, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with store.events.snapshot() as reader:
        say("stored", len(reader.read(f"run:{one.run_id()}")) - 2)
    store.close()


def fill_with_owners(path: Path) -> None:
    """Take sessions until the log may grow no more; say what was raised, and how many are stored."""
    store = open_store(path)
    begin(store, "one")
    size = path.with_name(f"{path.name}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    taken = 0
    try:
        while True:
            RecordedSession(f"{taken:05}").own(store.owners)
            taken += 1
    except StoreUnavailable as error:
        say("taken", taken, error.no_room, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    say("stored", len(store.owned_sessions(limit=10_000)) - 1)
    store.close()


def without_rights(path: Path, folder_mode: str, file_mode: str, anchor_mode: str | None = None) -> None:
    """Open and write as somebody whom the folder's and the files' modes concern."""
    for file in path.parent.glob(f"{path.name}*"):
        file.chmod(int(file_mode, 8))
    path.with_name(f"{path.name}.anchor").chmod(int(anchor_mode or file_mode, 8))
    path.parent.chmod(int(folder_mode, 8))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    for kind, opening in (("reader", open_reader), ("writer", open_store)):
        try:
            store = opening(path)
            if kind == "writer":
                begin(store, "nobody")
            say(kind, "condition", store.condition().trust)
        except StoreError as error:
            say(kind, type(error).__name__, error)


def in_a_fork(path: Path) -> None:
    """Use an open store in a forked child, and then in the parent."""
    store = open_store(path)
    one = begin(store, "one")
    child = os.fork()
    if child == 0:
        for kind, use in (
            ("append", lambda: store.events.append([one.commit(one.text("child"))])),
            ("snapshot", lambda: store.events.snapshot().__enter__()),
            ("owner", lambda: store.owners.owner(one.session_id)),
        ):
            try:
                use()
                say("child", kind, "answered")
            except StoreError as error:
                say("child", kind, type(error).__name__)
        os._exit(0)
    os.waitpid(child, 0)
    one.keep(store.events, one.text("parent"))
    say("parent wrote")
    store.close()


if __name__ == "__main__":
    command = sys.argv[2].replace("-", "_")
    globals()[command](Path(sys.argv[1]), *sys.argv[3:])
