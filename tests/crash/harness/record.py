"""The record as an outsider reads it: raw rows and bytes, from a copy, with nothing of the product in between."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_ROWS = """SELECT originator_id, originator_version, topic, state FROM stored_events
    ORDER BY originator_id, originator_version"""


class Fact(NamedTuple):
    """One stored event."""

    sequence: int
    topic: str
    state: bytes

    @property
    def fields(self) -> dict[str, Any]:
        """Its stored JSON."""
        fields: dict[str, Any] = json.loads(self.state)
        return fields


@dataclass(frozen=True, slots=True)
class Record:
    """All streams at one moment."""

    streams: Mapping[str, tuple[Fact, ...]]

    def begins_with(self, earlier: Record) -> bool:
        """True when no fact of an earlier record is lost or changed: each of its streams is a prefix of ours."""
        return all(self.streams.get(name, ())[: len(facts)] == facts for name, facts in earlier.streams.items())

    def run(self, run_id: str) -> tuple[Fact, ...]:
        """The facts of a run."""
        return self.streams.get(f"run:{run_id}", ())

    def of_stream(self, stream: str, topic: str) -> list[dict[str, Any]]:
        """All facts of a kind in a stream, in order."""
        return [fact.fields for fact in self.streams.get(stream, ()) if fact.topic == topic]

    def run_ids(self, session_id: str) -> list[str]:
        """The runs of a session in the order of their admission."""
        admitted = self.of_stream(f"session:{session_id}", "session.run_admitted.v1")
        return [fact["run_id"] for fact in admitted]

    def of_session(self, session_id: str, topic: str) -> list[dict[str, Any]]:
        """All facts of a kind in a session's runs, in order."""
        return [fact for run_id in self.run_ids(session_id) for fact in self.of_stream(f"run:{run_id}", topic)]

    def ends(self, session_id: str) -> list[list[str]]:
        """How each run of a session ended: one entry per terminal event."""
        return [
            [fact["status"] for fact in self.of_stream(f"run:{run_id}", "run.ended.v1")]
            for run_id in self.run_ids(session_id)
        ]


def read_record(store: Path) -> Record:
    """Read a copy, so that reading can change nothing; an absent store has no streams."""
    if not store.exists():
        return Record({})
    streams: dict[str, list[Fact]] = {}
    for stream, sequence, topic, state in _rows(store):
        streams.setdefault(stream, []).append(Fact(sequence, topic, bytes(state)))
    return Record({name: tuple(facts) for name, facts in streams.items()})


def _rows(store: Path) -> Iterator[Sequence[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / store.name
        for suffix in ("", "-wal"):
            if (source := Path(f"{store}{suffix}")).exists():
                shutil.copyfile(source, f"{copy}{suffix}")
        with closing(sqlite3.connect(copy)) as connection:
            yield from connection.execute(_ROWS).fetchall()


def fingerprint(store: Path) -> dict[str, str]:
    """The bytes of database, WAL and anchor, and the lock files with theirs: what looking must leave as it is."""
    locks = Path(f"{store}.locks")
    files = [Path(f"{store}{suffix}") for suffix in ("", "-wal", ".anchor")]
    files += sorted(file for file in locks.iterdir() if file.is_file()) if locks.is_dir() else []
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()}


def lock_files_of(store: Path, pid: int) -> list[Path]:
    """The lock files that name a process as the incarnation that holds, or held, them."""
    found = []
    for file in Path(f"{store}.locks").glob("*.lock"):
        try:
            holder = json.loads(file.read_bytes())
        except ValueError:
            continue
        if holder.get("incarnation", {}).get("pid") == pid and not holder.get("left"):
            found.append(file)
    return found


def lines_of(path: Path) -> list[str]:
    """The lines of a file that others append to; none when it is not there."""
    return path.read_text().splitlines() if os.path.lexists(path) else []
