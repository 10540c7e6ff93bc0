"""The digest that names a history exactly: every field of every item, in order. SPEC section 12."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NoReturn

from .. import canonical
from .items import Item, fields_of, open_values

REPLAY_DOMAIN = "safepoint.replay.v1"
_ATOMS = frozenset({str, bool, type(None)})
_ITEMS_PER_TEXT = 256  # one call of the encoder for many items; the bytes are the same however they are cut


class ReplayHasher:
    """The digest of a history that grows: a chain of continuations is digested in one pass, at each of its edges.

    It is the digest, under `REPLAY_DOMAIN`, of the canonical form of `{"items": [...], "projection_version": n}`.
    """

    __slots__ = ("_hash", "_started", "version")

    def __init__(self, version: int) -> None:
        domain = REPLAY_DOMAIN.encode()
        self.version = version
        self._started = False
        self._hash = hashlib.sha256(len(domain).to_bytes(8, "big") + domain + b'{"items":[')

    def add(self, items: Iterable[Item]) -> None:
        """Take in the next items.

        Raises:
            CanonicalError: a JSON value in one of them has no canonical form.
        """
        rest = iter(items)
        while some := list(islice(rest, _ITEMS_PER_TEXT)):
            if self._started:
                self._hash.update(b",")
            self._hash.update(_text_of(some)[1:-1])
            self._started = True

    def hexdigest(self) -> str:
        """The digest of everything so far; more may follow."""
        ended = self._hash.copy()
        ended.update(b'],"projection_version":%d}' % self.version)
        return ended.hexdigest()


def _text_of(items: Sequence[Item]) -> bytes:
    fields = [fields_of(item) for item in items]
    plain = all(type(value) in _ATOMS or canonical.is_plain(value) for item in items for value in open_values(item))
    text = canonical.encode_quickly(fields, _no_parts) if plain else None
    return canonical.encode(fields) if text is None else text


def _no_parts(part: object) -> NoReturn:
    raise TypeError(type(part).__name__)


def replay_digest(items: Sequence[Item], version: int = 1) -> str:
    """Digest of a whole history, made by one projection version."""
    hasher = ReplayHasher(version)
    hasher.add(items)
    return hasher.hexdigest()
