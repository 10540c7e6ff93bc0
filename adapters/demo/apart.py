"""The act in which somebody else changes a file while the agent is dead: the run parks, then goes on in a folder of its
own, and what the other process wrote is not touched. Bound to content by Git; without that it is not played.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...ports.failpoints import Failpoint
from .stage import ActFailed, Stage, lines_of
from .story import PORT_AFTER, PORT_OF_SOMEBODY_ELSE

GIT_SECONDS_MAX: Final = 30.0
KEY: Final = "f"


@dataclass(frozen=True, slots=True)
class PlayedApart:
    """What was seen of it.

    Attributes:
        codes, paths: why the plan parked, and the files that it named.
        here, there: the file's content in the user's folder and in the new one, at the end.
        payments_here, payments_there: counted in both.
        requests: to the provider, over both runs.
    """

    codes: tuple[str, ...]
    paths: tuple[str, ...]
    here: str
    there: str
    payments_here: int
    payments_there: int
    requests: int

    @property
    def as_expected(self) -> bool:
        """Whether all of it is what the story demands."""
        return self == PlayedApart(
            ("workspace_drift",), ("config.json",), PORT_OF_SOMEBODY_ELSE, PORT_AFTER, 0, 1, requests=3
        )


class StageApart(Stage):
    """The folder of that act; its workspace is a repository."""

    def play_apart(self) -> PlayedApart | None:
        """Kill after the write was kept, let somebody else write, look, and go on apart; None where there is no Git.

        Raises:
            ActFailed: as `play`.
        """
        if shutil.which("git") is None:
            return None
        self._make_repository()
        self.kill(KEY, Failpoint.RESULT_DELIVERED, "--checkpoints", "git")
        self.config.write_text(PORT_OF_SOMEBODY_ELSE)
        place = ("--script", str(self.script), "--workspace", str(self.workspace))
        plan = self.ask("plan", "act", *place)
        resumed = self.ask("resume", "act", *place, "--isolated")
        apart = Path(_path_of(resumed))
        return PlayedApart(
            tuple(reason["code"] for reason in plan["reasons"]),
            tuple(path for reason in plan["reasons"] for path in reason["detail"].get("paths", ())),
            self.config.read_text(),
            (apart / self.config.name).read_text(),
            lines_of(self.workspace / "payments.txt"),
            lines_of(apart / "payments.txt"),
            lines_of(self.folder / "requests.jsonl"),
        )

    def _make_repository(self) -> None:
        nothing_of_the_user = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        made = subprocess.run(
            ["git", "init", "--quiet", str(self.workspace)],
            env={**os.environ, **nothing_of_the_user},
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS_MAX,
            check=False,
        )
        if made.returncode != 0:
            raise ActFailed(f"({KEY}) `git init` ended with {made.returncode}: {made.stderr[-500:]}")


def _path_of(resumed: Mapping[str, Any]) -> str:
    drift = resumed.get("drift") or {}
    isolated = drift.get("isolated") if isinstance(drift, dict) else None
    if not isinstance(isolated, dict):
        raise ActFailed(f"({KEY}) the run did not go on apart: {resumed.get('reasons') or resumed.get('message')}")
    return str(isolated["path"])
