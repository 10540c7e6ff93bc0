"""What is run under supervision, and what is learned of it. SPEC section 15."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from pydantic import JsonValue

from ..domain.identifiers import OperationId


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run.

    Attributes:
        argv: program and arguments; never a shell line.
        cwd: an absolute folder, or None for the owner's at the time of `start`.
        environment: the whole environment, or None for the owner's. Handed over through a pipe, never written to disk.
        stdin: given to the program, then closed.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    stdin: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A plain Python function to run in a process of its own, found by name.

    Attributes:
        module: where it is imported from; `__main__` is the owner's main script.
        qualname: its dotted name inside the module. If what it names has an attribute `__supervised__`, that is
            called instead.
        arguments: keyword arguments.
        context: given as an object with these attributes, under the name `context_parameter`, if that is not None.
    """

    module: str
    qualname: str
    arguments: Mapping[str, JsonValue]
    context: Mapping[str, JsonValue] = field(default_factory=dict)
    context_parameter: str | None = None
    cwd: str | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)


Work: TypeAlias = Command | FunctionCall


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process, exactly: a pid alone may be used again."""

    pid: int
    process_start_time: int
    name: str


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    """The first bytes of a stream; `sha256` is of the whole stream when it was cut, None when nothing is missing."""

    data: bytes
    total_bytes: int
    sha256: str | None

    @property
    def truncated(self) -> bool:
        """True when `data` is not all of it."""
        return self.total_bytes > len(self.data)


@dataclass(frozen=True, slots=True)
class FunctionReturned:
    """The function returned this value, which is strict JSON."""

    value: JsonValue


class FunctionFailure(StrEnum):
    """How a call came to nothing; only `not_importable` proves that the function did not run."""

    RAISED = "raised"
    NOT_IMPORTABLE = "not_importable"
    RESULT_NOT_STRICT_JSON = "result_not_strict_json"
    RESULT_TOO_LARGE = "result_too_large"


@dataclass(frozen=True, slots=True)
class FunctionFailed:
    """The function raised, or its result could not be kept.

    Attributes:
        error_classes: of the exception, most special first, as `module:qualname`.
        refused_without_effect: the exception is a `RefusedWithoutEffect`.
    """

    failure: FunctionFailure
    error_classes: tuple[str, ...]
    message: str
    refused_without_effect: bool


@dataclass(frozen=True, slots=True)
class SupervisedExit:
    """The main process has ended: with an exit code, or by a signal, never both.

    Attributes:
        left_running: something that it started goes on: the operation is not over. Output after this moment is
            discarded.
        living: those processes, as far as they could be listed.
        ended_on_request: `end` was asked for before it ended.
        outcome: of a FunctionCall; None when the process died before it could say.
    """

    exit_code: int | None
    signal: int | None
    stdout: CapturedOutput
    stderr: CapturedOutput
    left_running: bool = False
    living: tuple[ProcessInfo, ...] = ()
    ended_on_request: bool = False
    outcome: FunctionReturned | FunctionFailed | None = None


class Overness(StrEnum):
    """Whether anything that an operation started can still run. `could_not_look` is never OVER."""

    OVER = "over"
    RUNNING = "running"
    COULD_NOT_LOOK = "could_not_look"


class Progress(StrEnum):
    """How far an operation got, as its supervisor wrote it down."""

    NEVER_STARTED = "never_started"
    STARTED = "started"
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """What the supervisor wrote down, durably, for whoever comes later. Evidence for people; the lock decides.

    Attributes:
        argv_digest: SHA-256 of the arguments, which themselves are not kept.
        exited_at: UTC with microseconds, when the main process ended.
    """

    operation_id: OperationId
    progress: Progress
    pid: int | None = None
    process_start_time: int | None = None
    argv_digest: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    exited_at: str | None = None
    left_running: bool | None = None
