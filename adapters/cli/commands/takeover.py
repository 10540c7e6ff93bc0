"""`safepoint takeover`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def takeover(
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    fence_only: Annotated[
        bool,
        typer.Option("--fence-only", help="Leave the process alone: it writes nothing more, what it started goes on."),
    ] = False,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Take a session from its owner: end the process that works on it, and close its run."""

    def work(out: Output) -> int:
        from ..session_names import required_session
        from ..take_session_over import take_session_over

        named = required_session(session_argument, session)
        return take_session_over(out, places.store_path(store), named, fence_only=fence_only)

    perform(work, as_json=as_json, store=store)
