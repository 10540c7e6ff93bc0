"""Run the command line program with `python -m safepoint`."""

from __future__ import annotations


def main() -> None:
    """Start the command line program; it is imported here so that `import safepoint` stays cheap."""
    from .adapters.cli.main import main as cli_main

    cli_main()


if __name__ == "__main__":
    main()
