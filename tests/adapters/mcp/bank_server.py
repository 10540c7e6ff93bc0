"""An MCP server whose effects are lines in a file: a program of its own, over its standard streams or HTTP."""

from __future__ import annotations

import base64
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations

FOLDER = Path(sys.argv[1])
READS = ToolAnnotations(read_only_hint=True)
SAME = ToolAnnotations(read_only_hint=False, idempotent_hint=True)

bank = MCPServer("bank")


def effect(line: str) -> None:
    """Have it, durably enough to be counted from outside."""
    with (FOLDER / "effects.txt").open("a") as effects:
        effects.write(f"{line}\n")


def key_of(context: Context[Any, Any]) -> str:
    """The key that came with the call."""
    meta: Any = context.request_context.meta or {}
    return str(meta.get("safepoint/idempotency-key", "-"))


def die_or_hang() -> None:
    """As a file in the folder says: `die`, after the effect, or `hang`, until the file is gone."""
    if (FOLDER / "die").exists():
        (FOLDER / "die").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    while (FOLDER / "hang").exists():
        time.sleep(0.01)


@bank.tool()
def pay(amount: int) -> str:
    """Pay an amount."""
    effect(f"pay {amount}")
    die_or_hang()
    return f"paid {amount}"


@bank.tool(annotations=READS)
def balance() -> str:
    """Tell what there is."""
    effect("balance")
    die_or_hang()
    return "100"


@bank.tool(annotations=SAME)
def book(context: Context[Any, Any], amount: int) -> str:
    """Book an amount, once for each key."""
    effect(f"book {amount} {key_of(context)}")
    die_or_hang()
    return f"booked {amount}"


@bank.tool()
def fail() -> str:
    """Have an effect and fail."""
    effect("fail")
    raise ValueError("the bank is closed")


@bank.tool()
def statement() -> dict[str, int]:
    """Tell it as data."""
    return {"cents": 10_000}


@bank.tool()
def picture() -> CallToolResult:
    """Show something."""
    image = ImageContent(data=base64.b64encode(bytes(3_000)).decode(), mime_type="image/png")
    return CallToolResult(content=[TextContent(text="look"), image])


@bank.tool(structured_output=False)
def novel(letters: int) -> str:
    """Tell a lot."""
    return "x" * letters


if __name__ == "__main__":
    (FOLDER / "pids.txt").open("a").write(f"{os.getpid()}\n")
    if len(sys.argv) > 2:
        bank.run("streamable-http", port=int(sys.argv[2]))
    else:
        bank.run()
