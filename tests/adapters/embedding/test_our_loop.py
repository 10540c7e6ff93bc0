"""Safepoint runs the loop: a runtime over one store, its sessions, and what a person says of them."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import safepoint
from safepoint.adapters.memory.model_provider import PlannedModel, Stall, calls, says
from safepoint.application.cancel_run import Cancelled
from safepoint.application.decide_permission import Decided
from safepoint.application.inspect_sessions import SessionState
from safepoint.application.repair_session import RepairKind
from safepoint.domain.events.run import RunStatus
from safepoint.ports.model_step import StepFinished, TextBlock

from .loops import PAYS, opened, pay, payments


def test_a_turn_is_run_and_seen(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as runtime:
            session = runtime.session("bill")
            assert await session.summary() is None
            result = await session.run("Pay the bill.")
            assert (result.outcome.status, result.outcome.text) == (RunStatus.COMPLETED, "Paid.")
            summary = await session.summary()
            assert summary is not None
            assert summary.state is SessionState.COMPLETED
            plan = await session.plan()
            assert isinstance(plan, safepoint.Park)
            assert plan.codes == (safepoint.ParkReason.RESUME_CANDIDATE_MISSING,)

    anyio.run(main)
    assert payments(tmp_path) == ["5"]


def test_what_happens_is_seen_while_it_happens(tmp_path: Path) -> None:
    events = safepoint.events
    watched: list[events.Happening] = []

    async def main() -> list[events.Happening]:
        async with opened(tmp_path) as runtime, anyio.create_task_group() as group:
            session = runtime.session("bill")
            happenings = session.events()

            async def run() -> None:
                await session.run("Pay the bill.", watch=watched.append)

            group.start_soon(run)
            return [happening async for happening in happenings]
        raise AssertionError

    seen = anyio.run(main)
    assert seen == watched
    kinds = [type(happening) for happening in seen if not isinstance(happening, events.TextDelta)]
    assert kinds == [
        *(events.ContentNotBound, events.RunBegan, events.CallMade, events.CallAnswered, events.RunFinished),
    ]
    assert "".join(one.text for one in seen if isinstance(one, events.TextDelta)) == "Paid."


def test_watching_ends_also_where_a_run_is_not_begun(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as runtime:
            session = runtime.session("bill")
            await session.run("Pay the bill.")
            events = session.events()
            assert isinstance(await session.resume(), safepoint.Parked)
            assert [happening async for happening in events] == [safepoint.events.RunFinished(session.session_id, None)]
            closed = session.events()
            await closed.aclose()
            assert [happening async for happening in closed] == []

    anyio.run(main)


def test_a_watcher_that_fails_changes_nothing(tmp_path: Path) -> None:
    def fails(happening: safepoint.events.Happening) -> None:
        raise RuntimeError

    async def main() -> None:
        async with opened(tmp_path) as runtime:
            assert (await runtime.session("bill").run("Pay.", watch=fails)).outcome.text == "Paid."

    anyio.run(main)


def test_progress_of_a_tool_is_seen_from_its_thread(tmp_path: Path) -> None:
    @safepoint.tool(recovery="replay_safe")
    def look(context: safepoint.ToolContext) -> str:
        """Look."""
        context.report("half way")
        return "seen"

    lines: list[str] = []

    def watch(happening: safepoint.events.Happening) -> None:
        if isinstance(happening, safepoint.events.ToolProgress):
            lines.append(happening.line)

    async def main() -> None:
        model = PlannedModel([calls(("look", {})), says("Done.")])
        async with opened(tmp_path, model, tools=[look]) as runtime:
            await runtime.session().run("Look.", watch=watch)

    anyio.run(main)
    assert lines == ["half way"]


def test_a_run_that_failed_is_continued_in_a_new_one(tmp_path: Path) -> None:
    unfinished = StepFinished(blocks=(TextBlock("broken off"),), finish_reason="")

    async def main() -> None:
        async with opened(tmp_path, PlannedModel([PAYS[0], unfinished])) as runtime:
            assert (await runtime.session("bill").run("Pay the bill.")).outcome.status is RunStatus.FAILED
        async with opened(tmp_path, PlannedModel([says("Paid, once.")])) as runtime:
            session = runtime.session("bill")
            plan = await session.plan()
            assert isinstance(plan, safepoint.Continue)
            assert [one["role"] for one in safepoint.messages(plan.replay, "openai-chat")] == [
                "user",
                "assistant",
                "tool",
            ]
            result = await session.resume()
            assert isinstance(result, safepoint.Continued)
            assert result.outcome.text == "Paid, once."

    anyio.run(main)
    assert payments(tmp_path) == ["5"]


def test_what_differs_parks_and_may_be_accepted(tmp_path: Path) -> None:
    unfinished = StepFinished(blocks=(TextBlock("broken off"),), finish_reason="")

    async def main() -> None:
        async with opened(tmp_path, PlannedModel([unfinished])) as runtime:
            await runtime.session("bill").run("Pay the bill.")
        async with opened(tmp_path, PlannedModel([says("Hm.")]), system_prompt="Be brief.") as runtime:
            session = runtime.session("bill")
            parked = await session.resume()
            assert isinstance(parked, safepoint.Parked)
            assert parked.codes == (safepoint.ParkReason.EXECUTION_PROFILE_MISMATCH,)
            with pytest.raises(ValueError, match="moon"):
                await session.plan(accept_drift=["moon"])
            assert isinstance(await session.plan(accept_drift=["system_prompt"]), safepoint.Continue)
            assert isinstance(await session.resume(accept_drift=["system_prompt"]), safepoint.Continued)

    anyio.run(main)


def test_a_run_is_stopped_from_beside_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, PlannedModel([Stall("thinking")])) as runtime, anyio.create_task_group() as group:
            session = runtime.session("bill")
            events = session.events()
            outcomes: list[safepoint.Continued | Any] = []

            async def run() -> None:
                outcomes.append((await session.run("Pay the bill.")).outcome.status)

            group.start_soon(run)
            async for happening in events:
                if isinstance(happening, safepoint.events.TextDelta):
                    assert (await session.cancel(by="alice")).cancelled is Cancelled.STOPPING
            await anyio.lowlevel.checkpoint()
            assert outcomes == [RunStatus.CANCELLED]

    anyio.run(main)


def test_a_person_is_asked_and_answers(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, permission="ask") as runtime, anyio.create_task_group() as group:
            session = runtime.session("bill")

            async def answer() -> None:
                while not (questions := await session.waiting()):  # noqa: ASYNC110 (a question has no event)
                    await anyio.sleep(0.01)
                (question,) = questions
                assert question.tool_name == "pay"
                decision = await session.decide(question.request_id, approved=True, by="alice")
                assert decision.decided is Decided.ANSWERED

            group.start_soon(answer)
            assert (await session.run("Pay the bill.")).outcome.status is RunStatus.COMPLETED

    anyio.run(main)
    assert payments(tmp_path) == ["5"]


@pytest.mark.parametrize(("permission", "paid"), [("allow", ["5"]), ("deny", [])])
def test_the_program_says_what_is_permitted(tmp_path: Path, permission: Any, paid: list[str]) -> None:
    async def main() -> None:
        async with opened(tmp_path, permission=permission) as runtime:
            await runtime.session("bill").run("Pay the bill.")

    anyio.run(main)
    assert payments(tmp_path) == paid


def test_what_cannot_be_opened_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no permission"):
        opened(tmp_path, permission="perhaps")

    async def enter(**given: Any) -> None:
        async with opened(tmp_path, **given):
            pytest.fail("it was opened")

    file = tmp_path / "file"
    file.touch()
    unusable: list[tuple[dict[str, Any], str]] = [
        (
            {"workspace": tmp_path / "missing"},
            r"missing cannot be the workspace: there is no such folder; make it first$",
        ),
        ({"workspace": file}, r"cannot be the workspace: .* is not accepted \(not_a_folder\): "),
        ({"model": "gpt"}, "names no model"),
        ({"model": "openai:"}, "names no model"),
    ]
    for given, said in unusable:
        with pytest.raises(ValueError, match=said):
            anyio.run(partial(enter, **given))
    with pytest.raises(safepoint.StoreError):
        anyio.run(enter_nowhere, tmp_path)
    with pytest.raises(TypeError, match="a int is no model"):
        anyio.run(partial(enter, model=3))
    wrong: list[tuple[Any, str]] = [
        ({"pay": pay}, r"tools are given as a list: `tools=\[pay\]`"),
        (["pay"], r"'pay' cannot be a tool: it is no function: of one that a loop has, give a `contract\(name\)`"),
    ]
    for tools, said in wrong:
        with pytest.raises(TypeError, match=said):
            opened(tmp_path, tools=tools)
    with pytest.raises(safepoint.ToolDefinitionError, match="its name is empty"):
        safepoint.contract("")
    with pytest.raises(safepoint.ToolDefinitionError, match="carry_out is a function, not a str"):
        safepoint.contract("pay", carry_out="pay")  # type: ignore[arg-type]


async def enter_nowhere(folder: Path) -> None:
    async with safepoint.open(folder / "missing" / "store.sqlite"):
        pytest.fail("it was opened")


def test_a_runtime_is_used_as_a_block_and_once(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = opened(tmp_path)
        with pytest.raises(RuntimeError, match="not open"):
            runtime.session("bill")
        async with runtime:
            assert runtime.session("bill") is runtime.session("bill")
            assert runtime.session().session_id != runtime.session().session_id
            with pytest.raises(ValueError, match="session id"):
                runtime.session("")
            with pytest.raises(RuntimeError, match="once"):
                await runtime.__aenter__()

    anyio.run(main)


def test_everything_is_repaired_at_the_start_of_a_program_that_hosts_many(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, PlannedModel([Stall("thinking")])) as runtime:
            session = runtime.session("bill")
            with anyio.CancelScope() as scope:
                await session.run("Pay.", watch=lambda one: scope.cancel() if hasattr(one, "text") else None)
            assert (await session.repair()).kind is RepairKind.RUN_CLOSED
            assert (await runtime.repair()).runs_closed == 0

    anyio.run(main)


def test_a_model_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"steps": [{"text": "Hello."}]}')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    async def main() -> None:
        async with opened(tmp_path, f"scripted:{script}") as runtime:
            assert (await runtime.session().run("Hello?")).outcome.text == "Hello."
        async with opened(tmp_path, "openai:gpt-5.1") as runtime:
            profile = runtime.agent.provider.profile()
            assert (profile.provider, profile.model) == ("openai", "gpt-5.1")

    anyio.run(main)


def test_a_runtime_without_a_workspace_marks_no_folder(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, PlannedModel([says("Hello.")]), workspace=None, tools=()) as runtime:
            await runtime.session().run("Hello?")
            assert runtime.agent.workspace_identity is None

    anyio.run(main)
    assert not (tmp_path / ".safepoint-workspace.json").exists()


def test_turns_may_be_bound_to_the_content_of_their_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    subprocess.run(["git", "init", "--quiet", str(workspace)], check=True)

    async def main(**more: Any) -> None:
        async with opened(tmp_path, PlannedModel(list(PAYS)), **more) as runtime:
            result = await runtime.session("bill").run("Pay.")
            with runtime.parts.events().snapshot() as reader:
                stored = b"".join(row.state for row in reader.read(f"run:{result.run_id}"))
            assert stored.count(b"workspace.checkpoint_accepted.v1") == 2

    anyio.run(partial(main, workspace=workspace))
    anyio.run(partial(main, workspace=workspace, checkpoints="git"))
    for unusable in ({"workspace": None, "checkpoints": "git"}, {"checkpoints": "tape"}):
        with pytest.raises(ValueError, match="needs a workspace, and is one of auto, git, none"):
            anyio.run(partial(main, **unusable))


def test_a_loop_of_ones_own_can_see_that_its_turn_could_not_be_bound_to_content(tmp_path: Path) -> None:
    async def main(**more: Any) -> object:
        async with opened(tmp_path, workspace=tmp_path, **more) as runtime:
            async with runtime.session("bill").record("Pay.") as run:
                await run.model_step(StepFinished(blocks=(TextBlock("Paid."),), finish_reason="stop"))
            return run.not_bound

    told = anyio.run(main)
    assert isinstance(told, safepoint.events.ContentNotBound)
    assert (told.session_id, told.code) == ("bill", "not_a_repository")
    assert anyio.run(partial(main, checkpoints="none")) is None


def test_a_program_is_told_that_a_turn_could_not_be_bound_to_content(tmp_path: Path) -> None:
    watched: list[safepoint.events.Happening] = []

    async def main(**more: Any) -> None:
        async with opened(tmp_path, workspace=tmp_path, **more) as runtime:
            await runtime.session("bill").run("Pay.", watch=watched.append)

    anyio.run(main)
    (told,) = (one for one in watched if isinstance(one, safepoint.events.ContentNotBound))
    assert (told.session_id, told.code) == ("bill", "not_a_repository")
    watched.clear()
    anyio.run(partial(main, checkpoints="none"))
    assert not any(isinstance(one, safepoint.events.ContentNotBound) for one in watched)
