"""Functions that a loop of others gives to its recorded calls. SPEC sections 8 and 17."""

from __future__ import annotations

import inspect

from ..ports.tool_functions import is_generator


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
