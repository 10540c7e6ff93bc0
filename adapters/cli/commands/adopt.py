"""`safepoint adopt`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def adopt(
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why; recorded for good.")],
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", show_default=False, help="Who; by default you.")
    ] = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Go on with a copied, restored or cut-off store. What is absent from it proves nothing, from then on too."""

    def work(out: Output) -> int:
        from ..adopt_whole import adopt_whole

        return adopt_whole(out, places.store_path(store), by, note)

    perform(work, as_json=as_json, store=store)
