"""The states that a group of commands is decided on: durable ones, moved on by what was accepted. SPEC section 7.

The one place where a command is decided and its candidates are sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..domain.commands import (
    AbandonRun,
    AnyCommand,
    AttestInSession,
    ClaimContinuation,
    EndRun,
    OpenRun,
    PrepareTool,
)
from ..domain.continuation.decisions import AncestorHead
from ..domain.decision import Decision, Refusal, misfit
from ..domain.errors import StoreDamaged
from ..domain.events.catalogue import RUN_EVENTS
from ..domain.events.event import Event
from ..domain.events.run import PrefixRef, RunClaimed
from ..domain.identifiers import RunId, SessionId, run_stream, session_stream
from ..domain.operation import decisions as operation
from ..domain.reasons import LedgerIssue, WriteRefusal
from ..domain.recovery.event_facts import event_facts
from ..domain.recovery.facts import Fact
from ..domain.run.state import Run
from ..domain.sealing import FIRST_PREVIOUS_DIGEST, SealedEvent, digest_of, seal
from ..domain.session.state import Session
from ..domain.unsealing import unseal
from ..ports.event_store import EventReader
from .deciding import OF_ITS_RUN, World, decide, fits, source_of
from .state_cache import StateCache
from .states import Head, Read, Readable, contradiction, readable, standing_of


class UnsoundEvent(ValueError):
    """A candidate contradicts what stands in its run already.

    Attributes:
        code: the ledger issue that writing it would make.
    """

    def __init__(self, event: Event, code: str) -> None:
        super().__init__(f"{event.topic} {event.event_id} would make the ledger unsound: {code}")
        self.code = code


class Proposal(NamedTuple):
    """What was decided, and the heads that it was decided on.

    `decided` is None where it hangs on a head that this group has moved and that it does not write: no store could tell
    should that come to nothing, so it is decided when the head is durable.
    """

    decided: tuple[SealedEvent, ...] | Refusal | None
    heads: tuple[Head, ...] = ()


class Heads:
    """Decides the commands of one group in order, and moves the heads of the cache, which are durable between groups.

    Args:
        cache: the heads.
        read: gives a reader of the store.
    """

    def __init__(self, cache: StateCache, read: Read) -> None:
        self._cache = cache
        self._read = read
        self._moved: list[Head] = []
        self._spoiled: set[str] = set()

    def propose(self, command: AnyCommand) -> Proposal:
        """Decide a command on the present heads, seal what it writes, and move the heads on; all or nothing.

        Raises:
            DamagedEvent: a state that it is decided on does not verify.
            StoreDamaged: the facts of its run contradict one another.
            StoreUnavailable: a state could not be read.
        """
        if refusal := fits(command):
            return Proposal(refusal)
        heads, decide, states = self._question(command)
        try:
            decided = decide(*states, command)
            if isinstance(decided, Refusal):
                return Proposal(decided, heads)
            if _hangs(heads, decided):
                return Proposal(None, heads)
            # As calling the class would, in half the time: nearly always.
            return tuple.__new__(Proposal, (self._advance(decided, heads), heads))
        except UnsoundEvent as error:
            repeated = error.code == LedgerIssue.DUPLICATE_EVENT_ID
            code = WriteRefusal.DUPLICATE_EVENT_ID if repeated else WriteRefusal.TRANSITION_SHAPE_CONFLICT
            return Proposal(Refusal(code, str(error)), heads)
        except ValueError as error:  # no canonical form, too large, or a derived fact that cannot be
            return Proposal(misfit(str(error)), heads)

    def _question(self, command: AnyCommand) -> tuple[tuple[Head, ...], Callable[..., Decision], tuple[Any, ...]]:
        """The heads that a command is decided on, what decides it, and the states that this is given."""
        of_its_run = OF_ITS_RUN.get(type(command))  # type: ignore[arg-type]  # there are others
        if of_its_run is None and type(command) is not PrepareTool:
            world, heads = self._world(command)
            found = contradiction(world.run) or contradiction(world.source)
            if found is not None and world.damage is None:
                raise StoreDamaged(found)
            return heads, decide, (world,)
        of_session, of_run = _streams_of(command.session_id, command.run_id)
        session, run = heads = self.head(of_session), self.head(of_run)
        state = run.run()
        if state.tools.issues:
            raise StoreDamaged(contradiction(state) or "")
        return (
            (heads, operation.prepare, (session.session(), state))
            if of_its_run is None
            else (heads, of_its_run, (state,))
        )

    def _world(self, command: AnyCommand) -> tuple[World, tuple[Head, ...]]:
        """Read what a command is decided on that is not decided on its session and run alone."""
        heads = {session_stream(command.session_id): self.head(session_stream(command.session_id))}

        def run_head(run_id: RunId) -> Head:
            stream = run_stream(run_id)
            return heads.get(stream) or heads.setdefault(stream, self.head(stream))

        (session,) = (head.session() for head in heads.values())
        run = head = source = None
        # A damaged run can be given up, and must not stop its session afterwards: it is read only where it decides.
        if not isinstance(command, AbandonRun | AttestInSession):
            run = run_head(command.run_id)
        if isinstance(command, OpenRun) and session.head is not None and session.head.run_id not in session.abandoned:
            head = run_head(session.head.run_id)
        if source_id := source_of(command):
            source = run_head(source_id)
        seen = self._look(command, session)
        world = World(
            session=session,
            head=None if head is None else head.run(),
            head_digest="" if head is None else head.digest,
            run=_NO_RUN if run is None else run.run(),
            run_digest=FIRST_PREVIOUS_DIGEST if run is None else run.digest,
            source=_NO_RUN if source is None else source.run(),
            ancestors=seen.ancestors,
            foreign=seen.foreign,
            damage=seen.damage,
        )
        if seen.readable is not None:
            world = world._replace(run=seen.readable.run, suspected=seen.readable.suspected)
        return world, tuple(heads.values())

    def _look(self, command: AnyCommand, session: Session) -> _Seen:
        """Read what few commands need beside the states."""
        seen = _Seen()

        def look(reader: EventReader) -> None:
            if isinstance(command, AbandonRun | AttestInSession):
                seen.readable = readable(reader, command.run_id)
                seen.damage = seen.readable.damage
                if isinstance(command, AbandonRun) and seen.readable.run.opening is None and seen.damage is None:
                    seen.damage = _never_opened(reader, session, command.run_id)
                return
            seen.foreign = standing_of(reader, command.run_id).foreign
            if isinstance(command, ClaimContinuation):
                seen.ancestors = tuple(_ancestor(reader, segment) for segment in command.claimed.segments[:-1])

        if isinstance(command, AbandonRun | AttestInSession | EndRun | ClaimContinuation):
            self._read(look)
        return seen

    def head(self, stream: str) -> Head:
        """The present head of a stream, read where it is not known. Raises as `propose` does."""
        return self._cache.get(stream, self._read)

    def _advance(self, candidates: Sequence[Event], heads: tuple[Head, ...]) -> tuple[SealedEvent, ...]:
        """Seal candidates and fold them in."""
        written = _sealed(candidates, heads)
        begun = False
        try:
            for head, one in written:
                state = head.state
                fact = _sound_fact(state, one.event) if type(state) is Run else None
                begun = True
                if not head.moving:
                    self._cache.hold(head)
                    self._moved.append(head)
                head.advance(one, fact)
                if fact is not None:
                    _stays_sound(head.run(), one.event)
                if one.sequence == 1:
                    self._cache.put(head)
        except BaseException:
            if begun:
                self._spoil(written)
            raise
        return (written[0][1],) if len(written) == 1 else tuple([one for _, one in written])

    def _spoil(self, written: Sequence[tuple[Head, SealedEvent]]) -> None:
        """Let heads go that hold what is not written after all: there is no way back but to read what is durable."""
        for head, one in reversed(written):
            head.sequence = one.sequence - 1  # where it was is all that it is still asked for
            self._spoiled.add(head.stream)
            self._cache.drop(head.stream)

    def keep(self, *, except_streams: Collection[str]) -> None:
        """After COMMIT: the moved heads are durable, but for streams of commits that the store refused."""
        if self._spoiled or except_streams:
            for stream in self._spoiled.union(except_streams):
                self._cache.drop(stream)
        for head in self._moved:
            head.moving = False
        self._cache.trim()
        self._moved.clear()
        self._spoiled.clear()


_NO_RUN = Run()


def _hangs(heads: tuple[Head, ...], decided: Sequence[Event]) -> bool:
    """Whether one of the heads was moved by this group, and is not written by what was decided on it."""
    for head in heads:
        if head.moving and all(event.stream != head.stream for event in decided):
            return True
    return False


def _sealed(candidates: Sequence[Event], heads: tuple[Head, ...]) -> Sequence[tuple[Head, SealedEvent]]:
    """Candidates with the heads that they move, each sealed after those before it."""
    if len(candidates) == 1 and len(heads) == 2 and type(candidates[0]) in RUN_EVENTS:  # T1 and T2, above all
        head = heads[1]
        return ((head, seal(candidates[0], head.sequence + 1, head.digest, head.stream)),)
    by_stream = {head.stream: head for head in heads}
    ends = {head.stream: (head.sequence, head.digest) for head in heads}
    written = []
    for event in candidates:
        stream = event.stream
        sequence, digest = ends[stream]
        one = seal(event, sequence + 1, digest, stream)
        ends[stream] = (one.sequence, one.digest)
        written.append((by_stream[stream], one))
    return written


@lru_cache(maxsize=4096)
def _streams_of(session_id: SessionId, run_id: RunId) -> tuple[str, str]:
    """The same texts each time: they are looked up in many places, and what they hash to is known then."""
    return (session_stream(session_id), run_stream(run_id))


def _stays_sound(run: Run, event: Event) -> None:
    if run.tools.issues:
        raise UnsoundEvent(event, run.tools.issues[-1].code)


def _sound_fact(run: Run, event: Any) -> Fact:
    """The fact that an event is, unless it is there already, or of another execution than its run."""
    identity = run.tools.identity
    fact = event_facts(event, identity)
    if fact[1] is not identity and run.opening is not None:  # its identity
        raise UnsoundEvent(event, LedgerIssue.INVOCATION_IDENTITY_CONFLICT)
    if run.tools.sequence_of(fact[0]) is not None:
        raise UnsoundEvent(event, LedgerIssue.DUPLICATE_EVENT_ID)
    return fact


@dataclass(slots=True)
class _Seen:
    ancestors: tuple[AncestorHead, ...] = ()
    foreign: bool = False
    readable: Readable | None = None
    damage: str | None = None


def _never_opened(reader: EventReader, session: Session, run_id: RunId) -> str | None:
    """What is wrong with a head run that has no event; None where a claim names it, which repair starts and ends."""
    if session.previous is not None:
        source, damage, _ = readable(reader, session.previous.run_id)
        if damage is not None or (source.claimed is not None and source.claimed.target.run_id == run_id):
            return damage
    return f"run {run_id} was admitted and never opened, and no claim names it"


def _ancestor(reader: EventReader, segment: PrefixRef) -> AncestorHead:
    """Two rows of an ancestor: the one at the boundary, and the claim right after it."""
    rows = reader.read(run_stream(segment.run_id), after=segment.high_water - 1, limit=2)
    if len(rows) < 2:
        return AncestorHead(segment.run_id, None, None)
    digest = digest_of(rows[0].state)
    following = unseal(rows[1], segment.high_water + 1, digest).event
    return AncestorHead(segment.run_id, digest, following if isinstance(following, RunClaimed) else None)
