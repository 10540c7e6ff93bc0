"""Any endpoint that speaks the Anthropic messages API, through the official client (extra `anthropic`).

SPEC section 14, F5, F10.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from ...ports.model_provider import ModelRequest
from ...ports.provider_failures import ProviderUnusable, RefusalKind
from ..histories.anthropic import anthropic_tools, goes_on_without_thinking, to_anthropic
from .anthropic_stream import StreamedMessage
from .client_failures import ClientFailures
from .streamed_client import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, StreamedClient

if TYPE_CHECKING:
    from anthropic.types import ThinkingConfigParam

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
TOKENS_MAX: Final = 32_000
"""How long an answer may be, where nothing else is said: this API wants to be told."""


class Anthropic(StreamedClient):
    """Asks one model at one endpoint."""

    provider: ClassVar = "anthropic"
    base_url_example: ClassVar = "http://127.0.0.1:8000"

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = DEFAULT_BASE_URL,
        tokens_max: int = TOKENS_MAX,
        thinking: ThinkingConfigParam | None = None,
        window_tokens: int | None = None,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
    ) -> None:
        """Set the provider up; nobody is asked yet.

        Args:
            model: the model's name at the endpoint.
            api_key: never stored, logged or shown; it names the account.
            base_url: up to and without the version, such as `http://127.0.0.1:8000`.
            tokens_max: bound on one answer, thinking included; 1 or more, and no more than the model allows.
            thinking: the API's own parameter, such as `{"type": "enabled", "budget_tokens": 8000}`; None leaves it out,
                and so does a request that goes on after a step without thinking, which the API would refuse.
            window_tokens: how much history fits, where that is known.
            read_timeout_seconds: how long the provider may send nothing; more than 0.

        Raises:
            ProviderUnusable: the package is missing, or model, key, bound or URL cannot be right.
        """
        try:
            import anthropic
        except ImportError as error:
            raise self._missing() from error
        self._check(model, api_key, base_url)
        if tokens_max < 1:
            raise ProviderUnusable("An answer needs room for one token.", "Set ANTHROPIC_MAX_TOKENS to 1 or more.")
        failures = ClientFailures(
            api_error=anthropic.APIError,
            connection_error=anthropic.APIConnectionError,
            status_error=anthropic.APIStatusError,
            # 529 is this API's own word for 503: the request was turned away.
            refusals={429: RefusalKind.RATE_LIMITED, 503: RefusalKind.UNAVAILABLE, 529: RefusalKind.UNAVAILABLE},
            refused_in_stream={
                "rate_limit_error": RefusalKind.RATE_LIMITED,
                "overloaded_error": RefusalKind.UNAVAILABLE,
            },
            answer="a message",
            api_key=api_key,
        )
        self._options: dict[str, Any] = {"max_tokens": tokens_max, **({"thinking": thinking} if thinking else {})}
        client = partial(
            anthropic.AsyncAnthropic,
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            timeout=anthropic.Timeout(read_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
        )
        account = (base_url.rstrip("/"), api_key)
        super().__init__(model, client=client, failures=failures, account=account, window_tokens=window_tokens)

    @classmethod
    def from_environment(
        cls, model: str, *, environ: Mapping[str, str] = os.environ, window_tokens: int | None = None
    ) -> Self:
        """Set the provider up from ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_MAX_TOKENS.

        Raises:
            ProviderUnusable: as the constructor.
        """
        asked = environ.get("ANTHROPIC_MAX_TOKENS", "").strip()
        if asked and not (asked.isascii() and asked.isdecimal() and len(asked) < 10):
            raise ProviderUnusable(f"ANTHROPIC_MAX_TOKENS is {asked[:40]!r}.", "Set it to a whole number, or not.")
        return cls(
            model,
            api_key=environ.get("ANTHROPIC_API_KEY", "").strip(),
            base_url=environ.get("ANTHROPIC_BASE_URL", "").strip() or DEFAULT_BASE_URL,
            tokens_max=int(asked) if asked else TOKENS_MAX,
            window_tokens=window_tokens,
        )

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        messages = to_anthropic(request.history, offered=[tool.name for tool in request.tools])
        asked = {"messages": messages, **self._options}
        if request.system_prompt:
            asked["system"] = request.system_prompt
        if request.tools:
            asked["tools"] = anthropic_tools(request.tools)
        if asked.get("thinking", {}).get("type") == "enabled" and goes_on_without_thinking(messages):
            del asked["thinking"]
        return asked

    def _ask(self, **asked: Any) -> Any:
        return self._client.messages.create(**asked)

    def _answer(self) -> StreamedMessage:
        return StreamedMessage()
