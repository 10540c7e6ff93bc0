"""What the tests of the face share: tools whose effects are counted in a file, models that know what they will say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safepoint
from safepoint.adapters.memory.model_provider import Planned, PlannedModel, calls, says

PAYS: Sequence[Planned] = (calls(("pay", {"amount": 5})), says("Paid."))


@safepoint.tool(recovery="never_auto_retry")
def pay(context: safepoint.ToolContext, amount: int) -> str:
    """Pay."""
    with (context.workspace / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    return f"paid {amount}"


def payments(folder: Path) -> list[str]:
    """What was paid."""
    file = folder / "payments.txt"
    return file.read_text().split() if file.exists() else []


def opened(folder: Path, model: Any = None, **more: Any) -> safepoint.Runtime:
    """A runtime in a folder, with a model that pays."""
    model = PlannedModel(list(PAYS)) if model is None else model
    return safepoint.open(folder / "store.sqlite", **{"workspace": folder, "model": model, "tools": [pay], **more})


def recording(folder: Path, **more: Any) -> safepoint.Runtime:
    """A runtime whose loop is the test's own."""
    model = safepoint.NamedModel("openai", "gpt")
    return opened(folder, model, **{"tools": [safepoint.contract("pay", recovery="never_auto_retry")], **more})


def asks_to_pay(call_id: str = "c1", amount: int = 5) -> Any:
    """A step of a model that wants to pay."""
    return safepoint.step("I pay.", safepoint.tool_call(call_id, "pay", {"amount": amount}))
