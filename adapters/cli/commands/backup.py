"""`safepoint backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; nothing is overwritten.")],
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Copy the store, also while it is in use, into one file, and verify the copy. Changes nothing in the store."""

    def work(out: Output) -> int:
        from ..back_up import back_up

        return back_up(out, places.store_path(store), places.absolute(file))

    perform(work, as_json=as_json, store=store)
