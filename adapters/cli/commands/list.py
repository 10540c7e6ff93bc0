"""`safepoint list`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, max=999, help="How many sessions.")] = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="PLACE", show_default=False, help="Where the page before ended.")
    ] = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """List sessions, the one that was used last first."""

    def work(out: Output) -> int:
        from ..list_sessions import list_sessions

        return list_sessions(out, places.store_path(store), limit, after)

    perform(work, as_json=as_json, store=store)
