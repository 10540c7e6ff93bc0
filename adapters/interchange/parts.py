"""The parts of a conversation, in no provider's format: what each reader makes of its file, and `assembly` of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ...domain.events.event import Json
from ...domain.events.model import Attachment
from ...domain.events.run import NOT_RECORDED
from ...ports.history_format import Place


class UserSaid(NamedTuple):
    """A message in the user's role; `with_results`: it came in one message with answers to calls, so begins no turn."""

    place: Place
    text: str
    attachments: tuple[Attachment, ...] = ()
    with_results: bool = False
    at: str | None = None


class ModelSaid(NamedTuple):
    """Text of a model step; parts with one `step` belong together, whatever stands between them."""

    place: Place
    step: str
    text: str
    options: Json = None
    at: str | None = None


class ModelThought(NamedTuple):
    """Reasoning of a model step, byte for byte."""

    place: Place
    step: str
    text: str
    signature: str | None = None
    options: Json = None
    at: str | None = None


class CallMade(NamedTuple):
    """A tool call. `args` is what the file holds: a text that is still to be read strictly, or a value; None: neither.

    `spelled` says that it is a text.
    """

    place: Place
    step: str
    provider_id: str
    name: str
    args: Json
    spelled: bool = False
    options: Json = None
    at: str | None = None


class ResultGiven(NamedTuple):
    """The answer to a call, by the provider's id of it."""

    place: Place
    provider_id: str
    result: Json
    is_error: bool = False
    name: str | None = None
    at: str | None = None


class StepEnded(NamedTuple):
    """A model step is complete, and why it ended."""

    place: Place
    step: str
    finish_reason: str
    model: str | None = None
    response_id: str | None = None
    at: str | None = None


class Stopped(NamedTuple):
    """A person stopped the turn."""

    place: Place
    by: str = "user"
    at: str | None = None


class TurnEnded(NamedTuple):
    """The file says that the turn is complete."""

    place: Place
    at: str | None = None


class TwiceOtherwise(NamedTuple):
    """A record has the id of an earlier one, and says something else."""

    place: Place
    record_id: str
    at: str | None = None


Part: TypeAlias = (
    UserSaid | ModelSaid | ModelThought | CallMade | ResultGiven | StepEnded | Stopped | TurnEnded | TwiceOtherwise
)


@dataclass(slots=True)
class Setting:
    """What a file says about the execution as a whole.

    Attributes:
        provider: whose format the parts were written in.
        system: the system prompt, empty where the file has none.
        session: what the file calls its session.
    """

    provider: str
    model: str = NOT_RECORDED
    cwd: str = ""
    system: str = ""
    session: str | None = None
