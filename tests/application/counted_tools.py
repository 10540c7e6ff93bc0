"""Tools whose bodies are counted, for tests that say how often an effect happened."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from safepoint.adapters.tools.decorator import tool


class Counted:
    """A tool `act(n)` that remembers its calls; not replay-safe unless declared so.

    Args:
        declared: how it is declared.
    """

    def __init__(self, **declared: Any) -> None:
        self.calls: list[int] = []
        lock = threading.Lock()

        def act(n: int) -> str:
            """Act."""
            with lock:
                self.calls.append(n)
            return f"acted {n}"

        self.function: Callable[..., Any] = tool(**declared)(act) if declared else act


def raising(error: BaseException, **declared: Any) -> Callable[..., Any]:
    """A tool `fail()` that raises."""

    def fail() -> str:
        """Fail."""
        raise error

    return tool(**declared)(fail) if declared else fail


def returning(value: object, **declared: Any) -> Callable[..., Any]:
    """A tool `give()` that returns a value."""

    def give() -> object:
        """Give."""
        return value

    return tool(**declared)(give) if declared else give
