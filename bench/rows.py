"""What is measured together, and which bars come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import bars
from .against_peers import PEERS, pair_against_peers
from .bars import Bar
from .checkpointing import checkpoint_of_one_change
from .claiming import claim_beside_claims
from .measuring import Measured
from .pairs import pair_alone, pair_in_large_places, pairs_of_many_runs
from .planning import plan_of_a_long_run
from .rebuilding import rebuild_of_a_large_store
from .remembering import peaks
from .repairing import repair_at_start
from .starting import fresh_process
from .workplace import Workplace


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement.

    Attributes:
        name: to choose it by; any of its bars' names does, too.
        bars: every one of them is measured, or is not held.
    """

    name: str
    bars: tuple[Bar, ...]
    measure: Callable[[Workplace], Iterator[Measured]]


ROWS = (
    Row("pair", (bars.PAIR,), pair_alone),
    Row("large", (bars.PAIR_IN_LARGE_STORE, bars.PAIR_IN_LONG_RUN), pair_in_large_places),
    Row("peers", tuple(PEERS), pair_against_peers),
    Row("concurrent", (bars.CONCURRENT_RUNS, bars.CONCURRENT_RUNS_AGAINST_ONE), pairs_of_many_runs),
    Row("plan", (bars.PLAN_OF_LONG_RUN,), plan_of_a_long_run),
    Row("rebuild", (bars.REBUILD,), rebuild_of_a_large_store),
    Row("memory", (bars.REBUILD_MEMORY,), peaks),
    Row("repair", (bars.REPAIR_AT_START,), repair_at_start),
    Row("claim", (bars.CLAIM_BESIDE_CLAIMS,), claim_beside_claims),
    Row("start", (bars.FRESH_PROCESS,), fresh_process),
    Row("checkpoint", (bars.CHECKPOINT_OF_ONE_CHANGE,), checkpoint_of_one_change),
)
"""In the order of the specification's table."""


def rows_named(names: list[str]) -> list[Row]:
    """The rows that are meant; all where none is named.

    Raises:
        ValueError: there is no such row and no such bar.
    """
    known = {name for row in ROWS for name in (row.name, *(bar.name for bar in row.bars))}
    if strange := [name for name in names if name not in known]:
        raise ValueError(f"no row or bar is called {', '.join(strange)}; there are: {', '.join(sorted(known))}")
    return [row for row in ROWS if not names or {row.name, *(bar.name for bar in row.bars)} & set(names)]


def measured(row: Row, work: Workplace) -> Iterator[Measured]:
    """Every bar of a row; a row that fails says why, and its other bars are not held."""
    missing = list(row.bars)
    try:
        for one in row.measure(work):
            missing.remove(one.bar)
            yield one
    except Exception as error:  # noqa: BLE001 (the other rows are still worth measuring)
        why = f"{type(error).__name__}: {error}"
    else:
        why = "the row did not measure it"
    yield from (Measured(bar, None, why=why) for bar in missing)
