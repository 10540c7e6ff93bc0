"""Supervised operations of a world: a child that holds its lock and goes on, whatever becomes of its owner."""

from __future__ import annotations

from safepoint.domain import tool_results
from safepoint.domain.events.tool import Effect as Said
from safepoint.domain.identifiers import OperationId
from safepoint.ports.supervised import (
    CapturedOutput,
    Command,
    OperationStatus,
    Overness,
    ProcessInfo,
    SupervisedExit,
    Work,
)
from safepoint.ports.supervisor import SupervisedSlot, Supervisor
from safepoint.ports.tool_catalog import Arguments, Settled, SupervisedCall, ToolContext

from .fibers import Fiber, running
from .world import Effect, Seen, World


def supervised_call(world: World, name: str) -> SupervisedCall:
    """A tool whose effect is a child's."""

    def work(arguments: Arguments, context: ToolContext) -> Command:
        return Command((name, context.operation_id))

    def settle(end: SupervisedExit, context: ToolContext) -> Settled:
        return Settled(tool_results.prepare_result(f"{name} is done", effect=Said.DONE))

    return SupervisedCall(work, settle)


class GatedSupervisor(Supervisor):
    """The supervisor as one process reaches it; the locks are the world's."""

    def __init__(self, world: World, process: Seen) -> None:
        self._world = world
        self._process = process

    def prepare(self, operation_id: OperationId) -> SupervisedSlot:
        slot = self._world.slots[operation_id] = Slot(self._world, self._process, operation_id)
        return slot

    def probe_over(self, operation_id: OperationId) -> Overness:
        self._world.stands(self._process, "probe")
        slot = self._world.slots.get(operation_id)
        seen = Overness.COULD_NOT_LOOK if slot is None else slot.overness
        self._process.learns(seen)
        return seen

    def who_holds(self, operation_id: OperationId) -> tuple[ProcessInfo, ...]:
        return ()

    def status(self, operation_id: OperationId) -> OperationStatus | None:
        return None

    def forget(self, operation_id: OperationId) -> bool:
        return True


class Slot(SupervisedSlot):
    """The lock of one operation, held from before T1 to the end of its child, or of the owner that never started it."""

    def __init__(self, world: World, owner: Seen, operation_id: OperationId) -> None:
        self._world = world
        self._owner = owner
        self._operation_id = operation_id
        self._released = False
        self.child: Fiber | None = None

    @property
    def overness(self) -> Overness:
        """What a probe of the lock says."""
        if self.child is not None:
            return Overness.OVER if self.child.ended else Overness.RUNNING
        return Overness.RUNNING if self._owner.alive and not self._released else Overness.OVER

    def start(self, work: Work) -> None:
        self._world.stands(self._owner, "start child")
        assert isinstance(work, Command)
        name = work.argv[0]
        seen = self._world.process(f"{name} of {self._owner.name}")
        self._world.at_work[self._operation_id] = seen.name

        def act() -> None:
            self._world.stands(seen, f"effect {name}")
            assert self._world.rules is not None
            self._world.rules.acts(Effect(self._operation_id, name))
            self._world.stands(seen, "child ends")
            self._world.at_work.pop(self._operation_id, None)

        self.child = self._world.threads.start(seen.name, act)

    def wait(self, timeout_seconds: float | None = None) -> SupervisedExit | None:
        fiber, child = running(), self.child
        assert fiber is not None
        assert child is not None
        fiber.wait(lambda: child.ended)
        nothing = CapturedOutput(b"", 0, None)
        return SupervisedExit(exit_code=0, signal=None, stdout=nothing, stderr=nothing)

    def end(self, *, grace_seconds: float = 2.0, timeout_seconds: float = 30.0) -> Overness:
        raise NotImplementedError("nothing is ended here")

    def release(self) -> None:
        self._released = True

    def living(self) -> tuple[ProcessInfo, ...]:
        return ()
