"""Workspace identity by a marker file, on a real file system."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from safepoint.adapters.memory.ids import CountingIds
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.workspace.marker_identity import MarkerWorkspaceIdentity
from safepoint.ports.workspace import (
    MARKER_NAME,
    Absent,
    CouldNotLook,
    MarkerFault,
    WorkspaceMissing,
    WorkspaceRefused,
    WorkspaceSeen,
)

WHOLE = '{"schema_version":1,"uuid":"01901234-5678-7000-8000-000000000000"}'


@pytest.fixture
def identity() -> MarkerWorkspaceIdentity:
    return MarkerWorkspaceIdentity(Uuid7Ids())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "w"
    made.mkdir()
    return made


def ensured(identity: MarkerWorkspaceIdentity, path: Path | str) -> WorkspaceSeen:
    seen = identity.ensure(str(path))
    assert isinstance(seen, WorkspaceSeen), seen
    return seen


def test_the_marker_holds_a_schema_version_and_a_uuid(identity: MarkerWorkspaceIdentity, folder: Path) -> None:
    seen = ensured(identity, folder)
    marker = json.loads((folder / MARKER_NAME).read_bytes())
    assert set(marker) == {"schema_version", "uuid"}
    assert marker["schema_version"] == 1
    assert str(UUID(marker["uuid"])) == marker["uuid"]
    assert seen == WorkspaceSeen(f"workspace:v1:{marker['uuid']}", str(folder), None)
    assert [entry.name for entry in folder.iterdir()] == [MARKER_NAME]


def test_what_else_a_marker_says_is_left_to_whoever_wrote_it(identity: MarkerWorkspaceIdentity, folder: Path) -> None:
    text = WHOLE.replace("}", ', "note": "ours"}')
    (folder / MARKER_NAME).write_text(text)
    assert ensured(identity, folder).identity == "workspace:v1:01901234-5678-7000-8000-000000000000"
    assert (folder / MARKER_NAME).read_text() == text


def link_to_a_whole_one(path: Path) -> None:
    path.with_name("real").write_text(WHOLE)
    path.symlink_to("real")


def refused_markers() -> list[tuple[str, Callable[[Path], object], MarkerFault]]:
    def write(text: str | bytes) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(text.encode() if isinstance(text, str) else text)

    malformed: dict[str, str | bytes] = {
        "empty": "",
        "half": WHOLE[:30],
        "nuls": b"\0" * 70,
        "list": "[]",
        "without uuid": '{"schema_version":1}',
        "without version": '{"uuid":"01901234-5678-7000-8000-000000000000"}',
        "version as text": WHOLE.replace("1,", '"1",'),
        "version as truth": WHOLE.replace(":1,", ":true,"),
        "version zero": WHOLE.replace(":1,", ":0,"),
        "uuid as number": '{"schema_version":1,"uuid":1}',
        "uuid in capitals": WHOLE.replace("01901234", "0190ABCD"),
        "uuid with more": WHOLE.replace('0"}', '0\\n"}'),
        "a path in place of a uuid": '{"schema_version":1,"uuid":"../../etc"}',
        "twice": WHOLE.replace("}", ',"uuid":"01901234-5678-7000-8000-000000000001"}'),
        "bom": b"\xef\xbb\xbf" + WHOLE.encode(),
    }
    return [
        *((name, write(text), MarkerFault.MALFORMED) for name, text in malformed.items()),
        ("newer", write(WHOLE.replace(":1,", ":2,")), MarkerFault.NEWER),
        ("large", write(WHOLE + " " * 5_000), MarkerFault.OVERSIZED),
        ("link", link_to_a_whole_one, MarkerFault.SYMLINKED),
        ("dangling link", lambda path: path.symlink_to("nowhere"), MarkerFault.SYMLINKED),
        ("folder", lambda path: path.mkdir(), MarkerFault.NOT_A_FILE),
        ("pipe", os.mkfifo, MarkerFault.NOT_A_FILE),
    ]


@pytest.mark.parametrize(("name", "make", "fault"), refused_markers())
def test_a_marker_that_cannot_be_trusted_is_refused_and_never_replaced(
    identity: MarkerWorkspaceIdentity, folder: Path, name: str, make: Callable[[Path], object], fault: MarkerFault
) -> None:
    make(folder / MARKER_NAME)
    before = os.lstat(folder / MARKER_NAME)
    for look in (identity.observe, identity.ensure):
        seen = look(str(folder))
        assert isinstance(seen, WorkspaceRefused), name
        assert seen.fault is fault
    after = os.lstat(folder / MARKER_NAME)
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)


def test_something_that_is_no_folder_is_refused(identity: MarkerWorkspaceIdentity, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    seen = identity.ensure(str(tmp_path / "file"))
    assert isinstance(seen, WorkspaceRefused)
    assert seen.fault is MarkerFault.NOT_A_FOLDER


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_a_path_that_is_none_is_not_looked_at(identity: MarkerWorkspaceIdentity, path: str) -> None:
    assert isinstance(identity.observe(path), WorkspaceMissing | CouldNotLook)


def test_a_marker_that_cannot_be_made_is_said_and_not_pretended(
    identity: MarkerWorkspaceIdentity, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "rename", refuse)
    seen = identity.ensure(str(folder))
    assert isinstance(seen, CouldNotLook)
    assert "Permission denied" in seen.detail
    assert list(folder.iterdir()) == []


def test_another_spelling_of_the_place_is_the_same_workspace(
    identity: MarkerWorkspaceIdentity, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field report r3-102, as far as it can be shown on a disk that tells case apart: there, `W` is another place."""
    first = ensured(identity, folder)
    (folder.parent / "other name").symlink_to(folder)
    monkeypatch.chdir(folder.parent)
    for spelling in (f"{folder}/", f"{folder}/.", "w", str(folder.parent / "other name")):
        assert ensured(identity, spelling) == first
    (folder.parent / "W").mkdir()
    assert ensured(identity, folder.parent / "W").identity != first.identity


def test_paths_that_a_slug_would_confuse_are_two_workspaces(identity: MarkerWorkspaceIdentity, tmp_path: Path) -> None:
    """Field report r3-104."""
    seen = []
    for path in ("my-proj-a", "my/proj/a"):
        (tmp_path / path).mkdir(parents=True)
        seen.append(ensured(identity, tmp_path / path))
    assert len({one.identity for one in seen}) == 2
    assert [one.canonical_path for one in seen] == [
        str(tmp_path.resolve() / path) for path in ("my-proj-a", "my/proj/a")
    ]


def test_ids_that_are_no_uuids_still_make_a_legal_marker(folder: Path) -> None:
    assert ensured(MarkerWorkspaceIdentity(CountingIds()), folder) == ensured(
        MarkerWorkspaceIdentity(Uuid7Ids()), folder
    )


def test_a_workspace_inside_another_has_its_own_identity(identity: MarkerWorkspaceIdentity, folder: Path) -> None:
    (folder / "inner").mkdir()
    assert ensured(identity, folder).identity != ensured(identity, folder / "inner").identity


def test_looking_changes_no_byte(identity: MarkerWorkspaceIdentity, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    identity.observe(str(folder))
    assert sorted(path.name for path in folder.rglob("*")) == [".git", "HEAD"]


TOGETHER = """
import sys
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.workspace.marker_identity import MarkerWorkspaceIdentity
print("ready", flush=True)
for path in sys.stdin:
    print(MarkerWorkspaceIdentity(Uuid7Ids()).ensure(path.strip()).identity, flush=True)
"""


def test_processes_that_make_it_at_once_agree(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", TOGETHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    folders = [tmp_path / str(number) for number in range(20)]
    for folder in folders:
        folder.mkdir()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("".join(f"{folder}\n" for folder in folders))
        process.stdin.flush()
    seen = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    assert seen[1:] == seen[:1] * 3
    assert len(set(seen[0])) == len(folders)


DIE_AT = """
import os, signal, sys
from safepoint.adapters.system.ids import Uuid7Ids
from safepoint.adapters.workspace.marker_identity import MarkerWorkspaceIdentity
folder, step, spared = sys.argv[1], sys.argv[2], int(sys.argv[3])
original = getattr(os, step)
def die(*arguments, **options):
    global spared
    spared -= 1
    if spared < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **options)
setattr(os, step, die)
MarkerWorkspaceIdentity(Uuid7Ids()).ensure(folder)
"""
STEPS = [
    ("open", 0),
    ("open", 1),
    ("open", 2),
    ("write", 0),
    ("fsync", 0),
    ("fsync", 1),
    ("link", 0),
    ("close", 0),
    ("close", 1),
]


@pytest.mark.parametrize(("step", "spared"), STEPS)
def test_whoever_is_killed_leaves_no_marker_or_a_whole_one_and_no_debris(folder: Path, step: str, spared: int) -> None:
    """A real SIGKILL in place of each system call that makes the marker."""
    ended = subprocess.run([sys.executable, "-c", DIE_AT, str(folder), step, str(spared)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert {entry.name for entry in folder.iterdir()} <= {MARKER_NAME}
    assert isinstance(MarkerWorkspaceIdentity(Uuid7Ids()).ensure(str(folder)), WorkspaceSeen)


def test_a_missing_marker_is_told_from_a_missing_folder(identity: MarkerWorkspaceIdentity, folder: Path) -> None:
    assert identity.observe(str(folder)) == WorkspaceMissing(Absent.MARKER, str(folder))
    folder.rmdir()
    assert identity.observe(str(folder)) == WorkspaceMissing(Absent.FOLDER, str(folder))


def test_the_marker_can_be_read_by_others_as_the_umask_says(identity: MarkerWorkspaceIdentity, folder: Path) -> None:
    before = os.umask(0o027)
    try:
        ensured(identity, folder)
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / MARKER_NAME).stat().st_mode) == 0o640
