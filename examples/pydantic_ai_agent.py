"""An agent in pydantic-ai is killed after it paid, and goes on: `python examples/pydantic_ai_agent.py FOLDER`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

import safepoint
from safepoint.adapters.pydantic_ai import Recording, history, promised

FOLDER, KILLED = Path(sys.argv[1]).resolve(), sys.argv[2:] == ["be killed"]


async def pay(amount: int) -> str:
    """Pay an amount."""
    with (FOLDER / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    if KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


async def main() -> None:
    """Take a turn, or go on with the one that was interrupted."""
    agent = Agent(TestModel(custom_output_text="Paid."), tools=[pay])
    async with safepoint.open(FOLDER / "store.sqlite", tools=[promised(pay, recovery="never_auto_retry")]) as runtime:
        session = runtime.session("bill")
        if KILLED:
            async with session.record("Pay the bill.") as run:
                await agent.run(message_history=history(run), capabilities=[Recording(run)])
        await session.repair()
        for one in await session.unsettled():
            print(f"a person looks what became of {one.tool_name}")
            await session.settle(one.operation_id, "completed", by="alice", note="the bank says so", result="paid 0")
        async with session.record_resume() as run:
            print((await agent.run(message_history=history(run), capabilities=[Recording(run)])).output)


if __name__ == "__main__":
    if not KILLED:
        print(-subprocess.run([sys.executable, __file__, str(FOLDER), "be killed"], check=False).returncode)
    anyio.run(main)
    print((FOLDER / "payments.txt").read_text().split())
