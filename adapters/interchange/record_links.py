"""Records with ids and links to their parents: which stand twice, and which no chain of parents reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...ports.history_format import FindingCode, Place
from .contents import Members
from .exact_json import key_of
from .lines import Reading
from .parts import TwiceOtherwise


class Records:
    """The records of one file by their ids; the first under an id stays."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Place, Members]] = {}

    def take(self, place: Place, record: Members, reading: Reading) -> list[TwiceOtherwise] | None:
        """Take a record in that stands at a place with its own id.

        Returns:
            None where it stands twice alike, which is told; otherwise what is wrong with its id.
        """
        if place.source_id is None:
            return []
        known = self._kept.setdefault(place.source_id, (place, record))
        if known[0] is place:
            return []
        if known[1] == record and key_of(known[1]) == key_of(record):
            reading.tell(FindingCode.REPEATED_RECORD, place, f"record {place.source_id}")
            return None
        return [TwiceOtherwise(place, place.source_id)]

    def places(self) -> dict[str, Place]:
        """Where each record stands first, in order."""
        return {record_id: place for record_id, (place, _) in self._kept.items()}


class ParentLinks:
    """Which record hangs on which."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}

    def see(self, record_id: str | None, parent_id: str | None) -> None:
        """Note the link of any record, also of one that is no part of the conversation."""
        if record_id is not None:
            self._parents.setdefault(record_id, parent_id)

    def outside_the_chain(self, records: Mapping[str, Place]) -> list[Place]:
        """Where those records stand that are no ancestors of the last one; none where no record names a parent."""
        if not any(self._parents.values()):
            return []
        reached: set[str] = set()
        record_id = next(reversed([*records]), None)
        while record_id is not None and record_id not in reached:  # a link may lead back (field report r3-072)
            reached.add(record_id)
            record_id = self._parents.get(record_id)
        return [place for one, place in records.items() if one not in reached]

    def broken(self, records: Mapping[str, Place]) -> Iterator[tuple[Place, str]]:
        """Where those records stand whose links lead nowhere, or back, and which of the two."""
        walked: set[str] = set()
        for record_id, place in records.items():
            if (parent_id := self._parents.get(record_id)) is not None and parent_id not in self._parents:
                yield place, "a parent that is not in the file"
            trail: set[str] = set()
            one: str | None = record_id
            while one is not None and one not in walked and one not in trail:
                trail.add(one)
                one = self._parents.get(one)
            if one in trail:
                yield place, "parents that lead back"
            walked |= trail
