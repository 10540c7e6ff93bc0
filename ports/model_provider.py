"""Where model steps come from. SPEC sections 12 and 14, F5; ADR on start proofs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..domain.events.event import Json
from ..domain.identifiers import RunId
from ..domain.replay.items import Item
from .model_step import ModelPart


class ProviderProfile(NamedTuple):
    """Who answers, for the execution profile: equal for equal providers, in every process.

    Attributes:
        provider: the protocol or vendor, such as `openai`.
        account: names account and endpoint without revealing a key (a short digest), or None.
        window_tokens: how much history fits, where that is known.
    """

    provider: str
    model: str
    account: str | None = None
    window_tokens: int | None = None


class OfferedTool(NamedTuple):
    """A tool as the model is offered it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """What the model is asked.

    Attributes:
        request_id: names this request in logs, here and at the provider.
        history: provider-neutral items, legal as section 12 says; an adapter makes its provider's format from them.
    """

    request_id: str
    system_prompt: str = field(repr=False)
    history: tuple[Item, ...] = field(repr=False)
    tools: tuple[OfferedTool, ...] = ()


class StartProof(Protocol):
    """The right to ask for one answered step; only the application can make one. An adapter just names its run."""

    @property
    def run_id(self) -> RunId:
        """The run that the step is for."""
        ...


class ModelProvider(Protocol):
    """Asks a model for one step at a time. All calls come from one event loop; several runs may ask at once."""

    @abstractmethod
    def profile(self) -> ProviderProfile:
        """Say who answers, without asking anybody."""

    @abstractmethod
    def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        """Ask once: give deltas while the answer comes, then exactly one `StepFinished`, last.

        One call is at most one request to the provider: nothing is retried here, nor by a client. A request that brings
        no finished step raises out of the iteration. Closing the generator or cancelling its task ends the request.

        Raises:
            ProviderRefusedBeforeOutput: no connection, 429 or 503, and no part was given; the caller may ask again.
            ProviderFailed: the provider refused for good, or its answer is none.
            ProviderStreamIncomplete: the answer broke off, or it is not known whether one was begun.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Give up connections; idempotent, and never an error."""
