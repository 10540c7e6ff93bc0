"""Two maps with one interface: a plain dictionary, and one whose versions share what they do not change.

Code that only ever reads forward uses the dictionary; code that may have to throw a change away keeps the version
from before it. Neither promises an order of iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, Protocol, Self, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Final = object()


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

    def last(self) -> Map[K, V]:
        """A map with what is here, for good: this one is not changed any more."""
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

    def last(self) -> Map[K, V]:
        """What is here, as a persistent map: this one is not used any more."""
        return PersistentMap(self)


class PersistentMap(Generic[K, V]):
    """An immutable map whose newest version is a plain dictionary: reading and changing it cost O(1) at any size.

    All versions of one line share that dictionary. Each older one knows what the next one changed, so it still finds
    what it held, in O(changes since), also while another thread adds to the newest; nobody keeps it alive but those who
    hold it. A version can be gone on from in place once; whoever changes it again (after a commit that was rolled
    back) gets a copy, in O(n).
    """

    __slots__ = ("_entries", "_key", "_newer", "_right", "_was")

    def __init__(self, _entries: dict[K, V] | None = None) -> None:
        self._entries: dict[Any, Any] = {} if _entries is None else _entries
        # The next version; it is told last, after the key that it changed and what was there, before the dictionary
        # changes, and is looked for after that was looked into: so whoever reads meanwhile finds it, or has seen what
        # was there.
        self._newer: PersistentMap[K, V] | None = None
        self._key: Any
        self._was: Any
        # Deleting this is what gives the right to go on in place: of two threads, one can.
        self._right = True

    @classmethod
    def of(cls, items: Mapping[K, V]) -> Self:
        """Make a persistent copy of a mapping."""
        return cls(dict(items))

    def __contains__(self, key: object, /) -> bool:
        held = key in self._entries
        return held if self._newer is None else self._find(key) is not _ABSENT

    def __len__(self) -> int:
        length = len(self._entries)
        return length if self._newer is None else len(self._held())

    def __iter__(self) -> Iterator[K]:
        return iter(self._held())

    def get(self, key: K, /) -> V | None:
        """The value under a key, or None."""
        value: V | None = self._entries.get(key)
        if self._newer is None:
            return value
        return None if (found := self._find(key)) is _ABSENT else found  # type: ignore[return-value]

    def set(self, key: K, value: V) -> Self:
        """A map that has this value as well; the present one stays as it is."""
        try:
            del self._right
        except AttributeError:
            return self.__class__({**self._held(), key: value})
        entries = self._entries
        newest = object.__new__(self.__class__)  # as calling the class would, in half the time: T1 does this four times
        newest._entries, newest._newer, newest._right = entries, None, True
        self._key, self._was = key, entries.get(key, _ABSENT)
        self._newer = newest
        entries[key] = value
        return newest

    def discard(self, key: K) -> Self:
        """A map without this key; the present one stays as it is."""
        value = self._entries.get(key, _ABSENT) if self._newer is None else self._find(key)
        if value is _ABSENT:
            return self
        try:
            del self._right
        except AttributeError:
            held = self._held()
            del held[key]
            return self.__class__(held)
        entries = self._entries
        newest = object.__new__(self.__class__)  # likewise: T2 does this twice
        newest._entries, newest._newer, newest._right = entries, None, True
        self._key, self._was = key, value
        self._newer = newest
        del entries[key]
        return newest

    def fork(self) -> Self:
        """This map: it never changes."""
        return self

    last = fork

    def _find(self, key: object) -> object:
        """What this version holds under a key, or `_ABSENT`."""
        value = self._entries.get(key, _ABSENT)
        version = self
        while version._newer is not None:
            if version._key == key:
                return version._was
            version = version._newer
        return value

    def _held(self) -> dict[Any, Any]:
        """A copy of all that this version holds."""
        held = self._entries.copy()  # at once: it may grow meanwhile
        changes: dict[Any, Any] = {}
        version = self
        while version._newer is not None:
            changes.setdefault(version._key, version._was)
            version = version._newer
        for key, value in changes.items():
            if value is _ABSENT:
                held.pop(key, None)
            else:
                held[key] = value
        return held
