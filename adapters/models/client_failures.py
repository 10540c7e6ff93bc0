"""From what an official client raises to the port's typed failures: one rule for clients of one make. SPEC section 14.

Only what proves that no answer was begun may be asked again: no connection, 429, 503 and what means the same. A
connection that was lost after the request had been sent proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

from ...ports.provider_failures import (
    ProviderError,
    ProviderFailed,
    ProviderRefusedBeforeOutput,
    ProviderStreamIncomplete,
    RefusalKind,
)

DETAIL_CHARS_MAX: Final = 500
# By name: the client's transport has been renamed between its versions, and is not ours to import.
_NEVER_CONNECTED: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})


@dataclass(frozen=True, slots=True)
class ClientFailures:
    """Names failures of one client.

    Attributes:
        api_error, connection_error, status_error: the client's classes.
        refusals: statuses that prove that no answer was begun.
        refused_in_stream: the same, by the type that an error event of a stream names; counts before the answer began.
        not_worth_waiting: codes of errors that waiting does not mend, whatever their status.
        answer: what an answer is called in a sentence, such as `a chat completion`.
        api_key: replaced wherever the provider repeats it.
    """

    api_error: type[Exception]
    connection_error: type[Exception]
    status_error: type[Exception]
    refusals: Mapping[int, RefusalKind]
    answer: str
    api_key: str
    refused_in_stream: Mapping[str, RefusalKind]
    not_worth_waiting: frozenset[str] = frozenset()

    def before_answer(self, error: Exception) -> ProviderError:
        """Name what happened when a request brought no stream."""
        if isinstance(error, self.connection_error):
            if any(type(cause).__name__ in _NEVER_CONNECTED for cause in _causes(error)):
                detail = self._detail("could not connect to the provider", error)
                return ProviderRefusedBeforeOutput(RefusalKind.NOT_CONNECTED, detail)
            return ProviderStreamIncomplete(
                self._detail("the connection was lost before the answer; it is not known whether one was begun", error)
            )
        if not isinstance(error, self.status_error):
            return ProviderFailed(self._detail("the request could not be made", error))
        return self._refused(error)

    def in_answer(self, error: Exception, *, begun: bool = True) -> ProviderError:
        """Name what happened when a stream raised.

        Args:
            error: what was raised.
            begun: the answer had begun; otherwise an error that the stream opens with may prove that none will.
        """
        if isinstance(error, self.api_error) and not isinstance(error, self.connection_error):
            detail = self._detail("the provider reported an error in its answer", error)
            refused = self.refused_in_stream.get(_type_of(error))
            if refused is not None and not begun:
                return ProviderRefusedBeforeOutput(refused, detail)
            return ProviderFailed(detail)
        if isinstance(error, ValueError | TypeError | AttributeError | LookupError):
            return ProviderFailed(self._detail(f"the provider's stream is not that of {self.answer}", error))
        return ProviderStreamIncomplete(self._detail("the connection was lost in the middle of the answer", error))

    def _refused(self, error: Any) -> ProviderError:
        status = int(error.status_code)
        detail = self._detail(f"the provider answered {status}", error)
        if status not in self.refusals or getattr(error, "code", None) in self.not_worth_waiting:
            return ProviderFailed(detail, status_code=status)
        wait_seconds = retry_after_seconds(error.response.headers)
        return ProviderRefusedBeforeOutput(
            self.refusals[status], detail, status_code=status, retry_after_seconds=wait_seconds
        )

    def _detail(self, what: str, error: Exception) -> str:
        """Add the client's words, bounded, without the key (some servers repeat it)."""
        said = str(error) or type(error).__name__
        if len(self.api_key) >= 8:
            said = said.replace(self.api_key, "[key]")
        return f"{what}: {said[:DETAIL_CHARS_MAX]}"


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


def _type_of(error: Exception) -> str:
    """What the body of an error event says that it is."""
    body = getattr(error, "body", None)
    named = body.get("error", body) if isinstance(body, dict) else None
    return str(named.get("type")) if isinstance(named, dict) else ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
