"""A reconciler of one's own asks the bank what became of a payment, after the program that paid was killed.

    python examples/own_reconciler.py FOLDER

The folder exists and is empty; a file in it stands for the bank. The program runs itself as a child, which is killed
when the payment was made and before that was recorded. `examples/contract_kit` shows how such a reconciler is proven.
"""

# Overriding a provider is only partly typed by the container's own package.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import anyio
from dependency_injector import providers

import safepoint
from safepoint.adapters.models.script import Script
from safepoint.adapters.models.scripted import ScriptedModel
from safepoint.adapters.tools.builtin.file_reconciler import FileReconciler
from safepoint.application.reconcilers import Reconcilers
from safepoint.domain import canonical
from safepoint.domain.events.event import Json
from safepoint.domain.events.tool import Observation
from safepoint.domain.tool_results import PreparedResult
from safepoint.ports.reconciler import AskedOperation, Observed, Reconciler
from safepoint.ports.tool_catalog import Workspace

SCRIPT = """
{"steps": [{"text": "I pay the bill.", "calls": [{"tool": "pay", "args": {"amount": "10.00"}}]},
           {"text": "The bill is paid, once."}]}
"""


def meant(arguments: Mapping[str, Json], workspace: Workspace) -> Json:
    """What T1 records, to be compared with what the bank knows."""
    return {"amount": arguments["amount"]}


@safepoint.tool(recovery="reconcile", contract_id="acme.pay", evidence=meant)
def pay(context: safepoint.ToolContext, amount: str) -> str:
    """Pay an amount."""
    with (context.workspace / "bank.txt").open("a") as bank:
        bank.write(f"{context.idempotency_key} {amount}\n")
    if "be killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


class Payments(Reconciler):
    """Looks the payment up by the key that it was made with."""

    reconciler_id = "acme.payments"
    version = 1

    @property
    def contract_ids(self) -> Collection[str]:
        """See `Reconciler`."""
        return ("acme.pay",)

    def observe(self, asked: AskedOperation) -> Observed:
        """See `Reconciler`."""
        lines = (asked.workspace / "bank.txt").read_text().splitlines()
        paid = [line.split()[1] for line in lines if line.split()[0] == asked.idempotency_key]
        seen = canonical.sha256_hex("\n".join(paid).encode())
        if paid and asked.evidence == {"amount": paid[0]}:
            done = PreparedResult(f"paid {paid[0]}", is_error=False, effect=safepoint.Effect.DONE)
            return Observed(Observation.MATCHES_EXPECTED_STATE, done, seen)
        return Observed(Observation.DIVERGED if paid else Observation.MATCHES_PRIOR_STATE, None, seen)

    def tidy(self, asked: AskedOperation) -> None:
        """See `Reconciler`."""


def opened(folder: Path) -> safepoint.Runtime:
    """A runtime that knows this reconciler beside ours for files."""
    model = ScriptedModel(Script.model_validate_json(SCRIPT))
    runtime = safepoint.open(folder / "store.sqlite", workspace=folder, model=model, tools=[pay])
    runtime.parts.reconcilers.override(providers.Object(Reconcilers([FileReconciler(), Payments()])))
    return runtime


async def begin(folder: Path) -> None:
    """Take a turn, and be killed in it."""
    async with opened(folder) as runtime:
        await runtime.session("bill").run("Pay the bill.")


async def go_on(folder: Path) -> None:
    """Look what became of the payment, and go on."""
    async with opened(folder) as runtime:
        session = runtime.session("bill")
        plan = await session.plan()
        print("parked:", *plan.codes if isinstance(plan, safepoint.Park) else ["no"])
        result = await session.resume(reconcile=True)
        print(result.outcome.text if isinstance(result, safepoint.Continued) else result.codes)


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    if "be killed" in sys.argv:
        anyio.run(begin, place)
        sys.exit("it was not killed")
    child = subprocess.run([sys.executable, __file__, str(place), "be killed"], check=False)
    print("killed" if child.returncode == -signal.SIGKILL else f"ended with {child.returncode}")
    anyio.run(go_on, place)
    print("payments:", len((place / "bank.txt").read_text().splitlines()))
