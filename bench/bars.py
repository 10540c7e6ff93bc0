"""The bars of SPEC section 21, by name. What is written to `results.json` has each of them, measured or not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """One bound of the table.

    Attributes:
        name: stable, the key in `results.json`.
        what, against: in words.
        bound: of the ratio.
        at_least: the bound is a lower one; otherwise an upper one.
    """

    name: str
    what: str
    against: str
    bound: float
    at_least: bool = False


PAIR = Bar("pair", "T1+T2 pair, one run", "two bare commits", 1.5)
"""The bound is one of three; `pairs` says which applies on this disk."""

PAIR_IN_LARGE_STORE = Bar("pair_in_large_store", "pair in a store of 1,000,000 events", "pair in an empty store", 1.15)
PAIR_IN_LONG_RUN = Bar("pair_in_long_run", "pair in a run of 10,000 events", "pair in an empty store", 1.15)
PAIR_AGAINST_DBOS = Bar("pair_against_dbos", "pair", "a step of DBOS (SQLite)", 1.0)
PAIR_AGAINST_LANGGRAPH = Bar("pair_against_langgraph", "pair", "a step of LangGraph (SqliteSaver, sync)", 1.0)
PAIR_AGAINST_CALL4AGENTS = Bar("pair_against_call4agents", "pair", "a step of call4agents", 1.0)
PAIR_AGAINST_SAKRIT = Bar("pair_against_sakrit", "pair", "a step of sakrit", 1.0)
CONCURRENT_RUNS = Bar("concurrent_runs", "pairs/s of 64 concurrent runs", "bare grouped inserts", 0.2, at_least=True)
CONCURRENT_RUNS_AGAINST_ONE = Bar(
    "concurrent_runs_against_one", "pairs/s of 64 concurrent runs", "one run alone", 5, at_least=True
)
PLAN_OF_LONG_RUN = Bar("plan_of_long_run", "verify, resolve, replay, plan a run of 100,000", "baseline", 2.5)
REBUILD = Bar("rebuild", "rebuild of the projections of 1,000,000 events", "baseline + bare inserts", 2)
REBUILD_MEMORY = Bar("rebuild_memory", "peak RSS of a rebuild of 1,000,000", "of one of 100,000", 1.25)
REPAIR_AT_START = Bar("repair_at_start", "repair of 10,000 interrupted runs", "baseline + bare writes", 3)
CLAIM_BESIDE_CLAIMS = Bar("claim_beside_claims", "claim beside 100,000 claims", "claim beside none", 1.1)
FRESH_PROCESS = Bar("fresh_process", "import, open a store, first T1", "importing the core dependencies", 2)
CHECKPOINT_OF_ONE_CHANGE = Bar(
    "checkpoint_of_one_change", "capture after a change of one file of 50,000 (1 GB)", "git status of the same tree", 2
)

BARS = (
    PAIR,
    PAIR_IN_LARGE_STORE,
    PAIR_IN_LONG_RUN,
    PAIR_AGAINST_DBOS,
    PAIR_AGAINST_LANGGRAPH,
    PAIR_AGAINST_CALL4AGENTS,
    PAIR_AGAINST_SAKRIT,
    CONCURRENT_RUNS,
    CONCURRENT_RUNS_AGAINST_ONE,
    PLAN_OF_LONG_RUN,
    REBUILD,
    REBUILD_MEMORY,
    REPAIR_AT_START,
    CLAIM_BESIDE_CLAIMS,
    FRESH_PROCESS,
    CHECKPOINT_OF_ONE_CHANGE,
)
"""In the order of the specification's table; the last one is no row of it."""
