"""The demo: an agent is killed in the middle of a file write, judged, looked up, then continued or parked."""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .apart import KEY, PlayedApart, StageApart
from .stage import ActFailed, Played, Stage
from .story import ACTS, Act
from .table import document, print_apart, print_table

ACTS_AT_ONCE = 2


def run_demo(*, as_json: bool) -> int:
    """Play every act; no network, no key, and nothing is left behind.

    Args:
        as_json: print one object instead of a table.

    Returns:
        0 when every count is the expected one, else 1.
    """
    with tempfile.TemporaryDirectory(prefix="safepoint-demo-") as folder:
        try:
            acts = _play_all(Path(folder))
            apart = _play_apart(Path(folder))
        except ActFailed as error:
            print(f"The demo could not be played: {error}", file=sys.stderr)
            return 1
    if as_json:
        print(json.dumps(document(acts, apart)))
    else:
        print_table(acts)
        print_apart(apart)
    return 0 if all(played.as_expected for played in acts) and (apart is None or apart.as_expected) else 1


def _play_all(folder: Path) -> list[Played]:
    def play(act: Act) -> Played:
        place = folder / act.key
        place.mkdir()
        return Stage(place).play(act)

    with ThreadPoolExecutor(ACTS_AT_ONCE) as pool:
        return list(pool.map(play, ACTS))


def _play_apart(folder: Path) -> PlayedApart | None:
    place = folder / KEY
    place.mkdir()
    return StageApart(place).play_apart()
