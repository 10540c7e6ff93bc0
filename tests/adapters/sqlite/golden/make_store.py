"""Made the stores beside it; run again only for a new schema version: what was published is never made anew.

python make_store.py FOLDER, an empty one: writes `store-v<version>.sqlite.gz` there. The store holds a finished
session, one whose run was killed in the middle of a tool call, and one that was continued after a kill.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from safepoint.adapters.sqlite.control_rows import COLUMNS, add_function

WRITE = {"tool": "write_file", "args": {"path": "config.json", "content": "{}"}}
PAY = {"tool": "record_effect", "args": {"path": "effects.log", "line": "paid"}}


def make(folder: Path) -> None:
    """Make it, with the program itself."""
    store, backup, script = folder / "store.sqlite", folder / "backup.sqlite", folder / "script.json"
    workspace = folder / "workspace"
    workspace.mkdir()
    script.write_text(json.dumps({"steps": [{"text": "I do it.", "calls": [WRITE, PAY]}, {"text": "Done."}]}))
    run = ("run", "Do it.", "--script", script, "--workspace", workspace)

    def program(*arguments: str | Path, killed_at: str = "") -> None:
        hooks = {"SAFEPOINT_TEST_HOOKS": "1", "SAFEPOINT_FAILPOINT": killed_at} if killed_at else {}
        command = [sys.executable, "-m", "safepoint", *map(str, arguments), "--store", str(store)]
        subprocess.run(command, check=not killed_at, env={**os.environ, **hooks})

    program(*run)
    program(*run, killed_at="P1")
    program("resume", "--script", script)
    program(*run, killed_at="P4")
    program("backup", backup)
    with closing(sqlite3.connect(backup, isolation_level=None)) as raw:
        add_function(raw)
        raw.execute("UPDATE incarnations SET host = 'host', boot_id = 'boot', pid_namespace = 'pid:[1]'")
        said = ", ".join(COLUMNS["incarnations"])
        raw.execute(f"UPDATE incarnations SET checksum = control_checksum('incarnations', {said})")
        (version,) = raw.execute("PRAGMA user_version").fetchone()
        raw.execute("VACUUM")
    (folder / f"store-v{version}.sqlite.gz").write_bytes(gzip.compress(backup.read_bytes(), mtime=0))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
