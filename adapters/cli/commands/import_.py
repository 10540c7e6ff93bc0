"""`safepoint import`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A history; - is standard input.")],
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="safepoint, maka, openai-chat, openai-responses, anthropic, claude-code, codex, or auto.",
        ),
    ] = "auto",
    session: o.SessionOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Take a history into the store, whole or not at all. Its runs stay foreign: what is absent proves nothing."""

    def work(out: Output) -> int:
        from ..import_file import import_file
        from ..session_names import session_id_of

        return import_file(out, places.store_path(store), file, format_name, session_id_of(None, session))

    perform(work, as_json=as_json, store=store)
