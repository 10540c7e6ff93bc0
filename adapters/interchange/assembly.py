"""From the parts of a conversation to runs. SPEC section 19, F16.

A turn is one run. A message of the user begins a new turn where the model had spoken and every call was answered;
otherwise it came into the running turn. So a call that was never answered stays in the run that goes on after it, where
it is judged, parks, and can be settled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ...domain.events.model import ModelStepCompleted, ModelText, ModelThinking, UserMessage
from ...domain.events.run import CancelRequested, RunStatus
from ...domain.events.tool import ToolCalled, ToolResponded
from ...domain.identifiers import SessionId, StepId, ToolCallId, derive_id
from ...domain.reasons import FailureClass
from ...domain.recovery.facts import Called, Conflicted, Responded
from ...ports.history_format import FindingCode, Place, ReadRun
from .exact_json import storable
from .lines import Reading
from .pairing import CallKind, ResultKind, is_id
from .parts import (
    CallMade,
    ModelSaid,
    ModelThought,
    Part,
    ResultGiven,
    Setting,
    StepEnded,
    Stopped,
    TurnEnded,
    TwiceOtherwise,
    UserSaid,
)
from .run_draft import RunDraft
from .values import Change, arguments_of, result_of

_CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "incomplete", "content_filter", "refusal"})
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
"""What some provider takes for a tool's name; a history with any other is refused by all (field report r3-024)."""


def assembled(parts: Iterable[Part], session_id: SessionId, setting: Setting, reading: Reading) -> tuple[ReadRun, ...]:
    """The runs that a conversation consists of, oldest first.

    Args:
        parts: in the order of the file.
        session_id: the session that they become.
        setting: what the file says of the execution.
        reading: is told of whatever is left out, made or changed.
    """
    listed = list(parts)
    assembly = _Assembly(session_id, setting, reading)
    assembly.answers_left.update(part.provider_id for part in listed if isinstance(part, ResultGiven))
    for part in listed:
        assembly.take(part)
    assembly.close()
    return tuple(assembly.runs)


class _Assembly:
    def __init__(self, session_id: SessionId, setting: Setting, reading: Reading) -> None:
        self.runs: list[ReadRun] = []
        self.answers_left: Counter[str] = Counter()
        self._session_id = session_id
        self._setting = setting
        self._reading = reading
        self._begin()

    def _begin(self) -> None:
        self._run = RunDraft(self._session_id, len(self.runs) + 1, self._reading, self.answers_left)
        self._spoke = False
        self._stopped = False
        self._answered = False

    def take(self, part: Part) -> None:
        if isinstance(part, UserSaid):
            self._user(part)
            return
        self._run.at = part.at or self._run.at
        match part:
            case ModelSaid():
                self._said(part)
            case ModelThought():
                self._thought(part)
            case CallMade():
                self._called(part)
            case ResultGiven():
                self._responded(part)
            case StepEnded():
                self._step_ended(part)
            case Stopped():
                self._stop(part)
            case TurnEnded():
                self._answered = self._spoke
            case TwiceOtherwise():
                self._run.add_repeated_id(part.place, part.record_id)

    def close(self) -> None:
        """End the present run, if it has anything."""
        run = self._run
        if run.is_empty:
            return
        status, failure = self._status()
        if failure is FailureClass.IMPORTED_WITHOUT_TERMINAL:
            self._reading.tell_once(FindingCode.TERMINAL_ADDED, run.last_place, failure.value)
        previous = self.runs[-1] if self.runs and self.runs[-1].sealed else None
        self.runs.append(run.closed(self._setting, previous, status, failure))

    def _status(self) -> tuple[RunStatus, FailureClass | None]:
        if self._stopped:
            return RunStatus.CANCELLED, None
        if self._answered and not self._run.pairing.unanswered:
            return RunStatus.COMPLETED, None
        return RunStatus.FAILED, FailureClass.IMPORTED_WITHOUT_TERMINAL

    def _user(self, part: UserSaid) -> None:
        at = part.at or self._run.at
        over = self._spoke or self._stopped
        if over and not self._run.pairing.unanswered and not part.with_results:
            self.close()
            self._begin()
        self._run.at, self._answered = at, False
        steering = not self._run.is_empty
        text = self._reading.stored(part.text, part.place)
        self._run.add(UserMessage, part.place, text=text, attachments=part.attachments, steering=steering)

    def _said(self, part: ModelSaid) -> None:
        # The model's last word is its answer as far as the file shows, until something follows it.
        self._spoke, self._answered = True, bool(part.text.strip())
        self._run.add(
            ModelText,
            part.place,
            step_id=self._step_id(part.step),
            text=self._reading.stored(part.text, part.place),
            provider_options=part.options,
        )

    def _thought(self, part: ModelThought) -> None:
        self._spoke, self._answered = True, False
        self._run.add(
            ModelThinking,
            part.place,
            step_id=self._step_id(part.step),
            text=self._reading.stored(part.text, part.place),
            signature=part.signature,
            provider_options=part.options,
        )

    def _stop(self, part: Stopped) -> None:
        if self._run.is_empty:
            self._reading.tell_once(FindingCode.NOT_CONVERSATION, part.place, "a stop where nothing ran")
            return
        self._stopped = True
        self._run.add(CancelRequested, part.place, by=part.by)

    def _step_id(self, step: str) -> StepId:
        return StepId(step if is_id(step) else derive_id(self._run.identity.run_id, "step", step))

    def _step_ended(self, part: StepEnded) -> None:
        if not self._spoke:
            return
        self._run.model = part.model or self._run.model
        if part.finish_reason in _CUT_SHORT:
            self._answered = False
        self._run.add(
            ModelStepCompleted,
            part.place,
            step_id=self._step_id(part.step),
            finish_reason=part.finish_reason,
            model=part.model,
            provider_response_id=part.response_id,
        )

    def _called(self, part: CallMade) -> None:
        self._spoke, self._answered = True, False
        run, arguments = self._run, arguments_of(part.args, spelled=part.spelled)
        kind, call = run.pairing.call(part, arguments)
        if kind is CallKind.REPEATED:
            self._reading.tell(FindingCode.REPEATED_CALL, part.place, f"call {call.call_id}")
        elif kind is CallKind.CLASHING:
            run.add_fact(Called(run.next_id(part.place), run.identity, call.call_id, part.name, None))
        elif not _is_tool_name(part.name):
            self._reading.tell(FindingCode.INVALID_TOOL_NAME, part.place, f"call {call.call_id}")
            run.add_fact(Conflicted(run.next_id(part.place), run.identity))
        else:
            if kind is not CallKind.NEW:
                code = FindingCode.REUSED_CALL_ID if kind is CallKind.REUSED_ID else FindingCode.MADE_CALL_ID
                self._reading.tell(code, part.place, f"it becomes {call.call_id}")
            self._tell_changes(arguments.changes, part.place)
            run.add(
                ToolCalled,
                part.place,
                step_id=self._step_id(part.step),
                call_id=ToolCallId(call.call_id),
                provider_call_id=storable(part.provider_id),
                tool_name=part.name,
                args=arguments.args,
                args_text=arguments.args_text,
                provider_text=arguments.provider_text,
                provider_options=part.options,
            )

    def _responded(self, part: ResultGiven) -> None:
        self._answered = False
        run = self._run
        kind, call = run.pairing.result(part)
        if kind is ResultKind.REPEATED:
            self._reading.tell(FindingCode.REPEATED_RESULT, part.place, f"call {part.provider_id}")
            return
        if call is None or kind is ResultKind.SECOND or not _is_tool_name(call.name):
            call_id, name = (part.provider_id, part.name or "") if call is None else (call.call_id, call.name)
            effect = "unknown" if part.is_error else "done"
            event_id = run.next_id(part.place)
            run.add_fact(Responded(event_id, run.identity, call_id, name, None, part.is_error, effect))
            return
        prepared, changes = result_of(part.result, is_error=part.is_error)
        self._tell_changes(changes, part.place)
        run.add(
            ToolResponded,
            part.place,
            call_id=ToolCallId(call.call_id),
            tool_name=call.name,
            result=prepared.result,
            is_error=prepared.is_error,
            effect=prepared.effect,
            code=prepared.code,
            original_length=prepared.original_length,
            original_digest=prepared.original_digest,
        )

    def _tell_changes(self, changes: Iterable[Change], place: Place) -> None:
        for change in changes:
            self._reading.tell(change.code, place, change.detail)


def _is_tool_name(name: str) -> bool:
    return _TOOL_NAME.fullmatch(name) is not None
