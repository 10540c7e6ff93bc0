"""`safepoint run`."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def run(
    prompt: Annotated[
        str | None, typer.Argument(metavar="[PROMPT]", show_default=False, help="The message; else standard input.")
    ] = None,
    session: o.SessionOption = None,
    script: o.ScriptOption = None,
    provider: o.ProviderOption = None,
    model: o.ModelOption = None,
    window: o.WindowOption = None,
    workspace: o.WorkspaceOption = None,
    allow: o.AllowOption = None,
    allow_all: o.AllowAllOption = False,
    ask: o.AskOption = False,
    ask_elsewhere: o.AskElsewhereOption = False,
    deny: o.DenyOption = False,
    checkpoints: o.CheckpointsOption = None,
    context_turns: o.ContextTurnsOption = None,
    leave_out_damaged: o.LeaveOutDamagedOption = False,
    max_steps: o.MaxStepsOption = None,
    max_tokens: o.MaxTokensOption = None,
    max_seconds: o.MaxSecondsOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Run one turn: of a new session, or with --session the next turn of an existing one."""

    def work(out: Output) -> int:
        from ..agents import AgentOptions
        from ..content import content_options
        from ..policies import PolicyOptions
        from ..resumable import budgets_of
        from ..run_turn import context_choice, run_turn

        policy = PolicyOptions(tuple(allow or ()), allow_all, ask, deny, ask_elsewhere, places.store_path(store))
        chosen = AgentOptions(provider, script, model, workspace, policy, window)
        budgets = budgets_of(max_steps, max_tokens, max_seconds)
        context = context_choice(context_turns, leave_out_damaged=leave_out_damaged)
        content = content_options(checkpoints, new_turn=True)
        return run_turn(out, prompt, session, chosen, places.store_path(store), context, budgets, content)

    perform(work, as_json=as_json, store=store)
