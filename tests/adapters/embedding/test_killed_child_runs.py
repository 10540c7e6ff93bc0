"""A process is killed while a call of it begins, runs or has run a child: there is one, and its end is the answer.

Children and payments are counted from outside: in the database file, and in a file that the tool writes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import safepoint
from safepoint.adapters.cli.exit_codes import ExitCode
from safepoint.adapters.cli.main import call
from safepoint.adapters.memory.model_provider import PlannedModel, says
from safepoint.application.reconciliation import Completed, Left, LeftAlone, OperationReconciled
from safepoint.domain.reasons import ParkReason

from .loops import opened, payments
from .test_child_runs import PROMISE, THEIRS, children

PROGRAM = """
import os, signal, sys
from pathlib import Path
import anyio, safepoint
from safepoint.adapters.memory.model_provider import PlannedModel, calls, says

folder, kind, where = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def die(here):
    if here == where:
        os.kill(os.getpid(), signal.SIGKILL)

@safepoint.tool(recovery="never_auto_retry")
def pay(context: safepoint.ToolContext, amount: int) -> str:
    die("before the payment")
    with (context.workspace / "payments.txt").open("a") as file:
        file.write(f"{amount}\\n")
    die("paid")
    return f"paid {amount}"

def watch(happening):
    if isinstance(happening, safepoint.events.RunBegan):
        die("child begun")
    if isinstance(happening, safepoint.events.CallAnswered):
        die("payment recorded")

async def helped(clerk, call, task):
    die("T1")
    result = await clerk.session(call.child_run).run(task, parent=call, watch=watch)
    die("child ended")
    return result.outcome.text

def opened(model, *tools):
    store = folder / "store.sqlite"
    return safepoint.open(store, workspace=folder, model=model, tools=tools, checkpoints="none")

async def ours(clerk):
    @safepoint.tool(recovery="reattach", child_run=True)
    async def delegate(context: safepoint.ToolContext, task: str) -> str:
        return await helped(clerk, context, task)

    model = PlannedModel([calls(("delegate", {"task": "Pay."})), says("I had help.")])
    async with opened(model, delegate) as lead:
        await lead.session("lead").run("Go.")

async def theirs(clerk):
    async def delegate(task):
        return await helped(clerk, safepoint.current_call(), task)

    promise = safepoint.contract("delegate", recovery="reattach", child_run=True)
    async with opened(safepoint.NamedModel("openai", "gpt"), promise) as lead:
        async with lead.session("lead").record("Go.") as run:
            await run.model_step(safepoint.step("Help!", safepoint.tool_call("c1", "delegate", {"task": "Pay."})))
            await run.call("c1", delegate)
            die("answered")
            await run.model_step(safepoint.step("I had help."))

async def main():
    async with opened(PlannedModel([calls(("pay", {"amount": 5})), says("Paid.")]), pay) as clerk:
        await {"ours": ours, "theirs": theirs}[kind](clerk)

anyio.run(main)
"""

NEVER_BEGUN = ("T1",)
IN_MID_CHILD = ("child begun", "before the payment", "paid", "payment recorded")
PLACES = (*NEVER_BEGUN, *IN_MID_CHILD, "child ended")


@safepoint.tool(recovery="never_auto_retry")
def pay(context: safepoint.ToolContext, amount: int) -> str:
    raise AssertionError("nobody pays again")


@safepoint.tool(recovery="reattach", child_run=True)
async def delegate(context: safepoint.ToolContext, task: str) -> str:
    raise AssertionError("no child is begun again")


def killed(folder: Path, kind: str, where: str) -> None:
    """Run the program until it is killed there."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), str(folder), kind, where], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def again(folder: Path, kind: str, *clerk: Any) -> tuple[safepoint.Runtime, safepoint.Runtime]:
    """The lead and the clerk of the next process: neither may do again what was done."""
    model = PlannedModel([says("I had help.")]) if kind == "ours" else THEIRS
    lead = opened(folder, model, tools=[delegate if kind == "ours" else PROMISE], checkpoints="none")
    return lead, opened(folder, PlannedModel(list(clerk)), tools=[pay], checkpoints="none")


async def looked(session: safepoint.Session) -> OperationReconciled:
    """What becomes of the lead's call."""
    reconciled = await session.reconcile()
    assert reconciled is not None
    (one,) = reconciled.operations
    return one


async def go_on(session: safepoint.Session, kind: str) -> None:
    """Continue the lead to its end."""
    if kind == "ours":
        assert isinstance(await session.resume(), safepoint.Continued)
        return
    async with session.record_resume() as run:
        await run.model_step(safepoint.step("I had help."))


def answer_of(folder: Path, run: str) -> Any:
    """The newest answer of the lead's call, as the history of a next turn has it."""

    async def main() -> Any:
        lead, _ = again(folder, "theirs")
        async with lead, lead.session(run).record("What was it?") as recorded:
            recorded.needs_no_answer()
            (said,) = [one for one in recorded.history("openai-chat") if one["role"] == "tool"]
            return said["content"]

    return anyio.run(main)


@pytest.mark.parametrize("kind", ["ours", "theirs"])
@pytest.mark.parametrize("where", PLACES)
def test_a_call_has_one_child_whatever_was_killed_when(tmp_path: Path, kind: str, where: str) -> None:
    killed(tmp_path, kind, where)
    begun = children(tmp_path)
    assert len(begun) == (0 if where in NEVER_BEGUN else 1)
    paid = payments(tmp_path)
    assert paid == ([] if where in (*NEVER_BEGUN, "child begun", "before the payment") else ["5"])

    async def main() -> None:
        lead, clerk = again(tmp_path, kind, says("Paid."))
        async with lead, clerk:
            session = lead.session("lead")
            one = await looked(session)
            assert isinstance(one.became, LeftAlone if where in IN_MID_CHILD else Completed)
            if isinstance(one.became, LeftAlone):
                assert (one.became.why, one.became.child) == (Left.CHILD_INTERRUPTED, begun[0][0])
                plan = await session.plan()
                assert isinstance(plan, safepoint.Park)
                assert plan.codes == (ParkReason.DANGLING_TOOL_STATE,)
                await go_on_with_child(clerk.session(begun[0][0]), where)
                one = await looked(session)
            assert isinstance(one.became, Completed)
            assert one.became.is_error is (where in NEVER_BEGUN)
            assert await session.unsettled() == []
            await go_on(session, kind)

    anyio.run(main)
    assert children(tmp_path) == begun
    assert payments(tmp_path) == paid
    said = answer_of(tmp_path, "lead")
    assert ("never begun" if where in NEVER_BEGUN else "Paid.") in said


async def go_on_with_child(session: safepoint.Session, where: str) -> None:
    """What a person does of the child: it is a session like any other."""
    plan = await session.plan()
    unknown = where in ("before the payment", "paid")
    assert isinstance(plan, safepoint.Park if unknown else safepoint.Continue)
    for operation in await session.unsettled():
        said = "completed" if where == "paid" else "not_executed"
        await session.settle(operation.operation_id, said, by="ada", note="I asked the bank", result=None)
    done = await session.resume()
    assert isinstance(done, safepoint.Continued)
    assert done.outcome.text == "Paid."


def test_what_the_parent_was_told_before_it_was_killed_is_not_looked_up_again(tmp_path: Path) -> None:
    killed(tmp_path, "theirs", "answered")
    begun = children(tmp_path)

    async def main() -> None:
        lead, clerk = again(tmp_path, "theirs")
        async with lead, clerk:
            session = lead.session("lead")
            reconciled = await session.reconcile()
            assert reconciled is not None
            assert reconciled.operations == ()
            await go_on(session, "theirs")

    anyio.run(main)
    assert (children(tmp_path), payments(tmp_path)) == (begun, ["5"])


def test_the_command_line_names_the_child_and_what_to_do_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed(tmp_path, "ours", "payment recorded")
    ((child, _),) = children(tmp_path)
    arguments = ["reconcile", "lead", "--store", str(tmp_path / "store.sqlite")]
    assert call([*arguments, "--json"]) == ExitCode.PARKED
    document = json.loads(capsys.readouterr().out)
    (operation,) = document["operations"]
    assert (operation["became"], operation["code"], operation["child"]) == ("left", "child_run_interrupted", child)
    first = next(way for way in document["commands"] if f"safepoint plan {child}" in way["command"])
    assert first == document["commands"][0]
    assert call(arguments) == ExitCode.PARKED
    said = capsys.readouterr().out
    assert "the run that it started was interrupted" in said
    assert f"session {child} was interrupted, and can be continued" in said


def commands_of(said: str) -> list[str]:
    return [way["command"] for way in json.loads(said)["commands"]]


def test_a_child_whose_place_a_later_turn_took_is_for_a_person_to_settle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Waiting changes nothing, and nobody is told to wait: the commands that help are named, and they do help."""
    killed(tmp_path, "ours", "payment recorded")
    ((child, _),) = children(tmp_path)

    async def main() -> None:
        async with opened(tmp_path, PlannedModel([says("Done.")])) as clerk:
            await clerk.session(child).run("Something else.")

    anyio.run(main)
    store = ["--store", str(tmp_path / "store.sqlite")]
    assert call(["reconcile", "lead", *store, "--json"]) == ExitCode.PARKED
    said = capsys.readouterr().out
    (operation,) = json.loads(said)["operations"]
    assert (operation["became"], operation["code"], operation["child"]) == ("left", "handle_lost", None)
    assert "a later turn has taken its place" in operation["detail"]
    settle = f"safepoint settle {operation['operation_id']}"
    assert [one.startswith(settle) for one in commands_of(said)[:2]] == [True, True]
    assert not [one for one in commands_of(said) if "reconcile" in one]
    word = ["--completed", '"paid 5"', "--by", "ada", "--note", "the bank says so"]
    assert call(["settle", operation["operation_id"], *word, *store]) == ExitCode.DONE
    capsys.readouterr()
    assert call(["reconcile", "lead", *store, "--json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out)["settled"] is True


def test_what_needs_no_tool_is_looked_at_where_the_tools_are_not_and_nobody_is_told_to_go_on_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed(tmp_path, "ours", "payment recorded")
    assert call(["plan", "lead", "--store", str(tmp_path / "store.sqlite"), "--json"]) == ExitCode.PARKED
    said = capsys.readouterr().out
    assert "tool_catalog_mismatch" in [one["code"] for one in json.loads(said)["reasons"]]
    assert [one for one in commands_of(said) if one.startswith("safepoint reconcile lead")]
    assert not [one for one in commands_of(said) if "--reconcile" in one]
