"""An agent of pydantic-ai is killed in the middle of a tool: what it does then alone, and what with Safepoint."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from pydantic_ai import Agent, ModelMessagesTypeAdapter, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, repair_messages
from pydantic_ai.models.function import AgentInfo, FunctionModel

import safepoint
from safepoint.adapters.pydantic_ai import Recording, history
from safepoint.domain.events.run import RunStatus

from . import agents
from .agents import agent, opened, paying

ALONE = {"before the effect": 1, "after the effect": 2, "after it was recorded": 1}
"""Where it is killed, and how often it has paid when it has gone on."""
WITH_SAFEPOINT = {
    "before the effect": ("not_executed", 1),
    "after the effect": ("completed", 1),
    "after it was recorded": (None, 1),
    "after it answered": (None, 1),
}
"""The same, and what a person who looked has to say before it goes on."""


def killed(kind: str, folder: Path, where: str, *more: str) -> None:
    """Run the agent in a process of its own, which is killed there."""
    command = [sys.executable, agents.__file__, kind, str(folder), where, *more]
    child = subprocess.run(command, check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL


def payments(folder: Path) -> list[str]:
    file = folder / "payments.txt"
    return file.read_text().splitlines() if file.exists() else []


def kept(folder: Path) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_json((folder / "messages.json").read_bytes())


def parts_of(messages: list[ModelMessage]) -> list[str]:
    return [part.part_kind for message in messages for part in message.parts]


@pytest.mark.parametrize(("where", "paid"), ALONE.items())
def test_alone_it_pays_again_where_the_effect_was_not_recorded(tmp_path: Path, where: str, paid: int) -> None:
    killed("alone", tmp_path, where)
    done = anyio.run(lambda: agent(tmp_path).run(message_history=kept(tmp_path)))
    assert done.output == "Paid."
    assert len(payments(tmp_path)) == paid


def test_alone_a_new_message_is_refused_and_a_repaired_history_says_that_nothing_came_of_it(tmp_path: Path) -> None:
    killed("alone", tmp_path, "after the effect")
    with pytest.raises(UserError, match="unprocessed tool calls"):
        anyio.run(lambda: agent(tmp_path).run("Go on.", message_history=kept(tmp_path)))
    repaired = repair_messages(kept(tmp_path))
    (told,) = [part for message in repaired for part in message.parts if isinstance(part, ToolReturnPart)]
    assert told.outcome == "interrupted"
    assert told.content == "The tool call was interrupted before a result was produced."
    done = anyio.run(lambda: agent(tmp_path).run("Go on.", message_history=repaired))
    assert done.output == "Paid."
    assert len(payments(tmp_path)) == 2


@pytest.mark.parametrize(("where", "said", "paid"), [(where, *then) for where, then in WITH_SAFEPOINT.items()])
def test_with_safepoint_it_pays_once_and_what_is_unknown_waits_for_a_person(
    tmp_path: Path, where: str, said: str | None, paid: int
) -> None:
    killed("guarded", tmp_path, where)
    before = len(payments(tmp_path))

    async def main() -> list[ModelMessage]:
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
                going_on = agent(tmp_path) if said != "not_executed" else paying_after_all(tmp_path)
                done = await going_on.run(message_history=history(run), capabilities=[Recording(run)])
                assert done.output == "Paid."
                shown = history(run)
            assert run.outcome is not None
            assert (run.outcome.status, run.outcome.text) == (RunStatus.COMPLETED, "Paid.")
            return shown

    shown = anyio.run(main)
    again = ["tool-call", "tool-return"] if said == "not_executed" else []
    assert parts_of(shown) == ["user-prompt", "text", "tool-call", "tool-return", *again, "text"]
    assert len(payments(tmp_path)) == paid


def paying_after_all(folder: Path) -> Agent[None, str]:
    """The agent, whose model calls again where it is told that nothing was executed."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        assert isinstance(last, ToolReturnPart)
        if last.outcome == "failed":
            return ModelResponse([ToolCallPart("pay", {"amount": 5}, tool_call_id="c2")])
        return ModelResponse([TextPart("Paid.")])

    return Agent(FunctionModel(answer), tools=[paying(folder)])


def test_a_reader_is_run_again_by_recovery_itself(tmp_path: Path) -> None:
    killed("guarded", tmp_path, "before the effect", "replay_safe")

    async def main() -> None:
        async with opened(tmp_path, recovery="replay_safe") as runtime:
            async with runtime.session("bill").record_resume(reconcile=True) as run:
                done = await agent(tmp_path).run(message_history=history(run), capabilities=[Recording(run)])
            assert done.output == "Paid."

    anyio.run(main)
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
            await agent(tmp_path).run(message_history=history(run), capabilities=[Recording(run)])

    anyio.run(main)
    assert len(payments(tmp_path)) == 1


def test_the_page_holds_these_figures() -> None:
    page = Path(__file__).parents[3] / "docs" / "frameworks" / "pydantic-ai.md"
    lines = [line for line in page.read_text().splitlines() if line.startswith(("| after ", "| before "))]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    known = [
        [where, str(ALONE.get(where, "not tried")), f"`{said}`" if said else "yes", str(paid)]
        for where, (said, paid) in WITH_SAFEPOINT.items()
    ]
    assert rows == known
