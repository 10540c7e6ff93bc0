"""Declare tools of one's own, each with what it promises, and let a model call them.

    python examples/own_tools.py FOLDER

The folder exists and is empty. The program prints what was promised at T1 and what is known of each effect.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safepoint
from safepoint import RefusedWithoutEffect, ToolContext, tool
from safepoint.adapters.models.script import Script
from safepoint.adapters.models.scripted import ScriptedModel

BALANCES = {"alice": 30, "bob": 5}


@tool(recovery="replay_safe")
def balance(account: str) -> int:
    """Tell how much an account holds."""
    return BALANCES[account]


def account_of(arguments: Mapping[str, Any]) -> str:
    """Charges of one account run one after the other; those of two accounts may run at once."""
    return f"account:{arguments['account']}"


@tool(recovery="idempotent", key_valid_seconds=24 * 3600, resource_key=account_of)
def charge(context: ToolContext, account: str, amount: int) -> dict[str, Any]:
    """Take an amount from an account; the bank takes one key for one charge, for a day."""
    if amount > BALANCES[account]:
        raise RefusedWithoutEffect(f"{account} holds only {BALANCES[account]}")
    with (context.workspace / "charges.txt").open("a") as charges:
        charges.write(f"{context.idempotency_key} {account} {amount}\n")
    return {"charged": amount}


def mode_of(arguments: Mapping[str, Any]) -> str:
    """A request that only reads may be made again; any other one promises nothing."""
    return "replay_safe" if arguments["method"] == "GET" else "outcome_unknown"


@tool(recovery=mode_of, no_effect_errors=(ConnectionRefusedError,))
def request(method: str, path: str) -> str:
    """Ask a server."""
    if path == "/down":
        raise ConnectionRefusedError(path)
    return f"{method} {path} was answered"


@tool(recovery="outcome_unknown", repeat_free=True, timeout_seconds=60)
def build(target: str) -> str:
    """Build something; it runs in a process of its own, which is ended when its time is up."""
    return subprocess.run(["echo", "built", target], check=True, capture_output=True, text=True).stdout.strip()


def send_letter(address: str) -> str:
    """Send a letter. Nothing is declared, so nothing is promised."""
    return f"sent to {address}"


TOOLS = (balance, charge, request, build, send_letter)
SCRIPT = """
{"steps": [{"calls": [{"tool": "balance", "args": {"account": "alice"}},
                      {"tool": "charge", "args": {"account": "alice", "amount": 10}},
                      {"tool": "charge", "args": {"account": "bob", "amount": 10}},
                      {"tool": "request", "args": {"method": "GET", "path": "/prices"}},
                      {"tool": "request", "args": {"method": "POST", "path": "/down"}},
                      {"tool": "build", "args": {"target": "report"}},
                      {"tool": "send_letter", "args": {"address": "alice"}}]},
           {"text": "Done."}]}
"""


def main(folder: Path) -> None:
    """Run one turn and show what became of its calls."""
    model = ScriptedModel(Script.model_validate_json(SCRIPT))
    with safepoint.open_sync(folder / "store.sqlite", workspace=folder, model=model, tools=TOOLS) as runtime:
        result = runtime.session("office").run("Do the office work.")
        run = runtime.parts.inspect_runs()(result.run_id)
        assert run is not None
        for operation in run.operations:
            verdict = operation.verdict
            print(f"{verdict.tool_name:12} {verdict.mode:16} {verdict.status:10} effect {verdict.effect}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
