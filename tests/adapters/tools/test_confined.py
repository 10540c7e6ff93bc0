"""Paths stay inside the workspace, whatever stands there and whatever changes meanwhile."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from safepoint.adapters.tools.builtin import confined as module
from safepoint.adapters.tools.builtin.confined import confined, confined_file, opened_folder
from safepoint.adapters.tools.builtin.reading import list_files, read_file
from safepoint.adapters.tools.builtin.writing import append_file, delete_file, edit_file, move_file, write_file
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.ports.tool_catalog import ToolContext


def moved_to(context: ToolContext, path: str) -> object:
    """Move a file of the workspace there."""
    with contextlib.suppress(FileNotFoundError):
        (context.workspace / "mine").write_text("mine")
    return move_file(context, "mine", path)


USES: list[Callable[[ToolContext, str], object]] = [
    read_file,
    list_files,
    lambda context, path: write_file(context, path, "new"),
    lambda context, path: edit_file(context, path, "secret", "new"),
    lambda context, path: append_file(context, path, "new"),
    delete_file,
    lambda context, path: move_file(context, path, "moved"),
    moved_to,
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("secret")
    return folder


@pytest.fixture(params=USES, ids=["read", "list", "write", "edit", "append", "delete", "move from", "move to"])
def use(request: pytest.FixtureRequest) -> Callable[[ToolContext, str], object]:
    function: Callable[[ToolContext, str], object] = request.param
    return function


@pytest.mark.parametrize(
    "path",
    [
        "../outside/file",
        "a/../../outside/file",
        "..",
        "a/..",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "",
        "a\0b",
        "link/file",
        "link",
        "file-link",
        "dangling",
        "loop",
        "loop/a",
        "deep/link/file",
    ],
)
def test_nothing_outside_is_reached(
    use: Callable[[ToolContext, str], object], path: str, context: ToolContext, workspace: Path, outside: Path
) -> None:
    (workspace / "a").mkdir()
    (workspace / "deep").mkdir()
    (workspace / "link").symlink_to(outside)
    (workspace / "deep" / "link").symlink_to("../../outside")
    (workspace / "file-link").symlink_to(outside / "file")
    (workspace / "dangling").symlink_to(outside / "new")
    (workspace / "loop").symlink_to("loop")
    with pytest.raises(RefusedWithoutEffect):
        use(context, path)
    assert {entry.name: entry.read_text() for entry in outside.iterdir()} == {"file": "secret"}


def test_the_workspaces_neighbour_with_a_longer_name_is_outside(workspace: Path) -> None:
    (workspace.parent / "workspace-2").mkdir()
    with pytest.raises(RefusedWithoutEffect, match="outside the workspace"):
        confined(str(workspace.parent / "workspace-2" / "a"), workspace)


@pytest.mark.parametrize("path", ["a/b", "./a/./b", "a//b", "{workspace}/a/b"])
def test_one_place_may_be_spelled_in_several_ways(path: str, workspace: Path) -> None:
    assert confined(path.format(workspace=workspace), workspace).names == ("a", "b")


@pytest.mark.parametrize("path", [".", "a/", "{workspace}"])
def test_a_folder_is_not_taken_for_a_file(path: str, workspace: Path) -> None:
    with pytest.raises(RefusedWithoutEffect, match="names a folder"):
        confined_file(path.format(workspace=workspace), workspace)


def test_a_folder_that_becomes_a_link_meanwhile_does_not_lead_outside(
    context: ToolContext, workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exchange happens right after the look, at the worst moment for whoever looks first and opens later."""
    (workspace / "a").mkdir()
    look = module._entry

    def look_then_exchange(folder: int, name: str, shown: str) -> os.stat_result | None:
        found = look(folder, name, shown)
        if name == "a" and not (workspace / "a").is_symlink():
            (workspace / "a").rename(workspace / "moved")
            (workspace / "a").symlink_to(outside)
        return found

    monkeypatch.setattr(module, "_entry", look_then_exchange)
    with pytest.raises(RefusedWithoutEffect, match="symbolic link"):
        write_file(context, "a/file", "new")
    assert (outside / "file").read_text() == "secret"


def test_a_folder_that_is_moved_away_meanwhile_is_still_the_one_that_was_opened(workspace: Path, outside: Path) -> None:
    (workspace / "a").mkdir()
    with opened_folder(workspace, ("a",)) as folder:
        (workspace / "a").rename(workspace / "moved")
        (workspace / "a").symlink_to(outside)
        os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    assert (workspace / "moved" / "new").exists()
    assert not (outside / "new").exists()


def test_a_workspace_that_has_gone_is_refused(
    use: Callable[[ToolContext, str], object], context: ToolContext, workspace: Path
) -> None:
    workspace.rmdir()
    with pytest.raises(RefusedWithoutEffect, match="cannot be opened"):
        use(context, "a")
