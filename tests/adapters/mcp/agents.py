"""A small agent whose tool stands in an MCP server: alone, and with Safepoint; run as a program, it may be killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

import safepoint
from safepoint.adapters.mcp import Server, connect

SERVER = Path(__file__).with_name("bank_server.py")


def bank(folder: Path, port: str = "", **more: Any) -> Server:
    """The server: started by whoever connects, or listening on a port."""
    if port:
        return Server(name="bank", url=f"http://127.0.0.1:{port}/mcp", **more)
    return Server(name="bank", command=sys.executable, args=(str(SERVER), str(folder)), **more)


def opened(folder: Path, tools: Any) -> safepoint.Runtime:
    """A store for it."""
    return safepoint.open(folder / "store.sqlite", model=safepoint.NamedModel("fake", "m"), tools=tools)


def arguments_of(tool: str) -> Any:
    """What the model calls the tool with."""
    return {} if tool == "balance" else {"amount": 5}


async def alone(folder: Path, port: str, tool: str = "pay") -> None:
    """A loop as many are: the history is a file, and a call without a result in it is made."""
    file = folder / "history.json"
    begun: list[dict[str, Any]] = [{"call": tool, "arguments": arguments_of(tool)}]
    history = json.loads(file.read_text()) if file.exists() else begun
    file.write_text(json.dumps(history))
    stdio = StdioServerParameters(command=sys.executable, args=[str(SERVER), str(folder)])
    async with Client(f"http://127.0.0.1:{port}/mcp" if port else stdio) as client:
        if "result" not in history[-1]:
            result = await client.call_tool(history[-1]["call"], history[-1]["arguments"])
            history.append({"result": result.model_dump(mode="json")})
    file.write_text(json.dumps(history))


async def guarded(folder: Path, port: str, tool: str = "pay", trusted: str = "") -> None:
    """The same with Safepoint."""
    async with (
        connect([bank(folder, port, trusted=bool(trusted))]) as connected,
        opened(folder, connected.tools) as runtime,
        runtime.session("bill").record("Pay the bill.") as run,
    ):
        call = safepoint.tool_call("c1", f"bank__{tool}", arguments_of(tool))
        await run.model_step(safepoint.step("I do it.", call))
        await run.call("c1")
        await run.model_step(safepoint.step("Done."))


def effects(folder: Path) -> list[str]:
    """What the server did, counted from outside."""
    file = folder / "effects.txt"
    return file.read_text().splitlines() if file.exists() else []


def until(condition: Callable[[], object]) -> None:
    """Wait for something that will happen."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def killed(folder: Path, kind: str, *more: str) -> None:
    """Run the agent in a process, and kill that while the server is in the middle of its tool."""
    hang = folder / "hang"
    hang.touch()
    child = Popen([sys.executable, __file__, kind, str(folder), *more])
    try:
        until(lambda: effects(folder))
    finally:
        child.kill()
    assert child.wait(timeout=30) == -signal.SIGKILL
    hang.unlink()  # the server comes to the end of its tool, and nobody hears of it
    if not more or not more[0]:
        until(lambda: not any(is_alive(pid) for pid in pids(folder)))


def pids(folder: Path) -> list[int]:
    """The servers that were ever started here."""
    return [int(line) for line in (folder / "pids.txt").read_text().split()]


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def listening(folder: Path, port: int) -> Iterator[Popen[bytes]]:
    """The server over HTTP, in a process of its own."""
    import socket

    server = Popen([sys.executable, str(SERVER), str(folder), str(port)])

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    try:
        until(answers)
        yield server
    finally:
        server.kill()
        server.wait(timeout=30)


def free_port() -> int:
    """A port that nobody listens on."""
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


if __name__ == "__main__":
    kinds: dict[str, Any] = {"alone": alone, "guarded": guarded}
    anyio.run(kinds[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
