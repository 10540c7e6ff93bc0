"""From what the official client raises to the port's typed failures. SPEC section 14.

Only what proves that no answer was begun may be asked again: no connection, 429, 503. A connection that was lost after
the request had been sent proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final

from ...ports.provider_failures import (
    ProviderError,
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
    RefusalKind,
)

DETAIL_CHARS_MAX: Final = 500
_REFUSALS: Final = {429: RefusalKind.RATE_LIMITED, 503: RefusalKind.UNAVAILABLE}
# By name: the client's transport has been renamed between its versions, and is not ours to import.
_NEVER_CONNECTED: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})


def failure_before_answer(error: Exception, api_key: str) -> ProviderError:
    """Name what happened when a request brought no stream."""
    from openai import APIConnectionError, APIStatusError

    if isinstance(error, APIConnectionError):
        if any(type(cause).__name__ in _NEVER_CONNECTED for cause in _causes(error)):
            return ProviderRefusedBeforeOutput(
                RefusalKind.NOT_CONNECTED, _detail("could not connect to the provider", error, api_key)
            )
        return ProviderStreamIncomplete(
            _detail("the connection was lost before the answer; it is not known whether one was begun", error, api_key)
        )
    if not isinstance(error, APIStatusError):
        return ProviderFailed(_detail("the request could not be made", error, api_key))
    status = error.status_code
    detail = _detail(f"the provider answered {status}", error, api_key)
    if status not in _REFUSALS or error.code == "insufficient_quota":  # waiting does not fill an account
        return ProviderFailed(detail, status_code=status)
    return ProviderRefusedBeforeOutput(
        _REFUSALS[status], detail, status_code=status, retry_after_seconds=retry_after_seconds(error.response.headers)
    )


def failure_in_answer(error: Exception, api_key: str) -> ProviderError:
    """Name what happened when a stream raised."""
    from openai import APIConnectionError, APIError

    if isinstance(error, APIError) and not isinstance(error, APIConnectionError):
        return ProviderFailed(_detail("the provider reported an error in its answer", error, api_key))
    if isinstance(error, ValueError | TypeError | AttributeError | LookupError):
        return ProviderFailed(_detail("the provider's stream is not that of a chat completion", error, api_key))
    return ProviderStreamIncomplete(_detail("the connection was lost in the middle of the answer", error, api_key))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Read how long the provider asks to wait: seconds, or a date, which is compared with the provider's own clock."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            until, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("date", ""))
            seconds = (until - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if isfinite(seconds) else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _detail(what: str, error: Exception, api_key: str) -> str:
    """Add the client's words, bounded, without the key (some servers repeat it)."""
    said = str(error) or type(error).__name__
    if len(api_key) >= 8:
        said = said.replace(api_key, "[key]")
    return f"{what}: {said[:DETAIL_CHARS_MAX]}"
