"""Run the command line program with `python -m safepoint`."""

from __future__ import annotations

import sys


def main() -> None:
    """Start the command line program; it is imported here so that `import safepoint` stays cheap.

    Raises:
        SystemExit: always; with a sentence where the platform lacks what every store needs.
    """
    here: str = sys.platform  # declared, so that a type checker does not take one platform for all
    if here == "win32":
        sys.exit("safepoint: Windows is not supported: it has no locks that end with their process (flock).")
    from .adapters.cli.main import main as cli_main

    cli_main()


if __name__ == "__main__":
    main()
