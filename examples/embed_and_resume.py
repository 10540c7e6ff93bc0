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
from functools import partial
from pathlib import Path

import anyio

from safepoint.adapters.composition import Runtime, Settings
from safepoint.adapters.models.script import Script
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.application.agent import Agent
from safepoint.application.resume_run import Continued
from safepoint.application.run_agent import Screen
from safepoint.domain.identifiers import SessionId
from safepoint.ports.tool_catalog import ToolContext
from safepoint.ports.workspace import WorkspaceSeen

SESSION = SessionId("bill")
SCRIPT = """
{"steps": [{"text": "I pay the bill.", "calls": [{"tool": "pay", "args": {"amount": "10.00"}}]},
           {"text": "The bill is paid, once."}]}
"""


@tool(recovery="never_auto_retry")
def pay(context: ToolContext, amount: str) -> dict[str, str]:
    """Pay an amount."""
    with (context.workspace / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    return {"paid": amount}


def agent_in(runtime: Runtime, folder: Path) -> Agent:
    """Put a model, tools and a policy together; the folder gets a marker, so that it is known again."""
    seen = runtime.parts.workspaces().ensure(str(folder))
    assert isinstance(seen, WorkspaceSeen), seen
    model = ScriptedModel(Script.model_validate_json(SCRIPT))
    gate = AllowListGate(["pay"], otherwise=DenyGate())
    return Agent(model, FunctionCatalog([pay]), gate, "You pay bills.", Path(seen.canonical_path), seen.identity)


def die_when_paid(tool_name: str, what: str) -> None:
    """Be killed as soon as the payment's outcome is durable."""
    if (tool_name, what) == ("pay", "answered"):
        os.kill(os.getpid(), signal.SIGKILL)


def begin(folder: Path) -> None:
    """Run a turn."""
    with Runtime(Settings(store=folder / "store.sqlite")) as runtime:
        turn = runtime.parts.run_turn()
        agent = agent_in(runtime, folder)
        anyio.run(partial(turn, SESSION, "Pay the bill.", agent, Screen(note=die_when_paid)))


def go_on(folder: Path) -> None:
    """Continue the interrupted run, or say why it is parked."""
    with Runtime(Settings(store=folder / "store.sqlite")) as runtime:
        resume = runtime.parts.resume_run()
        result = anyio.run(partial(resume, SESSION, agent_in(runtime, folder), Screen()))
        print(result.outcome.text if isinstance(result, Continued) else result.codes)


if __name__ == "__main__":
    workspace = Path(sys.argv[1]).resolve()
    if sys.argv[2:] == ["be killed"]:
        begin(workspace)
    child = subprocess.run([sys.executable, __file__, str(workspace), "be killed"], check=False)
    print("killed" if child.returncode == -signal.SIGKILL else f"ended with {child.returncode}")
    go_on(workspace)
    print((workspace / "payments.txt").read_text().split())
