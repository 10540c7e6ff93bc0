"""What file tools record before T1, and what counts as a match with it afterwards. SPEC section 10, F8; ADR 0052.

Bytes are compared, and nothing that only resembles them: not a size, not a time, not other line ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, ValidationError

from . import canonical
from .events.event import Digest, Json, Value
from .events.tool import Observation

FORMAT: Final = "safepoint.file-evidence.v1"

Bits: TypeAlias = Annotated[int, Field(ge=0, le=0o7777)]


class FileKind(StrEnum):
    """What stands at a path. `link` is also said of a path that leads through one, for none is followed."""

    ABSENT = "absent"
    NO_FOLDER = "no_folder"
    REGULAR = "regular"
    LINK = "link"
    OTHER = "other"


class Encoding(StrEnum):
    """What the bytes of a file look like."""

    UTF_8 = "utf-8"
    UTF_8_WITH_MARK = "utf-8 with a byte order mark"
    UTF_16 = "utf-16"
    OTHER = "no text"


class LineEnds(StrEnum):
    """How the lines of a text end."""

    NONE = "none"
    LF = "lf"
    CRLF = "crlf"
    CR = "cr"
    MIXED = "mixed"


class FileState(Value):
    """One path at one instant.

    Attributes:
        sha256, size_bytes: of a regular file's content; no digest where it is larger than what is ever recorded.
        mode: permission bits; None for a file that is to be made, whose bits are left to the system.
        encoding, line_ends: facts for people, where the content was small enough to be looked through. No match
            depends on them.
    """

    kind: FileKind
    sha256: Digest | None = None
    size_bytes: Annotated[int, Field(ge=0)] | None = None
    mode: Bits | None = None
    encoding: Encoding | None = None
    line_ends: LineEnds | None = None

    @property
    def absent(self) -> bool:
        """Whether a look found nothing."""
        return self.kind in {FileKind.ABSENT, FileKind.NO_FOLDER}

    def holds(self, other: FileState) -> bool:
        """Whether both are regular files of the same bytes."""
        return (
            self.kind is other.kind is FileKind.REGULAR
            and self.sha256 is not None
            and (self.sha256, self.size_bytes) == (other.sha256, other.size_bytes)
        )


ABSENT: Final = FileState(kind=FileKind.ABSENT)


class FileChange(Value):
    """What an operation was to change at one path, relative to the workspace; `before` and `after` are absent or
    regular.
    """

    path: Annotated[str, Field(min_length=1)]
    before: FileState
    after: FileState

    def is_after(self, seen: FileState) -> bool:
        """Whether the expected state is there; a file whose whole folder has gone is not what a removal leaves."""
        if self.after.absent:
            return seen.kind is FileKind.ABSENT
        return self.after.holds(seen)

    def is_before(self, seen: FileState) -> bool:
        """Whether the prior state is there, still or again."""
        return seen.absent if self.before.absent else self.before.holds(seen)


class FileEvidence(Value):
    """What T1 records of a file operation.

    Attributes:
        workspace: the identity of the run's folder; None where it had none, and then nothing can be compared.
        transform, transform_version: what made the expected content of the prior one.
        files: one, or the source and the target of a move.
        result: what the tool answers when it has done this.
    """

    format: Literal["safepoint.file-evidence.v1"] = FORMAT
    workspace: str | None
    transform: str
    transform_version: Annotated[int, Field(ge=1)]
    files: Annotated[tuple[FileChange, ...], Field(min_length=1, max_length=2)]
    result: dict[str, Json]

    def recorded(self) -> Json:
        """As T1 keeps it."""
        value: Json = self.model_dump(mode="json")
        return value

    @property
    def changes_nothing(self) -> bool:
        """Whether all was so before: then what is found there does not say whether the call ran."""
        return all(one.is_after(one.before) for one in self.files)

    @property
    def already_so(self) -> Json:
        """The answer where the content was already what the call asked for."""
        return {"path": self.files[0].path, "size_bytes": self.files[0].after.size_bytes, "already_so": True}


def read_evidence(recorded: Json) -> FileEvidence | None:
    """Understand what T1 recorded; None for what is of another format, or damaged."""
    try:
        evidence = FileEvidence.model_validate(recorded)
    except ValidationError:
        return None
    return evidence if evidence.recorded() == recorded else None


def found_later(change: FileChange, workspace: str | None, later: Iterable[FileEvidence]) -> FileState | None:
    """How a path stood when the first later operation that touched it was about to begin; None where none did.

    From then on the file is that operation's matter: what it looks like now says nothing of the earlier one.

    Args:
        workspace: the identity of the folder of `change`.
        later: evidence of later operations, in order.
    """
    for evidence in later:
        for one in evidence.files:
            if evidence.workspace == workspace and one.path == change.path:
                return one.before
    return None


def judge(evidence: FileEvidence, seen: Sequence[FileState]) -> Observation:
    """Say what the files look like now, compared with what was recorded.

    Args:
        seen: in the order of `evidence.files`.
    """
    pairs = [*zip(evidence.files, seen, strict=True)]
    if all(change.is_after(state) for change, state in pairs):
        return Observation.ALREADY_SATISFIED if evidence.changes_nothing else Observation.MATCHES_EXPECTED_STATE
    if all(change.is_before(state) for change, state in pairs):
        return Observation.MATCHES_PRIOR_STATE
    return Observation.DIVERGED


def digest_of(evidence: FileEvidence, seen: Sequence[FileState]) -> Digest:
    """Name what was seen, for the record."""
    states = [[one.path, state.model_dump(mode="json")] for one, state in zip(evidence.files, seen, strict=True)]
    return canonical.sha256_hex(canonical.encode(states))
