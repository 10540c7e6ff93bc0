"""The options that several commands share, each in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

StoreOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--store",
        envvar="SAFEPOINT_STORE",
        show_default=False,
        readable=False,  # what may not be read is said by opening it, as what it is: nothing is known (F1)
        help="The store's file; by default store.sqlite in the user's state folder.",
    ),
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else there.")
]
SessionArgument: TypeAlias = Annotated[str | None, typer.Argument(metavar="[SESSION]", show_default=False)]
SessionOption: TypeAlias = Annotated[
    str | None, typer.Option("--session", metavar="SESSION", show_default=False, help="The session.")
]
WorkspaceOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        show_default=False,
        help="The folder that the tools work in; by default the present one, to resume or reconcile the run's own.",
    ),
]
ProviderOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--provider", metavar="scripted|openai|anthropic", show_default=False, help="Where model steps come from."
    ),
]
ScriptOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--script", metavar="FILE", show_default=False, help="What the scripted provider plays."),
]
ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", show_default=False, help="The model's name at its endpoint; `anthropic:NAME` names both."),
]
WindowOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="TOKENS",
        min=1,
        show_default=False,
        help="How much history the model takes; without it nothing is too large for an endpoint.",
    ),
]
AllowOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="TOOL", show_default=False, help="Permit this tool; may be repeated."),
]
AllowAllOption: TypeAlias = Annotated[bool, typer.Option("--allow-all", help="Permit every tool.")]
AskOption: TypeAlias = Annotated[bool, typer.Option("--ask", help="Ask on the terminal for what is not permitted.")]
AskElsewhereOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--ask-elsewhere",
        help="Wait for `safepoint approve` or `deny` from another terminal for what is not permitted.",
    ),
]
DenyOption: TypeAlias = Annotated[bool, typer.Option("--deny", help="Refuse what is not permitted, and ask nobody.")]
CheckpointsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--checkpoints",
        metavar="auto|git|none",
        show_default=False,
        help="Bind the run to the content of its workspace; by default a new turn where that is possible (auto), and a"
        " continuation as its run was.",
    ),
]
IsolatedOption: TypeAlias = Annotated[
    bool,
    typer.Option("--isolated", help="Where files changed: go on in a new folder made from the checkpoint."),
]
RebaselineOption: TypeAlias = Annotated[
    bool,
    typer.Option("--rebaseline", help="Where files changed: accept them as they are; the model is told which."),
]
AcceptDriftOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-drift",
        metavar="WHAT,…",
        show_default=False,
        help="Continue although these changed: tools, provider, model, account, system_prompt, protocol,"
        " permission_policy; may be repeated.",
    ),
]
ContextTurnsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--context-turns",
        metavar="N|fit",
        show_default=False,
        help="Show the model the newest N earlier turns, or as many as fit its window; it is told what is missing.",
    ),
]
LeaveOutDamagedOption: TypeAlias = Annotated[
    bool,
    typer.Option("--leave-out-damaged", help="Leave out earlier turns whose record is damaged; the model is told."),
]
MaxStepsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-steps", min=1, show_default=False, help="Model steps that the turn may make, resumes included."
    ),
]
MaxTokensOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, show_default=False, help="Tokens that the turn may use, in and out."),
]
MaxSecondsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-seconds",
        min=1,
        show_default=False,
        help="Seconds that the turn may be executed, without waiting for you.",
    ),
]
ReconcileOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--reconcile",
        help="First look again at operations without outcome, as `safepoint reconcile` does; it may run tools again.",
    ),
]
DropPermissionsOption: TypeAlias = Annotated[
    bool, typer.Option("--drop-permissions", help="Drop open questions unanswered; their calls are not executed.")
]
AdoptRunOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--adopt", help="Continue although the run was imported, or is older than the adoption of its store; recorded."
    ),
]
HighWaterOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--expect-high-water",
        min=1,
        show_default=False,
        help="Only if the run ends at this sequence, as `plan` or `show` said.",
    ),
]
RequestArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="REQUEST", show_default=False, help="The question, as `status` names it.")
]
ByOption: TypeAlias = Annotated[
    str | None, typer.Option("--by", metavar="NAME", show_default=False, help="Who decides; by default you.")
]
