"""`safepoint rebuild`."""

from __future__ import annotations

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def rebuild(store: o.StoreOption = None, as_json: o.JsonOption = False) -> None:
    """Drop the views and make them again from the events, while others read. Changes no event."""

    def work(out: Output) -> int:
        from ..rebuild_views import rebuild_views

        return rebuild_views(out, places.store_path(store))

    perform(work, as_json=as_json, store=store)
