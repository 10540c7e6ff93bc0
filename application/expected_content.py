"""What the files of a workspace should be at a run's boundary, and how they differ from it now. SPEC section 16.

The expected tree is the newest accepted checkpoint, and over it what settled file operations left since: a run's own
writes are not drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import TypeAlias

from ..domain.events.tool import Effect, ToolDispatched
from ..domain.file_evidence import FileChange, FileState, read_evidence
from ..domain.planning.facts import SegmentFacts
from ..domain.planning.observations import CheckpointFacts
from ..domain.planning.survey import Baseline
from ..domain.recovery.verdict import VerdictStatus
from ..ports.checkpoints import (
    Checkpoint,
    CheckpointMissing,
    Checkpoints,
    Compared,
    Difference,
    Differs,
    Unsupported,
    Verification,
)
from ..ports.workspace import CouldNotLook
from .run_checkpoints import why_not

LookAtFile: TypeAlias = Callable[[str, str], FileState | None]
"""Gets the workspace and a path in it, and says what stands there; None where it could not look."""


@dataclass(slots=True)
class Expected:
    """What a lineage says of its files.

    Attributes:
        epoch: how often the baseline was set anew.
        changes: what settled file operations left since the baseline, by path.
        uncovered_by: names of tools that wrote since, without saying what.
    """

    baseline: Baseline
    epoch: int
    changes: dict[str, FileChange] = field(default_factory=dict)
    uncovered_by: list[str] = field(default_factory=list)

    @property
    def checkpoint(self) -> Checkpoint:
        """The baseline, as its store knows it."""
        return checkpoint_of(self.baseline)


def checkpoint_of(baseline: Baseline) -> Checkpoint:
    """An accepted baseline, as the store of checkpoints knows it."""
    return Checkpoint(*baseline)


def expected_of(lineage: Sequence[SegmentFacts]) -> Expected | None:
    """What the newest baseline of a lineage and all that was dispatched since make; None where it accepted none.

    Args:
        lineage: oldest first.
    """
    newest = next((n for n in reversed(range(len(lineage))) if lineage[n].survey.baseline is not None), None)
    if newest is None:
        return None
    since = lineage[newest:]
    baseline = since[0].survey.baseline
    assert baseline is not None
    epochs = [one.survey.workspace_epoch for one in since if one.survey.workspace_epoch is not None]
    expected = Expected(baseline, epochs[-1] if epochs else 0)
    for segment in since:
        if segment.survey.baseline is None:  # no run of a bound lineage writes before its first checkpoint
            expected.uncovered_by += sorted(segment.survey.wrote_unbound)
        _add(expected, segment)
    return expected


def _add(expected: Expected, segment: SegmentFacts) -> None:
    verdicts = {verdict.operation_id: verdict for verdict in segment.resolution.verdicts}
    for operation_id, dispatch in segment.survey.written.items():
        verdict = verdicts.get(operation_id)
        if verdict is not None and verdict.effect is Effect.NONE:
            continue
        settled = verdict is not None and verdict.status is VerdictStatus.COMPLETED and verdict.effect is Effect.DONE
        left = _left_by(dispatch) if settled else None
        if left is None:
            expected.uncovered_by.append(dispatch.tool_name)
            continue
        expected.changes.update({change.path: change for change in left})


def _left_by(dispatch: ToolDispatched) -> tuple[FileChange, ...] | None:
    evidence = None if dispatch.evidence is None else read_evidence(dispatch.evidence)
    return None if evidence is None else evidence.files


def facts_of(
    expected: Expected,
    lineage: Sequence[SegmentFacts],
    checkpoints: Checkpoints | None,
    folder: str | None,
    look: LookAtFile,
) -> CheckpointFacts:
    """Compare what is expected with what is there.

    Args:
        checkpoints: None where the mode that the lineage was promised was given up.
        folder: the workspace; None where it is not the one that the lineage is bound to, and nothing is compared.
    """
    ref = expected.baseline.ref
    facts = CheckpointFacts(
        ref,
        carrier_available=checkpoints is not None,
        present=True,
        covers=not expected.uncovered_by,
        uncovered_by=tuple(dict.fromkeys(expected.uncovered_by)),
        detail="" if checkpoints is not None else "it was not asked for now",
        baseline=expected.baseline,
        epoch=expected.epoch,
        as_kept=not expected.changes,
    )
    if checkpoints is None or folder is None:
        return facts
    return _seen(facts, expected, lineage, checkpoints.verify(folder, expected.checkpoint), folder, look)


def _seen(
    facts: CheckpointFacts,
    expected: Expected,
    lineage: Sequence[SegmentFacts],
    found: Verification,
    folder: str,
    look: LookAtFile,
) -> CheckpointFacts:
    match found:
        case CheckpointMissing(detail=detail):
            return replace(facts, present=False, detail=detail)
        case Unsupported():
            return replace(facts, carrier_available=False, detail=why_not(found))
        case CouldNotLook(detail=detail):
            return replace(facts, could_not_look=detail)
        case Compared(differences=differences, total=total):
            others = [one.shown for one in differences if one.path not in expected.changes]
            wrong = list(_not_as_left(expected, folder, look))
            explained = len(differences) - len(others)
            paths = sorted(chain(others, wrong), key=_read_first(lineage, folder))
            return replace(facts, drifted_paths=tuple(paths), drifted=total - explained + len(wrong))


def _not_as_left(expected: Expected, folder: str, look: LookAtFile) -> Iterator[str]:
    """Paths that are not as a settled operation of the lineage left them; what cannot be looked at is not."""
    for path, change in expected.changes.items():
        state = look(folder, path)
        if state is None or not change.is_after(state):
            yield Difference(path, Differs.CHANGED).shown


def _read_first(lineage: Sequence[SegmentFacts], folder: str) -> Callable[[str], tuple[bool, str]]:
    read = {_relative(text, folder) for segment in lineage for text in segment.survey.paths_read}
    return lambda path: (path not in read, path)


def _relative(text: str, folder: str) -> str:
    path = PurePosixPath(text)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
