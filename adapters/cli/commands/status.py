"""`safepoint status`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def status(
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    fail_if_unsettled: Annotated[
        bool, typer.Option("--fail-if-unsettled", help="Exit with 3 if anything has no certain outcome.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=999, help="How many of each.")] = 50,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show what needs a look: in the whole store, or in one session."""

    def work(out: Output) -> int:
        from ..session_names import session_id_of
        from ..show_status import show_status

        named = session_id_of(session_argument, session)
        return show_status(out, places.store_path(store), named, limit, fail_if_unsettled=fail_if_unsettled)

    perform(work, as_json=as_json, store=store)
