"""The program as somebody whom permission bits concern: root is asked for none.

It imports what a run and a resume import while it may still read where Python is installed, then gives its rights up.
Usage: nobody.py ARGUMENT …, as those of `python -m safepoint`; or: nobody.py library STORE.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

from safepoint.adapters.cli.main import call
from safepoint.adapters.sqlite.store import open_store
from safepoint.domain.errors import StoreError
from safepoint.ports.contract_kit.recorded_runs import RecordedSession

NOBODY = 65_534


def import_what_is_imported_late() -> None:
    """Do once what the program does, somewhere else and without its hooks."""
    asked = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("SAFEPOINT_")}
    steps = [{"text": "I do it.", "calls": [{"tool": "record_effect", "args": {"path": "e", "line": "x"}}]}]
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        store, script = f"{name}/store.sqlite", Path(name) / "script.json"
        script.write_text(json.dumps({"steps": [*steps, {"text": "Done."}]}))
        with contextlib.redirect_stderr(io.StringIO()):
            call(("run", "x", "--script", str(script), "--workspace", name, "--store", store, "--json"))
            call(("resume", "--script", str(script), "--store", store, "--json"))
            call(("list", "--store", f"{name}/missing/store.sqlite", "--json"))
            call(("verify", "--store", store, "--json"))
    os.environ.update(asked)


def give_rights_up() -> None:
    """Be nobody, where this process is somebody who may do everything."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def say(*words: object) -> None:
    """Tell the test at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def write_when_told(path: str) -> None:
    """Own a session of a store and write to it, line by line of standard input; say what came of each."""
    store = open_store(path)
    one = RecordedSession()
    one.own(store.owners)
    one.keep(store.events, *one.opened())
    say("open")
    for n, _ in enumerate(sys.stdin):
        attempt = one.fork()
        try:
            attempt.keep(store.events, attempt.text(f"{n}"))
        except StoreError as error:
            say(type(error).__name__, error)
        else:
            one = attempt
            say("stored")
    with store.events.snapshot() as reader:
        say(len(reader.read(f"run:{one.run_id()}")) - 2)
    store.close()


if __name__ == "__main__":
    import_what_is_imported_late()
    give_rights_up()
    if sys.argv[1] == "library":
        write_when_told(sys.argv[2])
    else:
        sys.exit(call(sys.argv[1:]))
