"""`safepoint forget`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def forget(
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this, what would go is only listed.")] = False,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", show_default=False, help="Who asks; by default you.")
    ] = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Remove a session's content for good, with its child sessions, checkpoints and isolated folders.

    A tombstone stays, so that its ids and claims can never be used again. Backups and exports are not touched.
    """

    def work(out: Output) -> int:
        from ..forget_content import forget_content
        from ..session_names import required_session

        named = required_session(session_argument, session)
        return forget_content(out, places.store_path(store), named, by, sure=yes)

    perform(work, as_json=as_json, store=store)
