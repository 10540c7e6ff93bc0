"""Facts that the model sees or said: messages, the parts of a model step, and provider attempts. SPEC section 5."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ..identifiers import StepIdField
from .event import Digest, Json, RunEvent, Value


class Attachment(Value):
    """A reference to something that a user attached; its bytes are kept elsewhere."""

    name: str
    media_type: str
    uri: str | None = None
    digest: Digest | None = None


class Usage(Value):
    """Token counts as the provider reported them."""

    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0


class UserMessage(RunEvent):
    """What the user said; `steering` when it was put into a running turn."""

    topic: ClassVar[str] = "message.user.v1"
    model_visible: ClassVar[bool] = True

    text: str
    attachments: tuple[Attachment, ...] = ()
    steering: bool = False


class HostMessage(RunEvent):
    """What the host tells the model in the user's role, by the id of its sentence."""

    topic: ClassVar[str] = "message.host.v1"
    model_visible: ClassVar[bool] = True

    sentence_id: str
    parameters: dict[str, Json] = Field(default_factory=dict)
    text: str


class ModelText(RunEvent):
    """Text of a completed model step."""

    topic: ClassVar[str] = "model.text.v1"
    model_visible: ClassVar[bool] = True

    step_id: StepIdField
    text: str
    provider_options: Json = None


class ModelThinking(RunEvent):
    """Reasoning of a completed model step; signature and options survive replay byte for byte."""

    topic: ClassVar[str] = "model.thinking.v1"
    model_visible: ClassVar[bool] = True

    step_id: StepIdField
    text: str
    signature: str | None = None
    provider_options: Json = None


class ModelStepCompleted(RunEvent):
    """Closes a model step; without it nothing of the step is recorded. SPEC F5."""

    topic: ClassVar[str] = "model.step_completed.v1"

    step_id: StepIdField
    finish_reason: str
    model: str | None = None
    provider_response_id: str | None = None
    usage: Usage | None = None


class ProviderAttempted(RunEvent):
    """One request under a start proof that failed before any output. SPEC section 14."""

    topic: ClassVar[str] = "provider.attempted.v1"

    attempt: Annotated[int, Field(ge=1)]
    failure: str
    status_code: int | None = None
