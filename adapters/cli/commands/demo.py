"""`safepoint demo`."""

from __future__ import annotations

from .. import options as o
from ..output import Output
from ..runtimes import perform


def demo(as_json: o.JsonOption = False) -> None:
    """Watch an agent being killed in the middle of a tool call, judged, and continued; every effect is counted."""

    def work(out: Output) -> int:
        from ...demo.main import run_demo

        return run_demo(as_json=as_json)

    perform(work, as_json=as_json)
