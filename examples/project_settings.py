"""Take settings from `pyproject.toml` and the environment; what the code says counts first.

    python examples/project_settings.py FOLDER

The folder exists and is empty. It becomes a project with a table `[tool.safepoint]`. Needs the extra `settings`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import safepoint

PROJECT = """
[tool.safepoint]
store = "state/agent.sqlite"
workspace = "."
model = "scripted:greeting.json"
permission = "deny"
cancel_bound_seconds = 5
"""
SCRIPT = '{"steps": [{"text": "Hello."}]}'


def main() -> None:
    """Say what counts, and take a turn with it."""
    configuration = safepoint.Configuration(system_prompt="Be polite.")
    assert configuration.store is not None
    print("store:", configuration.store.relative_to(Path.cwd()))
    print("permission:", configuration.permission)
    with configuration.open_sync() as runtime:
        print(runtime.session("greeting").run("Hello?").outcome.text)


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    Path("pyproject.toml").write_text(PROJECT)
    Path("greeting.json").write_text(SCRIPT)
    Path("state").mkdir()
    os.environ["SAFEPOINT_PERMISSION"] = "ask"
    main()
