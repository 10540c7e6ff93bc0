"""`safepoint judge`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from ..output import Output
from ..runtimes import perform


def judge(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", show_default=False, help="A history; by default standard input.")
    ] = "-",
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="safepoint, maka, openai-chat, openai-responses, anthropic, claude-code, codex, or auto.",
        ),
    ] = "auto",
    cases: Annotated[
        bool, typer.Option("--cases", help='Answer {"id", "events"} (Maka envelopes), one object a line, line by line.')
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="With the content of the legal history.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """Read a history that you already have and say what is known of each call, and whether it could be continued."""

    def work(out: Output) -> int:
        if cases:
            from ..judge_cases import judge_cases

            return judge_cases(file, format_name)
        from ..judge_file import judge_file

        return judge_file(out, file, format_name, full=full)

    perform(work, as_json=as_json)
