"""What a lock file of an operation proves, and what it does not. SPEC section 15."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from safepoint.adapters.process.host_facts import HostFacts, read_host_facts
from safepoint.adapters.process.supervisor import ProcessSupervisor
from safepoint.domain.identifiers import OperationId
from safepoint.ports.supervised import Command, Overness

OPERATION = OperationId("op-1")


@pytest.fixture
def ended(locks: Path) -> ProcessSupervisor:
    """A supervisor of whose operation nothing runs any more."""
    supervisor = ProcessSupervisor(locks)
    slot = supervisor.prepare(OPERATION)
    slot.start(Command(("true",)))
    slot.wait()
    assert slot.end() is Overness.OVER
    return supervisor


def seen_from(locks: Path, **changes: str) -> ProcessSupervisor:
    here = read_host_facts()
    facts = {"host": here.host, "boot_id": here.boot_id, "pid_namespace": here.pid_namespace, **changes}
    return ProcessSupervisor(locks, facts=lambda: HostFacts(**facts))


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize("fact", ["host", "pid_namespace"])
def test_a_free_lock_of_elsewhere_proves_nothing(locks: Path, fact: str) -> None:
    assert seen_from(locks, **{fact: "another"}).probe_over(OPERATION) is Overness.COULD_NOT_LOOK


def test_another_boot_of_the_same_host_ended_everything(locks: Path) -> None:
    supervisor = ProcessSupervisor(locks)
    slot = supervisor.prepare(OPERATION)
    slot.start(Command(("sleep", "300")))
    rebooted = seen_from(locks, boot_id="another")
    assert rebooted.probe_over(OPERATION) is Overness.RUNNING  # a lock that is held is held, whatever the file says
    content = (locks / "op-1.lock").read_bytes()
    slot.end()
    with (locks / "op-1.lock").open("r+b") as file:  # as a crash of the whole host would have left it
        file.write(content)
        file.truncate()
    assert supervisor.probe_over(OPERATION) is Overness.COULD_NOT_LOOK
    assert rebooted.probe_over(OPERATION) is Overness.OVER
    elsewhere = seen_from(locks, boot_id="another", host="another")
    assert elsewhere.probe_over(OPERATION) is Overness.COULD_NOT_LOOK


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe"])
def test_a_lock_file_with_other_content_proves_nothing(ended: ProcessSupervisor, locks: Path, content: bytes) -> None:
    (locks / "op-1.lock").write_bytes(content)
    assert ended.probe_over(OPERATION) is Overness.COULD_NOT_LOOK
    assert ended.who_holds(OPERATION) == ()


def test_a_copied_or_renamed_lock_file_proves_nothing(ended: ProcessSupervisor, locks: Path) -> None:
    shutil.copy(locks / "op-1.lock", locks / "copy")
    (locks / "op-1.lock").rename(locks / "op-2.lock")
    assert ended.probe_over(OperationId("op-2")) is Overness.COULD_NOT_LOOK
    (locks / "copy").rename(locks / "op-1.lock")
    assert ended.probe_over(OPERATION) is Overness.COULD_NOT_LOOK


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"operation_id": "op-1"}', b'{"operation_id": "op-2"}'])
def test_a_status_that_cannot_be_read_is_none(ended: ProcessSupervisor, locks: Path, content: bytes) -> None:
    (locks / "op-1.status").write_bytes(content)
    assert ended.status(OPERATION) is None


def test_an_operation_whose_lock_file_was_deleted_can_be_forgotten_but_not_judged(
    ended: ProcessSupervisor, locks: Path
) -> None:
    (locks / "op-1.lock").unlink()
    assert ended.probe_over(OPERATION) is Overness.COULD_NOT_LOOK
    assert ended.forget(OPERATION)
    assert list(locks.iterdir()) == []
