"""`safepoint export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def export(
    session_argument: o.SessionArgument = None,
    session: o.SessionOption = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace what looks like a secret; such an export cannot be imported.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", show_default=False, help="Where to; by default standard output."),
    ] = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Write a whole session as JSON lines: every event as it is stored, and digests that tell what is missing."""

    def work(out: Output) -> int:
        from ..export_file import export_file
        from ..session_names import required_session

        named = required_session(session_argument, session)
        return export_file(out, places.store_path(store), named, to, redact=redact)

    perform(work, as_json=as_json, store=store)
