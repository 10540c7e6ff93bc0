"""The tool `http_request`: to servers that the user named; what is safe to send again is said beforehand. ADR 0059."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urljoin, urlsplit

from pydantic import Field

from ....domain.errors import RefusedWithoutEffect, SafepointError
from ....domain.events.event import Json
from ....domain.events.tool import RecordedContract, RecoveryMode
from ....ports.tool_catalog import Arguments, BoundCall, SchemaMismatch, SyncCall, ToolContext, Workspace
from ..parameters import MisfitArguments, Parameters
from ..promise import BY_ARGUMENTS, spec_of
from .http_exchange import Answer, ExchangeBroken, NothingSent, Request, exchange, origin_of

NAME: Final = "http_request"
VERSION: Final = 1
KEY_HEADER: Final = "Idempotency-Key"
REDIRECTS_MAX: Final = 5
TIMEOUT_SECONDS_MAX: Final = 300
MARGIN_SECONDS: Final = 30
"""What the call may take beyond its time-out, for the name's resolution."""
SHOWN_CHARS_MAX: Final = 1_000
_READING: Final = frozenset({"GET", "HEAD"})
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
_TOLD: Final = ("content-type", "content-length", "date", "etag", "last-modified", "location", "retry-after")
_OURS: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_UNFINISHED: Final = frozenset({408})
_UNFINISHED_WITH_KEY: Final = frozenset({408, 409, 425, 429})
"""Answers to a key that say nothing of what became of it: it is in progress, or was not looked at."""

Method: TypeAlias = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
Headers: TypeAlias = Callable[[str], Mapping[str, str]]


class NoFinalAnswer(SafepointError):
    """The server answered, and what became of the request is not said."""


def no_headers(origin: str) -> Mapping[str, str]:
    """Send nothing of the owner's."""
    return {}


def http_request(
    url: str,
    method: Method = "GET",
    headers: dict[str, str] = {},  # noqa: B006 (never changed; a schema shows it)
    body: str | None = None,
    timeout_seconds: Annotated[int, Field(ge=1, le=TIMEOUT_SECONDS_MAX)] = 30,
) -> None:
    """Send one HTTP request to a server that the user allows, and return status, headers and the beginning of the body.

    A text body is sent as UTF-8. Redirects are followed for GET and HEAD alone, and to the same server alone.
    """


class HttpTool:
    """Binds HTTP requests.

    Args:
        origins: where requests may go, such as `https://api.example.com`, each with for how many seconds its server
            knows an `Idempotency-Key`; None where it does not promise to honour one.
        headers: of the owner for an origin, such as a token; asked when a request is sent, and never recorded.

    Raises:
        ValueError: an origin is none, or its seconds are not more than 0.
    """

    def __init__(self, origins: Mapping[str, int | None], headers: Headers = no_headers) -> None:
        self._key_seconds = {origin_of(origin): seconds for origin, seconds in origins.items()}
        if any(seconds is not None and seconds < 1 for seconds in self._key_seconds.values()):
            raise ValueError("a server knows a key for at least one second, or honours none")
        self._headers = headers
        self._parameters = Parameters(http_request)
        contract: dict[str, Json] = {
            "contract_id": NAME,
            "version": VERSION,
            "recovery": BY_ARGUMENTS,
            "timeout_seconds": BY_ARGUMENTS,
        }
        self.spec = spec_of(NAME, inspect.getdoc(http_request) or "", self._parameters.schema, contract)

    def bind(self, arguments: Json) -> BoundCall | SchemaMismatch:
        """Check the arguments, and say what may be sent again."""
        try:
            typed = self._parameters.typed(arguments)
        except MisfitArguments as misfit:
            return SchemaMismatch(NAME, str(misfit))
        origin = _origin(typed["url"])
        mode, seconds = self._promise(typed["method"], origin)
        return BoundCall(
            tool_name=NAME,
            contract=RecordedContract(
                mode=mode,
                contract_id=NAME,
                version=VERSION,
                digest=self.spec.contract_digest,
                key_valid_seconds=seconds,
            ),
            implementation=SyncCall(self._run),
            resource_key=f"http:{origin}",
            timeout_seconds=typed["timeout_seconds"] + MARGIN_SECONDS,
            writes_workspace=False,
            evidence_of=lambda workspace: self._refuse_early(typed, workspace),
        )

    def _promise(self, method: str, origin: str | None) -> tuple[RecoveryMode, int | None]:
        """The owner's promise, made before the effect: a model's own word on it counts for nothing (R4)."""
        if method in _READING:
            return RecoveryMode.REPLAY_SAFE, None
        seconds = None if origin is None else self._key_seconds.get(origin)
        return (RecoveryMode.OUTCOME_UNKNOWN, None) if seconds is None else (RecoveryMode.IDEMPOTENT, seconds)

    def _refuse_early(self, typed: Mapping[str, Json], workspace: Workspace) -> Json:
        """Refuse before T1 what is never sent; there is no evidence to compare with."""
        self._allowed(str(typed["url"]))
        headers = typed["headers"] if isinstance(typed["headers"], dict) else {}
        if ours := sorted(name for name in headers if name.lower() in _OURS):
            raise RefusedWithoutEffect(f"these headers are not yours to set: {', '.join(ours)}")
        if odd := sorted(name for name, value in headers.items() if not _may_stand(name, str(value))):
            raise RefusedWithoutEffect(f"these headers cannot be sent as they are: {', '.join(odd)}")
        if typed["body"] is not None and typed["method"] in _READING:
            raise RefusedWithoutEffect(f"{typed['method']} takes no body")
        return None

    def _allowed(self, url: str) -> str:
        origin = _origin(url)
        if origin is None:
            raise RefusedWithoutEffect("the url is no absolute http or https address without a user name")
        if origin not in self._key_seconds:
            raise RefusedWithoutEffect(f"{origin} is not among the servers that the user allows")
        return origin

    def _run(self, arguments: Arguments, context: ToolContext) -> dict[str, Json]:
        typed = self._parameters.typed(arguments)
        method, url = typed["method"], typed["url"]
        for _ in range(REDIRECTS_MAX + 1):
            answer = self._send(method, url, typed, context)
            location = answer.headers.get("location")
            onward = None if location is None or answer.status not in _FOLLOWED else urljoin(url, location)
            if method not in _READING or onward is None or _origin(onward) != _origin(url):
                return _told(method, url, answer)
            url = onward
        raise RefusedWithoutEffect(f"it was redirected more than {REDIRECTS_MAX} times")

    def _send(self, method: str, url: str, typed: Mapping[str, Json], context: ToolContext) -> Answer:
        origin = self._allowed(url)
        promise, _ = self._promise(method, origin)
        given = typed["headers"] if isinstance(typed["headers"], dict) else {}
        own = {"User-Agent": "safepoint", **{str(k): str(v) for k, v in given.items()}, **self._headers(origin)}
        if promise is RecoveryMode.IDEMPOTENT:
            own[KEY_HEADER] = context.idempotency_key
        body = typed["body"]
        encoded = None if body is None else str(body).encode()
        timeout_seconds = float(str(typed["timeout_seconds"]))
        try:
            answer = exchange(
                Request(method, urlsplit(url), own, encoded),
                timeout_seconds=timeout_seconds,
                cancelled=context.cancelled,
            )
        except NothingSent as error:
            raise RefusedWithoutEffect(str(error)) from error
        if method not in _READING and not _says_what_became_of_it(answer.status, promise, context):
            shown = answer.body.decode("utf-8", "replace")[:SHOWN_CHARS_MAX]
            raise NoFinalAnswer(f"the server answered {answer.status}, which does not say what became of it: {shown}")
        return answer


def _says_what_became_of_it(status: int, promise: RecoveryMode, context: ToolContext) -> bool:
    """Whether a status answers the request itself.

    Of a key that was delivered before, only success does: everything else may come from a layer that never looked at
    the key (a token that has expired, a route that moved), while the first delivery was carried out.
    """
    if context.redelivery:
        return 200 <= status < 300
    unfinished = _UNFINISHED_WITH_KEY if promise is RecoveryMode.IDEMPOTENT else _UNFINISHED
    return status < 500 and status not in unfinished


def _origin(url: str) -> str | None:
    try:
        return origin_of(url)
    except ValueError:
        return None


def _may_stand(name: str, value: str) -> bool:
    """Whether a header is one line of printable characters, so that no other one can be slipped in with it."""
    return bool(_HEADER_NAME.fullmatch(name)) and value.isascii() and (value.isprintable() or not value)


def _told(method: str, url: str, answer: Answer) -> dict[str, Json]:
    headers: dict[str, Json] = {name: answer.headers[name] for name in _TOLD if name in answer.headers}
    text = "" if method == "HEAD" else answer.body.decode("utf-8", "replace")
    return {"status": answer.status, "url": url, "headers": headers, "text": text, "truncated": answer.truncated}


__all__ = ["ExchangeBroken", "HttpTool", "NoFinalAnswer", "http_request", "no_headers"]
