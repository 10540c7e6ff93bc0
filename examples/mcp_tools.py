"""Tools of an MCP server: what it says of them counts where you trust it.

    python examples/mcp_tools.py FOLDER

The folder exists and is empty. The program is its own server, which is killed in the middle of a payment.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

import safepoint
from safepoint.adapters.mcp import Server, connect

FOLDER = Path(sys.argv[1]).resolve()
PAID: Any = {"amount": 10}
bank = MCPServer("bank", log_level="CRITICAL")


@bank.tool(annotations=ToolAnnotations(read_only_hint=True))
def balance() -> str:
    """Tell what there is."""
    return "100"


@bank.tool()
def pay(amount: int) -> str:
    """Pay an amount."""
    with (FOLDER / "payments.txt").open("a") as payments:
        payments.write(f"{amount}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


async def main() -> None:
    """Read, and pay: the server dies before it can say that it did."""
    server = Server(name="bank", command=sys.executable, args=(__file__, str(FOLDER), "serve"), trusted=True)
    async with (
        connect([server]) as connected,
        safepoint.open(FOLDER / "store.sqlite", tools=connected.tools) as runtime,
    ):
        session = runtime.session("bill")
        try:
            async with session.record("Pay the bill.") as run:
                look, pays = (
                    safepoint.tool_call("c1", "bank__balance", {}),
                    safepoint.tool_call("c2", "bank__pay", PAID),
                )
                await run.model_step(safepoint.step(look, pays))
                print("balance:", (await run.call("c1")).result)
                await run.call("c2")
        except safepoint.SafepointError as error:
            print(type(error).__name__)
        print("a person looks what became of", *(one.tool_name for one in await session.unsettled()))


if __name__ == "__main__":
    if sys.argv[2:] == ["serve"]:
        bank.run()
    else:
        anyio.run(main)
        print((FOLDER / "payments.txt").read_text().split())
