"""How a model provider fails, typed: before any output, for good, or in mid-stream. SPEC section 14 and F5."""

from __future__ import annotations

from enum import StrEnum

from ..domain.errors import SafepointError
from ..domain.reasons import FailureClass


class RefusalKind(StrEnum):
    """How a request failed while it is certain that no answer was begun."""

    NOT_CONNECTED = "not_connected"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"


class ProviderError(SafepointError):
    """A request brought no step.

    Attributes:
        failure_class: what the run's terminal event says if it ends with this.
        detail: what happened, for people; bounded, and never a key.
        status_code: the HTTP status, where there was one.
    """

    failure_class: FailureClass = FailureClass.PROVIDER_FAILED

    def __init__(self, detail: str, *, status_code: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status_code = status_code


class ProviderRefusedBeforeOutput(ProviderError):
    """No connection, 429 or 503 (or what means the same, such as 529 of Anthropic's API): the same proof may ask again,
    bounded and recorded by the caller.

    Attributes:
        kind: which of these.
        retry_after_seconds: how long the provider asks to wait, where it says so; 0 or more.
    """

    def __init__(
        self,
        kind: RefusalKind,
        detail: str,
        *,
        status_code: int | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(detail, status_code=status_code)
        self.kind = kind
        self.retry_after_seconds = retry_after_seconds


class ProviderFailed(ProviderError):
    """The provider said no (an illegal history, a bad key), or answered with something that is no answer."""


class ProviderStreamIncomplete(ProviderError):
    """The answer ended without a finish reason, or the connection was lost after the request was sent."""

    failure_class = FailureClass.PROVIDER_STREAM_INCOMPLETE


class ProviderUnusable(SafepointError):
    """A provider could not be set up: its package, key or script is missing or wrong. Raised before any run is opened.

    Attributes:
        detail: what is wrong and where.
        next_step: what to do about it.
    """

    def __init__(self, detail: str, next_step: str) -> None:
        super().__init__(f"{detail} {next_step}")
        self.detail = detail
        self.next_step = next_step
