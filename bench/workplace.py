"""Where a run of the benchmark works, and the large stores that several rows share: each is made once."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from .material import large_store
from .sizes import Sizes


@dataclass
class Workplace:
    """Files of one run of the benchmark.

    Attributes:
        folder: holds everything that is made, on the disk that is measured; emptied by whoever made it.
        caches: keeps what is worth keeping between runs: environments of peers.
        with_peers: whether peers are measured, too; without them no bar against them is held.
        tell: says what is being prepared.
    """

    folder: Path
    caches: Path
    sizes: Sizes
    with_peers: bool = True
    tell: Callable[[str], None] = field(default=lambda text: None)
    _numbers: int = field(default=0, init=False)

    def fresh(self, name: str) -> Path:
        """The path of a file or folder that is not there yet."""
        self._numbers += 1
        return self.folder / f"{self._numbers:03}-{name}"

    @cached_property
    def large_store(self) -> Path:
        """A store of `Sizes.large_store` events."""
        return self._made("large.sqlite", self.sizes.large_store)

    @cached_property
    def small_store(self) -> Path:
        """A store of `Sizes.small_store` events."""
        return self._made("small.sqlite", self.sizes.small_store)

    def settle(self) -> None:
        """Let what was prepared be over: nothing of it is collected or written back while something is measured."""
        gc.collect()
        os.sync()

    def _made(self, name: str, events: int) -> Path:
        path = self.fresh(name)
        self.tell(f"making a store of {events:,} events")
        large_store(path, events, self.sizes.events_per_run)
        self.settle()
        return path
