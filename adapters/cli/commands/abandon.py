"""`safepoint abandon`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def abandon(
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why; recorded for good.")],
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    by: o.ByOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Give up a session's damaged run: it stays as it is, and the session goes on without it."""

    def work(out: Output) -> int:
        from ..abandon_damaged import abandon_damaged
        from ..session_names import required_session

        return abandon_damaged(out, places.store_path(store), required_session(session_argument, session), by, note)

    perform(work, as_json=as_json, store=store)
