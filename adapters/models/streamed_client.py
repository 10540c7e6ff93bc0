"""One model at one endpoint, asked through an official client that streams its answers. SPEC section 14, F5."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, ClassVar, Final, Protocol

from ...ports.model_provider import ModelProvider, ModelRequest, ProviderProfile, StartProof
from ...ports.model_step import ModelPart, StepFinished, TextDelta, ThinkingDelta
from ...ports.provider_failures import ProviderError, ProviderFailed, ProviderStreamIncomplete, ProviderUnusable
from .client_failures import ClientFailures
from .legality import why_illegal

CONNECT_TIMEOUT_SECONDS: Final = 15.0
READ_TIMEOUT_SECONDS: Final = 600.0
"""Silence, not length: how long the provider may send nothing."""


class StreamedAnswer(Protocol):
    """Collects the events of one answer."""

    @property
    def is_begun(self) -> bool:
        """True once the provider began an answer."""

    @property
    def is_finished(self) -> bool:
        """True once the provider said why it ended."""

    def take(self, fields: object) -> Iterator[TextDelta | ThinkingDelta]:
        """Add an event, and give what may be shown of it."""

    def finished(self) -> StepFinished:
        """Give the finished step."""


class StreamedClient(ModelProvider):
    """What is the same for every official client; a subclass says what its API is asked.

    Args:
        model: the model's name at the endpoint.
        client: makes the client, once something is asked.
        failures: names what the client raises.
        account: what names the account beside the endpoint; only a digest of it is shown.
        window_tokens: how much history fits, where that is known.
    """

    provider: ClassVar[str]
    """Its name; the package, the extra and the variables of the environment are named after it."""
    base_url_example: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        client: Callable[[], Any],
        failures: ClientFailures,
        account: tuple[str, ...],
        window_tokens: int | None,
    ) -> None:
        self._make_client = client
        self._client: Any = None
        self._failures = failures
        digest = hashlib.sha256("\0".join(account).encode()).hexdigest()
        self._profile = ProviderProfile(self.provider, model, digest[:16], window_tokens)

    @classmethod
    def _missing(cls) -> ProviderUnusable:
        name = cls.provider
        return ProviderUnusable(
            f"The provider {name} needs the package {name}, which is not installed.",
            f"Install it with: pip install 'safepoint[{name}]'",
        )

    @classmethod
    def _check(cls, model: str, api_key: str, base_url: str) -> None:
        """Refuse what cannot be right, before anything is asked.

        Raises:
            ProviderUnusable: model, key or URL cannot be right.
        """
        variables = cls.provider.upper()
        if not model:
            raise ProviderUnusable(
                f"The provider {cls.provider} needs the name of a model.", "Give it with --model NAME."
            )
        if not api_key or not (api_key.isascii() and api_key.isprintable()):
            raise ProviderUnusable(
                f"{variables}_API_KEY is not set, or holds characters that no key has.",
                "Set it; a local server that needs no key takes any text.",
            )
        if not base_url.startswith(("http://", "https://")):
            raise ProviderUnusable(
                f"The base URL {base_url!r} does not begin with http:// or https://.",
                f"Set {variables}_BASE_URL to something like {cls.base_url_example}.",
            )

    @abstractmethod
    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        """What of a request is this API's own."""

    @abstractmethod
    def _ask(self, **asked: Any) -> Any:
        """Ask the client."""

    @abstractmethod
    def _answer(self) -> StreamedAnswer:
        """Collects one answer."""

    def profile(self) -> ProviderProfile:
        """Say who answers; the account is a digest."""
        return self._profile

    async def stream(self, request: ModelRequest, proof: StartProof) -> AsyncGenerator[ModelPart, None]:
        """Ask once, as the port says; a history that no provider takes is refused without a request."""
        del proof  # the application proves; the endpoint knows nothing of runs
        illegal = why_illegal(request.history)
        if illegal is not None:
            raise ProviderFailed(f"the history is not legal: {illegal}")
        step = self._answer()
        async with await self._begun(request) as events:
            try:
                async for event in events:
                    for delta in step.take(event.to_dict(mode="python", warnings=False)):
                        yield delta
            except ProviderError:
                raise
            except Exception as error:
                failure = self._failures.in_answer(error, begun=step.is_begun)
                # What was finished is whole: nothing but the usage or the mark of the end comes after that.
                if not (step.is_finished and isinstance(failure, ProviderStreamIncomplete)):
                    raise failure from error
        yield step.finished()

    async def _begun(self, request: ModelRequest) -> Any:
        if self._client is None:
            self._client = self._make_client()
        asked = self._asked(request)
        if request.request_id.isascii() and request.request_id.isprintable():
            asked["extra_headers"] = {"X-Client-Request-Id": request.request_id}
        try:
            return await self._ask(model=self._profile.model, stream=True, **asked)
        except Exception as error:
            raise self._failures.before_answer(error) from error

    async def aclose(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
