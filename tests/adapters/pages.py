"""Reads the figures of a page, so that a test can hold them."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def row_of(page: str, first: str) -> list[str]:
    """The other cells of the row of a page's table that begins so."""
    for line in (DOCS / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] == first:
            return cells[1:]
    raise AssertionError(f"{page} has no row {first!r}")
