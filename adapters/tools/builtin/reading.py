"""Tools that only read the workspace: `read_file` and `list_files`."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator
from typing import Annotated

from pydantic import Field

from ....domain.errors import RefusedWithoutEffect
from ....domain.events.event import Json
from ....domain.events.tool import RecoveryMode
from ....ports.tool_catalog import ToolContext
from ..decorator import tool
from .confined import confined, confined_file, open_file, opened_below, opened_folder

READ_BYTES_MAX = 128 * 1024
ENTRIES_MAX = 1_000
DEPTH_MAX = 32
_UTF8_TAIL_BYTES_MAX = 3


@tool(recovery=RecoveryMode.REPLAY_SAFE)
def read_file(context: ToolContext, path: str, offset_bytes: Annotated[int, Field(ge=0)] = 0) -> dict[str, Json]:
    """Read a text file of the workspace (UTF-8), at most 128 KiB at once.

    Where there is more, next_offset_bytes is not null: call again with it as offset_bytes.
    """
    target = confined_file(path, context.workspace)
    with opened_folder(context.workspace, target.names[:-1]) as folder:
        file = open_file(folder, target.names[-1], target.shown)
        try:
            size = os.fstat(file).st_size
            data = os.pread(file, READ_BYTES_MAX, offset_bytes)
        except OSError as error:
            raise RefusedWithoutEffect(f"{target.shown!r} cannot be read: {error.strerror}") from error
        finally:
            os.close(file)
    end = offset_bytes + len(data)
    text = _text(data, target.shown, is_end=end >= size)
    end = offset_bytes + len(text.encode())
    return {"text": text, "size_bytes": size, "next_offset_bytes": end if end < size else None}


@tool(recovery=RecoveryMode.REPLAY_SAFE)
def list_files(context: ToolContext, path: str = ".", recursive: bool = False) -> dict[str, Json]:
    """List a folder of the workspace, sorted by name, at most 1,000 entries.

    With recursive, what is below it too, except inside .git. Links are named and not followed.
    """
    target = confined(path, context.workspace)
    entries: list[Json] = []
    with (
        opened_folder(context.workspace, target.names) as folder,
        contextlib.closing(_entries(folder, "", DEPTH_MAX if recursive else 0)) as found,
    ):
        for entry in found:
            if context.cancelled() or len(entries) == ENTRIES_MAX:
                return {"path": target.shown, "entries": entries, "truncated": True}
            entries.append(entry)
    return {"path": target.shown, "entries": entries, "truncated": False}


def _text(data: bytes, shown: str, *, is_end: bool) -> str:
    """Decode a part of a file; a character that is cut at its end is left to the next part."""
    if b"\0" not in data:
        for tail in range(1 if is_end else _UTF8_TAIL_BYTES_MAX + 1):
            try:
                return data[: len(data) - tail].decode()
            except UnicodeDecodeError:
                continue
    raise RefusedWithoutEffect(f"{shown!r} is no UTF-8 text at this place; it cannot be shown")


def _entries(folder: int, prefix: str, levels_left: int) -> Generator[Json, None, None]:
    try:
        names = sorted(os.listdir(folder), key=os.fsencode)
    except OSError as error:
        raise RefusedWithoutEffect(f"{prefix or '.'!r} cannot be listed: {error.strerror}") from error
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue  # removed meanwhile
        shown = prefix + os.fsencode(name).decode("utf-8", "backslashreplace")
        size = found.st_size if stat.S_ISREG(found.st_mode) else None
        yield {"name": shown, "kind": _kind(found), "size_bytes": size}
        if levels_left and stat.S_ISDIR(found.st_mode) and name != ".git":
            with opened_below(folder, name) as below:
                if below is not None:
                    yield from _entries(below, f"{shown}/", levels_left - 1)


def _kind(found: os.stat_result) -> str:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    return next((name for is_kind, name in kinds if is_kind(found.st_mode)), "other")
