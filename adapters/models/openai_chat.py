"""Any endpoint that speaks the OpenAI chat API, through the official client (extra `openai`). SPEC section 14, F5."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Final, Self

from ...ports.model_provider import ModelRequest
from ...ports.provider_failures import RefusalKind
from ..histories.openai_chat import openai_chat_tools, to_openai_chat
from .client_failures import ClientFailures
from .openai_stream import StreamedStep
from .streamed_client import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, StreamedClient

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"


class OpenAIChat(StreamedClient):
    """Asks one model at one endpoint."""

    provider: ClassVar = "openai"
    base_url_example: ClassVar = "http://127.0.0.1:8000/v1"

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
            raise self._missing() from error
        self._check(model, api_key, base_url)
        failures = ClientFailures(
            api_error=openai.APIError,
            connection_error=openai.APIConnectionError,
            status_error=openai.APIStatusError,
            refusals={429: RefusalKind.RATE_LIMITED, 503: RefusalKind.UNAVAILABLE},
            refused_in_stream={},
            not_worth_waiting=frozenset({"insufficient_quota"}),  # waiting does not fill an account
            answer="a chat completion",
            api_key=api_key,
        )
        client = partial(
            openai.AsyncOpenAI,
            api_key=api_key,
            base_url=base_url,
            organization=organization,
            project=project,
            max_retries=0,
            timeout=openai.Timeout(read_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
        )
        account = (base_url.rstrip("/"), organization or "", project or "", "" if organization or project else api_key)
        super().__init__(model, client=client, failures=failures, account=account, window_tokens=window_tokens)

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

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        offered = [tool.name for tool in request.tools]
        messages = to_openai_chat(request.history, system_prompt=request.system_prompt, offered=offered)
        tools = {"tools": openai_chat_tools(request.tools)} if request.tools else {}
        return {"messages": messages, "stream_options": {"include_usage": True}, **tools}

    def _ask(self, **asked: Any) -> Any:
        return self._client.chat.completions.create(**asked)

    def _answer(self) -> StreamedStep:
        return StreamedStep()
