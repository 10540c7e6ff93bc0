"""Running the `git` program: its environment, its end, and what its failures mean."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...ports.checkpoints import NotKept, Unsupported, WhyUnsupported
from ...ports.workspace import CouldNotLook

VERSION_MIN: Final = (2, 30)
PATIENCE_SECONDS: Final = 900.0
SHOWN_ERROR_CHARS: Final = 600

_KEPT = re.compile(
    r"GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+)|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM"
    r"|EXEC_PATH)"
)
"""What decides where a repository is found and trusted. What else is set, as inside a hook, names another one."""

NO_CONFIG_OF_THE_USER: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
}
NOTHING_OF_THE_USER_RUNS: Final = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "core.logAllRefUpdates=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)


class CannotAnswer(Exception):
    """Ends the work of one method of the port.

    Attributes:
        answer: what the method then returns.
    """

    def __init__(self, answer: NotKept) -> None:
        super().__init__(answer)
        self.answer = answer


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: bytes
    error: str


def run_git(
    arguments: Sequence[str | bytes],
    *,
    cwd: str,
    environment: Mapping[str, str] | None = None,
    given: bytes = b"",
    held: Sequence[int] = (),
    apart: bool = False,
) -> Ended:
    """Run `git` to its end.

    Args:
        arguments: after the program's name.
        cwd: the folder to run it in.
        environment: in addition to what remains of ours.
        given: its standard input.
        held: file descriptors, and the locks on them, that it keeps open until it has ended.
        apart: in a session of its own, so that what ends our process group does not end it half way.

    Raises:
        CannotAnswer: there is no such program, it cannot be started, or it did not end in `PATIENCE_SECONDS`.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.fullmatch(name)}
    ours = {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
    }
    try:
        ended = subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env={**kept, **ours, **(environment or {})},
            input=given,
            capture_output=True,
            pass_fds=tuple(held),
            start_new_session=apart,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        detail = f"git {_named(arguments)} did not end within {PATIENCE_SECONDS:.0f} s"
        raise CannotAnswer(CouldNotLook(cwd, detail)) from error
    except FileNotFoundError as error:
        if os.path.isdir(cwd):
            detail = "there is no program `git` on the path"
            raise CannotAnswer(Unsupported(WhyUnsupported.NO_GIT, detail)) from error
        raise CannotAnswer(CouldNotLook(cwd, str(error))) from error
    except (OSError, ValueError) as error:
        raise CannotAnswer(CouldNotLook(cwd, f"git could not be started: {error}")) from error
    return Ended(ended.returncode, ended.stdout, ended.stderr.decode("utf-8", "backslashreplace").strip())


def failure(cwd: str, arguments: Sequence[str | bytes], ended: Ended) -> CannotAnswer:
    """What is raised where a command failed, and that is no answer."""
    how = f"was ended by signal {-ended.status}" if ended.status < 0 else f"failed ({ended.status})"
    said = ended.error[-SHOWN_ERROR_CHARS:]
    return CannotAnswer(CouldNotLook(cwd, f"git {_named(arguments)} {how}: {said}"))


def check_version() -> None:
    """See that there is a `git` that knows all that it is asked.

    Raises:
        CannotAnswer: there is none, or it is too old.
    """
    version = _version(os.environ.get("PATH", ""))
    if version < VERSION_MIN:
        found, needed = (".".join(map(str, numbers)) for numbers in (version, VERSION_MIN))
        detail = f"git {found} is there, {needed} is needed"
        raise CannotAnswer(Unsupported(WhyUnsupported.GIT_TOO_OLD, detail))


@functools.lru_cache(maxsize=4)
def _version(path: str) -> tuple[int, int]:
    """The version of the `git` that is found by the search path; asked once."""
    ended = run_git(["version"], cwd=os.sep)
    found = re.search(rb"(\d+)\.(\d+)", ended.out)
    if ended.status or found is None:
        raise failure(os.sep, ["version"], ended)
    return int(found[1]), int(found[2])


def _named(arguments: Sequence[str | bytes]) -> str:
    """The subcommand, without the options before it."""
    words = [os.fsdecode(argument) for argument in arguments]
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] == "-c" else words[1:]
    return words[0] if words else ""
