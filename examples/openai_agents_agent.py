"""An agent of the OpenAI Agents SDK is killed after it paid: `python examples/openai_agents_agent.py FOLDER`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

import safepoint
from safepoint.adapters.openai_agents import promised, recorded

FOLDER, KILLED = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["be killed"]
set_tracing_disabled(True)


@function_tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    with (FOLDER / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    if KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


async def main() -> None:
    """Take a turn, or go on with the one that was interrupted."""
    says = function_call("pay", {"amount": 10}, call_id="call_1") if KILLED else assistant_message("Paid.")
    agent: Agent[None] = Agent("payer", model=ScriptedModel([[says]]), tools=[pay])
    async with safepoint.open(FOLDER / "store.sqlite", tools=[promised(pay, recovery="never_auto_retry")]) as runtime:
        session = runtime.session("bill")
        if KILLED:
            async with session.record("Pay the bill.") as run:
                await Runner.run(recorded(agent, run), run.history("openai-responses"))
        await session.repair()
        for one in await session.unsettled():
            print(f"a person looks what became of {one.tool_name}")
            await session.settle(one.operation_id, "completed", by="alice", note="the bank says so", result="paid 10")
        async with session.record_resume() as run:
            result = await Runner.run(recorded(agent, run), run.history("openai-responses"))
            print(result.final_output)


if __name__ == "__main__":
    if not KILLED:
        print(-subprocess.run([sys.executable, __file__, str(FOLDER), "be killed"], check=False).returncode)
    anyio.run(main)
    print((FOLDER / "payments.txt").read_text().split())
