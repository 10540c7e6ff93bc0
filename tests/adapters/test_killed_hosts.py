"""A host is really killed between its repair and its one automatic try: the try is neither lost nor made twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.domain.identifiers import SessionId

PROGRAM = """
import os, signal, sys
from pathlib import Path
import anyio
from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.tools.catalog import FunctionCatalog
from safepoint.adapters.tools.decorator import tool
from safepoint.application.agent import Agent
from safepoint.application.auto_resume import Automatic
from safepoint.application.resume_run import Continued
from safepoint.application.run_agent import Screen

folder, where = Path(sys.argv[1]), sys.argv[2]

def die(here):
    if here == where:
        os.kill(os.getpid(), signal.SIGKILL)

@tool(recovery="never_auto_retry")
def pay() -> str:
    "Pay."
    with (folder / "payments.txt").open("a") as payments:
        payments.write("paid\\n")
    return "paid"

def agent(runtime, *steps):
    seen = runtime.parts.workspaces().ensure(str(folder))
    gate = AllowListGate(["pay"], otherwise=DenyGate())
    return Agent(PlannedModel(list(steps)), FunctionCatalog([pay]), gate, "", Path(seen.canonical_path), seen.identity)

def told(result):
    print(result.outcome.text if isinstance(result, Continued) else list(map(str, result.codes)))

async def main():
    runtime = OpenedStore(Settings(folder / "store.sqlite", auto_resume=True))

    def agent_for(interrupted):
        die("repaired")
        return agent(runtime, says("Paid."))

    automatic = Automatic(agent_for, told=told)
    async with runtime.host(automatic, progress=lambda step: die("repairing")) as host:
        await host.recovered()
        if where == "turn":
            screen = Screen(note=lambda tool, what: die("turn" if what == "answered" else ""))
            await host.run_turn("s", "Pay.", agent(runtime, calls(("pay", {}))), screen)

anyio.run(main)
"""


def start(folder: Path, where: str = "nowhere") -> list[str]:
    """Start the host; what it says of its automatic tries, none where it is killed."""
    script = folder / "host.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), str(folder), where], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == (0 if where == "nowhere" else -signal.SIGKILL), done.stderr
    return done.stdout.splitlines()


def runs(folder: Path) -> list[tuple[str | None, str | None]]:
    """The runs of the session, and how each ended."""
    with OpenedStore(Settings(folder / "store.sqlite", read_only=True)) as runtime:
        views = runtime.parts.store().views
        return [(row.status, row.failure_class) for row in views.runs(SessionId("s"))]


INTERRUPTED = ("failed", "app_restarted")


@pytest.mark.parametrize("deaths", [("repairing",), ("repaired",), ("repaired", "repairing", "repaired")], ids="-".join)
def test_the_one_automatic_try_is_made_by_the_first_start_that_lives_to_make_it(
    tmp_path: Path, deaths: tuple[str, ...]
) -> None:
    start(tmp_path, "turn")
    for where in deaths:
        start(tmp_path, where)
        assert runs(tmp_path) == [INTERRUPTED]
    assert start(tmp_path) == ["Paid."]
    assert start(tmp_path) == []
    assert runs(tmp_path) == [INTERRUPTED, ("completed", None)]
    assert (tmp_path / "payments.txt").read_text().split() == ["paid"]
