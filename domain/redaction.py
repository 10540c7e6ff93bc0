"""Secrets out of texts, on request: for exports and views, never for what is stored. SPEC F14.

What looks like a credential is replaced, whoever brought it: most come as tool output and were never typed (field
report r3-144). Names without a value and placeholders stay as they are, and what was redacted once is not changed again
(r3-148).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .events.event import Json

MARK: Final = "[redacted]"
"""Stands where something was replaced; nothing that is looked for begins with its bracket."""

_ROUNDS_MAX: Final = 8
"""Replacing can bring two texts together that look like a secret only then; each round leaves less to find."""

_SECRET_NAME: Final = (
    r"(?:api[_-]?key|apikey|access[_-]?key|secret|token(?!s)|passwd|password|pwd|private[_-]?key|credentials?)"
)
_TOKENS: Final = "|".join(
    (
        r"-----BEGIN [A-Z0-9 ]{1,60}-----(?s:.*?)(?:-----END [A-Z0-9 ]{1,60}-----|\Z)",
        r"\bsk-[A-Za-z0-9_-]{16,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"\bAIza[0-9A-Za-z_-]{30,}",
        r"\bhf_[A-Za-z0-9]{20,}",
        r"\bnpm_[A-Za-z0-9]{30,}",
        r"\bya29\.[A-Za-z0-9_-]{20,}",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    )
)
_WHOLE: Final = re.compile(_TOKENS)
_NO_PLACEHOLDER: Final = r"(?![$<%{\[(*])"  # $VAR, ${VAR}, <VAR>, %VAR%, {{var}}, *** and our own mark are left alone
_NAME: Final = rf"(?<![a-z0-9])[\w.-]{{0,40}}{_SECRET_NAME}[\w.-]{{0,40}}\\?[\"']?\s{{0,4}}(?:=|:(?![:/]))\s{{0,4}}"
_QUOTED: Final = re.compile(rf"(?i)({_NAME}(?P<quote>\\?[\"'])){_NO_PLACEHOLDER}(?:(?!(?P=quote))[^\n])+(?=(?P=quote))")
_IN_ENVIRONMENT: Final = re.compile(
    rf"((?<![A-Z0-9])[A-Z0-9_]{{0,40}}{_SECRET_NAME.upper()}[A-Z0-9_]{{0,40}}=){_NO_PLACEHOLDER}[^\s\"'`\\]+"
)
_BARE: Final = re.compile(rf"(?i)({_NAME}){_NO_PLACEHOLDER}[^\s\"'`\\,;&<>(){{}}\[\]]{{4,}}")
_BEHIND_SCHEME: Final = re.compile(rf"(?i)(\b(?:bearer|basic)\s+){_NO_PLACEHOLDER}[A-Za-z0-9+/=._~-]{{8,}}")
_IN_URL: Final = re.compile(rf"(\b[a-z][a-z0-9+.-]{{1,20}}://[^\s/:@]{{0,100}}:){_NO_PLACEHOLDER}[^\s/@]{{1,200}}(?=@)")
_NAMED: Final = re.compile(rf"(?i)(?:^|[^a-z]){_SECRET_NAME}(?:$|[^a-z])")
_PLACEHOLDER: Final = re.compile(r"[$<%{\[(*]")


def redact_text(text: str) -> str:
    """The text with everything that looks like a credential replaced; a second time changes nothing."""
    for _ in range(_ROUNDS_MAX):
        before, text = text, _round(text)
        if text == before:
            break
    return text


def redact(value: Json, *, keep: Callable[[str], bool] = lambda key: False) -> Json:
    """A JSON value with every text in it redacted, and every text under a key that names a secret.

    Args:
        keep: tells the keys whose values are left alone, such as ids and digests.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, list):
        return [redact(member, keep=keep) for member in value]
    if isinstance(value, dict):
        return {key: member if keep(key) else _member(key, member, keep) for key, member in value.items()}
    return value


def _member(key: str, member: Json, keep: Callable[[str], bool]) -> Json:
    if isinstance(member, str) and member and _NAMED.search(key) and not _PLACEHOLDER.match(member):
        return MARK
    return redact(member, keep=keep)


def _round(text: str) -> str:
    text = _WHOLE.sub(MARK, text)
    for behind in (_BEHIND_SCHEME, _IN_URL, _QUOTED, _IN_ENVIRONMENT, _BARE):
        text = behind.sub(rf"\g<1>{MARK}", text)
    return text
