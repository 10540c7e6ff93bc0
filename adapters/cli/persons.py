"""Who sits at this program, for the record."""

from __future__ import annotations

import os
import pwd


def person() -> str:
    """The login name of this process's user, from the system and not from the environment (F14)."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
