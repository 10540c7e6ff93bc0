"""Records with ids and links to their parents: which stand twice, and which no chain of parents reaches."""

from __future__ import annotations

from ...ports.history_format import Place
from .contents import Members


class RecordLinks:
    """What the records of one file say of one another."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}
        self._kept: dict[str, tuple[Place, Members]] = {}
        self._last: str | None = None

    def see(self, record_id: str | None, parent_id: str | None) -> None:
        """Note the link of any record, also of one that is no part of the conversation."""
        if record_id is not None:
            self._parents.setdefault(record_id, parent_id)

    def repeated(self, record_id: str, record: Members) -> bool | None:
        """Whether a record was kept before under this id: alike (True), otherwise (False), or not at all (None)."""
        known = self._kept.get(record_id)
        return None if known is None else known[1] == record

    def keep(self, record_id: str, place: Place, record: Members) -> None:
        """Take a record of the conversation in; the first under an id stays."""
        self._kept.setdefault(record_id, (place, record))
        self._last = record_id

    def outside_the_chain(self) -> list[Place]:
        """Where the kept records stand that have a parent and are no ancestors of the last one."""
        reached: set[str] = set()
        record_id = self._last
        while record_id is not None and record_id not in reached:  # a link may lead back (field report r3-072)
            reached.add(record_id)
            record_id = self._parents.get(record_id)
        linked = ((place, record_id) for record_id, (place, _) in self._kept.items() if self._parents[record_id])
        return [place for place, record_id in linked if record_id not in reached]
