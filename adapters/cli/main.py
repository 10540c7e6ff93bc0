"""The program's entry: commands, and an exit status whatever happens."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .commands.abandon import abandon
from .commands.adopt import adopt
from .commands.approve import approve
from .commands.backup import backup
from .commands.cancel import cancel
from .commands.checkpoint import checkpoint
from .commands.demo import demo
from .commands.deny import deny
from .commands.doctor import doctor
from .commands.export import export
from .commands.forget import forget
from .commands.gc import gc
from .commands.import_ import import_
from .commands.judge import judge
from .commands.list import list_
from .commands.plan import plan
from .commands.rebuild import rebuild
from .commands.reconcile import reconcile
from .commands.restore import restore
from .commands.resume import resume
from .commands.run import run
from .commands.settle import settle
from .commands.show import show
from .commands.status import status
from .commands.takeover import takeover
from .commands.verify import verify
from .commands.workspace import workspace
from .standard_output import OutputLost, take_standard_output

ABOUT = "Continue an AI-agent run safely after its process died in the middle of a tool call."
LOG_VARIABLE = "SAFEPOINT_LOG"
THREAD_PATIENCE_SECONDS = 0.5

COMMANDS: dict[str, Any] = {
    "run": run,
    "list": list_,
    "status": status,
    "show": show,
    "plan": plan,
    "resume": resume,
    "cancel": cancel,
    "approve": approve,
    "deny": deny,
    "reconcile": reconcile,
    "settle": settle,
    "abandon": abandon,
    "takeover": takeover,
    "workspace": workspace,
    "checkpoint": checkpoint,
    "gc": gc,
    "forget": forget,
    "doctor": doctor,
    "verify": verify,
    "rebuild": rebuild,
    "adopt": adopt,
    "backup": backup,
    "restore": restore,
    "judge": judge,
    "export": export,
    "import": import_,
    "demo": demo,
}


def application() -> typer.Typer:
    """The commands, ready to be called with arguments."""
    app = typer.Typer(
        name="safepoint",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=ABOUT)(_options)
    for name, command in COMMANDS.items():
        app.command(name)(command)
    return app


def call(arguments: Sequence[str]) -> int:
    """Call the program with arguments; returns its exit status."""
    _log()
    try:
        code = application()(list(arguments), prog_name="safepoint", standalone_mode=False)
    except typer.Abort:
        return 130
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return _misused(error, as_json="--json" in arguments)
    return code if isinstance(code, int) else 0


def _misused(error: Any, *, as_json: bool) -> int:
    """Tell of arguments that the commands do not take."""
    with contextlib.suppress(OSError):  # standard error may be full: the status tells it still
        error.show()
    if as_json:
        from . import documents
        from .output import Output

        members = {"code": "usage", "message": error.format_message(), "next_step": "", "exit_code": 2}
        Output(as_json=True).document(documents.ERROR, members)
    return 2


def main() -> None:
    """Run the program and leave with its exit status."""
    take_standard_output()
    try:
        code = call(sys.argv[1:])
        sys.stdout.flush()
    except OutputLost as lost:
        code = lost.exit_code
        if not lost.reader_gone:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(lost.sentence + "\n")
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(THREAD_PATIENCE_SECONDS)
            if thread.is_alive():  # a tool that would not end: its operation is recorded as not over; nobody waits
                os._exit(code)
    sys.exit(code)


def _print_version(asked: bool) -> None:
    if asked:
        from ... import __version__

        print(f"safepoint {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options of the program itself."""


def _log() -> None:
    """The library logs for operators; a person at the terminal is told by the commands. SAFEPOINT_LOG=info shows it.

    Only this library's log: a provider's client logs whole requests, prompts and results among them (R15).
    """
    logger = logging.getLogger("safepoint")
    logger.propagate = False
    level = logging.getLevelNamesMapping().get(os.environ.get(LOG_VARIABLE, "").upper())
    handler = logging.NullHandler() if level is None else logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.NOTSET if level is None else level)
