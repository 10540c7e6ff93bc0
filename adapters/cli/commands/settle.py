"""`safepoint settle`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def settle(
    operation: Annotated[str, typer.Argument(metavar="OPERATION", show_default=False)],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="How you know; recorded for good.")],
    completed: Annotated[
        str | None,
        typer.Option(
            "--completed",
            metavar="RESULT|@FILE",
            show_default=False,
            help="It happened, with this result: JSON where it is strict JSON, else a text.",
        ),
    ] = None,
    not_executed: Annotated[bool, typer.Option("--not-executed", help="It did not happen.")] = False,
    declare_over: Annotated[
        bool, typer.Option("--declare-over", help="Nothing of it runs any more; only where nobody can look.")
    ] = False,
    by: o.ByOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Say what became of an operation whose outcome is not certain. It is recorded once, as your word."""

    def work(out: Output) -> int:
        from ..settle_one import settle_one, what_is_said

        said = what_is_said(operation, completed, by, note, not_executed=not_executed, declare_over=declare_over)
        return settle_one(out, places.store_path(store), said)

    perform(work, as_json=as_json, store=store)
