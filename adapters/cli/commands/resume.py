"""`safepoint resume`."""

from __future__ import annotations

from .. import options as o
from .. import places
from ..output import Output
from ..runtimes import perform


def resume(
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
    isolated: o.IsolatedOption = False,
    rebaseline: o.RebaselineOption = False,
    accept_drift: o.AcceptDriftOption = None,
    drop_permissions: o.DropPermissionsOption = False,
    reconcile: o.ReconcileOption = False,
    adopt: o.AdoptRunOption = False,
    expect_high_water: o.HighWaterOption = None,
    max_steps: o.MaxStepsOption = None,
    max_tokens: o.MaxTokensOption = None,
    max_seconds: o.MaxSecondsOption = None,
    store: o.StoreOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Continue the session's interrupted run as a new run, if that is proven safe; else say why it is parked.

    Provider, model, permissions and workspace are those of the run, where no option says otherwise.
    """

    def work(out: Output) -> int:
        from ..agents import AgentOptions
        from ..content import content_options
        from ..policies import PolicyOptions
        from ..resumable import budgets_of, request_of
        from ..resume_session import resume_session
        from ..session_names import session_id_of

        policy = PolicyOptions(tuple(allow or ()), allow_all, ask, deny, ask_elsewhere, places.store_path(store))
        chosen = AgentOptions(provider, script, model, workspace, policy, window)
        budgets = budgets_of(max_steps, max_tokens, max_seconds)
        request = request_of(
            accept_drift, expect_high_water, drop_permissions=drop_permissions, adopt=adopt, budgets=budgets
        )
        named = session_id_of(session_argument, session)
        content = content_options(checkpoints, isolated=isolated, rebaseline=rebaseline)
        return resume_session(out, named, chosen, request, places.store_path(store), content, reconcile=reconcile)

    perform(work, as_json=as_json, store=store)
