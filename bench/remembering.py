"""How much memory it takes to read a whole store: at 100,000 events, and at 1,000,000. SPEC section 21, row 6, and R12.

Each reading is done by a process of its own, which says what it had resident at its peak.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from safepoint.adapters.opened_store import OpenedStore
from safepoint.adapters.settings import Settings
from safepoint.application.export_session import ExportSession
from safepoint.domain.identifiers import SessionId

from .bars import REBUILD_MEMORY
from .measuring import Measured, Spread
from .workplace import Workplace

_STATUS = Path("/proc/self/status")


def peaks(work: Workplace) -> Iterator[Measured]:
    """The peak of a rebuild at both sizes; of opening, verifying and exporting, for people."""
    sizes = {work.sizes.small_store: work.small_store, work.sizes.large_store: work.large_store}
    memory = {
        f"{activity}, {events:,} events": peak_of(activity, store)
        for activity in ACTIVITIES
        for events, store in sizes.items()
    }
    small, large = (memory[f"rebuild, {events:,} events"] for events in sizes)
    yield Measured(REBUILD_MEMORY, Spread.of([large / small]), memory=memory)


def peak_of(activity: str, store: Path) -> int:
    """Peak resident bytes of a fresh process that does one thing with a store."""
    command = [sys.executable, "-m", __spec__.name, activity, str(store)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{activity} of {store.name} failed: {done.stderr.strip().splitlines()[-1:]}")
    peak: int = json.loads(done.stdout)
    return peak


def peak_resident() -> int:
    """What this process had resident at its peak, in bytes.

    Where there is /proc it is read there: the operating system's other answer counts in what the parent had.
    """
    if _STATUS.exists():
        (line,) = [line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _open(runtime: OpenedStore) -> None:
    runtime.parts.store().condition()


def _rebuild(runtime: OpenedStore) -> None:
    runtime.parts.projections().rebuild()


def _verify(runtime: OpenedStore) -> None:
    verification = runtime.parts.verify_store()()
    assert verification.sound, verification


def _export(runtime: OpenedStore) -> None:
    """Export every session, one after the other, as a script over all of them would."""
    export: ExportSession = runtime.parts.export_session()
    after = ""
    store = runtime.parts.store()
    while names := store.streams(after=after):
        for name in names:
            kind, _, session_id = name.partition(":")
            if kind == "session":
                for _line in export(SessionId(session_id)):
                    pass
        after = names[-1]


ACTIVITIES: Mapping[str, Callable[[OpenedStore], None]] = {
    "open": _open,
    "rebuild": _rebuild,
    "verify": _verify,
    "export": _export,
}


def main(activity: str, store: str) -> None:
    """Do one thing, and say what it took."""
    with OpenedStore(Settings(Path(store), read_only=activity in {"verify", "export"})) as runtime:
        ACTIVITIES[activity](runtime)
    sys.stdout.write(json.dumps(peak_resident()))


if __name__ == "__main__":
    main(*sys.argv[1:])
