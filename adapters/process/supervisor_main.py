# ruff: noqa: PTH100, PTH120 - pathlib doubles the start of the supervisor
"""The supervisor program: `python -I -S supervisor_main.py SETTINGS`. SPEC section 15.

It starts for every supervised operation, so it loads its few modules under a package of its own and never the rest of
Safepoint with what that depends on: about 20 ms instead of some hundreds.
"""

from __future__ import annotations

import importlib
import os
import sys
import types


def main() -> None:
    """Run the supervision that is described by the JSON object in the first argument."""
    package = types.ModuleType("safepoint_supervisor")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[package.__name__] = package
    importlib.import_module("safepoint_supervisor.supervision_start").main(sys.argv[1])


if __name__ == "__main__":
    main()
