"""Be a host: be killed in the middle of a run, start again, repair what was left, and go on by itself.

    python examples/host.py FOLDER

The folder exists and is empty. The program runs itself as a child that is killed right after its tool's answer; then it
is a host, which repairs, continues that run once, and takes a new turn.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio

from safepoint.adapters.models.script import Script
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.settings import Settings
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.application.agent import Agent
from safepoint.application.auto_resume import Automatic, Interrupted
from safepoint.application.run_agent import Screen
from safepoint.domain.identifiers import SessionId
from safepoint.ports.tool_catalog import ToolContext
from safepoint.ports.workspace import WorkspaceSeen

SESSION = SessionId("bill")
SCRIPT = """
{"steps": [{"text": "I pay.", "calls": [{"tool": "pay", "args": {}}]}, {"text": "Paid."}, {"text": "You are welcome."}]}
"""


@tool(recovery="never_auto_retry")
def pay(context: ToolContext) -> str:
    """Pay the bill."""
    with (context.workspace / "payments.txt").open("a") as payments:
        payments.write("paid\n")
    return "paid"


def agent_in(runtime: OpenedStore, folder: Path) -> Agent:
    """Put a model, tools and a policy together."""
    seen = runtime.parts.workspaces().ensure(str(folder))
    assert isinstance(seen, WorkspaceSeen), seen
    gate = AllowListGate(["pay"], otherwise=DenyGate())
    model = ScriptedModel(Script.model_validate_json(SCRIPT))
    return Agent(model, FunctionCatalog([pay]), gate, "You pay bills.", Path(seen.canonical_path), seen.identity)


def die(tool_name: str, what: str) -> None:
    """Be killed as soon as the payment's outcome is durable."""
    if what == "answered":
        os.kill(os.getpid(), signal.SIGKILL)


async def serve(folder: Path, message: str, screen: Screen) -> None:
    """Take one turn, after whatever was left is repaired and continued."""
    runtime = OpenedStore(Settings(folder / "store.sqlite", auto_resume=True))

    def agent_for(interrupted: Interrupted) -> Agent:
        return agent_in(runtime, folder)

    async with runtime.host(Automatic(agent_for)) as host:
        print(f"{host.report.runs_closed} interrupted", flush=True)
        await host.recovered()
        result = await host.run_turn(SESSION, message, agent_in(runtime, folder), screen)
        print(result.outcome.text)


if __name__ == "__main__":
    workspace = Path(sys.argv[1]).resolve()
    if sys.argv[2:] == ["be killed"]:
        anyio.run(serve, workspace, "Pay the bill.", Screen(note=die))
    subprocess.run([sys.executable, __file__, str(workspace), "be killed"], check=False)
    anyio.run(serve, workspace, "Thank you.", Screen())
    print((workspace / "payments.txt").read_text().split())
