"""Whatever a loop of somebody else's does, in whatever order: its record is sound, and its history is legal."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from safepoint.application.call_answers import CallRefused, OutcomeNotDeclared, RunStopped
from safepoint.application.recorded_run import RecordedRun
from safepoint.domain.errors import SafepointError
from safepoint.domain.events.run import RunEnded
from safepoint.domain.events.tool import Effect, ToolDispatched, ToolResponded
from safepoint.domain.replay.legality import check_provider_legality
from safepoint.ports.model_step import CallBlock, StepFinished, TextBlock, ThinkingBlock

from .test_record_run import Recording
from .wiring import check_sound


class Torn(Exception):
    """The loop's own code failed in the block of a call."""


class Planned(NamedTuple):
    """One call, and what the loop does about it."""

    tool_name: str
    how: str
    provider_id: str | None


HOWS = ("result", "error", "refused", "function", "raises", "silent", "torn", "never")
CALLS = st.builds(
    Planned,
    st.sampled_from(["pay", "look", "fly"]),
    st.sampled_from(HOWS),
    st.sampled_from(["c1", "c2", "", None]),
)
STEPS = st.lists(st.tuples(st.booleans(), st.booleans(), st.lists(CALLS, max_size=3)), min_size=1, max_size=4)


def finished(thinks: bool, talks: bool, calls: list[Planned]) -> StepFinished:
    arguments = {"pay": '{"amount":5}', "look": "{}", "fly": "{}"}
    thinking = [ThinkingBlock("I think.", signature="c2ln")] if thinks else []
    text = [TextBlock("I say.")] if talks else []
    blocks = [CallBlock(call.provider_id, call.tool_name, arguments[call.tool_name]) for call in calls]
    return StepFinished(blocks=(*thinking, *text, *blocks), finish_reason="stop")


class Loop:
    """A loop that does as it is told.

    Attributes:
        effects: how often the code of each tool ran.
    """

    def __init__(self, steps: list[tuple[bool, bool, list[Planned]]]) -> None:
        self.steps = steps
        self.effects: dict[str, int] = {}

    async def __call__(self, run: RecordedRun) -> None:
        for thinks, talks, calls in self.steps:
            with suppress(RunStopped):
                run.check()
                step = await run.model_step(finished(thinks, talks, calls))
                for recorded, planned in zip(step.calls, calls, strict=True):
                    with suppress(CallRefused, OutcomeNotDeclared, Torn):
                        await self.carry_out(run, recorded, planned.how)
                if not any(planned.how == "never" for planned in calls):
                    assert check_provider_legality(run.history()) is None

    async def carry_out(self, run: RecordedRun, call: Any, how: str) -> None:
        if how == "never":
            return
        if how in {"function", "raises"}:
            await run.call(call, lambda **arguments: self.act(call.tool_name, fails=how == "raises"))
            return
        async with run.tool_call(call) as operation:
            self.act(call.tool_name)
            match how:
                case "result":
                    operation.result("done")
                case "error":
                    operation.error(OSError("gone"))
                case "refused":
                    operation.refused("no")
                case "torn":
                    raise Torn
                case _:
                    pass  # it says nothing

    def act(self, name: str, *, fails: bool = False) -> str:
        self.effects[name] = self.effects.get(name, 0) + 1
        if fails:
            raise OSError("gone")
        return "done"


@settings(max_examples=60)
@given(STEPS)
def test_every_loop_leaves_a_sound_record(steps: list[tuple[bool, bool, list[Planned]]]) -> None:
    process, loop = Recording(), Loop(steps)
    with suppress(SafepointError):
        process.told(loop)
    run_id = process.head()
    check_sound(process, run_id)
    dispatched = process.of(run_id, ToolDispatched)
    assert {name: sum(one.tool_name == name for one in dispatched) for name in loop.effects} == loop.effects
    answered = {one.operation_id: one for one in process.of(run_id, ToolResponded) if one.operation_id is not None}
    open_ = [one for one in dispatched if one.operation_id not in answered]
    (ended,) = process.of(run_id, RunEnded)
    assert (ended.status == "completed") <= (not open_)
    assert len(open_) <= 1, "after the first tear nothing more is dispatched"
    assert "fly" not in loop.effects
    assert all(one.effect is Effect.NONE for one in answered.values() if one.tool_name == "look")
