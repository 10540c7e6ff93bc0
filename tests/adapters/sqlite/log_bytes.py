"""How much of SQLite's log holds frames: behind them is room for the next ones, and what is left of older ones."""

from __future__ import annotations

_HEADER, _FRAME_HEADER, _PAGE = 32, 24, 4096
FRAME = _FRAME_HEADER + _PAGE


def used(log: bytes) -> int:
    """Where the frames of the log's present salts end."""
    salts, end = log[16:24], _HEADER
    while end + FRAME <= len(log) and log[end + 8 : end + 16] == salts:
        end += FRAME
    return end
