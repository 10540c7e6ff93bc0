"""Who sits at this program, for the record."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from .usage import UsageError

if TYPE_CHECKING:
    from ..composition import Composition
    from ..opened_store import OpenedStore


def person() -> str:
    """The login name of this process's user, from the system and not from the environment (F14)."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def require_person(runtime: OpenedStore) -> None:
    """Make sure that a person's word is not given by a tool, and so by a model. SPEC section 10.

    Raises:
        UsageError: this program was started by a tool of a run of this store.
    """
    require_person_beside(runtime.parts)


def require_person_beside(parts: Composition) -> None:
    """The same, where the store is not opened.

    Raises:
        UsageError: as `require_person`.
    """
    operation_id = parts.started_by_operation()
    if operation_id is not None:
        message = f"This command takes a person's word, and was started by a tool (operation {operation_id})."
        raise UsageError(message, "Give it from a terminal of your own.", code="not_a_person")
