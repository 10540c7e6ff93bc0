"""Which history a new turn is given, and what its model is told of turns that it does not get. SPEC section 12, F17.

Nothing is left out silently: a cut or a damaged turn is left out at a person's or the host's explicit setting alone, on
a turn border, recorded in the run's first event, and told by a host message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ..domain.errors import SafepointError
from ..domain.events.run import Context
from ..domain.events.session import RunAdmitted, RunKind
from ..domain.identifiers import RunId, SessionId, session_stream
from ..domain.planning.facts import SegmentFacts
from ..domain.planning.gates_of_history import BYTES_PER_TOKEN, estimated_tokens
from ..domain.replay.context import ContextHistory, Told, joined, told_of
from ..domain.replay.history import replay
from ..domain.replay.items import Item
from ..domain.replay.origin import origin_of
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, DamagedEvent
from ..ports.event_store import EventReader, EventStore
from .agent import Agent
from .lineage import LineageBroken, broken_at, histories_of, read_segment, turns_from
from .states import events_after

FIT_SHARE: Final = 0.75
"""How much of the model's window a history takes that is cut to fit: the turn itself needs the rest."""


class HistoryUnusable(SafepointError):
    """No history can be made of earlier turns; a person may leave those runs out.

    Attributes:
        session_id: of the conversation.
        run_ids: of the runs that are in the way.
    """

    def __init__(self, session_id: SessionId, run_ids: tuple[RunId, ...]) -> None:
        super().__init__(f"the record of earlier runs cannot be shown to a model: {', '.join(run_ids)}")
        self.session_id = session_id
        self.run_ids = run_ids


class HistoryTooLarge(SafepointError):
    """The earlier turns do not fit the model's window. F17.

    Attributes:
        have, limit: tokens, estimated, and those that fit.
        turns: how many earlier turns there are.
    """

    def __init__(self, session_id: SessionId, have: int, limit: int, turns: int) -> None:
        size = f"the history of {turns} earlier turns and the message have about {have} tokens"
        super().__init__(f"{size}; {limit} fit the model's window")
        self.session_id = session_id
        self.have = have
        self.limit = limit
        self.turns = turns


@dataclass(frozen=True, slots=True)
class ContextChoice:
    """What a person or the host says of the history of a new turn; by default all of it is given.

    Attributes:
        turns_max: at most so many of the newest earlier turns, 0 or more; None for all.
        fit: only as many of the newest as fit `FIT_SHARE` of the model's window, where that is known.
        leave_out_damaged: a turn whose record is damaged is left out, and so is what only it leads to.
    """

    turns_max: int | None = None
    fit: bool = False
    leave_out_damaged: bool = False


ALL: Final = ContextChoice()


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What a new turn records of its history, what its model is shown, and what it is told."""

    recorded: Context | None = None
    history: tuple[Item, ...] = ()
    told: tuple[Told, ...] = ()


@dataclass(slots=True)
class _Read:
    """Earlier turns, newest first, with what had to be left out.

    Attributes:
        newest: the prefix at which the newest turn is taken.
        turns: the first run of each, and its history.
        border: the first run of the oldest turn that a record leads to, where an older one is damaged.
        unreachable: how many turns are older than that damaged one.
    """

    newest: SegmentFacts | None = None
    turns: list[tuple[RunId, ContextHistory]] = field(default_factory=list)
    border: RunId | None = None
    unreachable: int = 0


class MakeTurnContext:
    """Makes the context of a new turn."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def __call__(
        self,
        session_id: SessionId,
        head: RunId | None,
        new_run: RunId,
        agent: Agent,
        message: str,
        choice: ContextChoice = ALL,
        *,
        given_up: frozenset[RunId] = frozenset(),
    ) -> TurnContext:
        """Read the earlier turns of a session and choose among them.

        Args:
            head: the session's newest run, None where there is none.
            new_run: the run that gets the context.
            agent: who is shown it, and whose window it must fit.
            message: what the new turn says; it must fit as well.
            given_up: damaged runs that a person has abandoned: their turns are left out, and the model is told.

        Raises:
            HistoryUnusable: an earlier turn is damaged, and nobody said that it may be left out.
            HistoryTooLarge: it does not fit the model's window.
            StoreUnavailable: it could not be read.
        """
        read, left_out = _Read(), set[RunId]()
        if head is not None:
            with self._store.snapshot() as reader:
                read = _Reading(reader, session_id, choice, left_out, given_up).from_newest(head)
        profile, window = agent.profile(), agent.provider.profile().window_tokens
        origin = origin_of(profile)
        sizes = [estimated_tokens(replay(made.segments, origin).items) for _, made in read.turns]
        own = len(message.encode()) // BYTES_PER_TOKEN
        kept = _kept(sizes, own, window, choice)
        if window is not None and (have := sum(sizes[:kept]) + own) > window:
            raise HistoryTooLarge(session_id, have, window, kept)
        shown = joined(made for _, made in reversed(read.turns[:kept]))
        recorded = None
        if read.newest is not None:
            recorded = Context(
                previous=read.newest.ref,
                left_out=tuple(sorted(left_out)),
                cut_before=_cut_before(read, kept, new_run),
                unsettled=shown.unsettled,
            )
        told = told_of(left_out, len(read.turns) - kept + read.unreachable)
        return TurnContext(recorded, replay(shown.segments, origin).items, told)


def _cut_before(read: _Read, kept: int, new_run: RunId) -> RunId | None:
    if kept == len(read.turns):
        return read.border
    return new_run if kept == 0 else read.turns[kept - 1][0]


def _kept(sizes: Sequence[int], own: int, window: int | None, choice: ContextChoice) -> int:
    """How many of the newest turns are given."""
    kept = len(sizes) if choice.turns_max is None else min(choice.turns_max, len(sizes))
    if choice.fit and window is not None:
        while kept and sum(sizes[:kept]) + own > window * FIT_SHARE:
            kept -= 1
    return kept


class _Reading:
    """Reads the turns that a record leads to; adds to `left_out` what is damaged, where that was asked for."""

    def __init__(
        self,
        reader: EventReader,
        session_id: SessionId,
        choice: ContextChoice,
        left_out: set[RunId],
        given_up: frozenset[RunId],
    ) -> None:
        self._reader = reader
        self._session_id = session_id
        self._choice = choice
        self._left_out = left_out
        self._given_up = given_up

    def from_newest(self, head: RunId) -> _Read:
        """From the session's newest run on; where its turn is damaged, from the turn before."""
        newest: RunId | None = head
        while newest is not None:
            read = self._from(newest)
            if read is not None:
                return read
            newest = self._turn_before(newest)
        return _Read()

    def _from(self, newest: RunId) -> _Read | None:
        """None where the newest turn cannot be read."""
        read, reached = _Read(), list[tuple[SegmentFacts, ...]]()
        shown: list[tuple[SegmentFacts, ...]] = []
        try:
            read.newest = read_segment(self._reader, newest)
            if read.newest is None:
                raise LineageBroken(newest, "was admitted and never opened")
            for lineage, is_left_out in turns_from(self._reader, read.newest, frozenset(self._left_out)):
                reached.append(lineage)
                if not is_left_out:
                    shown.append(lineage)
        except (DamagedEvent, LineageBroken) as damage:
            self._leave_out(broken_at(damage))
            if not reached:
                return None
            read.border = reached[-1][0].ref.run_id
            read.unreachable = self._turns_before(read.border) - 1
        for lineage, made in zip(shown, histories_of(shown), strict=True):
            if made.blocked:
                self._leave_out(*(run_id for run_id, _ in made.blocked))
            else:
                read.turns.append((lineage[0].ref.run_id, made))
        return read

    def _leave_out(self, *run_ids: RunId) -> None:
        if not self._choice.leave_out_damaged and not self._given_up.issuperset(run_ids):
            raise HistoryUnusable(self._session_id, run_ids)
        self._left_out.update(run_ids)

    def _turn_before(self, run_id: RunId) -> RunId | None:
        """The newest run of the turn before the one of this run."""
        before = self._turns_before(run_id)
        return self._admitted()[before - 1][-1] if before else None

    def _turns_before(self, run_id: RunId) -> int:
        return next(position for position, runs in enumerate(self._admitted()) if run_id in runs)

    def _admitted(self) -> list[list[RunId]]:
        """The runs of each turn, as the session admitted them."""
        turns: list[list[RunId]] = []
        for sealed in events_after(self._reader, session_stream(self._session_id), 0, FIRST_PREVIOUS_DIGEST):
            event = sealed.event
            if isinstance(event, RunAdmitted):
                if event.kind is not RunKind.CONTINUATION or not turns:
                    turns.append([])
                turns[-1].append(event.run_id)
        return turns
