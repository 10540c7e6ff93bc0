"""A script without an event loop: a loop of its own, with blocks that say what came of a call.

    python examples/script.py FOLDER

The folder exists and is empty. Each call of one step ends in another way; none is carried out twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import safepoint


class Bank:
    """Stands for a service that takes one idempotency key for one payment, and refuses what it cannot do."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}

    def pay(self, amount: int, key: str) -> str:
        """Take a payment."""
        if amount > 100:
            raise PermissionError(f"{amount} is too much")
        if amount < 0:
            raise ConnectionResetError("the connection was lost")
        self.taken[key] = amount
        return f"paid {amount}"


def carry_out(run: safepoint.SyncRecordedRun, call_id: str, bank: Bank) -> safepoint.Answer:
    """Carry one call out in a block: T1 is durable when it is entered, T2 when it is left."""
    try:
        with run.tool_call(call_id) as operation:
            try:
                operation.result(bank.pay(operation.arguments["amount"], operation.idempotency_key))
            except PermissionError as error:
                operation.refused(str(error))  # nothing happened
            except OSError as error:
                operation.error(error)  # nobody knows whether it happened
        return operation.answer
    except safepoint.CallRefused as refused:
        return refused.answer  # it was never dispatched: the arguments, the tool, a permission


def main(folder: Path) -> None:
    """Take one turn."""
    promise = safepoint.contract("pay", recovery="idempotent", key_valid_seconds=86_400)
    bank = Bank()
    with safepoint.open_sync(folder / "store.sqlite", tools=[promise]) as runtime:
        session = runtime.session("bills")
        with session.record("Pay the bills.") as run:
            amounts = {"c1": 20, "c2": 1_000, "c3": -1}
            calls = [safepoint.tool_call(key, "pay", {"amount": amount}) for key, amount in amounts.items()]
            run.model_step(safepoint.step("I pay.", *calls, safepoint.tool_call("c4", "steal", {})))
            for call_id in [*amounts, "c4"]:
                answer = carry_out(run, call_id, bank)
                print(f"{answer.tool_name:5} {'error' if answer.is_error else 'done':5} effect {answer.effect}")
            run.model_step(safepoint.step("One is paid; of one I do not know."))
        assert run.outcome is not None
        print(run.outcome.status, "-", run.outcome.text)
        print("in doubt:", *(one.tool_name for one in session.unsettled()))
    print("payments:", len(bank.taken))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
