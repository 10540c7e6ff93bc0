"""Handover between processes that exist in memory alone."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future

from ...domain.identifiers import IncarnationId
from ...ports.handover import (
    MESSAGE_BYTES_MAX,
    Handler,
    Handover,
    HandoverUnavailable,
    Listener,
    Message,
    NoAnswer,
    Reply,
    WhyNoAnswer,
)
from ...ports.incarnations import Incarnation


class MemoryHandover(Handover):
    """Several users of one object are several processes."""

    def __init__(self) -> None:
        self._handlers: dict[IncarnationId, Handler] = {}

    def serve(self, incarnation: Incarnation, handler: Handler) -> Listener:
        """Listen."""
        if incarnation.incarnation_id in self._handlers:
            raise HandoverUnavailable("this incarnation listens already")
        self._handlers[incarnation.incarnation_id] = handler
        return _MemoryListener(self._handlers, incarnation.incarnation_id)

    def ask(self, incarnation: Incarnation, request: Message, timeout_seconds: float) -> Reply | NoAnswer:
        """Call the handler on a thread of its own, with a copy of the request."""
        text = json.dumps(dict(request), allow_nan=False)
        if len(text) > MESSAGE_BYTES_MAX:
            return NoAnswer(WhyNoAnswer.TOO_LARGE, may_have_been_handled=False)
        handler = self._handlers.get(incarnation.incarnation_id)
        if handler is None:
            return NoAnswer(WhyNoAnswer.NOT_LISTENING, may_have_been_handled=False)
        answer: Future[str] = Future()
        threading.Thread(target=_handle, args=(handler, text, answer), daemon=True).start()
        try:
            reply = answer.result(timeout_seconds)
        except TimeoutError:
            return NoAnswer(WhyNoAnswer.TIMED_OUT, may_have_been_handled=True)
        except Exception:  # noqa: BLE001  (whatever a handler raises, the asker learns no more than that)
            return NoAnswer(WhyNoAnswer.HANDLER_FAILED, may_have_been_handled=True)
        return Reply(json.loads(reply))


class _MemoryListener(Listener):
    def __init__(self, handlers: dict[IncarnationId, Handler], incarnation_id: IncarnationId) -> None:
        self._handlers = handlers
        self._incarnation_id = incarnation_id

    def close(self) -> None:
        """Stop listening."""
        self._handlers.pop(self._incarnation_id, None)


def _handle(handler: Handler, request: str, answer: Future[str]) -> None:
    try:
        reply = json.dumps(dict(handler(json.loads(request))), allow_nan=False)
        if len(reply) > MESSAGE_BYTES_MAX:
            raise ValueError("the reply is too large")
        answer.set_result(reply)
    except Exception as error:  # noqa: BLE001  (handed on)
        if not answer.done():
            answer.set_exception(RuntimeError(str(error)))
