"""Tools that change files of the workspace: `write_file` and `edit_file`. SPEC section 10.

Both replace a file as a whole and are declared `reconcile`. Their evidence is not recorded yet: until then, what is
unknown parks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from ....domain.errors import RefusedWithoutEffect
from ....domain.events.event import Json
from ....domain.events.tool import RecoveryMode
from ....ports.tool_catalog import ToolContext
from ....ports.workspace import MARKER_NAME
from ..decorator import tool
from .atomic_write import replace_file, temporary_name
from .confined import ConfinedPath, confined_file, open_file, opened_folder, regular_file

EDITED_BYTES_MAX = 16 * 1024 * 1024


def file_resource(arguments: Mapping[str, Any]) -> str:
    """Name the file for call order; two spellings that a case-blind file system takes for one are taken for one
    everywhere.
    """
    names = [name for name in str(arguments["path"]).casefold().split("/") if name not in {"", "."}]
    return f"file:{'/'.join(names)}"


@tool(recovery=RecoveryMode.RECONCILE, contract_id="file.write", resource_key=file_resource)
def write_file(context: ToolContext, path: str, content: str) -> dict[str, Json]:
    """Write a text file of the workspace (UTF-8), replacing what it held; missing folders are made."""
    target = _writable(path, context)
    data = content.encode()
    context.failpoint("tool.write_file.before_effect")
    with opened_folder(context.workspace, target.names[:-1], make=True) as folder:
        prior = regular_file(folder, target.names[-1], target.shown)
        _replace(context, "write_file", folder, target, data, prior)
    return {"path": target.shown, "size_bytes": len(data), "created": prior is None}


@tool(recovery=RecoveryMode.RECONCILE, contract_id="file.edit", resource_key=file_resource)
def edit_file(
    context: ToolContext,
    path: str,
    old_text: Annotated[str, Field(min_length=1)],
    new_text: str,
    replace_all: bool = False,
) -> dict[str, Json]:
    """Replace a text in a file of the workspace. It must occur exactly once, unless replace_all is true."""
    target = _writable(path, context)
    with opened_folder(context.workspace, target.names[:-1]) as folder:
        data, prior = _content(folder, target)
        old, new = old_text.encode(), new_text.encode()
        count = data.count(old)
        if count == 0:
            raise RefusedWithoutEffect(f"old_text does not occur in {target.shown!r}")
        if count > 1 and not replace_all:
            raise RefusedWithoutEffect(
                f"old_text occurs {count} times in {target.shown!r}; give more of its surroundings"
            )
        context.failpoint("tool.edit_file.before_effect")
        edited = data.replace(old, new)
        _replace(context, "edit_file", folder, target, edited, prior)
    return {"path": target.shown, "size_bytes": len(edited), "replaced": count}


def _writable(path: str, context: ToolContext) -> ConfinedPath:
    target = confined_file(path, context.workspace)
    if target.names == (MARKER_NAME,):
        raise RefusedWithoutEffect(f"{MARKER_NAME} names this workspace; no tool may change it")
    return target


def _content(folder: int, target: ConfinedPath) -> tuple[bytes, os.stat_result]:
    file = open_file(folder, target.names[-1], target.shown)
    with os.fdopen(file, "rb") as stream:
        prior = os.fstat(file)
        if prior.st_size > EDITED_BYTES_MAX:
            raise RefusedWithoutEffect(f"{target.shown!r} has more than {EDITED_BYTES_MAX} bytes")
        return stream.read(), prior


def _replace(
    context: ToolContext, tool_name: str, folder: int, target: ConfinedPath, data: bytes, prior: os.stat_result | None
) -> None:
    replace_file(
        folder,
        target.names[-1],
        data,
        prior=prior,
        temporary=temporary_name(context.operation_id),
        written=lambda: context.failpoint(f"tool.{tool_name}.temporary_written"),
        renamed=lambda: context.failpoint(f"tool.{tool_name}.after_effect"),
    )
