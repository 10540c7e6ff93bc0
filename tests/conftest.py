"""What every test shares: property tests are bounded by examples, never by the clock of a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("safepoint", deadline=None, print_blob=True)
settings.load_profile("safepoint")
