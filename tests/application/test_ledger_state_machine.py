"""Random commands, retries, lost versions, rolled-back neighbours, failing commits, killed connections and takeovers,
on two ledgers of one store: the same on a store in memory and on one in SQLite, beside a model.

The model knows the rules of SPEC section 7 in the plainest form. Both stores must answer alike, agree with it, and hold
the same bytes, rows, ids and owners after each step.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from safepoint.application.ledger import Ledger, Receipt
from safepoint.domain.commands import AnyCommand, ClaimContinuation
from safepoint.domain.errors import StoreError, WriteRefused
from safepoint.domain.events.run import RunStatus
from safepoint.domain.identifiers import SessionId

from ..domain.facts import Facts, prefix
from .ledger_world import STORES, Caller, World, together

SESSIONS = ("s1", "s2")
CALLS = ("a", "b", "c")
INSTANTS = ("store.begin", "store.statement:1", "store.statement:2", "store.before_commit")
ENDS = (RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.COMPLETED)


@dataclass
class Model:
    """One run as its rules see it; `written` is how many events its stream has."""

    facts: Facts
    written: int = 0
    calls: dict[str, str] = field(default_factory=dict)
    stopping: bool = False
    ended: RunStatus | None = None
    claimed: bool = False
    claim: ClaimContinuation | None = None

    @property
    def sealed(self) -> str | None:
        """The code with which anything that needs an open run is refused."""
        if self.claimed:
            return "run_claimed"
        return "run_sealed" if self.ended else None


class Ledgers(RuleBasedStateMachine):
    """Two ledgers, two sessions, one owner at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="safepoint-")
        self.worlds = [World(kind, Path(self.folder.name)) for kind in STORES]
        self.world = self.worlds[0]
        self.ledgers = [(world.ledger, world.another_ledger(cached_streams_max=2)) for world in self.worlds]
        self.owner = dict.fromkeys(SESSIONS, 1)
        self.heads: dict[str, Model] = {}
        self.runs: list[Model] = []
        self.done: list[tuple[AnyCommand, Receipt]] = []
        self.stale: list[tuple[Facts, AnyCommand]] = []
        self.session_events = dict.fromkeys(SESSIONS, 0)

    @initialize()
    def open_sessions(self) -> None:
        for session in SESSIONS:
            self._open(0, session)

    # ---- what callers do -------------------------------------------------------------------------------------------

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS))
    def open_run(self, ledger: int, session: str) -> None:
        self._open(ledger, session)

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS), calls=st.sets(st.sampled_from(CALLS)))
    def record_step(self, ledger: int, session: str, calls: set[str]) -> None:
        run = self.heads[session]
        used = bool(calls & run.calls.keys())
        command = run.facts.record(run.facts.step(*sorted(calls)))
        if self._expect(ledger, command, run.sealed or ("transition_shape_conflict" if used else None)):
            run.calls.update(dict.fromkeys(calls, "called"))
            run.written += len(calls) + 1

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS), call=st.sampled_from(CALLS))
    def dispatch(self, ledger: int, session: str, call: str) -> None:
        run = self.heads[session]
        if call not in run.calls:
            self.record_step(ledger, session, {call})
        if call not in run.facts.called:
            return
        code = run.sealed or ("run_sealed" if run.stopping else None)
        before = [one for one in self.runs if one is not run and one.facts.session_id == session]
        unasked = any(one.calls.get(call) == "dispatched" for one in before)  # a repeat of what may have happened
        legal = run.calls.get(call) == "called" and not unasked
        illegal = None if legal else "transition_shape_conflict"
        if self._expect(ledger, run.facts.prepare(run.facts.dispatch(call)), code or illegal):
            run.calls[call] = "dispatched"
            run.written += 1

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS), call=st.sampled_from(CALLS))
    def answer(self, ledger: int, session: str, call: str) -> None:
        run = self.heads[session]
        if call not in run.facts.called:
            return
        illegal = None if run.calls.get(call) == "dispatched" else "transition_shape_conflict"
        if self._expect(ledger, run.facts.commit(run.facts.outcome(call)), run.sealed or illegal):
            run.calls[call] = "answered"
            run.written += 1

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS), call=st.sampled_from(CALLS))
    def refuse(self, ledger: int, session: str, call: str) -> None:
        run = self.heads[session]
        if call not in run.facts.called:
            return
        illegal = None if run.calls.get(call) == "called" else "transition_shape_conflict"
        if self._expect(ledger, run.facts.refuse(run.facts.refusal(call)), run.sealed or illegal):
            run.calls[call] = "answered"
            run.written += 1

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS))
    def stop(self, ledger: int, session: str) -> None:
        run = self.heads[session]
        if self._expect(ledger, run.facts.append(run.facts.cancelled()), run.sealed):
            run.stopping = True
            run.written += 1

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS), status=st.sampled_from(ENDS))
    def end(self, ledger: int, session: str, status: RunStatus) -> None:
        run = self.heads[session]
        open_ = status is RunStatus.COMPLETED and {"called", "dispatched"} & set(run.calls.values())
        if self._expect(ledger, run.facts.end(status), run.sealed or ("operation_open" if open_ else None)):
            run.ended = status
            run.written += 1 + sum(state == "called" for state in run.calls.values())
            self.session_events[session] += sum(state == "dispatched" for state in run.calls.values())

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS))
    def claim(self, ledger: int, session: str) -> None:
        run = self.heads[session]
        if run.ended is None or run.facts.run_id.endswith("'"):
            return
        boundary = prefix(run.facts, [one.event for one in self.world.stream(f"run:{run.facts.run_id}")][: run.written])
        following = Facts(f"r{len(self.runs)}'", session=session)
        following.incarnation_id, following.epoch = run.facts.incarnation_id, run.facts.epoch
        command = run.facts.claim(following, [boundary])
        code = "run_claimed" if run.claimed else None
        if run.ended is RunStatus.COMPLETED:
            code = code or "transition_shape_conflict"
        if "dispatched" in run.calls.values():
            code = code or "operation_open"
        if self._expect(ledger, command, code):
            run.claimed = True
            run.written += 1
            target = Model(following, claim=command)
            self.runs.append(target)
            self.heads[session] = target
            self.session_events[session] += 1

    @precondition(lambda self: any(run.claim and not run.written for run in self.runs))
    @rule(ledger=st.integers(0, 1), repair=st.booleans())
    def start(self, ledger: int, repair: bool) -> None:
        run = next(run for run in self.runs if run.claim and not run.written)
        assert run.claim is not None
        claimed = run.claim.claimed
        command = run.facts.repair(claimed) if repair else run.facts.start(claimed)
        if self._expect(ledger, command, None):
            run.written = 2 if repair else 1
            run.ended = RunStatus.FAILED if repair else None

    # ---- what goes wrong -------------------------------------------------------------------------------------------

    @precondition(lambda self: self.done)
    @rule(ledger=st.integers(0, 1), data=st.data())
    def retry(self, ledger: int, data: st.DataObject) -> None:
        """Whatever was written before converges on its first result, whoever asks and whenever."""
        command, first = data.draw(st.sampled_from(self.done))
        again = self._execute(ledger, command)
        assert isinstance(again, Receipt)
        assert (again.first, again.events) == (False, first.events)

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS))
    def conflicting_retry(self, ledger: int, session: str) -> None:
        run = self.heads[session]
        said = [one.event for one in self.world.stream(f"run:{run.facts.run_id}")]
        if run.written < 2 or run.claim is not None:
            return
        changed = said[1].model_copy(update={"text": "something else", "steering": True})
        self._refused(ledger, run.facts.append(changed), "retry_conflict")  # type: ignore[arg-type]

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS), stored=st.booleans())
    def commit_fails(self, ledger: int, session: str, stored: bool) -> None:
        """Nobody knows whether it was stored; the exact retry converges."""
        run = self.heads[session]
        command = run.facts.append(run.facts.user("x", steering=True))
        if run.sealed or not run.written:
            return
        self._forget(ledger, session)  # else it may lose its version first, and store nothing
        for world in self.worlds:
            world.fail_commit(stored=stored)
        assert self._execute(ledger, command) == "store_unavailable"
        self._converged(1 - ledger, command, run, first=not stored)

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS), instant=st.sampled_from(INSTANTS))
    def connection_dies(self, ledger: int, session: str, instant: str) -> None:
        """The connection is gone in the middle of a transaction: nothing of it is kept, and the next try opens anew."""
        run = self.heads[session]
        command = run.facts.append(run.facts.user("x", steering=True))
        if run.sealed or not run.written:
            return
        self._forget(ledger, session)
        for world in self.worlds:
            world.kill_connection(instant)
        assert self._execute(ledger, command) == "store_unavailable"
        self._converged(ledger, command, run, first=True)

    @rule(session=st.sampled_from(SESSIONS), same=st.booleans())
    def neighbour_rolls_back(self, session: str, same: bool) -> None:
        """Two commands meet in one group, and the first is rolled back: the second is kept, or decided anew."""
        other = session if same else next(one for one in SESSIONS if one != session)
        first, second = self.heads[session], self.heads[other]
        if first.sealed or second.sealed or not first.written or not second.written:
            return
        lost = first.facts.append(first.facts.user("lost", steering=True))
        kept = second.facts.append(second.facts.user("kept", steering=True))
        answers = []
        for world in self.worlds:
            world.ledger.forget(SessionId(session))
            world.ledger.forget(SessionId(other))
            world.events.before_append(world.events.damage_next, after=1)
            answers.append([outcome(caller) for caller in together(world, lost, kept)])
        assert answers[0] == answers[1]
        assert answers[0][0] == "store_damaged"
        receipt = answers[0][1]
        assert isinstance(receipt, Receipt)
        assert receipt.first
        second.written += 1
        self.done.append((kept, receipt))

    @rule(ledger=st.integers(0, 1), session=st.sampled_from(SESSIONS))
    def overtaken(self, ledger: int, session: str) -> None:
        """Another ledger writes between the decision and the commit of the first."""
        run = self.heads[session]
        if run.sealed or not run.written or ledger:
            return
        meanwhile = run.facts.append(run.facts.user("first", steering=True))
        mine = run.facts.append(run.facts.user("second", steering=True))
        for world, (_, another) in zip(self.worlds, self.ledgers, strict=True):
            world.events.before_append(partial(another.execute, meanwhile))
        receipt = self._execute(0, mine)
        assert isinstance(receipt, Receipt)
        assert receipt.first
        run.written += 2
        self.done.append((mine, receipt))

    @rule(session=st.sampled_from(SESSIONS))
    def takeover(self, session: str) -> None:
        """Another life takes the session; whoever takes one forgets what was known of it."""
        run = self.heads[session]
        old = Facts(
            run.facts.run_id, session=session, incarnation=run.facts.incarnation_id, maker=f"-{len(self.stale)}-"
        )
        old.epoch = run.facts.epoch
        self.stale.append((old, old.append(old.cancelled())))
        self.owner[session] += 1
        successor = Facts("x", session=session, incarnation=f"i{self.owner[session]}")
        for world in self.worlds:
            world.own(successor)
        for one in self.runs:
            if one.facts.session_id == session:
                one.facts.incarnation_id, one.facts.epoch = successor.incarnation_id, successor.epoch
        for ledger in (0, 1):
            self._forget(ledger, session)

    @precondition(lambda self: self.stale)
    @rule(ledger=st.integers(0, 1), data=st.data())
    def stale_owner(self, ledger: int, data: st.DataObject) -> None:
        _, command = data.draw(st.sampled_from(self.stale))
        self._refused(ledger, command, "owner_fenced")

    # ---- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def streams_verify_and_are_as_long_as_the_model_says(self) -> None:
        for world in self.worlds:
            for run in self.runs:
                assert len(world.stream(f"run:{run.facts.run_id}")) == run.written, run
            for session, written in self.session_events.items():
                assert len(world.stream(f"session:{session}")) == written

    @invariant()
    def both_stores_hold_the_same(self) -> None:
        memory, sqlite = self.worlds
        assert memory.content() == sqlite.content()

    def teardown(self) -> None:
        try:
            for world in self.worlds:
                assert world.consistent()
                assert list(world.store.faults()) == []
        finally:
            for world in self.worlds:
                world.close()
            self.folder.cleanup()

    # ---- how it is asked -------------------------------------------------------------------------------------------

    def _open(self, ledger: int, session: str) -> None:
        head = self.heads.get(session)
        facts = Facts(f"r{len(self.runs)}", session=session)
        if head is None:
            for world in self.worlds:
                world.own(facts)
        else:
            facts.incarnation_id, facts.epoch = head.facts.incarnation_id, head.facts.epoch
        code = None if head is None or head.ended else "session_busy"
        if self._expect(ledger, facts.open_run(), code):
            run = Model(facts, written=2)
            self.runs.append(run)
            self.heads[session] = run
            self.session_events[session] += 2 if head is None else 1

    def _expect(self, ledger: int, command: AnyCommand, code: str | None) -> bool:
        """Execute; accepted exactly where the model knows no code against it."""
        run = next((run for run in self.runs if run.facts.run_id == getattr(command, "run_id", None)), None)
        if run is not None and not run.written and run.claim is not None and not hasattr(command, "source_run_id"):
            code = "transition_shape_conflict"  # its target was never opened
        if code is not None:
            self._refused(ledger, command, code)
            return False
        receipt = self._execute(ledger, command)
        assert isinstance(receipt, Receipt), receipt
        assert receipt.first
        self.done.append((command, receipt))
        return True

    def _refused(self, ledger: int, command: AnyCommand, code: str) -> None:
        assert self._execute(ledger, command) == code

    def _execute(self, ledger: int, command: AnyCommand) -> Receipt | str:
        """What comes of a command, which both stores must say: its receipt, or the code of its error."""
        said = [attempt(ledgers[ledger], command) for ledgers in self.ledgers]
        assert said[0] == said[1]
        return said[0]

    def _converged(self, ledger: int, command: AnyCommand, run: Model, *, first: bool) -> None:
        receipt = self._execute(ledger, command)
        assert isinstance(receipt, Receipt)
        assert receipt.first is first
        run.written += 1
        self.done.append((command, receipt))

    def _forget(self, ledger: int, session: str) -> None:
        for ledgers in self.ledgers:
            ledgers[ledger].forget(SessionId(session))


def attempt(ledger: Ledger, command: AnyCommand) -> Receipt | str:
    try:
        return ledger.execute(command)
    except (StoreError, WriteRefused) as error:
        return error.code.value


def outcome(caller: Caller) -> Receipt | str:
    """What came of a command in a thread of its own."""
    if caller.error is not None:
        assert isinstance(caller.error, StoreError | WriteRefused), caller.error
        return caller.error.code.value
    assert caller.receipt is not None
    return caller.receipt


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
