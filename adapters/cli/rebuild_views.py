"""Makes the views of a store again."""

from __future__ import annotations

from pathlib import Path

from ...ports.store_keeping import Rebuilt
from . import documents
from .command_lines import CommandLines
from .exit_codes import ExitCode
from .output import Output
from .progress import telling
from .runtimes import require_store, writing


def rebuild_views(out: Output, store: Path) -> int:
    """Rebuild them; returns the exit status."""
    require_store(store)
    with writing(store) as runtime:
        rebuilt: Rebuilt = runtime.parts.projections().rebuild(
            telling(out, lambda done, of: f"{done} of {of} events …")
        )
    code = ExitCode.CORRUPTION if rebuilt.unreadable else ExitCode.DONE
    out.say(f"{store}: the views were made again, {rebuilt.rows} rows from {rebuilt.events} events.")
    if rebuilt.unreadable:
        verify = CommandLines(store).about("verify")
        out.say(f"{rebuilt.unreadable} events cannot be read; their sessions are listed without them. {verify}")
    out.document(documents.REBUILD, {"store": str(store), **rebuilt._asdict(), "exit_code": int(code)})
    return code
