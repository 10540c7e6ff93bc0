"""`safepoint verify`."""

from __future__ import annotations

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def verify(store: o.StoreOption = None, as_json: o.JsonOption = False) -> None:
    """Read everything that is stored and name what cannot be what was written. Changes nothing."""

    def work(out: Output) -> int:
        from ..verify_whole import verify_whole

        return verify_whole(out, places.store_path(store))

    perform(work, as_json=as_json, store=store)
