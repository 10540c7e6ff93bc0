"""Maka's ledgers: event envelopes, one a line. SPEC section 19.

The scanner is fed the facts as they are; events for a replay and an import are made beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...domain.events.event import RunEvent
from ...domain.events.run import RunEnded, RunStatus
from ...domain.identifiers import ExecutionIdentity, InvocationId, RunId, SessionId, TurnId, derive_id
from ...domain.reasons import FailureClass
from ...ports.history_format import FindingCode, History, HistoryFormat, Place, ReadRun
from . import maka_facts
from .contents import Members, members_of
from .document_places import document_of, is_document, placed_objects
from .imported_run import ending, opening, sealed_run
from .lines import Reading, objects_of
from .maka_envelope import MakaFormatError, decode
from .maka_events import MakaEvents, Noted, NotExpressible
from .pairing import is_id
from .parts import Setting
from .sniffing import first_objects
from .transcript import session_named, session_named_by
from .values import UNKNOWN_TIME

_SPINE = frozenset({"id", "sessionId", "invocationId", "runId", "turnId"})

Envelope = tuple[Place, Members]


class MakaLedger(HistoryFormat):
    """Event envelopes of one run, or of several runs of one session."""

    name = "maka"

    def recognises(self, data: bytes) -> bool:
        """See `HistoryFormat`."""
        return any(found.keys() >= _SPINE for found in first_objects(data))

    def read(self, data: bytes, session_id: SessionId | None = None) -> History:
        """See `HistoryFormat`."""
        reading = Reading()
        envelopes = list(_envelopes(data, reading))
        named = session_named(_text(envelopes[0][1], "sessionId")) if envelopes else None
        session = session_id or named or session_named_by(data)
        naming = _Naming(session, renamed=session != named)
        runs: list[ReadRun] = []
        for group in _by_run(envelopes):
            runs.append(_read_run(group, naming, runs[-1] if runs else None, reading))
        return History(self.name, session, tuple(runs), tuple(reading.findings), lines=reading.lines)


def _envelopes(data: bytes, reading: Reading) -> Iterator[Envelope]:
    if is_document(data, {"events"}):
        document = document_of(data, reading)
        held = members_of(document.value).get("events", document.value) if document is not None else []
        values = held if isinstance(held, list) else []
        objects = placed_objects(document, values, "", reading) if document is not None else iter(())
    else:
        objects = objects_of(data, reading)
    sessions: set[str] = set()
    for place, envelope in objects:
        here = place._replace(source_id=_text(envelope, "id"))
        try:
            decode(envelope)
        except MakaFormatError as error:
            reading.tell(FindingCode.UNKNOWN_SHAPE, here, str(error))
        if envelope.keys().isdisjoint(_SPINE):
            continue  # it claims to be no envelope at all
        sessions.add(_text(envelope, "sessionId") or "")
        if len(sessions) > 1:
            reading.tell_once(FindingCode.SEVERAL_SESSIONS, here, "envelopes of another session")
        yield here, envelope


def _by_run(envelopes: Sequence[Envelope]) -> Iterable[Sequence[Envelope]]:
    """One group per run where the file keeps runs apart; otherwise all of it is one ledger, and judged as one."""
    groups: dict[str, list[Envelope]] = {}
    for place, envelope in envelopes:
        groups.setdefault(_text(envelope, "runId") or "", []).append((place, envelope))
    identities = {maka_facts.identity_of(envelope) for _, envelope in envelopes}
    ids = [{_text(envelope, "id") for _, envelope in group} for group in groups.values()]
    apart = sum(map(len, ids)) == len(set().union(*ids)) if ids else True
    distinct = all(len({one[part] for one in identities}) == len(groups) for part in (1, 2, 3))
    return groups.values() if apart and distinct and len(identities) == len(groups) else [envelopes]


class _Naming(NamedTuple):
    """What executions are called here: as there, unless they go into another session, where their ids may stand."""

    session: SessionId
    renamed: bool

    def identity(self, envelope: Members) -> ExecutionIdentity:
        """The execution of an envelope."""
        there = (_text(envelope, f"{kind}Id") or "" for kind in ("run", "turn", "invocation"))
        run, turn, invocation = (
            derive_id(self.session, "maka", one) if self.renamed or not is_id(one) else one for one in there
        )
        return ExecutionIdentity(self.session, RunId(run), TurnId(turn), InvocationId(invocation))


def _read_run(envelopes: Sequence[Envelope], naming: _Naming, previous: ReadRun | None, reading: Reading) -> ReadRun:
    identity = naming.identity(envelopes[0][1])
    making = MakaEvents(f"{identity.session_id}\0{identity.run_id}")
    events: list[RunEvent] = []
    places: dict[str, Place] = {}
    repetitions: dict[str, list[Place]] = {}
    for place, envelope in envelopes:
        if places.setdefault(envelope_id := _text(envelope, "id") or "", place) is not place:
            repetitions.setdefault(envelope_id, []).append(place)
        try:
            for event in making.events_of(envelope):
                if isinstance(event, Noted):
                    reading.tell_once(event.code, place, event.detail)
                else:
                    events.append(event.model_copy(update=naming.identity(envelope)._asdict()))
                    places.setdefault(event.event_id, place)
        except NotExpressible as error:
            reading.tell(FindingCode.NOT_EXPRESSIBLE, place, error.detail)
    facts = tuple(maka_facts.fact_of(envelope) for _, envelope in envelopes)
    first, last = (events[place].occurred_at if events else UNKNOWN_TIME for place in (0, -1))
    if not any(isinstance(event, RunEnded) for event in events):
        failure = FailureClass.IMPORTED_WITHOUT_TERMINAL
        reading.tell_once(FindingCode.TERMINAL_ADDED, envelopes[-1][0], failure.value)
        events.append(ending(identity, last, RunStatus.FAILED, failure))
    events.insert(0, opening(identity, first, Setting("maka"), None, previous))
    return ReadRun(identity, facts, sealed_run(events, places, reading), places, repetitions)


def _text(members: Members, name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) and value else None
