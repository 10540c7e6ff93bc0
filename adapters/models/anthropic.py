"""Any endpoint that speaks the Anthropic messages API, through the official client (extra `anthropic`).

SPEC section 14, F5, F10.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from ...ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from ...ports.model_step import ModelPart
from ...ports.provider_failures import (
    ProviderError,
    ProviderFailed,
    ProviderStreamIncomplete,
    ProviderUnusable,
    RefusalKind,
)
from ..histories.anthropic import anthropic_tools, goes_on_without_thinking, to_anthropic
from .anthropic_stream import StreamedMessage
from .client_failures import ClientFailures
from .legality import why_illegal

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream
    from anthropic.types import RawMessageStreamEvent, ThinkingConfigParam

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
TOKENS_MAX: Final = 32_000
"""How long an answer may be, where nothing else is said: this API wants to be told."""
CONNECT_TIMEOUT_SECONDS: Final = 15.0
READ_TIMEOUT_SECONDS: Final = 600.0
"""Silence, not length: how long the provider may send nothing."""


class Anthropic(ModelProvider):
    """Asks one model at one endpoint."""

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
            raise ProviderUnusable(
                "The provider anthropic needs the package anthropic, which is not installed.",
                "Install it with: pip install 'safepoint[anthropic]'",
            ) from error
        if not model:
            raise ProviderUnusable("The provider anthropic needs the name of a model.", "Give it with --model NAME.")
        if not api_key or not (api_key.isascii() and api_key.isprintable()):
            raise ProviderUnusable(
                "ANTHROPIC_API_KEY is not set, or holds characters that no key has.",
                "Set it; a local server that needs no key takes any text.",
            )
        if not base_url.startswith(("http://", "https://")):
            raise ProviderUnusable(
                f"The base URL {base_url!r} does not begin with http:// or https://.",
                "Set ANTHROPIC_BASE_URL to something like http://127.0.0.1:8000.",
            )
        if tokens_max < 1:
            raise ProviderUnusable("An answer needs room for one token.", "Set ANTHROPIC_MAX_TOKENS to 1 or more.")
        self._failures = ClientFailures(
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
        self._settings: dict[str, Any] = {
            "api_key": api_key,
            "base_url": base_url,
            "max_retries": 0,
            "timeout": anthropic.Timeout(read_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
        }
        self._options: dict[str, Any] = {"max_tokens": tokens_max, **({"thinking": thinking} if thinking else {})}
        self._client: AsyncAnthropic | None = None
        digest = hashlib.sha256("\0".join((base_url.rstrip("/"), api_key)).encode()).hexdigest()
        self._profile = ProviderProfile("anthropic", model, digest[:16], window_tokens)

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

    def profile(self) -> ProviderProfile:
        """Say who answers; the account is a digest."""
        return self._profile

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        """Ask once, as the port says; a history that no provider takes is refused without a request."""
        del proof  # the application proves; the endpoint knows nothing of runs
        illegal = why_illegal(request.history)
        if illegal is not None:
            raise ProviderFailed(f"the history is not legal: {illegal}")
        step = StreamedMessage()
        async with await self._ask(request) as answer:
            try:
                async for event in answer:
                    for delta in step.take(event.to_dict(mode="python", warnings=False)):
                        yield delta
            except ProviderError:
                raise
            except Exception as error:
                failure = self._failures.in_answer(error, begun=step.is_begun)
                # What was finished is whole: nothing but the mark of the end comes after the stop reason.
                if not (step.is_finished and isinstance(failure, ProviderStreamIncomplete)):
                    raise failure from error
        yield step.finished()

    async def _ask(self, request: ModelRequest) -> AsyncStream[RawMessageStreamEvent]:
        if self._client is None:
            from anthropic import AsyncAnthropic

            self._client = AsyncAnthropic(**self._settings)
        messages = to_anthropic(request.history, offered=[tool.name for tool in request.tools])
        options = dict(self._options)
        if request.system_prompt:
            options["system"] = request.system_prompt
        if request.tools:
            options["tools"] = anthropic_tools(request.tools)
        if options.get("thinking", {}).get("type") == "enabled" and goes_on_without_thinking(messages):
            del options["thinking"]
        if request.request_id.isascii() and request.request_id.isprintable():
            options["extra_headers"] = {"X-Client-Request-Id": request.request_id}
        try:
            answer: AsyncStream[RawMessageStreamEvent] = await self._client.messages.create(
                model=self._profile.model, messages=messages, stream=True, **options
            )
        except Exception as error:
            raise self._failures.before_answer(error) from error
        return answer

    async def aclose(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
