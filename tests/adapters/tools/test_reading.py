"""The tools that only read the workspace."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from safepoint.adapters.tools.builtin.reading import READ_BYTES_MAX, list_files, read_file
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.ports.tool_catalog import ToolContext


def test_a_file_is_read_byte_for_byte(context: ToolContext, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("\ufeffnaïve\r\n\n".encode())
    assert read_file(context, "a.txt") == {
        "text": "\ufeffnaïve\r\n\n",
        "size_bytes": 12,
        "next_offset_bytes": None,
    }


def test_an_empty_file_is_empty(context: ToolContext, workspace: Path) -> None:
    (workspace / "a.txt").touch()
    assert read_file(context, "a.txt") == {"text": "", "size_bytes": 0, "next_offset_bytes": None}


@pytest.mark.parametrize("shift", range(4))
def test_a_long_file_is_read_in_parts_that_make_the_whole(context: ToolContext, workspace: Path, shift: int) -> None:
    text = "a" * shift + "😀" * (READ_BYTES_MAX // 4 + 10)
    (workspace / "a.txt").write_text(text)
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        part: dict[str, Any] = read_file(context, "a.txt", offset)
        assert len(part["text"].encode()) <= READ_BYTES_MAX
        parts.append(part["text"])
        offset = part["next_offset_bytes"]
    assert len(parts) == 2
    assert "".join(parts) == text


@pytest.mark.parametrize("data", [b"\x89PNG\r\n", b"a\0b", "text".encode("utf-16"), b"caf\xe9", b"cut \xf0\x9f"])
def test_what_is_no_text_is_refused_clearly(context: ToolContext, workspace: Path, data: bytes) -> None:
    (workspace / "a.bin").write_bytes(data)
    with pytest.raises(RefusedWithoutEffect, match=r"'a.bin' is no UTF-8 text"):
        read_file(context, "a.bin")


def test_a_file_that_is_not_there_is_refused(context: ToolContext) -> None:
    with pytest.raises(RefusedWithoutEffect, match=r"'a.txt' cannot be opened: No such file"):
        read_file(context, "a.txt")


def test_something_that_would_block_is_refused_at_once(context: ToolContext, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(RefusedWithoutEffect, match="no regular file"):
        read_file(context, "pipe")


def test_a_folder_is_listed_in_order_with_kinds_and_sizes(context: ToolContext, workspace: Path) -> None:
    (workspace / "b").mkdir()
    (workspace / "b" / "inner").write_text("12")
    (workspace / "a").write_text("1")
    (workspace / "link").symlink_to("/etc/passwd")
    os.mkfifo(workspace / "pipe")
    listed = list_files(context)
    assert listed == {
        "path": ".",
        "entries": [
            {"name": "a", "kind": "file", "size_bytes": 1},
            {"name": "b", "kind": "folder", "size_bytes": None},
            {"name": "link", "kind": "link", "size_bytes": None},
            {"name": "pipe", "kind": "other", "size_bytes": None},
        ],
        "truncated": False,
    }
    assert names(list_files(context, "b")) == ["inner"]


def test_below_a_folder_everything_is_listed_but_git_and_links(context: ToolContext, workspace: Path) -> None:
    for folder in ("src/deep", ".git/objects", "elsewhere"):
        (workspace / folder).mkdir(parents=True)
        (workspace / folder / "file").touch()
    (workspace / "loop").symlink_to(workspace)
    listed = names(list_files(context, recursive=True))
    assert listed == [".git", "elsewhere", "elsewhere/file", "loop", "src", "src/deep", "src/deep/file"]


def test_a_name_that_is_no_utf8_is_listed_with_escapes(context: ToolContext, workspace: Path) -> None:
    (workspace / os.fsdecode(b"caf\xe9")).touch()
    assert names(list_files(context)) == ["caf\\xe9"]


def test_a_folder_with_very_many_entries_is_listed_up_to_a_bound(context: ToolContext, workspace: Path) -> None:
    for number in range(1_001):
        (workspace / f"{number:04}").touch()
    listed = list_files(context)
    assert len(names(listed)) == 1_000
    assert listed["truncated"] is True


def test_listing_stops_when_it_is_cancelled(context: ToolContext, workspace: Path, cancel: threading.Event) -> None:
    (workspace / "a").touch()
    cancel.set()
    assert list_files(context)["truncated"] is True


def test_a_file_cannot_be_listed(context: ToolContext, workspace: Path) -> None:
    (workspace / "a").touch()
    with pytest.raises(RefusedWithoutEffect, match="'a' cannot be opened: Not a directory"):
        list_files(context, "a")


def names(listed: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in listed["entries"]]
