"""Incarnations as locked files and processes of this host. SPEC section 15."""

from __future__ import annotations

import errno
import json
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from ...domain.identifiers import IncarnationId
from ...ports.incarnations import HeldIncarnation, Incarnation, Incarnations, Liveness, OwnershipUnavailable
from . import ending, file_lock, process_table
from .fork_privacy import close_private, open_private
from .host_facts import HostFacts, read_host_facts
from .locks_folder import LocksFolder


def fresh_incarnation_id() -> IncarnationId:
    """A random id; the name of a lock file, so never one that was used before."""
    return IncarnationId(uuid.uuid4().hex)


class FileLockIncarnations(Incarnations):
    """The lives of processes that share a locks folder.

    Args:
        folder: `<store>.locks`; made when the first life begins.
        new_id: where ids come from; each must be fresh.
        facts: of this host; tests give others.
    """

    def __init__(
        self,
        folder: Path,
        *,
        new_id: Callable[[], IncarnationId] = fresh_incarnation_id,
        facts: Callable[[], HostFacts] = read_host_facts,
    ) -> None:
        self._folder = LocksFolder(folder)
        self._new_id = new_id
        self._facts = facts

    def enter(self) -> HeldIncarnation:
        """Begin a life of this process. See the port."""
        try:
            facts, process = self._facts(), process_table.find(os.getpid())
            if process is None:
                raise OSError("this process does not stand in the process table")
            incarnation = Incarnation(
                incarnation_id=self._new_id(),
                pid=process.pid,
                process_start_time=process.start_time,
                host=facts.host,
                boot_id=facts.boot_id,
                pid_namespace=facts.pid_namespace,
            )
            self._folder.make()
            path = self._folder.lock(incarnation.incarnation_id)
            (descriptor,) = open_private(lambda: (_lock_new_file(path, incarnation),))
            held = _HeldLock(incarnation, path, descriptor)
            if self.probe(incarnation) is not Liveness.ALIVE:  # some network file systems grant every lock
                held.leave(keep_lock_file=False)
                raise OSError("locks do not exclude each other on this file system")
        except OSError as error:
            raise OwnershipUnavailable(str(error)) from error
        return held

    def probe(self, incarnation: Incarnation) -> Liveness:
        """Look at the lock, then at what else could contradict it. See the port."""
        try:
            here = self._facts()
            another_boot = incarnation.host == here.host and incarnation.boot_id != here.boot_id
            try:
                seen = file_lock.look(str(self._folder.lock(incarnation.incarnation_id)))
            except FileNotFoundError:
                return Liveness.DEAD if another_boot else Liveness.COULD_NOT_LOOK
            if seen.held:  # whatever else is true: somebody holds it
                return Liveness.ALIVE
            if another_boot:
                return Liveness.DEAD
            if incarnation.host != here.host or incarnation.pid_namespace != here.pid_namespace:
                return Liveness.COULD_NOT_LOOK
            left = _read_proof(seen, incarnation)
            if left is None:
                return Liveness.COULD_NOT_LOOK
            # A process that lost its lock by closing all descriptors lives on: contradicting evidence proves nothing.
            return Liveness.DEAD if left or not _lives(incarnation) else Liveness.COULD_NOT_LOOK
        except OSError:
            return Liveness.COULD_NOT_LOOK

    def end(self, incarnation: Incarnation, timeout_seconds: float) -> Liveness:
        """End the process that still holds the lock. See the port."""
        before = self.probe(incarnation)
        if before is not Liveness.ALIVE or incarnation.pid == os.getpid():
            return before
        here = self._facts()
        if (incarnation.host, incarnation.boot_id, incarnation.pid_namespace) != (
            here.host,
            here.boot_id,
            here.pid_namespace,
        ):
            return before
        ending.end_process(
            incarnation.pid,
            incarnation.process_start_time,
            is_over=lambda: self._has_gone(incarnation),
            grace_seconds=min(15.0, timeout_seconds / 2),
            timeout_seconds=timeout_seconds,
        )
        return self.probe(incarnation)

    def _has_gone(self, incarnation: Incarnation) -> bool:
        """Nobody holds the lock, and the process is gone; one that left in order may have taken its file with it."""
        try:
            return self.probe(incarnation) is not Liveness.ALIVE and not _lives(incarnation)
        except OSError:
            return False


class _HeldLock(HeldIncarnation):
    def __init__(self, incarnation: Incarnation, path: Path, descriptor: int) -> None:
        self._incarnation = incarnation
        self._path = path
        self._descriptor: int | None = descriptor
        self._turn = threading.Lock()

    @property
    def incarnation(self) -> Incarnation:
        """The facts that stand in the lock file."""
        return self._incarnation

    def leave(self, *, keep_lock_file: bool) -> None:
        """Release the lock; the file goes before it, or stays and says that its owner left. See the port."""
        if os.getpid() != self._incarnation.pid:
            return
        with self._turn:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is None:
                return
            try:
                if keep_lock_file:
                    file_lock.write_content(descriptor, _proof(self._incarnation, descriptor, left=True))
                elif file_lock.names(str(self._path), descriptor):
                    self._path.unlink(missing_ok=True)
            except OSError:  # what stays is a free lock, as after a kill: it proves that its owner is over
                pass
            finally:
                file_lock.unlock(descriptor)
                close_private(descriptor)


def _lock_new_file(path: Path, incarnation: Incarnation) -> int:
    """Make the file under a hidden name, locked and written, and only then show it: nobody sees it free or empty."""
    hidden = path.with_name(f".{path.name}.new")
    descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not file_lock.try_lock(descriptor, shared=False):
            raise OSError("a new file is locked already")
        file_lock.write_content(descriptor, _proof(incarnation, descriptor, left=False))
        _show(hidden, path)
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        hidden.unlink(missing_ok=True)
    return descriptor


def _show(hidden: Path, path: Path) -> None:
    """Give the file its name, unless that is taken."""
    try:
        os.link(hidden, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS) or path.exists():
            raise
        hidden.rename(path)  # a file system without links; ids are fresh, so nobody else makes this name


def _proof(incarnation: Incarnation, descriptor: int, *, left: bool) -> bytes:
    """What the file says: whose it is, and which file it is, so that a copy or a restored one proves nothing."""
    proof = {"incarnation": incarnation.model_dump(), "inode": os.fstat(descriptor).st_ino, "left": left}
    return json.dumps(proof).encode("ascii") + b"\n"


def _read_proof(seen: file_lock.LockLook, incarnation: Incarnation) -> bool | None:
    """Whether the owner left in order; None when the file is not the one that this incarnation locked."""
    try:
        proof = json.loads(seen.content)
        if Incarnation.model_validate(proof["incarnation"]) != incarnation or proof["inode"] != seen.inode:
            return None
        return bool(proof["left"])
    except (ValueError, KeyError, TypeError, ValidationError):
        return None


def _lives(incarnation: Incarnation) -> bool:
    process = process_table.find(incarnation.pid)
    return process is not None and process.start_time == incarnation.process_start_time and not process.ended
