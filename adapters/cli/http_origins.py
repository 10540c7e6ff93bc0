"""Where `http_request` may go: what the user's environment names, and nothing where it names nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from .usage import UsageError

VARIABLE: Final = "SAFEPOINT_HTTP_ORIGINS"
_HINT: Final = "Write origins with commas between, each with the seconds for which its server knows a key, if it does: "
_EXAMPLE: Final = "`https://api.example.com=86400,http://127.0.0.1:8080`."


def http_origins(environment: Mapping[str, str] | None = None) -> dict[str, int | None]:
    """The origins, each with the seconds for which its server knows an `Idempotency-Key`; None where it promises none.

    Raises:
        UsageError: the variable cannot be understood, so nothing is guessed from it.
    """
    given = (os.environ if environment is None else environment).get(VARIABLE, "")
    if not given.strip():
        return {}
    from ..tools.builtin.http_exchange import origin_of

    found: dict[str, int | None] = {}
    for one in filter(None, (part.strip() for part in given.split(","))):
        url, said, seconds = one.partition("=")
        try:
            origin = origin_of(url)
        except ValueError as error:
            raise UsageError(f"{VARIABLE} names {url!r}, and {error}.", _HINT + _EXAMPLE) from error
        if said and not (seconds.isascii() and seconds.isdigit() and 0 < int(seconds) < 10**9):
            raise UsageError(f"{VARIABLE} gives {origin} no number of seconds: {seconds!r}.", _HINT + _EXAMPLE)
        found[origin] = int(seconds) if seconds else None
    return found
