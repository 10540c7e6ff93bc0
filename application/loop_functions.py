"""Functions that a loop of others gives to its recorded calls. SPEC sections 8 and 17."""

from __future__ import annotations

import inspect

from ..domain.tool_results import PreparedResult
from ..ports.tool_catalog import BoundCall, ToolContext
from ..ports.tool_functions import is_generator
from .call_answers import OutcomeNotDeclared
from .implementations import Implementations
from .waiting import Waited


class LoopFunctions(Implementations):
    """Calls them as our own loop calls its tools; one that is cancelled with its loop has no outcome, as in a block.

    Whoever cancels a loop is told by the cancellation, so nothing has to be answered, and nobody knows what was done.
    """

    def _ended_early(self, bound: BoundCall, context: ToolContext, waited: Waited) -> PreparedResult:
        if waited is Waited.INTERRUPTED and bound.needs_permission:
            raise OutcomeNotDeclared(context.operation_id, bound.tool_name)
        return super()._ended_early(bound, context, waited)


def check_function(function: object) -> None:
    """Make sure, before anything is recorded, that calling it does something.

    Raises:
        TypeError: it is no function, or one whose call alone runs nothing of it.
    """
    if inspect.isawaitable(function):
        raise TypeError("give the function, not the awaitable that it returned: it is called with the stored arguments")
    if not callable(function):
        raise TypeError(f"a {type(function).__name__} is no function that carries a call out")
    if is_generator(function):
        raise TypeError(f"{function!r} is a generator: calling it runs nothing of it; give one that returns its result")
