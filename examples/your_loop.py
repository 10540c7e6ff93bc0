"""Put Safepoint around a loop that you have: be killed in the middle of a tool, and go on without paying twice.

    python examples/your_loop.py FOLDER

The folder exists and is empty. The program runs itself as a child, which is killed after it paid and before it could
say so. Then it looks, asks a person what became of the payment, and goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

import safepoint

PAYMENTS = Path(sys.argv[1], "payments.txt")


def ask_model(messages: list[Any]) -> dict[str, Any]:
    """Stand for your provider's client: ask for one payment, then say that it is done."""
    paid = messages[-1]["role"] == "tool"
    call = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"amount":"10.00"}'}}
    message = {"role": "assistant", "content": "Paid."} if paid else {"role": "assistant", "tool_calls": [call]}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop" if paid else "tool_calls"}]}


def pay(amount: str) -> str:
    """Pay an amount."""
    with PAYMENTS.open("a") as payments:
        payments.write(f"{amount}\n")
    if sys.argv[2:] == ["be killed"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


TOOLS = {"pay": pay}
PROMISES = [safepoint.contract("pay", recovery="never_auto_retry")]


async def loop(run: safepoint.RecordedRun) -> None:
    """Go on until the model has nothing more to call: the loop that was there, with what it tells of itself."""
    while True:
        run.check()
        step = await run.model_step(ask_model(run.history("openai-chat")), "openai-chat")
        for call in step.calls:
            await run.call(call, TOOLS.get(call.tool_name))
        if not step.calls:
            return


async def begin(store: Path) -> None:
    """Take a turn."""
    async with safepoint.open(store, tools=PROMISES) as runtime, runtime.session("bill").record("Pay the bill.") as run:
        await loop(run)


async def go_on(store: Path) -> None:
    """Look what can be done about the interrupted run; a person says what happened; continue it."""
    async with safepoint.open(store, tools=PROMISES) as runtime:
        session = runtime.session("bill")
        await session.repair()
        plan = await session.plan()
        if isinstance(plan, safepoint.Park):
            print("parked:", *plan.codes)
        for one in await session.unsettled():
            print(f"a person looks what became of {one.tool_name}")
            await session.settle(one.operation_id, "completed", by="alice", note="the bank says so", result="paid")
        async with session.record_resume() as run:
            await loop(run)
        assert run.outcome is not None
        print(run.outcome.text)


if __name__ == "__main__":
    file = Path(sys.argv[1]).resolve() / "store.sqlite"
    if sys.argv[2:] == ["be killed"]:
        anyio.run(begin, file)
    child = subprocess.run([sys.executable, __file__, sys.argv[1], "be killed"], check=False)
    print("killed" if child.returncode == -signal.SIGKILL else f"ended with {child.returncode}")
    anyio.run(go_on, file)
    print(PAYMENTS.read_text().split())
