"""`safepoint doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def doctor(
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="CATALOG",
            show_default=False,
            help="Name the sessions that a deploy with this catalog would strand: a JSON file, or `builtin`.",
        ),
    ] = None,
    export_catalog: Annotated[
        Path | None,
        typer.Option(
            "--export-catalog",
            metavar="FILE",
            show_default=False,
            help="Write the catalog of this program's own tools.",
        ),
    ] = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Check store, locks, versions and platform; say in plain words what is wrong and what to do. Changes nothing."""

    def work(out: Output) -> int:
        from ..examine import examine
        from ..examine_deploy import catalog_of, examine_deploy, write_catalog

        if export_catalog is not None:
            return write_catalog(out, export_catalog)
        if against is not None:
            return examine_deploy(out, places.store_path(store), catalog_of(against))
        return examine(out, places.store_path(store))

    perform(work, as_json=as_json, store=store)
