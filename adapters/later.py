"""Parts that are imported when they are first made: most processes need few of them, and start the sooner."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def later(module: str, name: str) -> Callable[..., Any]:
    """What stands for a class or a function of a module that is not imported before it is called.

    Args:
        module: as in an import statement of the adapters, such as `..application.ledger`.
        name: what the module calls it.
    """

    def make(*args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(module, __package__), name)(*args, **kwargs)

    return make
