"""Every released projection version, executable for ever. SPEC section 12.

An edge of a lineage is verified with the version that it was made with; new histories are made with the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .history import PROJECTION_VERSION, History
from .origin import Origin
from .segment import Segment, project_blocks


class Projection(NamedTuple):
    """One version of how histories are made.

    Attributes:
        project: as `segment.project_blocks`.
        begin: an empty history for who will be shown it.
    """

    version: int
    project: Callable[..., Segment]
    begin: Callable[[Origin | None], History]


PROJECTIONS: Mapping[int, Projection] = {1: Projection(1, project_blocks, lambda target: History(target, 1))}
"""Version -> how its histories are made. A version that was released never leaves and never changes."""

NEWEST = PROJECTIONS[PROJECTION_VERSION]
