"""Print a measured `results.json` as the tables of docs/performance.md: python -m bench.page [RESULTS]."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEFAULT = Path(__file__).parent / "results.json"


def lines(results: dict[str, Any]) -> Iterator[str]:
    """The bars, what they were made of, and the peaks of memory, as Markdown."""
    yield f"{', '.join(f'{name} {value}' for name, value in results['machine'].items())}; scale {results['scale']:g}"
    yield "\n| what | against | ratio | quartiles | bar | |\n|---|---|---|---|---|---|"
    bars = results["bars"]
    for name, bar in bars.items():
        bound = f"{'≥' if bar['at_least'] else '≤'} {bar['bar']:.2f}"
        ratio, quartiles = "", ""
        if bar["ratio"] is not None:
            ratio, quartiles = f"{bar['ratio']:.2f}", " … ".join(f"{one:.2f}" for one in bar["quartiles"])
        verdict = "held" if bar["holds"] else "missed" if ratio else f"not measured: {bar['why_not_measured']}"
        yield f"| {bar['what']} (`{name}`) | {bar['against']} | {ratio} | {quartiles} | {bound} | {verdict} |"
    yield "\n| bar | in figures |\n|---|---|"
    for name, bar in bars.items():
        if bar["figures"]:
            yield f"| `{name}` | {', '.join(f'{key} {value}' for key, value in bar['figures'].items())} |"
    for bar in bars.values():
        if bar["memory"]:
            yield "\n| a fresh process that does | peak RSS |\n|---|---|"
            yield from (f"| {activity} | {size / 1e6:.0f} MB |" for activity, size in bar["memory"].items())


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    sys.stdout.write("\n".join(lines(json.loads(path.read_text()))) + "\n")
