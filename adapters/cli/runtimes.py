"""Opening the store for one command, and saying what became of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import typer

from . import places
from .output import Output
from .standard_output import lost_in
from .usage import UsageError

if TYPE_CHECKING:
    from ..composition import Composition
    from ..opened_store import OpenedStore
    from .failures import Failure

Work: TypeAlias = Callable[[Output], int]


def perform(work: Work, *, as_json: bool, store: Path | None = None) -> None:
    """Do a command's work and end the command with its exit status; an error becomes a message, never a traceback.

    Raises:
        OutputLost: standard output cannot be written; `main` ends with it, whoever wrote.
        typer.Exit: otherwise.
    """
    out = Output(as_json=as_json)
    try:
        code = work(out)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # noqa: BLE001 (whatever it is, a person is told)
        if (lost := lost_in(error)) is not None:
            raise lost from None
        from .failures import debugging, failure_of

        code = report(failure_of(error), out, store)
        if debugging():
            traceback.print_exception(error)
    raise typer.Exit(code)


def report(failure: Failure, out: Output, store: Path | None) -> int:
    """Tell a person and, in JSON mode, a program."""
    from . import documents, escaping
    from .command_lines import CommandLines

    out.tell(f"safepoint: {escaping.lines(failure.message)}")
    next_step = CommandLines(store or places.default_store()).in_text(failure.next_step, failure.session_id)
    if next_step:
        out.tell(f"  {next_step}")
    members = (failure.code, failure.message, next_step, int(failure.exit_code))
    out.document(documents.ERROR, dict(zip(documents.MEMBERS[documents.ERROR], members, strict=True)))
    return failure.exit_code


def reading(store: Path) -> OpenedStore:
    """Open a store to look at it: no byte of it changes, nothing is owned."""
    from ..opened_store import OpenedStore
    from ..settings import Settings

    return OpenedStore(Settings(store, read_only=True))


def writing(store: Path) -> OpenedStore:
    """Open a store to work in it; it is made where there is none."""
    from ..opened_store import OpenedStore
    from ..settings import Settings

    places.prepare_folder(store)
    return OpenedStore(Settings(store))


def unopened(store: Path) -> Composition:
    """The parts for a store that is not opened: it may be missing or damaged."""
    from ..composition import Composition
    from ..settings import Settings

    parts = Composition(settings=Settings(store))
    parts.check_dependencies()
    return parts


def require_store(store: Path) -> None:
    """Make sure that there is a store; a command that works on one does not make it.

    Raises:
        UsageError: there is none.
    """
    if not places.is_there(store):
        raise UsageError(no_store(store), "Check --store.", code="store_missing")


def no_store(store: Path) -> str:
    """The sentence for a store that is not there; looking does not make it."""
    return f"There is no store at {store} yet; `safepoint run` makes it."
