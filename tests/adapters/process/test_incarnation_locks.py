"""Locks of real processes that are really killed. SPEC section 15 and F19."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.process import process_table
from safepoint.adapters.process.incarnations import FileLockIncarnations
from safepoint.domain.identifiers import IncarnationId
from safepoint.ports.contract_kit.supervisor import eventually
from safepoint.ports.incarnations import Incarnation, Liveness, OwnershipUnavailable

from .conftest import Owner

LIVE = """
held = FileLockIncarnations(locks).enter()
tell(held.incarnation.model_dump_json())
"""
COUNT_DESCRIPTORS = """
incarnations = FileLockIncarnations(locks)
before = len(os.listdir("/proc/self/fd"))
for keep in (True, False):
    incarnations.enter().leave(keep_lock_file=keep)
tell(len(os.listdir("/proc/self/fd")) - before)
"""
WAIT = "sys.stdin.readline()\n"
FORK = """
worker = os.fork()
if worker == 0:
    held.leave(keep_lock_file=False)
    tell(os.getpid())
    time.sleep(300)
"""
StartOwner = Callable[[str], Owner]


@pytest.fixture
def incarnations(locks: Path) -> FileLockIncarnations:
    return FileLockIncarnations(locks)


def hear_incarnation(owner: Owner) -> Incarnation:
    return Incarnation.model_validate_json(owner.hear())


def stop(owner: Owner) -> None:
    owner.process.send_signal(signal.SIGSTOP)
    assert eventually(lambda: getattr(process_table.find(owner.process.pid), "stopped", False))


def lock_file(locks: Path, incarnation: Incarnation) -> Path:
    return locks / f"{incarnation.incarnation_id}.lock"


def test_a_killed_owner_is_dead_at_once(incarnations: FileLockIncarnations, start_owner: StartOwner) -> None:
    owner = start_owner(LIVE + WAIT)
    incarnation = hear_incarnation(owner)
    assert incarnations.probe(incarnation) is Liveness.ALIVE
    owner.kill()
    assert incarnations.probe(incarnation) is Liveness.DEAD


def test_a_stopped_owner_is_alive_for_as_long_as_it_is_stopped(
    incarnations: FileLockIncarnations, start_owner: StartOwner
) -> None:
    owner = start_owner(LIVE + WAIT)
    incarnation = hear_incarnation(owner)
    stop(owner)
    assert incarnations.probe(incarnation) is Liveness.ALIVE


def test_a_takeover_ends_a_stopped_owner(incarnations: FileLockIncarnations, start_owner: StartOwner) -> None:
    owner = start_owner(LIVE + WAIT)
    incarnation = hear_incarnation(owner)
    stop(owner)
    assert incarnations.end(incarnation, timeout_seconds=30.0) is Liveness.DEAD
    assert owner.process.wait() == -signal.SIGKILL


def test_a_takeover_lets_an_owner_end_in_order(incarnations: FileLockIncarnations, start_owner: StartOwner) -> None:
    owner = start_owner("signal.signal(signal.SIGTERM, lambda *_: (tell('in order'), sys.exit(7)))\n" + LIVE + WAIT)
    incarnation = hear_incarnation(owner)
    assert incarnations.end(incarnation, timeout_seconds=10.0) is Liveness.DEAD
    assert owner.hear() == "in order"
    assert owner.process.wait() == 7


def test_a_takeover_kills_an_owner_that_does_not_listen(
    incarnations: FileLockIncarnations, start_owner: StartOwner
) -> None:
    owner = start_owner("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LIVE + WAIT)
    incarnation = hear_incarnation(owner)
    incarnations.end(incarnation, timeout_seconds=0.5)
    assert owner.process.wait() == -signal.SIGKILL
    assert incarnations.probe(incarnation) is Liveness.DEAD


def test_a_forked_worker_keeps_neither_alive_nor_ends_its_parents_incarnation(
    incarnations: FileLockIncarnations, start_owner: StartOwner
) -> None:
    owner = start_owner(LIVE + FORK + WAIT)
    incarnation = hear_incarnation(owner)
    worker = int(owner.hear())
    try:
        assert incarnations.probe(incarnation) is Liveness.ALIVE
        owner.kill()
        assert incarnations.probe(incarnation) is Liveness.DEAD
        os.kill(worker, 0)  # which lives on all the same
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_program_that_the_owner_started_does_not_keep_its_lock(
    incarnations: FileLockIncarnations, start_owner: StartOwner
) -> None:
    program = "tell(subprocess.Popen(['sleep', '300'], close_fds=False, stdin=subprocess.DEVNULL).pid)\n"
    owner = start_owner(LIVE + program + WAIT)
    incarnation = hear_incarnation(owner)
    sleeping = int(owner.hear())
    try:
        owner.kill()
        assert incarnations.probe(incarnation) is Liveness.DEAD
        os.kill(sleeping, 0)
    finally:
        os.kill(sleeping, signal.SIGKILL)


def test_an_owner_that_lost_its_lock_by_closing_every_descriptor_is_not_called_dead(
    incarnations: FileLockIncarnations, start_owner: StartOwner
) -> None:
    owner = start_owner(LIVE + "os.closerange(3, 1024)\ntell('closed')\n" + WAIT)
    incarnation = hear_incarnation(owner)
    assert owner.hear() == "closed"
    assert incarnations.probe(incarnation) is Liveness.COULD_NOT_LOOK
    assert incarnations.end(incarnation, timeout_seconds=1.0) is Liveness.COULD_NOT_LOOK
    assert owner.process.poll() is None
    owner.kill()
    assert incarnations.probe(incarnation) is Liveness.DEAD


def test_an_owner_that_left_in_order_is_dead_although_its_process_lives(incarnations: FileLockIncarnations) -> None:
    held = incarnations.enter()
    held.leave(keep_lock_file=True)
    assert incarnations.probe(held.incarnation) is Liveness.DEAD


def test_a_deleted_lock_file_proves_nothing_about_the_living_or_the_dead(
    incarnations: FileLockIncarnations, start_owner: StartOwner, locks: Path
) -> None:
    owner = start_owner(LIVE + WAIT)
    incarnation = hear_incarnation(owner)
    lock_file(locks, incarnation).unlink()
    assert incarnations.probe(incarnation) is Liveness.COULD_NOT_LOOK
    assert incarnations.end(incarnation, timeout_seconds=1.0) is Liveness.COULD_NOT_LOOK
    assert owner.process.poll() is None
    owner.kill()
    assert incarnations.probe(incarnation) is Liveness.COULD_NOT_LOOK


def replace_by_copy(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


def replace_by_empty_file(path: Path) -> None:
    path.unlink()
    path.touch()


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


@pytest.mark.parametrize(
    "replace", [replace_by_copy, replace_by_empty_file, replace_by_folder, replace_by_fifo, replace_by_link]
)
def test_a_lock_file_that_was_exchanged_proves_nothing(
    incarnations: FileLockIncarnations, start_owner: StartOwner, locks: Path, replace: Callable[[Path], None]
) -> None:
    owner = start_owner(LIVE + WAIT)
    incarnation = hear_incarnation(owner)
    replace(lock_file(locks, incarnation))
    assert incarnations.probe(incarnation) is Liveness.COULD_NOT_LOOK
    owner.kill()
    assert incarnations.probe(incarnation) is Liveness.COULD_NOT_LOOK


def test_an_owner_whose_lock_file_was_exchanged_leaves_the_other_file_alone(
    incarnations: FileLockIncarnations, locks: Path
) -> None:
    held = incarnations.enter()
    path = lock_file(locks, held.incarnation)
    replace_by_copy(path)
    held.leave(keep_lock_file=False)
    assert path.exists()


def test_observers_do_not_disturb_one_another(incarnations: FileLockIncarnations, locks: Path) -> None:
    held = incarnations.enter()
    held.leave(keep_lock_file=True)
    with lock_file(locks, held.incarnation).open() as another_observer:
        fcntl.flock(another_observer, fcntl.LOCK_SH)
        assert incarnations.probe(held.incarnation) is Liveness.DEAD


def test_an_error_while_looking_is_no_answer(tmp_path: Path, incarnations: FileLockIncarnations) -> None:
    held = incarnations.enter()
    (tmp_path / "file").touch()
    assert FileLockIncarnations(tmp_path / "file").probe(held.incarnation) is Liveness.COULD_NOT_LOOK
    held.leave(keep_lock_file=False)


def test_nothing_is_owned_where_locks_do_not_exclude(
    incarnations: FileLockIncarnations, locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)  # as some network file systems do
    with pytest.raises(OwnershipUnavailable, match="do not exclude"):
        incarnations.enter()
    assert list(locks.iterdir()) == []


def test_nothing_is_owned_where_no_file_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OwnershipUnavailable, match="file"):
        FileLockIncarnations(tmp_path / "file").enter()


def test_an_id_that_was_used_before_is_refused(locks: Path) -> None:
    incarnations = FileLockIncarnations(locks, new_id=lambda: IncarnationId("once"))
    held = incarnations.enter()
    with pytest.raises(OwnershipUnavailable):
        incarnations.enter()
    assert incarnations.probe(held.incarnation) is Liveness.ALIVE
    held.leave(keep_lock_file=False)
    assert list(locks.iterdir()) == []


def test_a_file_system_without_links_will_do(
    incarnations: FileLockIncarnations, locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    held = incarnations.enter()
    assert [path.name for path in locks.iterdir()] == [f"{held.incarnation.incarnation_id}.lock"]
    assert incarnations.probe(held.incarnation) is Liveness.ALIVE
    held.leave(keep_lock_file=False)


def test_an_id_is_not_a_path(locks: Path, tmp_path: Path) -> None:
    incarnations = FileLockIncarnations(locks, new_id=lambda: IncarnationId("../../Ü" + "x" * 190))
    held = incarnations.enter()
    assert incarnations.probe(held.incarnation) is Liveness.ALIVE
    assert [path.parent for path in tmp_path.rglob("*.lock")] == [locks]
    held.leave(keep_lock_file=False)


def test_only_its_user_can_read_a_lock_file(incarnations: FileLockIncarnations, locks: Path) -> None:
    held = incarnations.enter()
    assert stat.S_IMODE(lock_file(locks, held.incarnation).stat().st_mode) == 0o600
    assert stat.S_IMODE(locks.stat().st_mode) == 0o700
    held.leave(keep_lock_file=False)


def test_entering_and_leaving_keeps_no_descriptor(start_owner: StartOwner) -> None:
    owner = start_owner(COUNT_DESCRIPTORS)
    assert owner.hear() == "0"


def test_a_worker_that_enters_has_a_life_of_its_own(
    incarnations: FileLockIncarnations, start_owner: StartOwner
) -> None:
    worker = "if os.fork() == 0:\n    own = FileLockIncarnations(locks).enter()\n"
    owner = start_owner(LIVE + worker + "    tell(own.incarnation.model_dump_json())\n    time.sleep(300)\n" + WAIT)
    parent, child = hear_incarnation(owner), hear_incarnation(owner)
    try:
        owner.kill()
        assert incarnations.probe(parent) is Liveness.DEAD
        assert incarnations.probe(child) is Liveness.ALIVE
    finally:
        os.kill(child.pid, signal.SIGKILL)
    assert eventually(lambda: incarnations.probe(child) is Liveness.DEAD)
