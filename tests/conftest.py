"""What every test shares: property tests are bounded by examples, never by the clock of a busy machine.

The program is started hundreds of times; it keeps its compiled modules between starts, whatever the machine prefers.
"""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("safepoint", deadline=None, print_blob=True)
settings.load_profile("safepoint")
