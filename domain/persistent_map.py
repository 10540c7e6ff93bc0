"""Two maps with one interface: a plain dictionary, and one whose versions share what they do not change.

Code that only ever reads forward uses the dictionary; code that may have to throw a change away keeps the version
from before it. Neither promises an order of iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Generic, Protocol, Self, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_BUCKETS = 256


class Map(Protocol[K, V]):
    """What both maps can do; `set` and `discard` give the map to go on with."""

    def __contains__(self, key: object, /) -> bool:
        """Whether the key is there."""
        ...

    def __len__(self) -> int:
        """How many keys there are."""
        ...

    def __iter__(self) -> Iterator[K]:
        """The keys, in no promised order."""
        ...

    def get(self, key: K, /) -> V | None:
        """The value under a key, or None."""
        ...

    def set(self, key: K, value: V) -> Self:
        """The map that has this value as well."""
        ...

    def discard(self, key: K) -> Self:
        """The map without this key, whether or not it was there."""
        ...

    def fork(self) -> Map[K, V]:
        """A map with what is here, which later changes of this one do not reach."""
        ...


class TransientMap(dict[K, V]):
    """A dictionary that changes in place; its fork is a persistent copy, made in O(n)."""

    def set(self, key: K, value: V) -> Self:
        """Put a value in, and return this same map."""
        self[key] = value
        return self

    def discard(self, key: K) -> Self:
        """Take a key out if it is there, and return this same map."""
        self.pop(key, None)
        return self

    def fork(self) -> Map[K, V]:
        """Copy what is here into a map that later changes of this one do not reach."""
        return PersistentMap.of(self)


class PersistentMap(Generic[K, V]):
    """An immutable map of 256 buckets: a change copies the root and one bucket, so O(n / 256) of small, fast copies."""

    __slots__ = ("_length", "_root")

    def __init__(self, _root: list[dict[K, V]] | None = None, _length: int = 0) -> None:
        self._root: list[dict[K, V]] = [{}] * _BUCKETS if _root is None else _root
        self._length = _length

    @classmethod
    def of(cls, items: Mapping[K, V]) -> Self:
        """Make a persistent copy of a mapping."""
        nothing: dict[K, V] = {}
        root = [nothing] * _BUCKETS
        for key, value in items.items():
            place = hash(key) % _BUCKETS
            if root[place] is nothing:
                root[place] = {}
            root[place][key] = value
        return cls(root, len(items))

    def __contains__(self, key: object, /) -> bool:
        return key in self._root[hash(key) % _BUCKETS]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self._root) if self._length else iter(())

    def get(self, key: K, /) -> V | None:
        """The value under a key, or None."""
        return self._root[hash(key) % _BUCKETS].get(key)

    def set(self, key: K, value: V) -> Self:
        """A map that has this value as well; the present one stays as it is."""
        place = hash(key) % _BUCKETS
        bucket = self._root[place].copy()
        bucket[key] = value
        return self._with(place, bucket)

    def discard(self, key: K) -> Self:
        """A map without this key; the present one stays as it is."""
        place = hash(key) % _BUCKETS
        if key not in self._root[place]:
            return self
        bucket = self._root[place].copy()
        del bucket[key]
        return self._with(place, bucket)

    def fork(self) -> Self:
        """This map: it never changes."""
        return self

    def _with(self, place: int, bucket: dict[K, V]) -> Self:
        root = self._root.copy()
        length = self._length + len(bucket) - len(root[place])
        root[place] = bucket
        return self.__class__(root, length)
