"""A model that is known by its name alone: whoever drives the loop asks it. SPEC sections 13 and 17."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ...ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from ...ports.model_step import ModelPart
from ...ports.provider_failures import ProviderFailed


class NamedModel(ModelProvider):
    """Says who answers, for the record and for planning; it answers nothing itself.

    >>> NamedModel("openai", "gpt-5.1").profile().model
    'gpt-5.1'

    Args:
        provider: the protocol or vendor, such as `openai`; another one parks a resume.
        model: its name there; another one parks a resume.
        account: names account and endpoint without revealing a key, such as a short digest; None where there is one.
        window_tokens: how much history fits, where that is known.
    """

    def __init__(
        self, provider: str, model: str, *, account: str | None = None, window_tokens: int | None = None
    ) -> None:
        self._profile = ProviderProfile(provider, model, account, window_tokens)

    def profile(self) -> ProviderProfile:
        """As it was named."""
        return self._profile

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        """Refuse."""
        nothing: tuple[ModelPart, ...] = ()
        for part in nothing:
            yield part
        raise ProviderFailed(f"{self._profile.model} is known by its name alone: nothing can be asked of it here")

    async def aclose(self) -> None:
        """Nothing is held open."""
