"""`safepoint approve`."""

from __future__ import annotations

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def approve(
    request: o.RequestArgument,
    session: o.SessionOption = None,
    by: o.ByOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Permit a call that waits for permission: once, with exactly the arguments and the tool that were asked about.

    A run that waits goes on at once. After its process died the decision is kept for the run that continues it.
    """

    def work(out: Output) -> int:
        from ..decide_request import decide_request

        return decide_request(out, places.store_path(store), request, session, by, approved=True)

    perform(work, as_json=as_json, store=store)
