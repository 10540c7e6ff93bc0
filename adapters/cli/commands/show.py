"""`safepoint show`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def show(
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", show_default=False, help="A run; by default the newest.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="With arguments, results and long texts, within bounds.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, max=10_000, help="How many of the newest facts.")] = 100,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show a session: its runs, and one run's operations and facts."""

    def work(out: Output) -> int:
        from ..session_names import required_session
        from ..show_session import show_session

        named = required_session(session_argument, session)
        return show_session(out, places.store_path(store), named, run, limit, full=full)

    perform(work, as_json=as_json, store=store)
