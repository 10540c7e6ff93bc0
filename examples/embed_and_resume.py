"""Embed Safepoint in a program of one's own, be killed in the middle of a run, and go on.

    python examples/embed_and_resume.py FOLDER

The folder exists and is empty. The program runs itself as a child, which pays a bill and is killed right after; then it
continues that run in a new one, and counts the payments.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio

import safepoint
from safepoint.adapters.models.script import Script
from safepoint.adapters.models.scripted import ScriptedModel

SCRIPT = """
{"steps": [{"text": "I pay the bill.", "calls": [{"tool": "pay", "args": {"amount": "10.00"}}]},
           {"text": "The bill is paid, once."}]}
"""


@safepoint.tool(recovery="never_auto_retry")
def pay(context: safepoint.ToolContext, amount: str) -> dict[str, str]:
    """Pay an amount."""
    with (context.workspace / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    return {"paid": amount}


def opened(folder: Path) -> safepoint.Runtime:
    """Put a store, a model and tools together; the folder gets a marker, by which it is known again."""
    model = ScriptedModel(Script.model_validate_json(SCRIPT))  # or "openai:gpt-5.1", or a provider of your own
    return safepoint.open(
        folder / "store.sqlite", workspace=folder, model=model, tools=[pay], system_prompt="You pay bills."
    )


def die_when_paid(happening: safepoint.events.Happening) -> None:
    """Be killed as soon as the payment's outcome is durable."""
    if isinstance(happening, safepoint.events.CallAnswered):
        os.kill(os.getpid(), signal.SIGKILL)


async def begin(folder: Path) -> None:
    """Run a turn."""
    async with opened(folder) as runtime:
        await runtime.session("bill").run("Pay the bill.", watch=die_when_paid)


async def go_on(folder: Path) -> None:
    """Continue the interrupted run, or say why it is parked."""
    async with opened(folder) as runtime:
        result = await runtime.session("bill").resume()
        print(result.outcome.text if isinstance(result, safepoint.Continued) else result.codes)


if __name__ == "__main__":
    workspace = Path(sys.argv[1]).resolve()
    if sys.argv[2:] == ["be killed"]:
        anyio.run(begin, workspace)
    child = subprocess.run([sys.executable, __file__, str(workspace), "be killed"], check=False)
    print("killed" if child.returncode == -signal.SIGKILL else f"ended with {child.returncode}")
    anyio.run(go_on, workspace)
    print((workspace / "payments.txt").read_text().split())
