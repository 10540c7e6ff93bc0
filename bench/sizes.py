"""How much is measured: the sizes of SPEC section 21, or a fraction of them to try the benchmark quickly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes at a scale.

    Attributes:
        scale: 1 for the bars themselves; results at another scale say so.
    """

    scale: float = 1.0

    @property
    def rounds(self) -> int:
        """Interleaved rounds of what is quick."""
        return 9 if self.scale >= 1 else 3

    @property
    def reading_rounds(self) -> int:
        """Interleaved rounds of what takes a second or two."""
        return 5 if self.scale >= 1 else 2

    @property
    def slow_rounds(self) -> int:
        """Interleaved rounds of what takes a minute."""
        return 3 if self.scale >= 1 else 1

    @property
    def pairs(self) -> int:
        """T1+T2 pairs in one round."""
        return self._of(150, 4)

    @property
    def concurrent_runs(self) -> int:
        """Runs that are written at once."""
        return self._of(64, 4)

    @property
    def concurrent_pairs(self) -> int:
        """Pairs of each concurrent run in one round."""
        return self._of(30, 2)

    @property
    def large_store(self) -> int:
        """Events of a large store."""
        return self._of(1_000_000, 2_000)

    @property
    def small_store(self) -> int:
        """Events of the store that the peak memory of the large one is compared with."""
        return self.large_store // 10

    @property
    def events_per_run(self) -> int:
        """Events of each run of those stores."""
        return self._of(1_000, 100)

    @property
    def long_run(self) -> int:
        """Events of a long run that is still written."""
        return self._of(10_000, 100)

    @property
    def read_run(self) -> int:
        """Events of the run that is verified, resolved, replayed and planned."""
        return self._of(100_000, 300)

    @property
    def interrupted_runs(self) -> int:
        """Runs that a start must repair."""
        return self._of(10_000, 12)

    @property
    def claims(self) -> int:
        """Claims that stand already."""
        return self._of(100_000, 30)

    @property
    def files(self) -> int:
        """Files of the repository that is captured."""
        return self._of(50_000, 60)

    @property
    def file_bytes(self) -> int:
        """Bytes of each of them."""
        return 20_000

    @property
    def starts(self) -> int:
        """Fresh processes of each kind."""
        return self._of(15, 1)

    def _of(self, full: int, least: int) -> int:
        return max(least, round(full * self.scale))
