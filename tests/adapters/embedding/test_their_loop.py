"""Somebody else's loop is recorded: killed in the middle of a tool, it goes on without a second effect."""

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
from safepoint.application.inspect_sessions import SessionState
from safepoint.application.repair_session import RepairKind
from safepoint.application.settlement import SettlementRefused
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import RunId
from safepoint.domain.reasons import FailureClass

from .loops import asks_to_pay, opened, payments, recording

LOOP = """
import os, signal, sys
from pathlib import Path
import anyio, safepoint

folder, mode, where = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
tools = [safepoint.contract("pay", recovery=mode, key_valid_seconds=3600 if mode == "idempotent" else None)]

def die(here):
    if here == where:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    model = safepoint.NamedModel("openai", "gpt")
    async with safepoint.open(folder / "store.sqlite", workspace=folder, model=model, tools=tools) as runtime:
        async with runtime.session("bill").record("Pay the bill.") as run:
            die("begun")
            call = safepoint.tool_call("c1", "pay", {"amount": 5})
            await run.model_step(safepoint.step("I pay.", call))
            die("step")
            async with run.tool_call("c1") as operation:
                die("t1")
                with open(folder / "payments.txt", "a") as payments:
                    payments.write(operation.idempotency_key + "\\n")
                die("paid")
                operation.result("paid 5")
            die("t2")
            await run.model_step(safepoint.step("Paid."))
            die("said")

anyio.run(main)
"""


def killed(folder: Path, where: str, mode: str = "never_auto_retry") -> None:
    """Run the loop in a process that is killed there."""
    script = folder / "loop.py"
    script.write_text(LOOP)
    child = subprocess.run([sys.executable, str(script), str(folder), mode, where], check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL


def say_paid(run: safepoint.RecordedRun) -> Any:
    return run.model_step(safepoint.step("Paid."))


@pytest.mark.parametrize(("where", "paid"), [("begun", 0), ("step", 0), ("t2", 1), ("said", 1)])
def test_what_is_certain_goes_on_at_once(tmp_path: Path, where: str, paid: int) -> None:
    killed(tmp_path, where)

    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            summary = await session.summary()
            assert summary is not None
            assert summary.state is SessionState.INTERRUPTED
            assert (await session.repair()).kind is RepairKind.RUN_CLOSED
            assert isinstance(await session.plan(), safepoint.Continue)
            async with session.record_resume() as run:
                shown = [message["role"] for message in run.history("openai-chat")]
                answered = ["user"] if where == "begun" else ["user", "assistant", "tool"]
                assert shown == answered
                await say_paid(run)
            assert run.outcome is not None
            assert run.outcome.status is RunStatus.COMPLETED

    anyio.run(main)
    assert len(payments(tmp_path)) == paid


@pytest.mark.parametrize(("where", "paid"), [("t1", 0), ("paid", 1)])
def test_what_is_not_certain_is_parked_until_a_person_says(tmp_path: Path, where: str, paid: int) -> None:
    killed(tmp_path, where)

    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            with pytest.raises(safepoint.ResumeParked) as parked:
                await session.record_resume().__aenter__()
            assert parked.value.parked.codes == (safepoint.ParkReason.DANGLING_TOOL_STATE,)
            assert "dangling_tool_state: A tool call was started and its outcome" in str(parked.value)
            (operation,) = await session.unsettled()
            assert (operation.tool_name, operation.mode) == ("pay", "never_auto_retry")
            statement = "completed" if paid else "not_executed"
            said = {"by": "alice", "note": "the bank says so"}
            with pytest.raises(SettlementRefused, match="not one of session other, but of bill"):
                await runtime.session("other").settle(operation.operation_id, statement, **said)
            with pytest.raises(SettlementRefused):
                await session.settle("unknown", statement, **said)
            await session.settle(operation.operation_id, statement, result="paid 5" if paid else None, **said)
            async with session.record_resume() as run:
                (result,) = [item for item in run.history() if item.kind == "result"]
                assert result.is_error is not bool(paid)
                await say_paid(run)

    anyio.run(main)
    assert len(payments(tmp_path)) == paid


def test_a_program_that_set_no_logging_up_reads_nothing_of_ours(tmp_path: Path) -> None:
    killed(tmp_path, "t1")
    program = (
        "import sys, safepoint\n"
        "with safepoint.open_sync(sys.argv[1]) as runtime:\n"
        "    assert isinstance(runtime.session('bill').plan(), safepoint.Park)\n"
        "    try:\n"
        "        with runtime.session('bill').record_resume():\n"
        "            pass\n"
        "    except safepoint.ResumeParked:\n"
        "        pass\n"
    )
    asked = [sys.executable, "-c", program, str(tmp_path / "store.sqlite")]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")


def test_an_idempotent_call_is_delivered_again_with_its_recorded_key(tmp_path: Path) -> None:
    killed(tmp_path, "paid", "idempotent")
    (key,) = payments(tmp_path)
    delivered: list[tuple[int, str, bool]] = []

    def pay(context: safepoint.ToolContext, amount: int) -> str:
        known = safepoint.current_call()
        assert known is not None
        assert known.idempotency_key == context.idempotency_key
        delivered.append((amount, context.idempotency_key, context.redelivery))
        return "paid 5"

    def promise(**more: Any) -> Any:
        return safepoint.contract("pay", recovery="idempotent", key_valid_seconds=3600, **more)

    async def main() -> None:
        async with recording(tmp_path, tools=[promise()]) as runtime:
            left = await runtime.session("bill").reconcile()
            assert left is not None
            assert not left.settled, "only the loop itself could deliver it"
        async with (
            recording(tmp_path, tools=[promise(carry_out=pay)]) as runtime,
            runtime.session("bill").record_resume(reconcile=True) as run,
        ):
            await say_paid(run)

    anyio.run(main)
    assert delivered == [(5, key, True)]
    assert payments(tmp_path) == [key]


def test_a_second_turn_is_shown_the_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            async with session.record("Pay the bill.") as run:
                await run.model_step(asks_to_pay())
                assert (await run.call("c1", lambda amount: f"paid {amount}")).result == "paid 5"
                await say_paid(run)
            async with session.record("Thank you.") as run:
                roles = [message["role"] for message in run.history("anthropic")]
                assert roles == ["user", "assistant", "user", "assistant", "user"]
                await run.model_step(safepoint.step("You are welcome."))
            with pytest.raises(safepoint.SessionBusy):
                async with session.record("One."), session.record("Two."):
                    pytest.fail("two runs of one session")

    anyio.run(main)


@pytest.mark.parametrize(
    ("format", "answer"),
    [
        (
            "openai-chat",
            {
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "role": "assistant",
                            "content": "I pay.",
                            "tool_calls": [
                                {
                                    "id": "c1",
                                    "type": "function",
                                    "function": {"name": "pay", "arguments": '{"amount": 5}'},
                                }
                            ],
                        },
                    }
                ]
            },
        ),
        (
            "openai-responses",
            {
                "id": "r1",
                "status": "completed",
                "output": [
                    {
                        "type": "message",
                        "id": "m1",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "I pay.", "annotations": []}],
                    },
                    {
                        "type": "function_call",
                        "id": "f1",
                        "call_id": "c1",
                        "name": "pay",
                        "arguments": '{"amount": 5}',
                        "status": "completed",
                    },
                ],
            },
        ),
        (
            "anthropic",
            {
                "id": "m1",
                "type": "message",
                "role": "assistant",
                "stop_reason": "tool_use",
                "content": [
                    {"type": "text", "text": "I pay."},
                    {"type": "tool_use", "id": "c1", "name": "pay", "input": {"amount": 5}},
                ],
            },
        ),
    ],
)
def test_a_step_is_recorded_as_the_provider_gave_it(tmp_path: Path, format: Any, answer: dict[str, Any]) -> None:  # noqa: A002
    async def main() -> None:
        async with recording(tmp_path) as runtime, runtime.session("bill").record("Pay the bill.") as run:
            step = await run.model_step(answer, format)
            assert step.text == "I pay."
            (call,) = step.calls
            assert (call.tool_name, call.args, call.provider_call_id) == ("pay", {"amount": 5}, "c1")
            async with run.tool_call("c1") as operation:
                operation.result("paid 5")
            assert operation.answer == run.answer(call)
            assert len(run.history(format)) > 2
            with pytest.raises(TypeError, match="say its format"):
                await run.model_step(answer)
            with pytest.raises(ValueError, match="is no format"):
                run.history("smoke-signals")  # type: ignore[call-overload]

    anyio.run(main)


def test_the_system_prompt_stands_where_the_format_has_a_place_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            recording(tmp_path, system_prompt="Be brief.") as runtime,
            runtime.session("bill").record("Hello?") as run,
        ):
            assert [one["role"] for one in run.history("openai-chat")] == ["system", "user"]
            assert [one["role"] for one in run.history("anthropic")] == ["user"]
            assert [item.kind for item in run.history()] == ["user"]
            await run.steer("And quickly.")
            assert [item.kind for item in run.history()] == ["user", "user"]
            run.check()
            assert run.stopped_by is None
            await run.model_step(safepoint.step("Hello."))

    anyio.run(main)


def test_a_loop_may_live_in_a_generator_that_streams(tmp_path: Path) -> None:
    """No scope of ours is open around what the loop yields to."""
    seen: list[RunId] = []

    async def stream(session: safepoint.Session) -> Any:
        async with session.record("Hello?") as run:
            seen.append(run.run_id)
            await run.model_step(asks_to_pay())
            async with run.tool_call("c1") as operation:
                yield "paying"
                operation.result("paid")
            yield "paid"

    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            streaming = stream(session)
            assert await anext(streaming) == "paying"
            async with anyio.create_task_group() as group:  # closed by another task, as servers do
                group.start_soon(streaming.aclose)
            summary = await session.summary()
            assert summary is not None
            assert summary.state is not SessionState.COMPLETED
            assert (await session.repair()).run_id == seen[0]

    anyio.run(main)


def test_it_goes_on_in_the_same_process_after_a_cancellation(tmp_path: Path) -> None:
    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            with anyio.CancelScope() as scope:
                async with session.record("Pay the bill.") as run:
                    await run.model_step(asks_to_pay())
                    await run.call("c1", lambda amount: "paid 5")
                    scope.cancel()
                    await anyio.sleep_forever()
            async with session.record_resume() as run:
                assert [item.kind for item in run.history()][-1] == "result"
                await say_paid(run)
            assert run.outcome is not None
            assert run.outcome.status is RunStatus.COMPLETED

    anyio.run(main)


@pytest.mark.parametrize("text", ["", " \n"])
def test_what_the_user_says_is_never_empty(tmp_path: Path, text: str) -> None:
    """No provider takes such a message, so that the session could not be continued after it."""

    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            with pytest.raises(ValueError, match="empty"):
                await session.record(text).__aenter__()
            with pytest.raises(TypeError, match="NoneType"):
                await session.record(None).__aenter__()  # type: ignore[arg-type]
            assert await session.summary() is None
            async with session.record("Pay the bill.") as run:
                with pytest.raises(ValueError, match="empty"):
                    await run.steer(text)
                await say_paid(run)
        async with opened(tmp_path) as runtime:
            with pytest.raises(ValueError, match="empty"):
                await runtime.session("bill").run(text)

    anyio.run(main)


def test_a_parked_run_is_told_with_its_tool_and_what_to_do(tmp_path: Path) -> None:
    killed(tmp_path, "t2")

    async def main() -> None:
        async with recording(tmp_path, tools=[]) as runtime:
            with pytest.raises(
                safepoint.ResumeParked, match=r"tool_catalog_mismatch: .*\(missing pay.*\) \w+"
            ) as parked:
                await runtime.session("bill").record_resume().__aenter__()
            assert str(parked.value).count("tool_catalog_mismatch") == 1
            assert f"`safepoint run --session bill --store {tmp_path / 'store.sqlite'}`" in str(parked.value)

    anyio.run(main)


def test_what_is_given_wrongly_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    wrong: Any = None

    async def main() -> None:
        async with recording(tmp_path) as runtime, runtime.session("bill").record("Pay the bill.") as run:
            for format, has in (("openai-chat", "choices"), ("openai-responses", "output"), ("anthropic", "content")):  # noqa: A001
                of_format: Any = format
                with pytest.raises(safepoint.ProviderFailed, match=f"which has `{has}`: give the whole of it"):
                    await run.model_step({"role": "assistant", "tool_calls": []}, of_format)
            await run.model_step(asks_to_pay())
            with pytest.raises(TypeError, match="why a call is declined is text, not a NoneType"):
                await run.decline("c1", wrong)
            assert run.answer("c1") is None
            await run.decline("c1", "not now")
            with pytest.raises(ValueError, match="no text that can be kept"):
                await run.steer("\ud800")
            await say_paid(run)

    anyio.run(main)


def test_a_session_that_this_program_works_on_is_told_as_that(tmp_path: Path) -> None:
    async def main() -> None:
        runtime, other = recording(tmp_path), recording(tmp_path)
        async with runtime, other, runtime.session("bill").record("Pay the bill.") as run:
            for second in (runtime, other):
                with pytest.raises(safepoint.SessionBusy, match="which is this one: another task, block or runtime"):
                    await second.session("bill").record("And this?").__aenter__()
            await say_paid(run)

    anyio.run(main)


def test_a_word_that_is_none_of_ours_is_told_with_those_that_are(tmp_path: Path) -> None:
    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            for wrong in ("bogus", ["bogus"]):
                with pytest.raises(ValueError, match=r"'bogus' is no drift.*system_prompt"):
                    await session.plan(accept_drift=wrong)
            await session.plan(accept_drift="tools")
            with pytest.raises(ValueError, match="'done' is no statement: one of completed"):
                await session.settle("unknown", "done", by="alice", note="I think so")

    anyio.run(main)


FORKS = """
import asyncio, os, sys
import safepoint

async def main():
    async with safepoint.open(sys.argv[1]) as runtime:
        session = runtime.session("s")
        async with session.record("Hello?") as run:
            child = os.fork()
            if not child:
                for use in (lambda: run.model_step(safepoint.step("no")), lambda: session.run("no"), session.plan):
                    try:
                        use().send(None)
                    except Exception as error:
                        print(type(error).__name__, flush=True)
                os._exit(0)  # a fork that closed the loop would close it for its parent
            os.waitpid(child, 0)
            await run.model_step(safepoint.step("of the parent"))
        print(run.outcome.text)

asyncio.run(main())
"""


def test_a_fork_is_told_that_the_runtime_is_its_parents(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "store.sqlite")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    assert ran.stdout.splitlines() == [*["OpenedBeforeFork"] * 3, "of the parent"]


def test_a_run_without_a_step_of_its_model_is_not_completed(tmp_path: Path) -> None:
    """Such as one of a framework's agent that was run beside it."""

    async def main() -> None:
        async with recording(tmp_path) as runtime:
            session = runtime.session("bill")
            with pytest.raises(safepoint.NoStepRecorded, match=r"not recorded.*run\.model_step"):
                async with session.record("Pay the bill.") as run:
                    pass
            assert run.outcome is not None
            assert (run.outcome.status, run.outcome.failure) == (RunStatus.FAILED, FailureClass.STEP_LIMIT)
            with pytest.raises(safepoint.NoStepRecorded):
                async with session.record_resume() as run:
                    pass
            async with session.record_resume() as run:
                await say_paid(run)
            assert run.outcome is not None
            assert run.outcome.status is RunStatus.COMPLETED

    anyio.run(main)


def test_a_loop_may_say_that_its_model_had_nothing_to_say(tmp_path: Path) -> None:
    async def main() -> None:
        async with recording(tmp_path) as runtime, runtime.session("bill").record("Only note it.") as run:
            run.needs_no_answer()
        assert run.outcome is not None
        assert run.outcome.status is RunStatus.COMPLETED

    anyio.run(main)


def test_a_loop_that_forgets_its_function_is_told_and_may_give_it_after_all(tmp_path: Path) -> None:
    async def main() -> None:
        async with recording(tmp_path) as runtime, runtime.session("bill").record("Pay the bill.") as run:
            await run.model_step(
                safepoint.step(safepoint.tool_call("c1", "pay", {}), safepoint.tool_call("c2", "no_such", {}))
            )
            with pytest.raises(TypeError, match="pay is carried out by the loop that has it: give its function"):
                await run.call("c1", None)
            assert run.answer("c1") is None
            assert (await run.call("c1", lambda: "paid")).result == "paid"
            assert (await run.call("c2", None)).code == "unknown_tool"
            await say_paid(run)

    anyio.run(main)


def test_a_function_gets_the_context_that_it_declares(tmp_path: Path) -> None:
    async def pay(context: safepoint.ToolContext, amount: int) -> str:
        return f"paid {amount} under {context.idempotency_key}"

    async def main() -> None:
        async with recording(tmp_path) as runtime, runtime.session("bill").record("Pay the bill.") as run:
            await run.model_step(asks_to_pay())
            answer = await run.call("c1", pay)
            assert str(answer.result).startswith("paid 5 under ")
            await run.model_step(safepoint.step(safepoint.tool_call("c2", "pay", {"much": 5})))
            assert (await run.call("c2", pay)).code == "args_schema_mismatch"
            await say_paid(run)

    anyio.run(main)


def test_a_turn_of_our_loop_without_a_model_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    async def main() -> None:
        async with recording(tmp_path) as runtime, safepoint.open(tmp_path / "other.sqlite") as nameless:
            for opened_one in (runtime, nameless):
                session = opened_one.session("bill")
                with pytest.raises(safepoint.ProviderUnusable, match=r"Open it with `model=`"):
                    await session.run("Pay the bill.")
                with pytest.raises(safepoint.ProviderUnusable, match=r"Session\.record"):
                    await session.resume()
                assert await session.summary() is None

    anyio.run(main)


@pytest.mark.parametrize("mode", ["replay_safe", "idempotent"])
def test_who_has_not_the_tools_of_a_loop_is_not_told_to_run_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    """The command line has no tool of somebody else's loop: what it cannot do is not among what it names."""
    killed(tmp_path, "paid", mode)
    store = ["--store", str(tmp_path / "store.sqlite")]
    assert call(["plan", "bill", *store, "--json"]) == ExitCode.PARKED
    document = json.loads(capsys.readouterr().out)
    assert "tool_catalog_mismatch" in [one["code"] for one in document["reasons"]]
    commands = [way["command"] for way in document["commands"]]
    assert not [one for one in commands if "reconcile" in one]
    settle = next(one for one in commands if one.startswith("safepoint settle") and "--completed" in one)
    (operation,) = document["operations"]
    assert operation["operation_id"] in settle
