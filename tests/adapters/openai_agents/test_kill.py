"""An agent of the OpenAI Agents SDK is killed in mid-tool: what it does then alone, and what with Safepoint."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import Runner
from agents.testing import ScriptedModel, assistant_message, function_call

import safepoint
from safepoint.adapters.openai_agents import recorded
from safepoint.domain.events.run import RunStatus

from . import agents_that_pay
from .agents_that_pay import agent, kept, opened

ALONE = {
    "before the effect": (["user"], 1),
    "after the effect": (["user"], 2),
    "after it was recorded": (["user", "message", "function_call", "function_call_output"], 1),
}
"""Where it is killed, what its session then holds, and how often it has paid when it has gone on."""
WITH_SAFEPOINT = {
    "before the effect": ("not_executed", 1),
    "after the effect": ("completed", 1),
    "after it was recorded": (None, 1),
    "after it answered": (None, 1),
}
"""The same, and what a person who looked has to say before it goes on."""


def killed(kind: str, folder: Path, where: str, *more: str) -> None:
    """Run the agent in a process of its own, which is killed there."""
    command = [sys.executable, agents_that_pay.__file__, kind, str(folder), where, *more]
    child = subprocess.run(command, check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL


def payments(folder: Path) -> list[str]:
    file = folder / "payments.txt"
    return file.read_text().splitlines() if file.exists() else []


def types_of(items: list[Any]) -> list[str]:
    return [str(item.get("type") or item.get("role")) for item in items]


@pytest.mark.parametrize(("where", "left", "paid"), [(where, *then) for where, then in ALONE.items()])
def test_alone_it_pays_again_where_the_effect_was_not_recorded(
    tmp_path: Path, where: str, left: list[str], paid: int
) -> None:
    killed("alone", tmp_path, where)

    async def main() -> None:
        session = kept(tmp_path)
        try:
            assert types_of(await session.get_items()) == left, "of a call that was not answered nothing is kept"
            done = await Runner.run(agent(tmp_path), "Go on.", session=session)
            assert done.final_output == "Paid."
        finally:
            session.close()

    anyio.run(main)
    assert len(payments(tmp_path)) == paid


@pytest.mark.parametrize(("where", "said", "paid"), [(where, *then) for where, then in WITH_SAFEPOINT.items()])
def test_with_safepoint_it_pays_once_and_what_is_unknown_waits_for_a_person(
    tmp_path: Path, where: str, said: str | None, paid: int
) -> None:
    killed("guarded", tmp_path, where)
    before = len(payments(tmp_path))

    async def main() -> list[Any]:
        async with opened(tmp_path) as runtime:
            session = runtime.session("bill")
            await session.repair()
            plan = await session.plan()
            assert isinstance(plan, safepoint.Park if said else safepoint.Continue)
            if said is not None:
                with pytest.raises(safepoint.ResumeParked, match="dangling_tool_state"):
                    await session.record_resume().__aenter__()
                assert len(payments(tmp_path)) == before
                (operation,) = await session.unsettled()
                assert operation.tool_name == "pay"
                result = "paid 5" if said == "completed" else None
                await session.settle(operation.operation_id, said, by="alice", note="the bank", result=result)
            async with session.record_resume() as run:
                going_on = agent(tmp_path)
                if said == "not_executed":  # what it is told of its first call makes it call again
                    call = function_call("pay", {"amount": 5}, call_id="c2")
                    going_on.model = ScriptedModel([[call], [assistant_message("Paid.")]])
                done = await Runner.run(recorded(going_on, run), run.history("openai-responses"))
                assert done.final_output == "Paid."
                shown = run.history("openai-responses")
            assert run.outcome is not None
            assert (run.outcome.status, run.outcome.text) == (RunStatus.COMPLETED, "Paid.")
            return shown

    shown = anyio.run(main)
    again = ["function_call", "function_call_output"] if said == "not_executed" else []
    expected = ["message", "message", "function_call", "function_call_output", *again, "message"]
    assert types_of(shown) == expected
    assert len(payments(tmp_path)) == paid


def test_a_reader_is_run_again_by_recovery_itself(tmp_path: Path) -> None:
    killed("guarded", tmp_path, "before the effect", "replay_safe")

    async def main() -> None:
        async with opened(tmp_path, recovery="replay_safe") as runtime:
            async with runtime.session("bill").record_resume(reconcile=True) as run:
                done = await Runner.run(recorded(agent(tmp_path), run), run.history("openai-responses"))
            assert done.final_output == "Paid."

    anyio.run(main)
    assert len(payments(tmp_path)) == 1


@pytest.mark.parametrize("where", ["while it is answered", "after it was answered"])
def test_killed_over_arguments_that_do_not_fit_it_goes_on_without_a_person(tmp_path: Path, where: str) -> None:
    killed("mistaken", tmp_path, where)
    assert payments(tmp_path) == []

    async def main() -> list[Any]:
        async with opened(tmp_path) as runtime:
            session = runtime.session("bill")
            await session.repair()
            assert list(await session.unsettled()) == []
            assert isinstance(await session.plan(), safepoint.Continue)
            async with session.record_resume() as run:
                shown = run.history("openai-responses")
                going_on = agent(tmp_path)
                call = function_call("pay", {"amount": 5}, call_id="c2")
                going_on.model = ScriptedModel([[call], [assistant_message("Paid.")]])
                done = await Runner.run(recorded(going_on, run), shown)
            assert done.final_output == "Paid."
            return [item["output"] for item in shown if item.get("type") == "function_call_output"]

    (told,) = anyio.run(main)
    assert (
        "An amount is a whole number." in told if where == "after it was answered" else "not executed" in told.lower()
    )
    assert len(payments(tmp_path)) == 1


def test_a_second_program_that_takes_the_session_up_meanwhile_is_refused_and_carries_nothing_out(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with (
            opened(tmp_path) as first,
            opened(tmp_path) as second,
            first.session("bill").record("Pay the bill.") as run,
        ):
            with pytest.raises(safepoint.SessionBusy):
                await second.session("bill").record("Pay the bill.").__aenter__()
            with pytest.raises(safepoint.ResumeParked, match="session_busy"):
                await second.session("bill").record_resume().__aenter__()
            await Runner.run(recorded(agent(tmp_path), run), run.history("openai-responses"))

    anyio.run(main)
    assert len(payments(tmp_path)) == 1


def test_the_page_holds_these_figures() -> None:
    page = Path(__file__).parents[3] / "docs" / "frameworks" / "openai-agents.md"
    lines = [line for line in page.read_text().splitlines() if line.startswith(("| after ", "| before "))]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    known = [
        [where, str(ALONE[where][1]) if where in ALONE else "not tried", f"`{said}`" if said else "yes", str(paid)]
        for where, (said, paid) in WITH_SAFEPOINT.items()
    ]
    assert rows == known
