"""Permission policies as sets of what is allowed, asked and denied, so that two can be compared. SPEC section 13, F6.

A policy is recorded by its name. Names of this grammar say what the policy permits; another name says nothing, and a
policy that it names is narrower than none. ADR 0038, 0092.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from . import canonical
from .events.run import NOT_RECORDED

NAME_CHARS_MAX: Final = 2_000
_LISTED_CHARS_MAX: Final = NAME_CHARS_MAX // 2
_ALL: Final = "*"
_DIGEST: Final = "sha256:"
_NAME: Final = re.compile(r"(?:allow (?P<listed>\*|\[.*\]|sha256:[0-9a-f]{64}), else )?(?P<rest>ask|deny)", re.DOTALL)


class Otherwise(StrEnum):
    """What becomes of a call that is not allowed by name, and of every repeat of an effect that is not certain."""

    ASK = "ask"
    DENY = "deny"


def name_of(allowed: Iterable[str], otherwise: str, *, allow_all: bool = False) -> str:
    """The name of a policy that allows tools by name: the same for the same names in any order, in every process.

    Args:
        otherwise: the name of the policy that decides all else.
    """
    encoded = canonical.encode(sorted(set(allowed)))
    listed = _ALL if allow_all else encoded.decode()
    if len(listed) > _LISTED_CHARS_MAX:
        listed = f"{_DIGEST}{canonical.sha256_hex(encoded)}"
    return f"allow {listed}, else {otherwise}"


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """What is allowed by name, and what becomes of the rest.

    Attributes:
        allowed: tools; ignored with `allow_all`. None where only a digest of a long list is known.
        digest: of the list that is not known.
    """

    otherwise: Otherwise
    allowed: frozenset[str] | None = frozenset()
    allow_all: bool = False
    digest: str | None = None

    @classmethod
    def named(cls, name: str) -> Self | None:
        """The policy that a name stands for, None where it is of another grammar."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        otherwise, listed = Otherwise(found["rest"]), found["listed"]
        if listed is None:
            return cls(otherwise)
        if listed == _ALL:
            return cls(otherwise, allow_all=True)
        if listed.startswith(_DIGEST):
            return cls(otherwise, None, digest=listed.removeprefix(_DIGEST))
        try:
            names = canonical.decode(listed.encode())
        except canonical.CanonicalError:
            return None
        if not isinstance(names, list):
            return None
        tools = [one for one in names if isinstance(one, str)]
        return cls(otherwise, frozenset(tools)) if len(tools) == len(names) else None

    @classmethod
    def named_wholly(cls, name: str) -> Self | None:
        """As `named`, None also where the name does not tell all that is permitted, so that it cannot be made again."""
        policy = cls.named(name)
        return None if policy is None or policy.allowed is None else policy

    @property
    def permits_nothing(self) -> bool:
        """True where nobody is asked and no call is let through, but those that no gate refuses: they only read."""
        return self.otherwise is Otherwise.DENY and not self.allow_all and self.allowed == frozenset()

    def permits_nothing_more_than(self, other: Self) -> bool:
        """True where every call is certainly treated at least as strictly as by another policy: allow, ask, deny."""
        if self.otherwise is Otherwise.ASK and other.otherwise is Otherwise.DENY:
            return False
        if other.allow_all:
            return True
        if self.allow_all:
            return False
        if self.allowed is None or other.allowed is None:
            return self.allowed == frozenset() or (self.digest, self.allowed) == (other.digest, other.allowed)
        return self.allowed <= other.allowed


def narrows(recorded: str, now: str) -> bool:
    """Whether the policy named `now` certainly permits nothing that the recorded one did not.

    What permits nothing narrows every policy, also one whose name says nothing. Where no policy was recorded, none is
    known to have let a call through, or to have refused one: what leaves each to a person narrows that.
    """
    after = PermissionPolicy.named(now)
    if after is None:
        return False
    before = PermissionPolicy(Otherwise.ASK) if recorded == NOT_RECORDED else PermissionPolicy.named(recorded)
    return after.permits_nothing or (before is not None and after.permits_nothing_more_than(before))
