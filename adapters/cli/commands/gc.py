"""`safepoint gc`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def gc(
    older_than: Annotated[
        float, typer.Option("--older-than", metavar="DAYS", min=0, help="Only what is older; never less than an hour.")
    ] = 7.0,
    delete: Annotated[bool, typer.Option("--delete", help="Remove it; without this, it is only listed.")] = False,
    workspace: o.WorkspaceOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """List checkpoints and isolated folders that no fact names, and remove them with --delete.

    What an accepted fact names is never removed. Looks where the store's runs worked, and in --workspace FOLDER.
    """

    def work(out: Output) -> int:
        from ..collect import collect

        folder = None if workspace is None else str(places.absolute(workspace))
        return collect(out, places.store_path(store), older_than, folder, delete=delete)

    perform(work, as_json=as_json, store=store)
