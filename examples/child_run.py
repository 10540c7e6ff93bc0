"""Let a tool start a run of its own, be killed in the middle of that, and go on with it: one child for one call.

    python examples/child_run.py FOLDER

The folder exists and is empty. The program runs itself as a child process, in which a lead hands a bill to a clerk, and
which is killed when the clerk has paid. Then the clerk's run is found by the id that the lead's call recorded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

import safepoint
from safepoint.adapters.models.script import Script
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.application.reconciliation import LeftAlone

LEAD = """
{"steps": [{"text": "My clerk does that.", "calls": [{"tool": "delegate", "args": {"task": "Pay the bill."}}]},
           {"text": "My clerk has done it."}]}
"""
CLERK = """
{"steps": [{"text": "I pay the bill.", "calls": [{"tool": "pay", "args": {"amount": "10.00"}}]},
           {"text": "The bill is paid, once."}]}
"""


@safepoint.tool(recovery="never_auto_retry")
def pay(context: safepoint.ToolContext, amount: str) -> str:
    """Pay an amount."""
    with (context.workspace / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    return f"paid {amount}"


def die_when_paid(happening: safepoint.events.Happening) -> None:
    """Be killed as soon as the payment's outcome is durable."""
    if isinstance(happening, safepoint.events.CallAnswered) and "be killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)


def opened(folder: Path, script: str, *tools: Callable[..., Any]) -> safepoint.Runtime:
    """An agent; several of one program work over one store."""
    model = ScriptedModel(Script.model_validate_json(script))
    return safepoint.open(folder / "store.sqlite", workspace=folder, checkpoints="none", model=model, tools=tools)


def lead_of(folder: Path, clerk: safepoint.Runtime) -> safepoint.Runtime:
    """An agent with a tool that starts another one."""

    @safepoint.tool(recovery="reattach", child_run=True)
    async def delegate(context: safepoint.ToolContext, task: str) -> str:
        """Let the clerk do it."""
        session = clerk.session(context.child_run)
        result = await session.run(task, parent=context, watch=die_when_paid)
        return result.outcome.text

    return opened(folder, LEAD, delegate)


async def begin(folder: Path) -> None:
    """Run a turn."""
    async with opened(folder, CLERK, pay) as clerk, lead_of(folder, clerk) as lead:
        await lead.session("bill").run("See to the bill.")


async def go_on(folder: Path) -> None:
    """Ask what became of the call; continue the child where it was interrupted, and then its parent."""
    async with opened(folder, CLERK, pay) as clerk, lead_of(folder, clerk) as lead:
        session = lead.session("bill")
        looked = await session.reconcile()
        assert looked is not None
        for one in looked.operations:
            if isinstance(one.became, LeftAlone) and one.became.child is not None:
                print(f"{one.tool_name}: {one.became.why}")
                resumed = await clerk.session(one.became.child).resume()
                print(resumed.outcome.text if isinstance(resumed, safepoint.Continued) else resumed.codes)
        result = await session.resume(reconcile=True)
        print(result.outcome.text if isinstance(result, safepoint.Continued) else result.codes)


if __name__ == "__main__":
    workspace = Path(sys.argv[1]).resolve()
    if sys.argv[2:] == ["be killed"]:
        anyio.run(begin, workspace)
    process = subprocess.run([sys.executable, __file__, str(workspace), "be killed"], check=False)
    print("killed" if process.returncode == -signal.SIGKILL else f"ended with {process.returncode}")
    anyio.run(go_on, workspace)
    print((workspace / "payments.txt").read_text().split())
