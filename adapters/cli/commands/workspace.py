"""`safepoint workspace`."""

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
    """What is done about the folder."""

    SHOW = "show"
    ADOPT = "adopt"
    RENEW = "renew"


def workspace(
    action: Annotated[Action, typer.Argument(metavar="show|adopt|renew", show_default=False)],
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", show_default=False, help="By default the present one.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", show_default=False, help="Who says so; by default you.")
    ] = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show which workspace a folder is, and where else its marker is seen.

    Of two folders that are the same workspace, `adopt` says that this is it, and `renew` that this is another one.
    """

    def work(out: Output) -> int:
        from ..settle_folder import settle_folder

        return settle_folder(out, places.store_path(store), str(places.absolute(folder or Path())), action.value, by)

    perform(work, as_json=as_json, store=store)
