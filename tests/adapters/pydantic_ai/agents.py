"""A small agent in pydantic-ai that pays: alone, and with Safepoint; run as a program it is killed where it is told."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
from pydantic_ai import Agent, ModelMessagesTypeAdapter, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

import safepoint
from safepoint.adapters.pydantic_ai import Recording, current_call, history, promised


def die(here: str, where: str) -> None:
    """Die there as the kernel lets a process die."""
    if here == where:
        os.kill(os.getpid(), signal.SIGKILL)


def paying(folder: Path, where: str = "nowhere") -> Callable[..., Any]:
    """The tool: its effect is one more line in a file."""

    async def pay(amount: int) -> str:
        """Pay an amount."""
        die("before the effect", where)
        call = current_call()
        with (folder / "payments.txt").open("a") as payments:
            payments.write(f"{amount} {call.idempotency_key if call else '-'}\n")
        die("after the effect", where)
        return f"paid {amount}"

    return pay


def model(where: str = "nowhere") -> FunctionModel:
    """The model: pays once, then says so."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            die("after it was recorded", where)
            return ModelResponse([TextPart("Paid.")])
        return ModelResponse([TextPart("I pay."), ToolCallPart("pay", {"amount": 5}, tool_call_id="c1")])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            yield "Pa"
            yield "id."
        else:
            yield {0: DeltaToolCall("pay", '{"amount":', tool_call_id="c1")}
            yield {0: DeltaToolCall(None, "5}")}

    return FunctionModel(answer, stream_function=stream)


def agent(folder: Path, where: str = "nowhere") -> Agent[None, str]:
    """The agent that a team has."""
    return Agent(model(where), tools=[paying(folder, where)])


def opened(folder: Path, **promise: Any) -> safepoint.Runtime:
    """A store beside it."""
    named = safepoint.NamedModel("function", "paying")
    promise = promise or {"recovery": "never_auto_retry"}
    return safepoint.open(folder / "store.sqlite", model=named, tools=[promised(Tool(paying(folder)), **promise)])


def keep(folder: Path, messages: list[ModelMessage]) -> None:
    """Keep a history as pydantic-ai's documentation does: as JSON, after each step."""
    (folder / "messages.json").write_bytes(ModelMessagesTypeAdapter.dump_json(messages))


async def alone(folder: Path, where: str) -> None:
    """pydantic-ai as it is, its messages kept after each step."""
    async with agent(folder, where).iter("Pay the bill.") as running:
        async for node in running:
            said = [node.request] if Agent.is_model_request_node(node) else []
            keep(folder, [*running.all_messages(), *said])


async def guarded(folder: Path, where: str, mode: str = "never_auto_retry") -> None:
    """The same with Safepoint."""
    seconds = 3600 if mode == "idempotent" else None
    promise = {"recovery": mode, "key_valid_seconds": seconds}
    async with opened(folder, **promise) as runtime, runtime.session("bill").record("Pay the bill.") as run:
        await agent(folder, where).run(message_history=history(run), capabilities=[Recording(run)])
        die("after it answered", where)


if __name__ == "__main__":
    runs: dict[str, Any] = {"alone": alone, "guarded": guarded}
    anyio.run(runs[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
