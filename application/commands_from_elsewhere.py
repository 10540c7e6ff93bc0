"""Commands of people that reach a session wherever its owner lives. SPEC section 7, "People from elsewhere".

The same use case runs in this process where nobody else owns the session, and in its living owner's where one does: the
one that asks and the one that answers are both here, and so is what goes between them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from ..domain.errors import SafepointError, StoreError, WriteRefused
from ..domain.identifiers import IncarnationId, SessionId
from ..domain.reasons import WriteRefusal
from ..ports.handover import Handover, Message, NoAnswer, WhyNoAnswer
from ..ports.incarnations import Incarnation, Liveness
from .ownership import SessionBusy, SessionOwnership

ANSWER_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.1
EAR_SECONDS: Final = 5.0
"""How long an owner that listens to no command is given to leave or to begin to: another person's command owns the
session for as long as it takes, and a run is owned just before it listens."""

ResultT = TypeVar("ResultT")
Handled: TypeAlias = Callable[[SessionId, Message], Message]
"""Carries one command out in the owner's process and says what came of it.

Raises NotARequest where the message lacks what the command needs, and SafepointError for whatever it does not do."""
Announce: TypeAlias = Callable[[Incarnation, float], None]
"""Told who is asked, and for how many seconds at most, before it is waited for."""


class NotARequest(SafepointError):
    """A message lacks what its command needs."""


class OwnerSilent(SessionBusy):
    """The living owner of a session was asked and did not answer.

    Attributes:
        why: what became of the request.
        may_be_done: the request was handed over, so it may still be carried out: look before asking again.
    """

    def __init__(
        self, session_id: SessionId, owner: Incarnation, why: WhyNoAnswer, *, may_be_done: bool, seconds: float
    ) -> None:
        after = "the request may still be carried out" if may_be_done else "nothing was done"
        said = _SILENCE.get(why, f"gave no answer ({why})").format(seconds=f"{seconds:g}")
        super().__init__(session_id, owner, Liveness.ALIVE, f"lives and {said}; {after}")
        self.why = why
        self.may_be_done = may_be_done


class FailedAtOwner(SafepointError):
    """The living owner of a session was asked, and could not do it.

    Attributes:
        code: why, where there is a code.
        detail: the same for a person.
    """

    def __init__(self, session_id: SessionId, owner: Incarnation, code: str | None, detail: str) -> None:
        super().__init__(f"process {owner.pid}, which owns session {session_id}, could not do it: {detail}")
        self.session_id = session_id
        self.code = code
        self.detail = detail


_SILENCE: Final[Mapping[WhyNoAnswer, str]] = {
    WhyNoAnswer.NOT_LISTENING: "listens to no command",
    WhyNoAnswer.TIMED_OUT: "did not answer within {seconds} seconds",
    WhyNoAnswer.BUSY: "is busy with other commands",
    WhyNoAnswer.TOO_LARGE: "takes no request as large as this one",
    WhyNoAnswer.BROKEN_OFF: "broke off before it answered",
}


class CommandsFromElsewhere:
    """Answers what other processes hand over to this one.

    Args:
        commands: what carries out each command, by name.
    """

    def __init__(self, commands: Mapping[str, Handled]) -> None:
        self._commands = commands

    def answer(self, message: Message) -> Message:
        """Carry a command out here; whatever it refuses, and a command that is not known, is told by code."""
        session_id, command = message.get("session_id"), message.get("command")
        handled = self._commands.get(command) if isinstance(command, str) else None
        if handled is None:
            return {"error": "unknown_command", "code": None, "detail": f"this process knows no command {command!r}"}
        try:
            if not isinstance(session_id, str):
                raise NotARequest("the request names no session")
            return {"answer": dict(handled(SessionId(session_id), message))}
        except SafepointError as error:
            return _told(error)


class AtOwner:
    """Carries a command out where its session's owner is.

    Args:
        answer_seconds: how long a living owner is waited for.
        pause: waits for seconds, while another command that is soon done has the session.
    """

    def __init__(
        self,
        ownership: SessionOwnership,
        handover: Handover,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._ownership = ownership
        self._handover = handover
        self._answer_seconds = answer_seconds
        self._pause = pause

    def __call__(
        self,
        session_id: SessionId,
        command: str,
        parameters: Message,
        *,
        here: Callable[[], ResultT],
        read: Callable[[Message], ResultT],
        announce: Announce = lambda owner, seconds: None,
    ) -> ResultT:
        """Do it here, or have it done by the living process that owns the session.

        Args:
            command: its name, as `CommandsFromElsewhere` knows it.
            parameters: of the request.
            here: the use case in this process; for a session whose owner is dead, none, or this process.
            read: makes the result of what the owner answered; raises ValueError, KeyError or TypeError where it cannot.
            announce: told before a living owner is waited for.

        Raises:
            SessionBusy: the owner lives and did not answer (OwnerSilent), or could not be looked at.
            WriteRefused: the owner's ledger refused it.
            FailedAtOwner: the owner could not do it.
            whatever `here` raises.
        """
        parameters = {**parameters, "command": command, "session_id": session_id}
        told: set[IncarnationId] = set()

        def once(owner: Incarnation, seconds: float) -> None:
            if owner.incarnation_id not in told:
                told.add(owner.incarnation_id)
                announce(owner, seconds)

        for paused in range(math.ceil(self._answer_seconds / PAUSE_SECONDS)):
            try:
                return self._where_it_is(session_id, parameters, here, read, once)
            except SessionBusy as busy:
                if not self._passes(busy, paused * PAUSE_SECONDS):
                    raise
            self._pause(PAUSE_SECONDS)
        return self._where_it_is(session_id, parameters, here, read, once)

    def _passes(self, busy: SessionBusy, seconds: float) -> bool:
        """True where another process has the session for a command, or is just beginning a run: look again soon.

        Args:
            seconds: how long it has been looked at.
        """
        if isinstance(busy, OwnerSilent):
            return busy.why is WhyNoAnswer.NOT_LISTENING and seconds < EAR_SECONDS
        mine = busy.owner is not None and self._ownership.is_mine(busy.owner.incarnation_id)
        return busy.liveness is Liveness.ALIVE and not mine

    def _where_it_is(
        self,
        session_id: SessionId,
        request: Message,
        here: Callable[[], ResultT],
        read: Callable[[Message], ResultT],
        announce: Announce,
    ) -> ResultT:
        _, owner, liveness = self._ownership.owner_of(session_id)
        if owner is None or liveness is not Liveness.ALIVE or self._ownership.is_mine(owner.incarnation_id):
            return here()
        announce(owner, self._answer_seconds)
        answer = self._handover.ask(owner, request, self._answer_seconds)
        if not isinstance(answer, NoAnswer):
            return _result(session_id, owner, answer.message, read)
        # Where it did hear, doing it again is harmless: the record says that it was done.
        left = answer.why in (WhyNoAnswer.NOT_LISTENING, WhyNoAnswer.BROKEN_OFF)
        if left and not self._still_owns(session_id, owner):
            raise SessionBusy(session_id, owner, Liveness.ALIVE)  # it did: look again
        raise self._silent(session_id, owner, answer)

    def _still_owns(self, session_id: SessionId, owner: Incarnation) -> bool:
        """False where an owner that closed its ear has just given the session up, or died."""
        row, _, liveness = self._ownership.owner_of(session_id)
        return row is not None and row.incarnation_id == owner.incarnation_id and liveness is Liveness.ALIVE

    def _silent(self, session_id: SessionId, owner: Incarnation, answer: NoAnswer) -> OwnerSilent:
        return OwnerSilent(
            session_id,
            owner,
            answer.why,
            may_be_done=answer.may_have_been_handled,
            seconds=self._answer_seconds,
        )


def text_of(message: Message, name: str) -> str:
    """A text that a request must hold.

    Raises:
        NotARequest: it does not.
    """
    value = message.get(name)
    if not isinstance(value, str) or not value:
        raise NotARequest(f"the request holds no text {name!r}")
    return value


def _told(error: SafepointError) -> Message:
    """An error as it goes back to the process that asked."""
    match error:
        case NotARequest():
            kind, code = "unknown_request", None
        case WriteRefused():
            return {"error": "write_refused", "code": error.code.value, "detail": error.detail}
        case SessionBusy():
            kind, code = "session_busy", WriteRefusal.SESSION_BUSY.value
        case StoreError():
            kind, code = "store", error.code.value
        case _:
            kind, code = type(error).__name__, None
    return {"error": kind, "code": code, "detail": str(error)}


def _result(session_id: SessionId, owner: Incarnation, told: Message, read: Callable[[Message], ResultT]) -> ResultT:
    """The result that a reply holds, or the error that it tells of."""
    kind, code, detail = told.get("error"), told.get("code"), str(told.get("detail"))
    if kind == "write_refused":
        raise WriteRefused(WriteRefusal(str(code)), detail, session_id)
    if kind == "session_busy":
        raise SessionBusy(session_id, owner, Liveness.ALIVE)
    if kind is not None:
        raise FailedAtOwner(session_id, owner, code if isinstance(code, str) else None, detail)
    try:
        answer = told["answer"]
        if not isinstance(answer, dict):
            raise TypeError("the answer is no object")
        return read(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise FailedAtOwner(
            session_id, owner, None, "its answer is not understood; look before asking again"
        ) from error
