"""The tools that change files of the workspace."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest

from safepoint.adapters.memory.failpoints import RecordingFailpoints
from safepoint.adapters.tools.builtin import atomic_write
from safepoint.adapters.tools.builtin.atomic_write import temporary_name
from safepoint.adapters.tools.builtin.confined import ConfinedPath
from safepoint.adapters.tools.builtin.looking import HASHED_BYTES_MAX, KEPT_BYTES_MAX, Found, look_in
from safepoint.adapters.tools.builtin.writing import (
    append_file,
    delete_file,
    edit_file,
    file_resource,
    move_file,
    write_file,
)
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.domain import canonical
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import RecoveryMode
from safepoint.domain.file_evidence import read_evidence
from safepoint.ports.tool_catalog import BoundCall, SyncCall, ToolContext, Workspace


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def test_a_file_is_written_and_replaced_as_a_whole(context: ToolContext, workspace: Path) -> None:
    assert write_file(context, "a.txt", "naïve\r\n") == {"path": "a.txt", "size_bytes": 8, "created": True}
    assert write_file(context, "a.txt", "") == {"path": "a.txt", "size_bytes": 0, "created": False}
    assert contents(workspace) == {"a.txt": b""}


def test_the_new_content_of_a_private_file_is_private_before_it_has_its_name(
    context: ToolContext, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = workspace / "secret.env"
    secret.write_text("TOKEN=1\n")
    secret.chmod(0o600)
    modes, write = list[int](), os.write

    def watched(descriptor: int, data: bytes) -> int:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", watched)
    append_file(context, "secret.env", "TOKEN=2\n")
    assert set(modes) == {0o600}


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("write_file", ["before_effect", "file", "temporary_written", "after_effect", "folder"]),
        ("edit_file", ["before_effect", "file", "temporary_written", "after_effect", "folder"]),
        ("append_file", ["before_effect", "file", "temporary_written", "after_effect", "folder"]),
        ("delete_file", ["before_effect", "after_effect", "folder"]),
        ("move_file", ["before_effect", "folder", "after_effect", "folder", "folder"]),
    ],
)
def test_everything_is_synced_before_the_rename_and_the_folders_after_it(
    context: ToolContext,
    workspace: Path,
    failpoints: RecordingFailpoints,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    expected: list[str],
) -> None:
    """A move makes a folder first, which is synced, too."""
    (workspace / "a").write_text("old")
    synced: list[str] = []
    sync = os.fsync

    def watch(descriptor: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    failpoints.at_hit = lambda hit: synced.append(hit.rpartition(".")[2])
    run(context, name)
    assert synced == expected


def test_calls_about_one_file_share_a_resource_however_it_is_spelled() -> None:
    spellings = ["a/B.txt", "./a/B.txt", "a//b.TXT"]
    assert len({file_resource({"path": path}) for path in spellings}) == 1
    assert file_resource({"path": "a"}) != file_resource({"path": "b"})


CALLS: dict[str, dict[str, Json]] = {
    "write_file": {"path": "a", "content": "new"},
    "edit_file": {"path": "a", "old_text": "old", "new_text": "new"},
    "append_file": {"path": "a", "text": ", new"},
    "delete_file": {"path": "a"},
    "move_file": {"path": "a", "new_path": "b/c"},
}
AFTER: dict[str, dict[str, bytes]] = {
    "write_file": {"a": b"new"},
    "edit_file": {"a": b"new"},
    "append_file": {"a": b"old, new"},
    "delete_file": {},
    "move_file": {"b/c": b"old"},
}
RESULTS: dict[str, Json] = {
    "write_file": {"path": "a", "size_bytes": 3, "created": False},
    "edit_file": {"path": "a", "size_bytes": 3, "replaced": 1},
    "append_file": {"path": "a", "size_bytes": 8, "appended_bytes": 5, "created": False},
    "delete_file": {"path": "a", "deleted": True},
    "move_file": {"path": "a", "new_path": "b/c", "size_bytes": 3},
}
CATALOG = FunctionCatalog([write_file, edit_file, append_file, delete_file, move_file])


def bound(name: str, arguments: dict[str, Json] | None = None) -> BoundCall:
    call = CATALOG.bind(name, CALLS[name] if arguments is None else arguments)
    assert isinstance(call, BoundCall), call
    return call


def run(context: ToolContext, name: str, evidence: Json = None, arguments: dict[str, Json] | None = None) -> object:
    call = bound(name, arguments)
    assert isinstance(call.implementation, SyncCall)
    given = CALLS[name] if arguments is None else arguments
    return call.implementation.run(given, dataclasses.replace(context, evidence=evidence))


def files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize("name", CALLS)
def test_each_tool_does_what_its_evidence_says_and_answers_what_it_recorded(
    context: ToolContext, workspace: Path, name: str
) -> None:
    (workspace / "a").write_text("old")
    recorded = bound(name).evidence(Workspace(workspace, "workspace:v1:1"))
    assert files(workspace) == {"a": b"old"}, "evidence reads, and changes nothing"
    assert run(context, name, recorded) == RESULTS[name]
    assert files(workspace) == AFTER[name]
    evidence = read_evidence(recorded)
    assert evidence is not None
    assert (evidence.workspace, evidence.result) == ("workspace:v1:1", RESULTS[name])
    assert f"file.{evidence.transform}" == bound(name).contract.contract_id
    assert len(canonical.encode(recorded)) < 2_000, "what is recorded does not grow with the file"


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("change", ["edited", "removed", "link", "mode"])
def test_a_file_that_changed_since_its_evidence_is_left_as_it_is(
    context: ToolContext, workspace: Path, name: str, change: str
) -> None:
    target = workspace / "a"
    target.write_text("old")
    recorded = bound(name).evidence(Workspace(workspace, "workspace:v1:1"))
    if change == "edited":
        target.write_text("old, theirs")
    elif change == "mode":
        target.chmod(0o600)
    else:
        target.unlink()
        if change == "link":
            target.symlink_to("elsewhere")
    before = files(workspace)
    with pytest.raises(RefusedWithoutEffect):
        run(context, name, recorded)
    assert files(workspace) == before
    assert target.is_symlink() is (change == "link")
    assert not (workspace / "b").exists()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("restored", [False, True], ids=["size", "nothing but the bytes"])
def test_what_was_changed_at_the_last_instant_is_noticed_by_its_bytes(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints, name: str, restored: bool
) -> None:
    """Size, time and inode are those of before; only the bytes tell."""
    target = workspace / "a"
    target.write_text("old")
    status = target.stat()
    recorded = bound(name).evidence(Workspace(workspace, None))

    def interfere(hit: str) -> None:
        if hit.endswith("before_effect"):
            target.write_text("OLD" if restored else "theirs")
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    failpoints.at_hit = interfere
    with pytest.raises(RefusedWithoutEffect, match="changed by somebody else"):
        run(context, name, recorded)
    assert files(workspace) == {"a": b"OLD" if restored else b"theirs"}
    assert not (workspace / "b").exists(), "folders that were made for it are taken away again"


@pytest.mark.parametrize("name", CALLS)
def test_what_is_replaced_while_its_bytes_are_compared_is_noticed_too(
    context: ToolContext, workspace: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    target = workspace / "a"
    target.write_text("old")

    def look_then_replace(folder: int, sought: ConfinedPath) -> Found:
        found = look_in(folder, sought)
        target.write_text("theirs")
        return found

    monkeypatch.setattr(atomic_write, "look_in", look_then_replace)
    with pytest.raises(RefusedWithoutEffect, match="changed by somebody else"):
        run(context, name)
    assert files(workspace) == {"a": b"theirs"}


@pytest.mark.parametrize("name", CALLS)
def test_each_tool_says_where_it_is_and_follows_no_link(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints, tmp_path: Path, name: str
) -> None:
    (workspace / "a").write_text("old")
    run(context, name)
    instants = [hit.removeprefix(f"tool.{name}.") for hit in failpoints.hits]
    between = ["temporary_written"] if name in {"write_file", "edit_file", "append_file"} else []
    assert instants == ["before_effect", *between, "after_effect"]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("old")
    (workspace / "link").symlink_to(outside)
    with pytest.raises(RefusedWithoutEffect, match="symbolic link"):
        run(context, name, None, {**CALLS[name], "path": "link/a"})
    assert files(outside) == {"a": b"old"}


def test_a_text_is_added_exactly_and_a_missing_file_is_made_of_it(context: ToolContext, workspace: Path) -> None:
    append_file(context, "a/b", "x\r\n")
    append_file(context, "a/b", "y")
    assert (workspace / "a" / "b").read_bytes() == b"x\r\ny"


@pytest.mark.parametrize("name", ["edit_file", "delete_file", "move_file"])
def test_what_is_not_there_can_be_neither_edited_nor_deleted_nor_moved(
    context: ToolContext, workspace: Path, name: str
) -> None:
    with pytest.raises(RefusedWithoutEffect, match="'a' is not there"):
        bound(name).evidence(Workspace(workspace, None))
    with pytest.raises(RefusedWithoutEffect, match="'a' is not there"):
        run(context, name)


def test_nothing_is_moved_over_a_file_that_is_there(context: ToolContext, workspace: Path) -> None:
    (workspace / "a").write_text("old")
    (workspace / "b").write_text("theirs")
    with pytest.raises(RefusedWithoutEffect, match="'b' is there already"):
        move_file(context, "a", "b")
    os.link(workspace / "a", workspace / "c")
    for same in ("a", "./a", "c"):
        with pytest.raises(RefusedWithoutEffect, match="are one file here"):
            move_file(context, "a", same)
    assert files(workspace) == {"a": b"old", "b": b"theirs", "c": b"old"}


def test_a_file_that_takes_the_new_name_at_the_last_instant_is_not_moved_over(
    context: ToolContext, workspace: Path, failpoints: RecordingFailpoints
) -> None:
    (workspace / "a").write_text("old")

    def interfere(hit: str) -> None:
        (workspace / "b").write_text("theirs")

    failpoints.at_hit = interfere
    with pytest.raises(RefusedWithoutEffect, match="'b' was changed by somebody else"):
        move_file(context, "a", "b")
    assert files(workspace) == {"a": b"old", "b": b"theirs"}


@pytest.mark.parametrize("name", CALLS)
def test_a_file_is_no_folder_for_another_one(context: ToolContext, workspace: Path, name: str) -> None:
    (workspace / "a").write_text("old")
    with pytest.raises(RefusedWithoutEffect, match="'a' is no folder"):
        run(context, name, None, {**CALLS[name], "path": "a/b"})
    assert files(workspace) == {"a": b"old"}


def test_only_files_are_deleted_and_moved(context: ToolContext, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    with pytest.raises(RefusedWithoutEffect, match="no regular file"):
        delete_file(context, "folder")
    with pytest.raises(RefusedWithoutEffect, match="no regular file"):
        move_file(context, "folder", "b")
    assert (workspace / "folder").is_dir()


def test_a_file_that_is_too_large_to_be_compared_is_refused_before_anything_is_done(
    context: ToolContext, workspace: Path
) -> None:
    with (workspace / "a").open("wb") as sparse:
        sparse.truncate(KEPT_BYTES_MAX + 1)
    for name in ("edit_file", "append_file"):
        with pytest.raises(RefusedWithoutEffect, match="more than 16777216 bytes"):
            bound(name).evidence(Workspace(workspace, None))
    recorded = bound("delete_file").evidence(Workspace(workspace, None))
    evidence = read_evidence(recorded)
    assert evidence is not None
    assert evidence.files[0].before.size_bytes == KEPT_BYTES_MAX + 1
    assert evidence.files[0].before.sha256 == hashlib.sha256(bytes(KEPT_BYTES_MAX + 1)).hexdigest()
    with (workspace / "a").open("wb") as sparse:
        sparse.truncate(HASHED_BYTES_MAX + 1)
    for name in ("write_file", "delete_file", "move_file"):
        with pytest.raises(RefusedWithoutEffect, match="more than 268435456 bytes"):
            run(context, name)


# ---- names of other systems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["src\\main.py", "C:\\work\\a.txt", "C:/work/a.txt", "a\\b/c"])
def test_a_path_of_windows_does_not_become_one_strange_name(context: ToolContext, workspace: Path, path: str) -> None:
    (workspace / "a").write_text("old")
    makers = [("write_file", path, "new"), ("append_file", path, "new"), ("move_file", "a", path)]
    for name, *given in makers:
        arguments: dict[str, Json] = dict(zip(CALLS[name], given, strict=True))
        with pytest.raises(RefusedWithoutEffect, match="looks like a path of Windows"):
            run(context, name, None, arguments)
    assert files(workspace) == {"a": b"old"}


def test_a_name_with_a_backslash_that_is_there_can_be_changed_and_got_rid_of(
    context: ToolContext, workspace: Path
) -> None:
    (workspace / "a\\b").write_text("old")
    edit_file(context, "a\\b", "old", "new")
    move_file(context, "a\\b", "a")
    assert files(workspace) == {"a": b"new"}


@pytest.mark.parametrize("path", [".SAFEPOINT-WORKSPACE.JSON", "./.Safepoint-Workspace.json"])
def test_the_marker_is_safe_where_case_is_not_told_apart(context: ToolContext, workspace: Path, path: str) -> None:
    (workspace / "a").write_text("old")
    for name, *given in [("write_file", path, "{}"), ("delete_file", path), ("move_file", "a", path)]:
        arguments: dict[str, Json] = dict(zip(CALLS[name], given, strict=True))
        with pytest.raises(RefusedWithoutEffect, match="no tool may change it"):
            run(context, name, None, arguments)


def test_a_file_that_is_missing_by_its_spelling_alone_is_told_of(context: ToolContext, workspace: Path) -> None:
    (workspace / "docs").mkdir()
    (workspace / "docs" / "README.md").write_text("old")
    (workspace / "cafe\u0301").write_text("old")
    for name in ("edit_file", "delete_file", "move_file"):
        with pytest.raises(RefusedWithoutEffect, match=r"'docs/readme\.md' is not there; 'docs/README\.md' is$"):
            run(context, name, None, {**CALLS[name], "path": "docs/readme.md"})
        with pytest.raises(RefusedWithoutEffect, match=r"is not there; 'cafe\u0301' is$"):
            run(context, name, None, {**CALLS[name], "path": "caf\u00e9"})


def test_spellings_that_another_system_takes_for_one_file_wait_for_one_another() -> None:
    composed, decomposed = "Stra\u00dfe/caf\u00e9.txt", "STRASSE/cafe\u0301.txt"
    assert file_resource({"path": composed}) == file_resource({"path": decomposed})


def test_a_name_that_is_too_long_is_refused(context: ToolContext) -> None:
    with pytest.raises(RefusedWithoutEffect, match="File name too long"):
        write_file(context, "n" * 256, "new")


def test_the_longest_name_is_written_like_any_other(context: ToolContext, workspace: Path) -> None:
    write_file(context, "n" * 255, "new")
    assert files(workspace) == {"n" * 255: b"new"}


def test_writing_is_declared_as_what_evidence_reconciles() -> None:
    for name in CALLS:
        call = bound(name)
        assert call.contract.mode is RecoveryMode.RECONCILE
        assert call.writes_workspace
    assert bound("move_file").resource_key is None, "it is about two files, and waits for all others"
