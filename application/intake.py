"""Makes facts of a finished model step: fresh call ids where the provider's are empty or used, arguments or text.

SPEC sections 4 and 5. Nothing of a step is recorded that cannot be recorded whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..domain.commands import StepFact
from ..domain.events.model import ModelStepCompleted, ModelText, ModelThinking
from ..domain.events.tool import ToolCalled
from ..domain.identifiers import StepId, ToolCallId, parse_id
from ..domain.own_copies import own_event
from ..domain.run.state import Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, seal
from ..domain.tool_arguments import NotStrictJson, parse_arguments
from ..ports.ids import Ids
from ..ports.model_step import CallBlock, StepFinished, TextBlock, ThinkingBlock
from ..ports.provider_failures import ProviderFailed, ProviderStreamIncomplete
from .run_recorder import RunRecorder


@dataclass(frozen=True, slots=True)
class Step:
    """What is recorded of a step.

    Attributes:
        facts: its completion last.
        unreadable: why the arguments of a call are kept as text, by call.
    """

    facts: tuple[StepFact, ...]
    unreadable: Mapping[ToolCallId, NotStrictJson]

    @property
    def calls(self) -> tuple[ToolCalled, ...]:
        """The calls of the step, in order."""
        return tuple(fact for fact in self.facts if isinstance(fact, ToolCalled))

    @property
    def text(self) -> str:
        """What the model said."""
        return "".join(fact.text for fact in self.facts if isinstance(fact, ModelText))

    def handed_out(self) -> Step:
        """The same for whoever drives the run: the facts here are those of its state."""
        return Step(tuple(own_event(fact) for fact in self.facts), self.unreadable)


def step_of(finished: StepFinished, recorder: RunRecorder, run: Run, ids: Ids) -> Step:
    """Make the facts of one finished step.

    Args:
        run: the state of the run, which knows the call ids that are used.

    Raises:
        ProviderStreamIncomplete: it has no finish reason.
        ProviderFailed: a block cannot be recorded, such as a tool name with control characters, or a huge text.
    """
    if not finished.finish_reason:
        raise ProviderStreamIncomplete("the answer ended without a finish reason")
    try:
        return _Intake(recorder, run, ids).step(finished)
    except ValueError as error:
        raise ProviderFailed(
            "the answer cannot be recorded: a name, id, text or option in it is not legal, or too large"
        ) from error


class _Intake:
    def __init__(self, recorder: RunRecorder, run: Run, ids: Ids) -> None:
        self._recorder = recorder
        self._run = run
        self._ids = ids
        self._step_id = ids.fresh(StepId)
        self._taken: set[str] = set()
        self._unreadable: dict[ToolCallId, NotStrictJson] = {}

    def step(self, finished: StepFinished) -> Step:
        facts: list[StepFact] = [self._fact(block) for block in finished.blocks]
        completed = ModelStepCompleted(
            **self._recorder.spine(),
            step_id=self._step_id,
            finish_reason=finished.finish_reason,
            model=finished.model,
            provider_response_id=finished.provider_response_id,
            usage=finished.usage,
        )
        for fact in (*facts, completed):
            seal(fact, 1, FIRST_PREVIOUS_DIGEST)  # raises for what no store could keep: its text, or its size
        return Step((*facts, completed), self._unreadable)

    def _fact(self, block: TextBlock | ThinkingBlock | CallBlock) -> StepFact:
        match block:
            case TextBlock():
                return ModelText(
                    **self._recorder.spine(),
                    step_id=self._step_id,
                    text=block.text,
                    provider_options=block.provider_options,
                )
            case ThinkingBlock():
                return ModelThinking(
                    **self._recorder.spine(),
                    step_id=self._step_id,
                    text=block.text,
                    signature=block.signature,
                    provider_options=block.provider_options,
                )
            case CallBlock():
                return self._call(block)

    def _call(self, block: CallBlock) -> ToolCalled:
        call_id = self._call_id(block.provider_call_id)
        parsed = parse_arguments(block.arguments_text)
        if isinstance(parsed, NotStrictJson):
            self._unreadable[call_id] = parsed
        return ToolCalled(
            **self._recorder.spine(),
            step_id=self._step_id,
            call_id=call_id,
            provider_call_id=block.provider_call_id,
            tool_name=block.tool_name,
            args=None if isinstance(parsed, NotStrictJson) else parsed.args,
            args_text=parsed.text if isinstance(parsed, NotStrictJson) else None,
            provider_options=block.provider_options,
        )

    def _call_id(self, offered: str | None) -> ToolCallId:
        """The provider's id where it names this call alone in the whole run (field report r3-027), else one of ours."""
        if offered and offered not in self._taken and self._run.tools.call(offered) is None and _legal(offered):
            self._taken.add(offered)
            return ToolCallId(offered)
        return self._ids.fresh(ToolCallId)


def _legal(offered: str) -> bool:
    try:
        parse_id(offered, "call id")
    except ValueError:
        return False
    return True
