"""`safepoint restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup, or any store; it stays as it is.")],
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Put a backup in the store's place, while nobody uses it. What was there is kept under another name."""

    def work(out: Output) -> int:
        from ..back_up import restore as put_in_place

        return put_in_place(out, places.store_path(store), places.absolute(file))

    perform(work, as_json=as_json, store=store)
