"""Backing a store up while it is in use, and putting a backup in its place while it is not. Issue 3, r3-085."""

from __future__ import annotations

import os
from pathlib import Path

from ...domain.errors import StoreError, StoreUnusable, StoreVersionNewer
from ...ports.store_backup import Check, CopyTargetTaken, Restored, StoreBackup, StoreCopy
from . import schema
from .anchor import Anchor
from .anchor_record import AnchorRecord, NoAnchor
from .copying import copied, sync_folder
from .errors import translated
from .peek import require_not_foreign
from .place import Place
from .reader import Readers
from .replacing import exclusively, put_aside, put_back


class SqliteBackup(StoreBackup):
    """Backups of one store; it is not opened before it is asked.

    Args:
        path: the store's database; it may be missing, or damaged, where a backup is to take its place.
        busy_timeout_seconds: how long to wait for other processes.
    """

    def __init__(self, path: Path, busy_timeout_seconds: float = 5.0) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds

    def back_up(self, file: Path, check: Check) -> StoreCopy:
        """See `StoreBackup`."""
        target = Path(os.path.realpath(file))
        if os.path.lexists(target):
            raise CopyTargetTaken(file)
        readers = Readers(Place(self._path), self._busy_timeout_seconds, schema.require_published)
        unfinished = Path(f"{target}.unfinished")
        try:
            with copied(readers, unfinished) as copy:
                check(unfinished, copy)
                with translated(target, "write the backup"):
                    try:
                        os.link(unfinished, target)  # never in the place of another file
                    except FileExistsError:
                        raise CopyTargetTaken(file) from None
                    sync_folder(target)
                return copy
        finally:
            readers.close()

    def restore(self, file: Path, check: Check, at: str) -> Restored:
        """See `StoreBackup`."""
        place, source = Place(self._path), Place(file)
        if place.database == source.database:
            raise StoreUnusable(f"{file} is the store itself: name the backup that is to take its place")
        self._require_replaceable(place)
        readers = Readers(source, self._busy_timeout_seconds, schema.require_published)
        unfinished = Path(f"{place.database}.restoring")
        try:
            with copied(readers, unfinished) as copy:
                check(unfinished, copy)
                return Restored(copy, self._put_in_place(place, unfinished, copy, at))
        finally:
            readers.close()

    def _require_replaceable(self, place: Place) -> None:
        """What is there may be gone or damaged; another program's database, or a newer version's, is left alone."""
        if place.identity() is None:
            return
        require_not_foreign(place, has_anchor=place.anchor.exists())
        readers = Readers(place, self._busy_timeout_seconds)
        try:
            with readers.view():
                return
        except StoreVersionNewer:
            raise
        except StoreError:
            return
        finally:
            readers.close()

    def _put_in_place(self, place: Place, unfinished: Path, copy: StoreCopy, at: str) -> Path | None:
        anchor = Anchor(place.anchor, self._busy_timeout_seconds)
        with (
            translated(place.database, "put the copy in the place of"),
            anchor.exclusively() as held,
            exclusively(place.database),
        ):
            if held.read() is NoAnchor.MISSING and place.identity() is None:
                held.write(AnchorRecord(copy.store_id, copy.events, copy.digest))
            previous = put_aside(place, at)
            try:
                os.rename(unfinished, place.database)  # noqa: PTH104 - in one step; nobody sees that there is no store
            except BaseException:
                put_back(place, previous)
                raise
            sync_folder(place.database)
            return previous
