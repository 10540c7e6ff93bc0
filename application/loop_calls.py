"""The calls of one run that a loop of others carries out: each is taken once, none is left behind. SPEC 17."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..domain.events.tool import ToolCalled, ToolDispatched, ToolResponded
from ..domain.identifiers import ToolCallId
from ..ports.tool_catalog import BoundCall
from .call_answers import Answer, answer_of, is_answered
from .preflight import Refused
from .run_recorder import RunRecorder


class LoopCalls:
    """Knows the calls that recorded steps made, by our ids and by the provider's.

    Args:
        recorder: knows what is durable of them.
    """

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._known: dict[str, ToolCalled] = {}
        self._bound: dict[ToolCallId, BoundCall | Refused] = {}
        self._newest: Sequence[ToolCalled] = ()

    def asked(self, calls: Sequence[ToolCalled]) -> None:
        """Take the calls of the newest step: until each has its answer, the run goes no further."""
        self._newest = calls

    def bind(self, calls: Sequence[ToolCalled], bound: Iterable[BoundCall | Refused]) -> None:
        """Let them be carried out; a provider's id means its newest call from now on."""
        self._bound.update(zip((call.call_id for call in calls), bound, strict=True))
        self._known.update({call.provider_call_id: call for call in calls if call.provider_call_id})
        self._known.update({call.call_id: call for call in calls})

    def unanswered(self) -> list[ToolCalled]:
        """Those of the newest step without a committed answer."""
        return [call for call in self._newest if not is_answered(self._recorder, call)]

    def called(self, call: ToolCalled | str) -> ToolCalled:
        """The recorded call that is meant.

        Raises:
            ValueError: no step recorded such a call.
        """
        call_id = call if isinstance(call, str) else call.call_id
        if call_id not in self._known:
            raise ValueError(f"no step of run {self._recorder.identity.run_id} recorded a call {call_id!r}")
        return self._known[call_id]

    def answer(self, call: ToolCalled | str) -> Answer | None:
        """The committed answer to a recorded call, None where it has none.

        Raises:
            ValueError: as `called`.
        """
        return answer_of(self._recorder, self.called(call))

    def look(self, call: ToolCalled | str) -> tuple[ToolCalled, BoundCall | Refused]:
        """The call, and what it would be carried out by; it may be taken afterwards.

        Raises:
            ValueError: no step recorded such a call, it was carried out before, or it was changed since.
        """
        called = self.called(call)
        if not isinstance(call, str) and (call.tool_name, call.args) != (called.tool_name, called.args):
            raise ValueError(
                f"call {called.call_id} of {called.tool_name} is not as it was recorded: it was changed since."
                " What the model asked for is carried out, or declined: give its id"
            )
        if called.call_id not in self._bound:
            raise ValueError(f"call {called.call_id} of {called.tool_name} was carried out before")
        return called, self._bound[called.call_id]

    def take(self, called: ToolCalled) -> None:
        """Let nobody else carry it out."""
        del self._bound[called.call_id]

    def give_back(self, called: ToolCalled, bound: BoundCall | Refused) -> None:
        """What was cancelled before T1 may be carried out after all, or declined."""
        begun = (ToolDispatched, ToolResponded)
        if not any(isinstance(event, begun) and event.call_id == called.call_id for event in self._recorder.events):
            self._bound[called.call_id] = bound
