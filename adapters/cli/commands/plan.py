"""`safepoint plan`."""

from __future__ import annotations

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def plan(
    session_argument: o.SessionArgument = None,
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
    accept_drift: o.AcceptDriftOption = None,
    drop_permissions: o.DropPermissionsOption = False,
    adopt: o.AdoptRunOption = False,
    expect_high_water: o.HighWaterOption = None,
    max_steps: o.MaxStepsOption = None,
    max_tokens: o.MaxTokensOption = None,
    max_seconds: o.MaxSecondsOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show whether the session's interrupted run may be continued, and if not, every reason. Changes nothing."""

    def work(out: Output) -> int:
        from ..agents import AgentOptions
        from ..content import content_options
        from ..plan_resume import plan_resume
        from ..policies import PolicyOptions
        from ..resumable import budgets_of, request_of
        from ..session_names import session_id_of

        policy = PolicyOptions(tuple(allow or ()), allow_all, ask, deny, ask_elsewhere, places.store_path(store))
        chosen = AgentOptions(provider, script, model, workspace, policy, window)
        budgets = budgets_of(max_steps, max_tokens, max_seconds)
        request = request_of(
            accept_drift, expect_high_water, drop_permissions=drop_permissions, adopt=adopt, budgets=budgets
        )
        named = session_id_of(session_argument, session)
        return plan_resume(out, named, chosen, request, places.store_path(store), content_options(checkpoints))

    perform(work, as_json=as_json, store=store)
