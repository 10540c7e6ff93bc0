"""The tools that change files of the workspace."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.adapters.tools.builtin.atomic_write import temporary_name
from safepoint.adapters.tools.builtin.writing import edit_file, file_resource, write_file
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.tool import RecoveryMode
from safepoint.ports.tool_catalog import BoundCall, ToolContext


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def test_a_file_is_written_and_replaced_as_a_whole(context: ToolContext, workspace: Path) -> None:
    assert write_file(context, "a.txt", "naïve\r\n") == {"path": "a.txt", "size_bytes": 8, "created": True}
    assert write_file(context, "a.txt", "") == {"path": "a.txt", "size_bytes": 0, "created": False}
    assert contents(workspace) == {"a.txt": b""}


def test_missing_folders_are_made(context: ToolContext, workspace: Path) -> None:
    write_file(context, "a/b/c.txt", "x")
    assert (workspace / "a" / "b" / "c.txt").read_text() == "x"


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o4755, 0o444])
def test_mode_bits_are_kept(context: ToolContext, workspace: Path, mode: int) -> None:
    path = workspace / "a.sh"
    path.write_text("old")
    path.chmod(mode)
    write_file(context, "a.sh", "old, new")
    edit_file(context, "a.sh", "new", "newer")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "old, newer"


def test_another_hard_link_keeps_the_old_content(context: ToolContext, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a").write_text("old")
    os.link(workspace / "a", tmp_path / "elsewhere")
    write_file(context, "a", "new")
    assert (tmp_path / "elsewhere").read_text() == "old"


def test_a_text_that_occurs_once_is_replaced_and_no_other_byte(context: ToolContext, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"\xef\xbb\xbfport = 3000\r\n\xff\x00end")
    assert edit_file(context, "a", "3000", "4000") == {"path": "a", "size_bytes": 21, "replaced": 1}
    assert (workspace / "a").read_bytes() == b"\xef\xbb\xbfport = 4000\r\n\xff\x00end"


def test_a_text_that_occurs_often_is_replaced_only_on_demand(context: ToolContext, workspace: Path) -> None:
    (workspace / "a").write_text("x x x")
    with pytest.raises(RefusedWithoutEffect, match="occurs 3 times"):
        edit_file(context, "a", "x", "y")
    assert edit_file(context, "a", "x", "y", replace_all=True)["replaced"] == 3
    assert (workspace / "a").read_text() == "y y y"


@pytest.mark.parametrize("path", ["a", "missing"])
def test_a_text_that_does_not_occur_is_refused(context: ToolContext, workspace: Path, path: str) -> None:
    (workspace / "a").write_text("text")
    with pytest.raises(RefusedWithoutEffect):
        edit_file(context, path, "other", "y")
    assert contents(workspace) == {"a": b"text"}


def test_the_marker_of_the_workspace_cannot_be_written(context: ToolContext, workspace: Path) -> None:
    for path in (".safepoint-workspace.json", "./.safepoint-workspace.json"):
        with pytest.raises(RefusedWithoutEffect, match="no tool may change it"):
            write_file(context, path, "{}")
    assert contents(workspace) == {}


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_only_a_regular_file_is_replaced(context: ToolContext, workspace: Path, kind: str) -> None:
    target = workspace / "a"
    if kind == "folder":
        target.mkdir()
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        (workspace / "b").write_text("old")
        target.symlink_to("b")
    with pytest.raises(RefusedWithoutEffect):
        write_file(context, "a", "new")
    assert not list(workspace.glob(".safepoint-*"))
    assert target.is_dir() or target.is_fifo() or (target.is_symlink() and target.read_text() == "old")


POINTS = ["tool.write_file.before_effect", "tool.write_file.temporary_written", "tool.write_file.after_effect"]


@pytest.mark.parametrize(("point", "expected"), [*zip(POINTS, [b"old", b"old", b"new"], strict=True)])
def test_at_every_instant_the_file_is_the_old_or_the_new_one(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints, point: str, expected: bytes
) -> None:
    (workspace / "a").write_text("old")
    seen: dict[str, bytes] = {}
    failpoints.at_hit = lambda hit: seen.update({hit: (workspace / "a").read_bytes()})
    write_file(context, "a", "new")
    assert failpoints.hits == POINTS
    assert seen[point] == expected


def test_the_temporary_file_can_be_found_by_the_operation(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints
) -> None:
    name = temporary_name(context.operation_id)
    seen: dict[str, bool] = {}
    failpoints.at_hit = lambda hit: seen.update({hit: (workspace / name).exists()})
    write_file(context, "a", "new")
    assert seen == dict(zip(POINTS, [False, True, False], strict=True))


def test_a_second_delivery_is_not_stopped_by_what_the_first_left_behind(context: ToolContext, workspace: Path) -> None:
    (workspace / temporary_name(context.operation_id)).write_text("half")
    write_file(context, "a", "new")
    assert contents(workspace) == {"a": b"new"}


@pytest.mark.parametrize("change", ["edited", "removed", "link", "made"])
def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints, change: str
) -> None:
    target = workspace / "a"
    if change != "made":
        target.write_text("old")

    def interfere(hit: str) -> None:
        if hit != "tool.write_file.temporary_written":
            return
        if change in {"removed", "link"}:
            target.unlink()
        if change == "link":
            target.symlink_to("b")
        if change in {"edited", "made"}:
            target.write_text("theirs")

    failpoints.at_hit = interfere
    with pytest.raises(RefusedWithoutEffect, match="changed by somebody else"):
        write_file(context, "a", "new")
    expected = {"edited": {"a": b"theirs"}, "made": {"a": b"theirs"}, "removed": {}, "link": {}}
    assert contents(workspace) == expected[change]
    assert target.is_symlink() is (change == "link")


@pytest.mark.parametrize("call", ["write", "rename", "fsync"])
def test_a_full_disk_before_the_rename_is_a_refusal_and_leaves_the_file_as_it_was(
    context: ToolContext, workspace: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Field report r3-171: the tool's own 'no space' is an ordinary failed outcome."""
    (workspace / "a").write_text("old")

    def full(*arguments: object, **options: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(RefusedWithoutEffect, match="No space left on device"):
        write_file(context, "a", "new")
    monkeypatch.undo()
    assert contents(workspace) == {"a": b"old"}


def test_a_failure_after_the_rename_is_no_refusal(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    failpoints.at_hit = lambda hit: monkeypatch.setattr(os, "fsync", fail) if hit.endswith("after_effect") else None
    with pytest.raises(OSError, match="Input/output error"):
        write_file(context, "a", "new")
    monkeypatch.undo()
    assert contents(workspace) == {"a": b"new"}


def test_folders_that_were_made_before_a_failure_are_not_denied(
    context: ToolContext, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir

    def only_the_first(name: str, *, dir_fd: int) -> None:
        if name == "b":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        make(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", only_the_first)
    with pytest.raises(OSError, match="folders were made"):
        write_file(context, "a/b/c", "new")
    assert (workspace / "a").is_dir()


def test_everything_is_synced_before_the_rename_and_the_folder_after_it(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def watch(descriptor: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    failpoints.at_hit = lambda hit: synced.append(hit.rpartition(".")[2])
    write_file(context, "a", "new")
    assert synced == ["before_effect", "file", "temporary_written", "after_effect", "folder"]


def test_calls_about_one_file_share_a_resource_however_it_is_spelled() -> None:
    spellings = ["a/B.txt", "./a/B.txt", "a//b.TXT"]
    assert len({file_resource({"path": path}) for path in spellings}) == 1
    assert file_resource({"path": "a"}) != file_resource({"path": "b"})


def test_writing_is_declared_as_what_evidence_will_reconcile() -> None:
    catalog = FunctionCatalog([write_file, edit_file])
    for name, arguments in (("write_file", {"content": "x"}), ("edit_file", {"old_text": "a", "new_text": "b"})):
        bound = catalog.bind(name, {"path": "a", **arguments})
        assert isinstance(bound, BoundCall)
        assert bound.contract.mode is RecoveryMode.RECONCILE
        assert bound.writes_workspace
        assert bound.evidence(Path("/")) is None
