"""The providers that a person names: on the command line, in the settings, in what a run recorded. SPEC section 14."""

from __future__ import annotations

from typing import Final

from ...ports.model_provider import ModelProvider

SCRIPTED: Final = "scripted"
OPENAI: Final = "openai"
ANTHROPIC: Final = "anthropic"
ENDPOINTS: Final = (OPENAI, ANTHROPIC)
"""Those that ask an endpoint for a model by its name; key and address are the environment's."""
PROVIDERS: Final = (*ENDPOINTS, SCRIPTED)


def at_endpoint(provider: str, model: str, *, window_tokens: int | None = None) -> ModelProvider:
    """The provider of a model at the endpoint that the environment names.

    Args:
        provider: one of `ENDPOINTS`; a part is imported when it is made (ADR 0049).
        model: the model's name there.
        window_tokens: how much history fits, where that is known.

    Raises:
        ProviderUnusable: its package or its key is missing, or one of them cannot be right.
    """
    if provider == ANTHROPIC:
        from .anthropic import Anthropic

        return Anthropic.from_environment(model, window_tokens=window_tokens)
    from .openai_chat import OpenAIChat

    return OpenAIChat.from_environment(model, window_tokens=window_tokens)
