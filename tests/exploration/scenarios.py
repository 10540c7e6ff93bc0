"""The small scenarios that are explored whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from safepoint.domain.reasons import ParkReason

from . import by_hand
from .explorer import Scenario, dies
from .process import (
    after,
    exchange_workspace,
    repair,
    resume,
    settle,
    settle_hastily,
    stop,
    take_over_by_ending,
    take_over_by_force,
    turn,
)
from .world import World

PAY, TWO = ("pay",), ("pay", "send")
RESUMES = "two processes resume what a dead one left, and one of them is killed"
KILLED = "a turn of two parallel calls is killed, and another process resumes"
FENCED = "a living turn is fenced, and its session resumed"
ENDED = "a living turn is ended, and its session resumed"
STOPPED = "a person stops a turn of two parallel calls"
WORKS_ON = "a fenced tool still works while a person settles"
OUTLIVES = "a fenced tool still works when the one that fenced it has died"
BACK = "a process comes back to a session that another one worked on"
UNSETTLED = "an unknown outcome is never continued past"
CHILD = "a child outlives its owner while a person settles"
NEW_TURN = "a new turn beside a resume"
BOTH = frozenset({"a", "b"})


def interrupted(at: str) -> Callable[[World], None]:
    """A turn whose process was killed."""
    return lambda world: dies(world, "earlier", turn(), at=at, tools=PAY)


def repaired(at: str) -> Callable[[World], None]:
    """The same, repaired by another process, which left."""

    def before(world: World) -> None:
        interrupted(at)(world)
        dies(world, "later", repair, at="exit", tools=PAY)

    return before


def claimed(world: World) -> None:
    """The same, whose continuation was claimed and never started."""
    interrupted(DELIVERED)(world)
    dies(world, "later", resume, at="commit continuation.started", tools=PAY)


FINE = frozenset({"by hand: two repairs of a claim"})
"""Where it matters what is read before what."""

DELIVERED, UNKNOWN = "request#2", "commit tool.responded"
"""Where it was killed: every effect is recorded; an effect was done, and no outcome is recorded."""

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            RESUMES,
            {"a": [resume], "b": [resume]},
            before=interrupted(DELIVERED),
            tools=PAY,
            kills=1,
            mortal=frozenset("a"),  # which one is killed makes no difference
        ),
        Scenario(
            KILLED,
            {"a": [turn()], "b": [resume]},
            kills=1,
            mortal=frozenset("a"),
        ),
        Scenario(
            FENCED,
            {"a": [turn()], "b": [take_over_by_force, resume]},
            tools=PAY,
        ),
        Scenario(
            ENDED,
            {"a": [turn()], "b": [take_over_by_ending, resume]},
            tools=PAY,
        ),
        Scenario(
            NEW_TURN,
            {"a": [turn("And now?")], "b": [resume]},
            before=interrupted(DELIVERED),
            tools=PAY,
        ),
        Scenario(
            WORKS_ON,
            {"a": [turn()], "b": [take_over_by_force, settle_hastily]},
            tools=PAY,
        ),
        Scenario(
            "an unknown outcome is settled beside a resume",
            {"a": [settle, resume], "b": [resume]},
            before=interrupted(UNKNOWN),
            tools=PAY,
        ),
        Scenario(
            UNSETTLED,
            {"a": [resume], "b": [resume]},
            before=interrupted(UNKNOWN),
            tools=PAY,
        ),
        Scenario(
            CHILD,
            {"a": [turn()], "b": [settle_hastily]},
            tools=PAY,
            supervises=frozenset(PAY),
            kills=1,
            mortal=frozenset("a"),
        ),
        Scenario(
            BACK,
            {"a": [repair, turn("And now?")], "b": [resume]},
            before=interrupted(DELIVERED),
            tools=PAY,
            kills=1,
            mortal=frozenset("b"),
        ),
        Scenario(
            OUTLIVES,
            {"a": [turn()], "b": [take_over_by_force], "c": [after("b"), settle_hastily]},
            tools=PAY,
        ),
        Scenario("a commit of a turn in doubt", {"a": [turn()]}, tools=PAY, doubts=1),
        Scenario("a commit of a resume in doubt", {"a": [resume]}, before=interrupted(DELIVERED), tools=PAY, doubts=1),
        Scenario(STOPPED, {"a": [turn()]}, beside={"a": [stop]}),
        Scenario(
            "one process is asked twice at once", {"a": [turn()]}, beside={"a": [turn("And?"), resume]}, tools=PAY
        ),
        Scenario(
            "the workspace is exchanged while a run is resumed",
            {"a": [resume], "world": [exchange_workspace]},
            before=interrupted(DELIVERED),
            tools=PAY,
            parks=frozenset({ParkReason.WORKSPACE_IDENTITY_MISMATCH}),
        ),
        *(
            Scenario(
                name, {"a": first}, beside={"a": second}, before=before, tools=PAY, by_hand=True, fine=name in FINE
            )
            for name, first, second, before in (
                ("by hand: two claims of one boundary", [by_hand.resume], [by_hand.resume], repaired(DELIVERED)),
                ("by hand: a claim and a new turn", [by_hand.resume], [by_hand.turn], repaired(DELIVERED)),
                ("by hand: a claim and a late fact", [by_hand.resume], [by_hand.add_late_fact], repaired(DELIVERED)),
                ("by hand: two new turns", [by_hand.turn], [by_hand.turn], repaired(DELIVERED)),
                ("by hand: a new turn and a settlement", [by_hand.turn], [by_hand.settle], repaired(UNKNOWN)),
                ("by hand: two settlements", [by_hand.settle], [by_hand.settle], repaired(UNKNOWN)),
                ("by hand: a settlement and repair", [by_hand.repair], [by_hand.settle], interrupted(UNKNOWN)),
                ("by hand: two repairs of a claim", [by_hand.repair], [by_hand.repair], claimed),
                ("by hand: two drivers of one start", [by_hand.start], [by_hand.drive], lambda world: None),
                (
                    "by hand: one attempt, made twice",
                    [by_hand.start_by_same_attempt],
                    [by_hand.start_by_same_attempt],
                    lambda world: None,
                ),
                (
                    "by hand: two attempts with one command",
                    [by_hand.start_by_same_command],
                    [by_hand.start_by_same_command],
                    lambda world: None,
                ),
                (
                    "by hand: one call, dispatched twice",
                    [by_hand.record_call, by_hand.dispatch],
                    [by_hand.dispatch],
                    lambda world: None,
                ),
                (
                    "by hand: one operation, answered twice",
                    [by_hand.record_call, by_hand.dispatch],
                    [by_hand.answer],
                    lambda world: None,
                ),
                (
                    "by hand: a run is ended while it dispatches",
                    [by_hand.record_call, by_hand.end],
                    [by_hand.dispatch],
                    lambda world: None,
                ),
            )
        ),
    )
}

SEEN: Mapping[str, frozenset[tuple[str, ...]]] = {
    RESUMES: frozenset(
        {
            ("a", "completed"),
            ("b", "session_busy"),
            ("b", "resume_candidate_missing"),
        }
    ),
    KILLED: frozenset(
        {
            ("a", "completed"),
            ("b", "completed"),
            ("b", "dangling_tool_state"),
            ("b", "session_busy"),
        }
    ),
    FENCED: frozenset(
        {
            ("a", "owner_fenced"),
            ("b", "forced", "completed"),
            ("b", "forced", "dangling_tool_state,effect_may_be_running"),
        }
    ),
    ENDED: frozenset(
        {
            ("b", "ended", "completed"),
            ("b", "ended", "dangling_tool_state"),
        }
    ),
    WORKS_ON: frozenset(
        {
            ("a", "owner_fenced"),
            ("b", "forced", "operation_not_over"),
            ("b", "forced", "settled 1"),
        }
    ),
    OUTLIVES: frozenset({("c", "after b", "operation_not_over"), ("c", "after b", "settled 1")}),
    CHILD: frozenset({("b", "operation_not_over"), ("b", "settled 1")}),
    STOPPED: frozenset(
        {
            ("a", "stopped True", "cancelled"),
            ("a", "completed", "stopped False"),
        }
    ),
    "the workspace is exchanged while a run is resumed": frozenset(
        {
            ("a", "workspace_identity_mismatch,workspace_identity_changed"),
        }
    ),
    "by hand: two claims of one boundary": frozenset({("a", "continuation_already_exists", "completed")}),
    "by hand: two drivers of one start": frozenset({("a", "ProofUsed", "completed")}),
    "by hand: one attempt, made twice": frozenset({("a", "no proof", "completed")}),
}
"""What some order must have come to, so that an exploration which explores nothing fails."""

LARGE: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        replace(SCENARIOS[FENCED], name="fenced, two parallel calls, anybody killed", tools=TWO, kills=1, mortal=BOTH),
        replace(SCENARIOS[ENDED], name="ended, two parallel calls, anybody killed", tools=TWO, kills=1, mortal=BOTH),
        replace(SCENARIOS[RESUMES], name="two resumes, both killed, every read apart", kills=2, mortal=BOTH, fine=True),
        replace(SCENARIOS[KILLED], name="two parallel calls killed, and the resume too", kills=2, mortal=BOTH),
        Scenario(
            "everything: a turn, a take-over, a settlement, a resume, a new turn, and a third process",
            {"a": [turn()], "b": [take_over_by_force, settle, resume, turn("And now?")], "c": [resume]},
            kills=1,
            mortal=frozenset("a"),
        ),
    )
}
"""The large ones, for `make explore`: minutes to hours."""
