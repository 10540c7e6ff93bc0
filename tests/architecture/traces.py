"""What really happens in one tool call, one crash and one resume: commands with the events that they committed.

python -m tests.architecture.traces FOLDER
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import safepoint
from safepoint.adapters.models.script import Script
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.adapters.sqlite.store import open_reader
from safepoint.application.commit_round import Ticket
from safepoint.application.ledger import Ledger
from safepoint.domain.identifiers import SessionId, run_stream

SCRIPT = """
{"steps": [{"text": "I pay.", "calls": [{"tool": "pay", "args": {"amount": "10.00"}}]}, {"text": "Paid."}]}
"""
PROVIDER = "ports.model_provider.ModelProvider.stream"
TOOL = "the implementation of the tool"
ROOT = Path(__file__).parents[2]


class Trace:
    """The steps of the story, as the pages show them."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take down what the one writer commits, and what the provider is asked."""
        with pytest.MonkeyPatch.context() as patch:
            write, stream = Ledger._write, ScriptedModel.stream

            def written(ledger: Ledger, group: Sequence[Ticket]) -> None:
                write(ledger, group)
                for ticket in group:
                    assert ticket.receipt is not None
                    topics = "<br/>".join(sealed.event.topic for sealed in ticket.receipt.events)
                    self.steps.append(f"domain.commands.{type(ticket.command).__name__}<br/>{topics}")

            async def asked(model: ScriptedModel, *given: Any) -> AsyncGenerator[Any, None]:
                self.steps.append(PROVIDER)
                async for part in stream(model, *given):
                    yield part

            patch.setattr(Ledger, "_write", written)
            patch.setattr(ScriptedModel, "stream", asked)
            yield

    def opened(self, folder: Path) -> safepoint.Runtime:
        """A store with an agent that pays."""

        @safepoint.tool(recovery="never_auto_retry")
        def pay(amount: str) -> str:
            """Pay an amount."""
            self.steps.append(TOOL)
            return amount

        model = ScriptedModel(Script.model_validate_json(SCRIPT))
        return safepoint.open(folder / "store.sqlite", workspace=folder, model=model, tools=[pay])

    async def take_a_turn(self, folder: Path) -> None:
        """One turn with one tool call."""
        with self.watching():
            async with self.opened(folder) as runtime:
                await runtime.session("bill").run("Pay the bill.")


def one_tool_call(folder: Path) -> list[str]:
    """A turn, from its first commit to its end."""
    trace = Trace()
    anyio.run(trace.take_a_turn, folder)
    return trace.steps


def one_crash(folder: Path) -> list[str]:
    """Killed between the effect and T2; repaired, settled by a person."""
    trace, committed = Trace(), "<br/>".join(killed(folder))

    async def look_and_settle() -> None:
        with trace.watching():
            async with trace.opened(folder) as runtime:
                session = runtime.session("bill")
                await session.repair()
                plan = await session.plan()
                assert isinstance(plan, safepoint.Park)
                trace.steps.append(f"domain.planning.outcome.Park<br/>{'<br/>'.join(plan.codes)}")
                (doubt,) = await session.unsettled()
                await session.settle(doubt.operation_id, "completed", by="alice", note="I looked", result="10.00")

    anyio.run(look_and_settle)
    return [f"SIGKILL after<br/>{committed}", *trace.steps]


def one_resume(folder: Path) -> list[str]:
    """What the settled run is continued by."""
    one_crash(folder)
    trace = Trace()

    async def resume() -> None:
        with trace.watching():
            async with trace.opened(folder) as runtime:
                assert isinstance(await runtime.session("bill").resume(), safepoint.Continued)

    anyio.run(resume)
    return trace.steps


def killed(folder: Path) -> list[str]:
    """Die with the effect done and its outcome not committed; what the run's stream holds."""
    environment = {**os.environ, "SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": "P4"}
    command = [sys.executable, "-m", "tests.architecture.traces", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    reader = open_reader(folder / "store.sqlite")
    try:
        (run,) = reader.views.runs(SessionId("bill"))
        with reader.events.snapshot() as view:
            return [record.topic for record in view.read(run_stream(run.run_id))]
    finally:
        reader.close()


if __name__ == "__main__":
    anyio.run(Trace().take_a_turn, Path(sys.argv[1]))
