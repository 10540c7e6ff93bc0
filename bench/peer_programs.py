"""Asks the programs in `peers` for durable steps; how they answer is told in `peers/serving.py`."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

ANSWERING_SECONDS_MAX = 120.0
_ROOT = Path(__file__).parents[1]


class PeerFailed(Exception):
    """A peer's program did not answer; says what it said last."""


class PeerProgram:
    """A running program; a context manager that ends it.

    Args:
        command: what to start; the folder to work in is added.
        folder: for the peer's files; made here.

    Attributes:
        facts: what the peer says of how durable it is.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        folder.mkdir()
        self._log = folder / "said"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(folder)], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        self.facts: Mapping[str, object] = {}

    def __enter__(self) -> PeerProgram:
        """Wait until it is warm."""
        try:
            self.facts = self._answer()["ready"]
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def steps(self, number: int) -> list[float]:
        """Do so many durable steps; the seconds of each."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{number}\n".encode())
            self._process.stdin.flush()
        except OSError as error:
            raise PeerFailed(self._last_words()) from error
        seconds: list[float] = self._answer()["seconds"]
        return seconds

    def _answer(self) -> Any:
        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], ANSWERING_SECONDS_MAX)
        line = stdout.readline() if ready else b""
        if not line:
            raise PeerFailed(self._last_words() if ready else f"no answer in {ANSWERING_SECONDS_MAX:.0f} seconds")
        return json.loads(line)

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it ended without a word"

    def _end(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
