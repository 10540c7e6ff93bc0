"""Tools that another process can find by name."""

from __future__ import annotations

import os
import signal
from enum import StrEnum

import anyio

from safepoint.adapters.tools.decorator import tool
from safepoint.domain.errors import RefusedWithoutEffect
from safepoint.ports.tool_catalog import ToolContext


class Declined(Exception):
    """The card was declined."""


class Currency(StrEnum):
    EURO = "EUR"


@tool(timeout_seconds=30, no_effect_errors=(Declined,), format_result=lambda paid: {"paid": paid})
def pay(context: ToolContext, amount: int, how: str = "well", currency: Currency = Currency.EURO) -> object:
    """Append a payment, or fail in the named way."""
    assert isinstance(currency, Currency)
    if how == "declined":
        raise Declined("no money")
    if how == "refused":
        raise RefusedWithoutEffect("not today")
    with (context.workspace / "payments").open("a") as file:
        file.write(f"{context.idempotency_key} {amount}\n")
    if how == "raised":
        raise ValueError("boom")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "unformattable":
        return {amount}
    return [amount, currency, os.getpid()] if how == "with pid" else amount


@tool(supervised=True)
async def pay_later(context: ToolContext, amount: int) -> int:
    """Append a payment, asynchronously."""
    await anyio.Path(context.workspace / "payments").write_text(f"{amount}\n")
    return amount


@tool(recovery="replay_safe", supervised=True)
def look(context: ToolContext, fail: bool) -> object:
    """Look at something."""
    if fail is False and context.evidence is not None:
        return context.evidence
    if fail:
        raise OSError("cannot see")
    return "seen"
