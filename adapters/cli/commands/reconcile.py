"""`safepoint reconcile`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def reconcile(
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    operation: Annotated[
        str | None, typer.Option("--operation", metavar="OPERATION", show_default=False, help="Only this one.")
    ] = None,
    workspace: o.WorkspaceOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Look at the world again for every operation of a session that has no outcome, and settle what can be proven.

    A tool that only reads runs again. An idempotent call is delivered again with the key that was recorded, while that
    is valid. Recorded evidence is compared, and a recorded handle is looked up. What a tool promises nothing about is
    parked, for `safepoint settle`. Nothing is looked at that may still be running.
    """

    def work(out: Output) -> int:
        from ..reconcile_session import reconcile_session
        from ..session_names import required_session

        named = required_session(session_argument, session)
        return reconcile_session(out, named, operation, workspace, places.store_path(store))

    perform(work, as_json=as_json, store=store)
