"""Plays one act: the real program in a child process, killed with SIGKILL, then judged, looked up and continued.

Everything is counted from outside, from files, by the parent: nobody's word is taken for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .story import PORT_BEFORE, PORT_OF_SOMEBODY_ELSE, SCRIPT, Act, Counts

CHILD_SECONDS_MAX = 60.0
KILLED = -9


@dataclass(frozen=True, slots=True)
class Played:
    """What was seen of one act.

    Attributes:
        naive: what a log that knows calls and results alone would say.
        observation: what the program saw when it looked at the file again, None where it did not have to.
        became: what became of the write by that: `completed` or `parked`.
        content: of the file at the end.
    """

    act: Act
    naive: str
    verdict: str
    reason: str
    decision: str
    codes: tuple[str, ...]
    observation: str | None
    became: str | None
    killed: Counts
    ended: Counts
    content: str

    @property
    def as_expected(self) -> bool:
        """Whether every verdict, decision and count is the one that the story demands."""
        act = self.act
        content_kept = not act.edited or self.content == PORT_OF_SOMEBODY_ELSE
        return content_kept and (
            (self.verdict, self.reason, self.decision, self.observation, self.killed, self.ended)
            == (act.verdict, act.reason, act.decision, act.observation, act.killed, act.ended)
        )


class ActFailed(Exception):
    """The program did not do what an act needs, such as dying where it was told to."""


class Stage:
    """The folder of one act: workspace, script and store.

    Args:
        folder: an empty folder of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workspace = folder / "workspace"
        self._config = self._workspace / "config.json"
        self._script = folder / "script.json"
        self._workspace.mkdir()
        self._config.write_text(PORT_BEFORE)
        self._script.write_text(json.dumps(SCRIPT))
        self._identities = [self._identity()]

    def play(self, act: Act) -> Played:
        """Kill, look, and go on as far as the plan allows.

        Raises:
            ActFailed: the child did not die where it should, or the program answered with something unreadable.
        """
        self._kill(act)
        self._identities.append(self._identity())
        killed = self._counts()
        if act.edited:
            self._config.write_text(PORT_OF_SOMEBODY_ELSE)  # in place: the file stays the one that the agent wrote
        shown = self._ask("show", "act")["run"]
        operation = shown["operations"][0]
        responded = any(fact["type"].startswith("tool.responded") for fact in shown["facts"])
        plan = self._ask("plan", "act", "--script", str(self._script), "--workspace", str(self._workspace))
        looked_up = self._ask("reconcile", "act", "--workspace", str(self._workspace))["operations"]
        seen = looked_up[0] if looked_up else {"observation": None, "became": None}
        self._ask("resume", "act", "--script", str(self._script), "--workspace", str(self._workspace))
        self._identities.append(self._identity())
        return Played(
            act,
            "the result is there: go on" if responded else "no result: run it again",
            operation["verdict"],
            operation["reason"],
            plan["decision"],
            tuple(reason["code"] for reason in plan["reasons"]),
            seen["observation"],
            seen["became"],
            killed,
            self._counts(),
            self._config.read_text(),
        )

    def _kill(self, act: Act) -> None:
        hooks = {"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": act.failpoint.value}
        place = ("--script", str(self._script), "--workspace", str(self._workspace), "--session", "act")
        child = self._program(hooks, "run", "Change the port to 4000, then pay the bill.", *place)
        if child.returncode != KILLED:
            raise ActFailed(
                f"({act.key}) the agent was to die and ended with {child.returncode}: {child.stderr[-500:]}"
            )

    def _ask(self, *words: str) -> dict[str, Any]:
        answered = self._program({}, *words, "--json")
        try:
            document = json.loads(answered.stdout)
        except ValueError as error:
            detail = f"`safepoint {words[0]}` ended with {answered.returncode}: {answered.stderr[-500:]}"
            raise ActFailed(detail) from error
        assert isinstance(document, dict)
        return document

    def _program(self, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "safepoint", *words, "--store", str(self._folder / "store.sqlite")],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHILD_SECONDS_MAX,
            check=False,
        )

    def _identity(self) -> int:
        """The file's inode: each atomic write makes a new one, and an edit in place does not."""
        return self._config.stat().st_ino

    def _counts(self) -> Counts:
        writes = sum(before != after for before, after in zip(self._identities, self._identities[1:], strict=False))
        return Counts(_lines(self._folder / "requests.jsonl"), writes, _lines(self._workspace / "payments.txt"))


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
