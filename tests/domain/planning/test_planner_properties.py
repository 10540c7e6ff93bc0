"""What holds for the plan of any run, cut at any instant and then ended, whatever the host sees."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from safepoint.domain.events.run import RunStatus
from safepoint.domain.planning.facts import Drift
from safepoint.domain.planning.observations import Busy, WorkspaceFound
from safepoint.domain.planning.outcome import Continue
from safepoint.domain.planning.planner import plan
from safepoint.domain.planning.revalidation import compare
from safepoint.domain.replay.legality import check_provider_legality

from ..replay.story import Story, profile
from ..replay.test_replay_properties import crashed_runs
from .situation import facts_of

ENDINGS = st.sampled_from([RunStatus.FAILED, RunStatus.CANCELLED])
HOSTS = st.fixed_dictionaries(
    {},
    optional={
        "feature_enabled": st.booleans(),
        "busy": st.sampled_from([None, Busy(1)]),
        "workspace": st.sampled_from([WorkspaceFound("workspace:v1:w", "/w"), WorkspaceFound("workspace:v1:x", "/w")]),
        "profile": st.sampled_from([None, profile(), profile(model="m2")]),
        "tools": st.sampled_from([None, (), profile().tools]),
        "accepted_drift": st.sets(st.sampled_from(list(Drift))).map(frozenset),
        "drop_permissions": st.booleans(),
        "behind_anchor": st.booleans(),
    },
)


@given(crashed_runs(), ENDINGS, HOSTS)
def test_a_run_is_continued_only_when_all_is_settled_and_its_history_is_legal(
    run: Story, ending: RunStatus, host: dict[str, Any]
) -> None:
    run.end(ending)
    made = plan(facts_of(run, **host))
    if isinstance(made, Continue):
        assert all(verdict.is_settled for verdict in run.resolution().verdicts)
        assert check_provider_legality(made.replay.items) is None
        assert made.replay.items[-1].kind in {"user", "host", "result"}
        assert host.get("feature_enabled", True)
        assert not host.get("busy")
        assert not host.get("behind_anchor")
    else:
        assert made.reasons


@given(crashed_runs(), ENDINGS, HOSTS)
def test_a_plan_is_a_function_of_its_facts_and_reports_in_one_order(
    run: Story, ending: RunStatus, host: dict[str, Any]
) -> None:
    run.end(ending)
    made = plan(facts_of(run, **host))
    assert plan(facts_of(run, **host)) == made
    if isinstance(made, Continue):
        assert compare(made, plan(facts_of(run, **host))) == ()


@given(crashed_runs(), HOSTS)
def test_what_one_gate_refuses_never_hides_what_another_refuses(run: Story, host: dict[str, Any]) -> None:
    """Failing more gates only adds reasons: nothing is found wrong with a run only because something else is right."""
    run.end()
    alone = plan(facts_of(run, **host))
    worse = plan(facts_of(run, **{**host, "feature_enabled": False, "busy": Busy(1), "behind_anchor": True}))
    assert not isinstance(worse, Continue)
    if not isinstance(alone, Continue):
        assert set(alone.codes) <= set(worse.codes)
