"""`safepoint deny`."""

from __future__ import annotations

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def deny(
    request: o.RequestArgument,
    session: o.SessionOption = None,
    by: o.ByOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Refuse a call that waits for permission; the model is told, and the run goes on."""

    def work(out: Output) -> int:
        from ..decide_request import decide_request

        return decide_request(out, places.store_path(store), request, session, by, approved=False)

    perform(work, as_json=as_json, store=store)
