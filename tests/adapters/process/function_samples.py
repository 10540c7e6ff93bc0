"""Functions that are run in processes of their own by the tests beside this file."""

from __future__ import annotations

import os
import subprocess
import sys


def print_and_return(text: str) -> dict[str, str]:
    """Print to both streams, and return something else."""
    print(text)  # noqa: T201
    print(text, file=sys.stderr)  # noqa: T201
    return {"returned": text}


def leave_sleeping() -> int:
    """Leave a process behind that inherits what it can."""
    return subprocess.Popen(["sleep", "300"], close_fds=False).pid


def let_a_child_write_everywhere() -> str:
    """Start a program that writes to descriptors which it was not given on purpose."""
    subprocess.run(["bash", "-c", "echo noise >&3"], close_fds=False, check=False)
    return "kept"


def vanish() -> None:
    """End the process without a word."""
    os._exit(3)


def leave_by_exit() -> None:
    """Do what scripts do at their end."""
    sys.exit("enough")


def repeat(text: str, times: int) -> str:
    """Return a long text."""
    return text * times


async def wait_a_moment() -> str:
    """Return from a coroutine."""
    return "awaited"


def refuse_in_a_subclass() -> None:
    """Refuse with a class of one's own."""
    from safepoint.domain.errors import RefusedWithoutEffect

    class NotToday(RefusedWithoutEffect):
        pass

    raise NotToday("closed")


class Wrapped:
    """What a decorator may leave in a function's place."""

    @staticmethod
    def __supervised__(text: str) -> str:
        """The function itself."""
        return text.upper()


wrapped = Wrapped()
not_callable = 7
