"""The tools that the command line offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..catalog import Tool
from .reading import list_files, read_file
from .record_effect import record_effect
from .run_shell import ShellTool
from .writing import append_file, delete_file, edit_file, move_file, write_file


def builtin_tools(
    *, scripted: bool, origins: Mapping[str, int | None] | None = None
) -> list[Callable[..., Any] | Tool]:
    """Return what a catalog is made of.

    Args:
        scripted: whether the model is the scripted one, which alone is offered `record_effect`.
        origins: where `http_request` may go, and for how long each knows a key; it is offered only where there are any.
    """
    tools: list[Callable[..., Any] | Tool] = [
        read_file,
        list_files,
        write_file,
        edit_file,
        append_file,
        delete_file,
        move_file,
        ShellTool(),
    ]
    if origins:
        from .http_request import HttpTool

        tools.append(HttpTool(origins))
    return [*tools, record_effect] if scripted else tools


__all__ = [
    "ShellTool",
    "append_file",
    "builtin_tools",
    "delete_file",
    "edit_file",
    "list_files",
    "move_file",
    "read_file",
    "record_effect",
    "write_file",
]
