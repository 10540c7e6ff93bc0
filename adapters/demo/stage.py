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

from ...ports.failpoints import Failpoint
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

    Attributes:
        config: the file that the agent changes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.config = self.workspace / "config.json"
        self.script = folder / "script.json"
        self.workspace.mkdir()
        self.config.write_text(PORT_BEFORE)
        self.script.write_text(json.dumps(SCRIPT))
        self._identities = [self._identity()]

    def play(self, act: Act) -> Played:
        """Kill, look, and go on as far as the plan allows.

        Raises:
            ActFailed: the child did not die where it should, or the program answered with something unreadable.
        """
        self.kill(act.key, act.failpoint)
        self._identities.append(self._identity())
        killed = self._counts()
        if act.edited:
            self.config.write_text(PORT_OF_SOMEBODY_ELSE)  # in place: the file stays the one that the agent wrote
        shown = self.ask("show", "act")["run"]
        operation = shown["operations"][0]
        responded = any(fact["type"].startswith("tool.responded") for fact in shown["facts"])
        plan = self.ask("plan", "act", "--script", str(self.script), "--workspace", str(self.workspace))
        looked_up = self.ask("reconcile", "act", "--workspace", str(self.workspace))["operations"]
        seen = looked_up[0] if looked_up else {"observation": None, "became": None}
        self.ask("resume", "act", "--script", str(self.script), "--workspace", str(self.workspace))
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
            self.config.read_text(),
        )

    def kill(self, key: str, failpoint: Failpoint, *options: str) -> None:
        """Let the agent work, and die at an instant.

        Raises:
            ActFailed: it did not.
        """
        hooks = {"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": failpoint.value}
        place = ("--script", str(self.script), "--workspace", str(self.workspace), "--session", "act", *options)
        child = self._program(hooks, "run", "Change the port to 4000, then pay the bill.", *place)
        if child.returncode != KILLED:
            raise ActFailed(f"({key}) the agent was to die and ended with {child.returncode}: {child.stderr[-500:]}")

    def ask(self, *words: str) -> dict[str, Any]:
        """Give the program a command, and take the object that it prints.

        Raises:
            ActFailed: it printed none.
        """
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
            [sys.executable, "-m", "safepoint", *words, "--store", str(self.folder / "store.sqlite")],
            env={**os.environ, "SAFEPOINT_CHECKPOINTS": "none", **environment},  # wherever temporary folders lie
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHILD_SECONDS_MAX,
            check=False,
        )

    def _identity(self) -> int:
        """The file's inode: each atomic write makes a new one, and an edit in place does not."""
        return self.config.stat().st_ino

    def _counts(self) -> Counts:
        writes = sum(before != after for before, after in zip(self._identities, self._identities[1:], strict=False))
        return Counts(lines_of(self.folder / "requests.jsonl"), writes, lines_of(self.workspace / "payments.txt"))


def lines_of(path: Path) -> int:
    """How many lines a file has; none where it is not there."""
    return len(path.read_text().splitlines()) if path.exists() else 0
