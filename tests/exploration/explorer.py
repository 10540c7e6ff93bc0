"""Runs a scenario in every order of what its processes do, each also killed at every point, to quiescence.

Stateless model checking: an order is a list of choices, replayed from the start; a state that was seen before is not
gone on from. What is chosen between is which fiber goes on, and which process is killed now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from safepoint.domain.reasons import ParkReason

from .aftermath import check_aftermath
from .fibers import Fiber
from .process import Process, owns_by_hand
from .rules import Rules
from .stepped_loop import stepped
from .world import LOCAL, World

Deed: TypeAlias = Callable[[Process], object]
Choice: TypeAlias = tuple[str, str, str]
"""What happens: a fiber goes on (GO, process, fiber), also into a commit of which nobody is told whether it was kept
(LOST, STORED), or a process is killed (KILL, process)."""

GO, KILL, LOST, STORED = "go", "kill", "lost", "stored"
STEPS_MAX = 500


@dataclass(frozen=True)
class Scenario:
    """What is explored.

    Attributes:
        before: leaves behind what was there before: run once, in one order.
        actors: what each process does, by its name.
        beside: what a second fiber of a process does, by the process's name.
        by_hand: the processes own the session from the start, and nothing but the ledger stands between their deeds.
        doubts: of how many commits nobody is told whether they were kept.
        kills: how many of the processes may be killed on the way.
        mortal: those that may be.
        fine: stand before every read.
        never: what nobody must be told.
        parks: why the session may park in the end, beside what is always expected.
    """

    name: str
    actors: Mapping[str, Sequence[Deed]]
    before: Callable[[World], None] = lambda world: None
    beside: Mapping[str, Sequence[Deed]] = field(default_factory=dict)
    by_hand: bool = False
    doubts: int = 0
    kills: int = 0
    mortal: frozenset[str] = frozenset()
    fine: bool = False
    parks: frozenset[ParkReason] = frozenset()
    never: frozenset[str] = frozenset({"duplicate_event_id", "retry_conflict"})
    tools: tuple[str, ...] = ("pay", "send")
    supervises: frozenset[str] = frozenset()


class RuleBroken(AssertionError):
    """An order in which a rule is broken.

    Attributes:
        order: the choices that lead there.
    """

    def __init__(self, scenario: Scenario, broken: Sequence[str], order: Sequence[Choice], told: Sequence[str]) -> None:
        steps = "\n".join(told)
        super().__init__(f"{scenario.name}: {'; '.join(broken)}\nin this order:\n{steps}")
        self.broken = tuple(broken)
        self.order = tuple(order)


@dataclass
class Explored:
    """What an exploration came to.

    Attributes:
        states: how many different states were seen.
        orders: how many orders were run, each to a state that was seen before or to quiescence.
        ends: how often what the processes were told at quiescence, by process.
        answers: how the store answered commits.
    """

    scenario: Scenario
    states: int = 0
    orders: int = 0
    quiescent: int = 0
    ends: Counter[tuple[str, ...]] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.scenario.name}: {self.states} states, {self.orders} orders, {self.quiescent} quiescent"


class Explorer:
    """Explores one scenario.

    Args:
        orders_max: gives up after so many; None for all.
    """

    def __init__(self, scenario: Scenario, *, orders_max: int | None = None) -> None:
        self._scenario = scenario
        self._orders_max = orders_max
        self._seen: set[int] = set()
        self._left: list[tuple[Choice, ...]] = [()]
        self._found = Explored(scenario)

    def __call__(self) -> Explored:
        """Explore.

        Raises:
            RuleBroken: with the order that broke it.
        """
        with stepped():
            self._before = World(fine=self._scenario.fine)
            self._before.rules = Rules(self._before)
            self._scenario.before(self._before)
            while self._left:
                if self._orders_max is not None and self._found.orders >= self._orders_max:
                    raise AssertionError(f"{self._found} and more")
                self._run(self._left.pop())
        self._found.states = len(self._seen)
        return self._found

    def _run(self, order: tuple[Choice, ...]) -> None:
        """Replay an order, and go on from its end as long as something new is seen."""
        self._found.orders += 1
        world = self._begin()
        taken: list[Choice] = []
        told: list[str] = []
        kills, doubts = self._scenario.kills, self._scenario.doubts
        try:
            for step in range(STEPS_MAX):
                choices = self._choices(world, kills, doubts)
                if step >= len(order):
                    key = hash((world.key(), kills, doubts))
                    if key in self._seen:
                        return
                    self._seen.add(key)
                    if not choices:
                        self._end(world)
                        self._check(world, taken, told)
                        return
                    choice, *others = choices
                    self._left.extend((*taken, other) for other in reversed(others))
                else:
                    choice = order[step]
                taken.append(choice)
                kills -= choice[0] == KILL
                doubts -= choice[0] in {LOST, STORED}
                self._take(world, choice, told)
                self._check(world, taken, told)
            raise AssertionError(f"{self._scenario.name}: no end after {STEPS_MAX} steps:\n" + "\n".join(told))
        finally:
            self._found.answers.update(world.answers)
            world.threads.stop()

    def _begin(self) -> World:
        scenario = self._scenario
        world = self._before.copy()
        world.rules = self._before.rules.copy(world) if self._before.rules is not None else None
        for name, deeds in scenario.actors.items():
            process = Process(world, name, tools=scenario.tools, supervises=scenario.supervises)
            if scenario.by_hand:
                owns_by_hand(process)
            world.threads.start(name, process.does(*deeds))
            if name in scenario.beside:
                world.threads.start(name, process.does(*scenario.beside[name]), "beside")
        world.threads.settle()
        return world

    def _choices(self, world: World, kills: int, doubts: int) -> list[Choice]:
        standing = world.threads.standing()
        for process in dict.fromkeys(fiber.process for fiber in standing):
            mine = [fiber for fiber in standing if fiber.process == process]
            if all(fiber.point in LOCAL for fiber in mine):
                return [(GO, fiber.process, fiber.name) for fiber in mine]  # nobody else can tell when they happen
        choices = [(GO, fiber.process, fiber.name) for fiber in standing]
        if doubts:
            committing = [fiber for fiber in standing if str(fiber.point).startswith("commit")]
            choices += [(doubt, fiber.process, fiber.name) for fiber in committing for doubt in (LOST, STORED)]
        if kills:
            living = [name for name in self._scenario.actors if world.processes[name].alive]
            choices += [(KILL, name, "") for name in living if name in self._scenario.mortal]
        return list(dict.fromkeys(choices))

    def _take(self, world: World, choice: Choice, told: list[str]) -> None:
        """Let happen what was chosen."""
        what, process, name = choice
        if what == KILL:
            told.append(f"  {process} is killed")
            world.kill(process)
            world.threads.settle()
            return
        fiber = next(one for one in world.threads.standing() if (one.process, one.name) == (process, name))
        told.append(f"  {process}/{name}: {fiber.point}{'' if what == GO else f', in doubt and {what}'}")
        self._found.points[str(fiber.point).split(" ")[0]] += 1
        world.in_doubt = None if what == GO else what
        world.threads.go_on(fiber)

    def _check(self, world: World, taken: list[Choice], told: list[str]) -> None:
        for fiber in world.threads.fibers:
            if fiber.ended and fiber.error is not None and not fiber.stopped:
                world.breaks("defect", repr(fiber.error))
        if world.broken:
            raise RuleBroken(self._scenario, world.broken, taken, told)

    def _end(self, world: World) -> None:
        """Nobody can do anything more: nothing is stuck, and whoever comes next finds a sound session."""
        self._found.quiescent += 1
        for fiber in world.threads.fibers:
            if not fiber.ended:
                world.breaks("stuck", f"{fiber.process}/{fiber.name} waits for ever")
        ends = {name: world.processes[name] for name in self._scenario.actors}
        never = self._scenario.never
        world.broken += [f"told: {one}" for seen in ends.values() for one in seen.told if one in never]
        self._found.ends.update((name, *seen.told) for name, seen in ends.items() if seen.exited)
        check_aftermath(world, self._scenario.parks)


def straight(world: World, fiber: Fiber, until: Callable[[Fiber], bool] = lambda fiber: False) -> None:
    """Let fibers of one process run in one order, until one stands where `until` says, or to their end."""
    world.threads.settle()
    for _ in range(STEPS_MAX):
        standing = [one for one in world.threads.standing() if one.process == fiber.process]
        if not standing or any(until(one) for one in standing):
            return
        world.threads.go_on(standing[0])
    raise AssertionError(f"{fiber.process} does not come to its end")


def dies(world: World, name: str, *deeds: Deed, at: str, **more: object) -> None:
    """A process does something and is killed before a point, named by how it begins and how often it was passed."""
    place, _, passed = at.partition("#")
    left = int(passed or 1)

    def reached(fiber: Fiber) -> bool:
        nonlocal left
        if str(fiber.point).startswith(place):
            left -= 1
        return left == 0

    process = Process(world, name, **more)  # type: ignore[arg-type]
    straight(world, world.threads.start(name, process.does(*deeds)), reached)
    assert left == 0, f"{name} never came to {at}: {process.seen.told}"
    world.kill(name)
