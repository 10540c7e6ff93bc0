"""Any endpoint that speaks the OpenAI chat API, through the official client (extra `openai`). SPEC section 14, F5."""

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
from ..histories.openai_chat import openai_chat_tools, to_openai_chat
from .client_failures import ClientFailures
from .legality import why_illegal
from .openai_stream import StreamedStep

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
CONNECT_TIMEOUT_SECONDS: Final = 15.0
READ_TIMEOUT_SECONDS: Final = 600.0
"""Silence, not length: how long the provider may send nothing."""


class OpenAIChat(ModelProvider):
    """Asks one model at one endpoint."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = DEFAULT_BASE_URL,
        organization: str | None = None,
        project: str | None = None,
        window_tokens: int | None = None,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
    ) -> None:
        """Set the provider up; nobody is asked yet.

        Args:
            model: the model's name at the endpoint.
            api_key: never stored, logged or shown.
            base_url: up to and with the version, such as `http://127.0.0.1:8000/v1`.
            organization: with `project`, names the account, so that keys can change; without, the key does.
            project: see `organization`.
            window_tokens: how much history fits, where that is known.
            read_timeout_seconds: how long the provider may send nothing; more than 0.

        Raises:
            ProviderUnusable: the package is missing, or model, key or URL cannot be right.
        """
        try:
            import openai
        except ImportError as error:
            raise ProviderUnusable(
                "The provider openai needs the package openai, which is not installed.",
                "Install it with: pip install 'safepoint[openai]'",
            ) from error
        if not model:
            raise ProviderUnusable("The provider openai needs the name of a model.", "Give it with --model NAME.")
        if not api_key or not (api_key.isascii() and api_key.isprintable()):
            raise ProviderUnusable(
                "OPENAI_API_KEY is not set, or holds characters that no key has.",
                "Set it; a local server that needs no key takes any text.",
            )
        if not base_url.startswith(("http://", "https://")):
            raise ProviderUnusable(
                f"The base URL {base_url!r} does not begin with http:// or https://.",
                "Set OPENAI_BASE_URL to something like http://127.0.0.1:8000/v1.",
            )
        self._failures = ClientFailures(
            api_error=openai.APIError,
            connection_error=openai.APIConnectionError,
            status_error=openai.APIStatusError,
            refusals={429: RefusalKind.RATE_LIMITED, 503: RefusalKind.UNAVAILABLE},
            refused_in_stream={},
            not_worth_waiting=frozenset({"insufficient_quota"}),  # waiting does not fill an account
            answer="a chat completion",
            api_key=api_key,
        )
        self._settings: dict[str, Any] = {
            "api_key": api_key,
            "base_url": base_url,
            "organization": organization,
            "project": project,
            "max_retries": 0,
            "timeout": openai.Timeout(read_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
        }
        self._client: AsyncOpenAI | None = None
        account = [base_url.rstrip("/"), organization or "", project or "", "" if organization or project else api_key]
        digest = hashlib.sha256("\0".join(account).encode()).hexdigest()
        self._profile = ProviderProfile("openai", model, digest[:16], window_tokens)

    @classmethod
    def from_environment(
        cls, model: str, *, environ: Mapping[str, str] = os.environ, window_tokens: int | None = None
    ) -> Self:
        """Set the provider up from OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_ORG_ID and OPENAI_PROJECT_ID.

        Raises:
            ProviderUnusable: as the constructor.
        """
        return cls(
            model,
            api_key=environ.get("OPENAI_API_KEY", "").strip(),
            base_url=environ.get("OPENAI_BASE_URL", "").strip() or DEFAULT_BASE_URL,
            organization=environ.get("OPENAI_ORG_ID") or None,
            project=environ.get("OPENAI_PROJECT_ID") or None,
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
        step = StreamedStep()
        async with await self._ask(request) as answer:
            try:
                async for chunk in answer:
                    for delta in step.take(chunk.to_dict(mode="python", warnings=False)):
                        yield delta
            except ProviderError:
                raise
            except Exception as error:
                failure = self._failures.in_answer(error)
                # What was finished is whole: losing the connection afterwards costs the usage at most.
                if not (step.is_finished and isinstance(failure, ProviderStreamIncomplete)):
                    raise failure from error
        yield step.finished()

    async def _ask(self, request: ModelRequest) -> AsyncStream[ChatCompletionChunk]:
        if self._client is None:
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(**self._settings)
        messages = to_openai_chat(
            request.history, system_prompt=request.system_prompt, offered=[tool.name for tool in request.tools]
        )
        options: dict[str, Any] = {"tools": openai_chat_tools(request.tools)} if request.tools else {}
        if request.request_id.isascii() and request.request_id.isprintable():
            options["extra_headers"] = {"X-Client-Request-Id": request.request_id}
        try:
            answer: AsyncStream[ChatCompletionChunk] = await self._client.chat.completions.create(
                model=self._profile.model,
                messages=messages,
                stream=True,
                stream_options={"include_usage": True},
                **options,
            )
        except Exception as error:
            raise self._failures.before_answer(error) from error
        return answer

    async def aclose(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
