"""Tools that change files of the workspace. SPEC section 10.

All are declared `reconcile`: what they would do is worked out and recorded before T1, and they do exactly that or
refuse. After a crash `FileReconciler` compares the bytes, and never changes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from ....domain.events.event import Json
from ....domain.events.tool import RecoveryMode
from ....ports.tool_catalog import ToolContext
from ..decorator import tool
from .carrying_out import carry_out
from .confined import folded
from .file_plans import evidence_by, plan_append, plan_delete, plan_edit, plan_move, plan_write


def file_resource(arguments: Mapping[str, Any]) -> str:
    """Name the file for call order; two spellings that some file system takes for one are taken for one everywhere:
    case, and how accented letters are composed.
    """
    names = [name for name in folded(str(arguments["path"])).split("/") if name not in {"", "."}]
    return f"file:{'/'.join(names)}"


@tool(
    recovery=RecoveryMode.RECONCILE,
    contract_id="file.write",
    resource_key=file_resource,
    evidence=evidence_by(plan_write),
)
def write_file(context: ToolContext, path: str, content: str) -> dict[str, Json]:
    """Write a text file of the workspace (UTF-8), replacing what it held; missing folders are made."""
    return carry_out(context, "write_file", plan_write({"path": path, "content": content}, context.workspace))


@tool(
    recovery=RecoveryMode.RECONCILE,
    contract_id="file.edit",
    resource_key=file_resource,
    evidence=evidence_by(plan_edit),
)
def edit_file(
    context: ToolContext,
    path: str,
    old_text: Annotated[str, Field(min_length=1)],
    new_text: str,
    replace_all: bool = False,
) -> dict[str, Json]:
    """Replace a text in a file of the workspace. It must occur exactly once, unless replace_all is true."""
    arguments = {"path": path, "old_text": old_text, "new_text": new_text, "replace_all": replace_all}
    return carry_out(context, "edit_file", plan_edit(arguments, context.workspace))


@tool(
    recovery=RecoveryMode.RECONCILE,
    contract_id="file.append",
    resource_key=file_resource,
    evidence=evidence_by(plan_append),
)
def append_file(context: ToolContext, path: str, text: Annotated[str, Field(min_length=1)]) -> dict[str, Json]:
    """Add a text at the end of a file of the workspace (UTF-8), exactly as given: begin it with a line end where the
    file has none. A file that is missing is made, with its folders.
    """
    return carry_out(context, "append_file", plan_append({"path": path, "text": text}, context.workspace))


@tool(
    recovery=RecoveryMode.RECONCILE,
    contract_id="file.delete",
    resource_key=file_resource,
    evidence=evidence_by(plan_delete),
)
def delete_file(context: ToolContext, path: str) -> dict[str, Json]:
    """Delete a file of the workspace; folders are not deleted."""
    return carry_out(context, "delete_file", plan_delete({"path": path}, context.workspace))


@tool(recovery=RecoveryMode.RECONCILE, contract_id="file.move", evidence=evidence_by(plan_move))
def move_file(context: ToolContext, path: str, new_path: str) -> dict[str, Json]:
    """Move or rename a file of the workspace. Nothing may have the new name yet; missing folders are made."""
    return carry_out(context, "move_file", plan_move({"path": path, "new_path": new_path}, context.workspace))
