"""The states of one group of commands: durable ones, moved on by what was accepted so far. SPEC section 7.

The one place where a command is decided and its candidates are sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

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
from ..domain.run.state import Run, RunDraft
from ..domain.sealing import SealedEvent, digest_of, seal
from ..domain.session.state import Session
from ..domain.unsealing import unseal
from ..ports.event_store import EventReader
from .deciding import OF_ITS_RUN, World, decide, fits, run_of, source_of
from .state_cache import StateCache
from .states import NO_RUN, Head, Read, Readable, advance, contradiction, readable, standing_of


class UnsoundEvent(ValueError):
    """A candidate contradicts what stands in its run already.

    Attributes:
        code: the ledger issue that writing it would make.
    """

    def __init__(self, event: Event, code: str) -> None:
        super().__init__(f"{event.topic} {event.event_id} would make the ledger unsound: {code}")
        self.code = code


Streams: TypeAlias = tuple[str, ...]


class Proposal(NamedTuple):
    """What was decided, and the streams whose states it was decided on.

    `decided` is None where it hangs on a head of this group in a stream that it does not write: no store could tell
    should that head come to nothing, so it is decided when the head is durable.
    """

    decided: tuple[SealedEvent, ...] | Refusal | None
    streams: Streams = ()


class Heads:
    """Decides the commands of one group in order.

    Args:
        cache: the durable heads.
        read: gives a reader of the store.
    """

    def __init__(self, cache: StateCache, read: Read) -> None:
        self._cache = cache
        self._read = read
        self._heads: dict[str, Head] = {}
        self._moved: set[str] = set()

    def propose(self, command: AnyCommand) -> Proposal:
        """Decide a command on the present heads, seal what it writes, and move the heads on; all or nothing.

        Raises:
            DamagedEvent: a state that it is decided on does not verify.
            StoreDamaged: the facts of its run contradict one another.
            StoreUnavailable: a state could not be read.
        """
        if refusal := fits(command):
            return Proposal(refusal)
        streams, decide, states = self._question(command)
        try:
            decided = decide(*states, command)
            if isinstance(decided, Refusal):
                return Proposal(decided, streams)
            if self._moved and self._hangs(streams, decided):
                return Proposal(None, streams)
            return tuple.__new__(
                Proposal, (self._advance(decided, streams), streams)
            )  # in half the time: nearly always
        except UnsoundEvent as error:
            repeated = error.code == LedgerIssue.DUPLICATE_EVENT_ID
            code = WriteRefusal.DUPLICATE_EVENT_ID if repeated else WriteRefusal.TRANSITION_SHAPE_CONFLICT
            return Proposal(Refusal(code, str(error)), streams)
        except ValueError as error:  # no canonical form, too large, or a derived fact that cannot be
            return Proposal(misfit(str(error)), streams)

    def _hangs(self, streams: Streams, decided: Sequence[Event]) -> bool:
        """Whether one of the streams was moved by this group, and is not written by what was decided on it."""
        moved = self._moved.intersection(streams)
        return bool(moved) and not moved.issubset(event.stream for event in decided)

    def _question(self, command: AnyCommand) -> tuple[Streams, Callable[..., Decision], tuple[Any, ...]]:
        """The streams that a command is decided on, what decides it, and the states that this is given."""
        of_its_run = OF_ITS_RUN.get(type(command))  # type: ignore[arg-type]  # there are others
        if of_its_run is None and type(command) is not PrepareTool:
            world, streams = self._world(command)
            found = contradiction(world.run) or contradiction(world.source)
            if found is not None and world.damage is None:
                raise StoreDamaged(found)
            return streams, decide, (world,)
        of_session, of_run = streams = _streams_of(command.session_id, run_of(command))
        session, run = self.head(of_session).session(), self.head(of_run).run()
        if run.tools.issues:
            raise StoreDamaged(contradiction(run) or "")
        return (streams, operation.prepare, (session, run)) if of_its_run is None else (streams, of_its_run, (run,))

    def _world(self, command: AnyCommand) -> tuple[World, Streams]:
        """Read what a command is decided on that is not decided on its session and run alone."""
        run_id, streams = run_of(command), [session_stream(command.session_id)]
        session = self.head(streams[0]).session()
        run, head, source = NO_RUN, None, NO_RUN
        # A damaged run can be given up, and must not stop its session afterwards: it is read only where it decides.
        if not isinstance(command, AbandonRun | AttestInSession):
            streams.append(run_stream(run_id))
            run = self.head(streams[-1])
        if isinstance(command, OpenRun) and session.head is not None and session.head.run_id not in session.abandoned:
            streams.append(run_stream(session.head.run_id))
            head = self.head(streams[-1])
        if source_id := source_of(command):
            streams.append(run_stream(source_id))
            source = self.head(streams[-1])
        seen = self._look(command, session)
        world = World(
            session=session,
            head=None if head is None else head.run(),
            head_digest="" if head is None else head.digest,
            run=run.run() if seen.readable is None else seen.readable.run,
            run_digest=run.digest,
            source=source.run(),
            ancestors=seen.ancestors,
            foreign=seen.foreign,
            damage=seen.damage,
            suspected=_NO_RUN if seen.readable is None else seen.readable.suspected,
        )
        return world, tuple(dict.fromkeys(streams))

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
            seen.foreign = standing_of(reader, run_of(command)).foreign
            if isinstance(command, ClaimContinuation):
                seen.ancestors = tuple(_ancestor(reader, segment) for segment in command.claimed.segments[:-1])

        if isinstance(command, AbandonRun | AttestInSession | EndRun | ClaimContinuation):
            self._read(look)
        return seen

    def head(self, stream: str) -> Head:
        """The present head of a stream, read where it is not known. Raises as `propose` does."""
        known = self._heads.get(stream)
        if known is None:
            known = self._heads[stream] = self._cache.get(stream, self._read)
        return known

    def _advance(self, candidates: Sequence[Event], streams: Streams) -> tuple[SealedEvent, ...]:
        if len(candidates) == 1:  # T1 and T2, above all
            event = candidates[0]
            in_its_run = len(streams) == 2 and type(event) in RUN_EVENTS
            return (self._advance_by(event, streams[1] if in_its_run else event.stream),)
        moved: dict[str, Head] = {}
        drafts: dict[str, RunDraft] = {}  # nobody asks for the states of a run between the facts of one commit
        sealed: list[SealedEvent] = []
        for event in candidates:
            stream = event.stream
            head = moved.get(stream) or self._heads[stream]
            one = seal(event, head.sequence + 1, head.digest)
            sealed.append(one)
            if type(head.state) is not Run:
                moved[stream] = advance(head, one)
                continue
            draft = drafts.get(stream)
            if draft is None:
                draft = drafts[stream] = RunDraft(head.state)
            _take_sound(draft, event)
            moved[stream] = Head(one.sequence, one.digest, head.state)
        for stream, draft in drafts.items():
            sequence, digest, _ = moved[stream]
            moved[stream] = Head(sequence, digest, draft.last())
        self._heads.update(moved)
        self._moved.update(moved)
        return tuple(sealed)

    def _advance_by(self, event: Event, stream: str) -> SealedEvent:
        sequence, previous_digest, state = head = self._heads[stream]
        sealed = seal(event, sequence + 1, previous_digest, stream)
        if type(state) is Run:
            draft = RunDraft(state)
            _take_sound(draft, event)
            # As calling the class would, in half the time.
            after = tuple.__new__(Head, (sequence + 1, sealed.digest, draft.last()))
        else:
            after = advance(head, sealed)
        self._heads[stream] = after
        self._moved.add(stream)
        return sealed

    def keep(self, *, except_streams: Iterable[str]) -> None:
        """After COMMIT: the moved heads are durable, but for streams of commits that the store refused."""
        refused = frozenset(except_streams)
        for stream in self._moved - refused:
            self._cache.put(stream, self._heads[stream])
        self._cache.outdate(refused)
        self._moved.clear()


_NO_RUN = NO_RUN.run()


@lru_cache(maxsize=4096)
def _streams_of(session_id: SessionId, run_id: RunId) -> Streams:
    """The same texts each time: they are looked up in many places, and what they hash to is known then."""
    return (session_stream(session_id), run_stream(run_id))


def _take_sound(draft: RunDraft, event: Any) -> None:
    tools = draft.tools
    identity = tools.identity
    fact = event_facts(event, identity)
    if fact[1] is not identity and draft.opening is not None:  # its identity
        raise UnsoundEvent(event, LedgerIssue.INVOCATION_IDENTITY_CONFLICT)
    known = len(tools.issues)
    draft.take_as(event, fact)
    if len(tools.issues) > known:
        raise UnsoundEvent(event, tools.issues[-1].code)


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
