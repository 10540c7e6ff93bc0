"""`safepoint cancel`."""

from __future__ import annotations

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def cancel(
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Stop the open run of a session, in this or another process, or left behind by a dead one."""

    def work(out: Output) -> int:
        from ..cancel_session import cancel_session
        from ..session_names import required_session

        return cancel_session(out, places.store_path(store), required_session(session_argument, session))

    perform(work, as_json=as_json, store=store)
