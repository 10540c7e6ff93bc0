"""Our own index of a workspace, kept between captures so that only what changed is read again.

It is a cache and believed only whole: its checksum must hold, and the checkpoint that it was made for must be there,
since otherwise the objects that it names may be gone.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from ...domain import canonical
from .names import Names

FORMAT: Final = 1
_DIGEST_CHARS: Final = 64


class Remembered(NamedTuple):
    """What an index was kept with.

    Attributes:
        ref, commit: the checkpoint that it was made for, and that keeps its objects.
    """

    ref: str
    commit: str
    names: Names


def recall(file: Path, index: str) -> Remembered | None:
    """Put the kept index where Git finds it, with the time that it was written: by that time Git knows which files were
    changed in the same instant and must be read again.

    Returns:
        What it was kept with, None where there is no such index or it is damaged.
    """
    try:
        data = file.read_bytes()
    except OSError:
        return None
    digest, _, rest = data.partition(b"\n")
    if len(digest) != _DIGEST_CHARS or hashlib.sha256(rest).hexdigest().encode() != digest:
        return None
    head, _, content = rest.partition(b"\n")
    kept = canonical.decode(head)
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        return None
    Path(index).write_bytes(content)
    written_ns = int(str(kept["written_ns"]))
    os.utime(index, ns=(written_ns, written_ns))
    return Remembered(str(kept["ref"]), str(kept["commit"]), Names.from_json(kept["names"]))


def remember(file: Path, index: str, with_it: Remembered) -> None:
    """Keep an index for the next time; whole or not at all.

    Raises:
        OSError: it could not be kept.
    """
    try:
        written_ns = os.stat(index).st_mtime_ns
    except FileNotFoundError:
        return  # there is nothing in the workspace
    of_checkpoint = {"ref": with_it.ref, "commit": with_it.commit, "names": with_it.names.as_json()}
    head = canonical.encode({"format": FORMAT, "written_ns": str(written_ns), **of_checkpoint})
    rest = head + b"\n" + Path(index).read_bytes()
    descriptor, temporary = tempfile.mkstemp(prefix=f"{file.name}-", dir=file.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
