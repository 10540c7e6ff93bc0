"""`safepoint checkpoint`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


class Action(StrEnum):
    """What is done."""

    LIST = "list"
    SHOW = "show"
    CAPTURE = "capture"
    RESTORE = "restore"
    REMOVE = "remove"


def checkpoint(
    action: Annotated[Action, typer.Argument(metavar="list|show|capture|restore|remove", show_default=False)],
    ref: Annotated[
        str | None, typer.Argument(metavar="[REF]", show_default=False, help="The checkpoint, as `list` names it.")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", show_default=False, help="The folder; by default the present one.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FOLDER", show_default=False, help="Where `restore` puts it: a new folder."),
    ] = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """List the checkpoints of a workspace, compare one with the files, make one by hand, or write one out.

    `restore` makes a new folder and touches no file that is there. `remove` takes what was captured by hand alone.
    """

    def work(out: Output) -> int:
        from ..keep_content import KeepContent

        keep = KeepContent(out, places.store_path(store), str(places.absolute(workspace or Path())))
        return keep(action.value, ref, None if into is None else places.absolute(into))

    perform(work, as_json=as_json, store=store)
