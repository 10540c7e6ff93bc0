"""The pair against a durable step of what people use today. SPEC section 21, row 3.

Every peer runs as it does by default, warm, in a process and an environment of its own; the rounds are interleaved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeAlias

from .bars import PAIR_AGAINST_CALL4AGENTS, PAIR_AGAINST_DBOS, PAIR_AGAINST_LANGGRAPH, PAIR_AGAINST_SAKRIT, Bar
from .material import Place
from .measuring import Measured, median, microseconds, ratios
from .pairs import bare_pairs, each_pair
from .peer_environments import NotInstalled, installed
from .peer_programs import PeerFailed, PeerProgram
from .workplace import Workplace

Command: TypeAlias = Callable[[Workplace], Sequence[str]]
"""How a peer's program is started; raises NotInstalled."""


def _command(name: str, work: Workplace) -> Sequence[str]:
    work.tell(f"looking for the environment of {name}")
    return (str(installed(name, work.caches)), "-m", f"{__package__}.peers.{name}_steps")


PEERS: Mapping[Bar, Command] = {
    PAIR_AGAINST_DBOS: partial(_command, "dbos"),
    PAIR_AGAINST_LANGGRAPH: partial(_command, "langgraph"),
    PAIR_AGAINST_CALL4AGENTS: partial(_command, "call4agents"),
    PAIR_AGAINST_SAKRIT: partial(_command, "sakrit"),
}


def pair_against_peers(work: Workplace, peers: Mapping[Bar, Command] = PEERS) -> Iterator[Measured]:
    """Row 3: one of our pairs against one durable step of each peer, and two bare commits beside them."""
    if not work.with_peers:
        yield from (Measured(bar, None, why="peers were left out") for bar in peers)
        return
    programs: dict[Bar, PeerProgram] = {}
    with ExitStack() as running:
        for bar, command in peers.items():
            try:
                program = PeerProgram(command(work), work.fresh(bar.name))
                programs[bar] = running.enter_context(program)
            except (NotInstalled, PeerFailed) as error:
                yield Measured(bar, None, why=str(error))
        yield from _rounds(work, programs)


def _rounds(work: Workplace, programs: Mapping[Bar, PeerProgram]) -> Iterator[Measured]:
    ours: list[float] = []
    bare: list[float] = []
    theirs: dict[Bar, list[float]] = {bar: [] for bar in programs}
    failed: dict[Bar, str] = {}
    pairs = work.sizes.pairs
    with Place(work.fresh("beside-peers.sqlite")) as place:
        run = place.begin()
        states = run.bytes_of_a_pair()
        for _ in range(work.sizes.rounds):
            bare.append(bare_pairs(work.fresh("bare.sqlite"), states, pairs).wall)
            ours.append(each_pair(run, pairs).wall)
            for bar, program in programs.items():
                if bar not in failed:
                    try:
                        theirs[bar].append(median(program.steps(pairs)))
                    except PeerFailed as error:
                        failed[bar] = str(error)
    for bar, program in programs.items():
        if bar in failed:
            yield Measured(bar, None, why=failed[bar])
            continue
        figures = {
            "pair": microseconds(median(ours)),
            "step": microseconds(median(theirs[bar])),
            "two bare commits": microseconds(median(bare)),
            "step against bare": f"{ratios(theirs[bar], bare).median:.2f}",
            "pair against bare": f"{ratios(ours, bare).median:.2f}",
            **{name: str(value) for name, value in program.facts.items()},
        }
        yield Measured(bar, ratios(ours, theirs[bar]), figures=figures)
