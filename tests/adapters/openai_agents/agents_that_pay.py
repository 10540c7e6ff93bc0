"""A small agent of the OpenAI Agents SDK that pays: alone, and with Safepoint; as a program it is killed where told."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
from agents import Agent, FunctionTool, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

import safepoint
from safepoint.adapters.openai_agents import current_call, promised, recorded

set_tracing_disabled(True)


def die(here: str, where: str) -> None:
    """Die there as the kernel lets a process die."""
    if here == where:
        os.kill(os.getpid(), signal.SIGKILL)


def paying(folder: Path, where: str = "nowhere", **more: Any) -> FunctionTool:
    """The tool: its effect is one more line in a file."""

    async def pay(amount: int) -> str:
        """Pay an amount."""
        die("before the effect", where)
        call = current_call()
        with (folder / "payments.txt").open("a") as payments:
            payments.write(f"{amount} {call.idempotency_key if call else '-'}\n")
        die("after the effect", where)
        return f"paid {amount}"

    return function_tool(pay, **more)


def answer(where: str) -> Any:
    """The model: pays once, under a new call id each time that it is asked, and says so once it sees that it paid."""

    def respond(call: ModelCall) -> Any:
        kinds = [item.get("type") for item in call.input if isinstance(item, dict)]
        if "function_call_output" in kinds:
            die("after it was recorded", where)
            return [assistant_message("Paid.")]
        return [assistant_message("I pay."), function_call("pay", {"amount": 5}, call_id=f"call_{uuid4().hex}")]

    return respond


def agent(folder: Path, where: str = "nowhere", **more: Any) -> Agent[Any]:
    """The agent that a team has."""
    model = ScriptedModel([ModelStep.respond(answer(where))] * 5)
    return Agent("payer", model=model, tools=[paying(folder, where)], **more)


def opened(folder: Path, **promise: Any) -> safepoint.Runtime:
    """A store beside it."""
    named = safepoint.NamedModel("openai", "scripted")
    promise = promise or {"recovery": "never_auto_retry"}
    return safepoint.open(folder / "store.sqlite", model=named, tools=[promised(paying(folder), **promise)])


def kept(folder: Path) -> SQLiteSession:
    """The SDK's own session."""
    return SQLiteSession("bill", folder / "session.sqlite")


async def alone(folder: Path, where: str) -> None:
    """The SDK as it is, with its session."""
    await Runner.run(agent(folder, where), "Pay the bill.", session=kept(folder))


async def guarded(folder: Path, where: str, mode: str = "never_auto_retry") -> None:
    """The same with Safepoint."""
    async with opened(folder, recovery=mode) as runtime, runtime.session("bill").record("Pay the bill.") as run:
        await Runner.run(recorded(agent(folder, where), run), run.history("openai-responses"))
        die("after it answered", where)


async def mistaken(folder: Path, where: str) -> None:
    """The same, where the model's first call has arguments that do not fit."""

    def handler(context: Any, error: Exception) -> str:
        die("while it is answered", where)
        return "An amount is a whole number."

    def respond(call: ModelCall) -> Any:
        die("after it was answered", where)
        return [assistant_message("Sorry.")]

    made = agent(folder)
    wrong = function_call("pay", {"amount": "five"}, call_id="c1")
    made.model = ScriptedModel([[wrong], ModelStep.respond(respond)])
    made.tools = [paying(folder, failure_error_function=handler)]
    async with opened(folder) as runtime, runtime.session("bill").record("Pay the bill.") as run:
        await Runner.run(recorded(made, run), run.history("openai-responses"))


if __name__ == "__main__":
    runs: dict[str, Any] = {"alone": alone, "guarded": guarded, "mistaken": mistaken}
    anyio.run(runs[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
