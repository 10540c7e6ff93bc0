"""Where a pid means something: this host, this boot, this namespace. SPEC section 15."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The frame in which pids, start times and locks can be compared."""

    host: str
    boot_id: str
    pid_namespace: str


def read_host_facts() -> HostFacts:
    """Read the facts of the host that this process runs on.

    Raises:
        OSError: the host does not tell; then nothing can be owned on it.
    """
    here: str = sys.platform  # declared, so that a type checker does not take one platform for all
    if here.startswith("linux"):
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return HostFacts(_host_name("/etc/machine-id"), boot_id, str(Path("/proc/self/ns/pid").readlink()))
    if here == "darwin":
        asked = subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.strip():
            return HostFacts(_host_name(None), asked.stdout.strip(), "none")
    raise OSError(f"the platform {here} has no boot id that is known here")


def _host_name(machine_id_path: str | None) -> str:
    """The name alone is often the same on cloned machines; the machine id tells most of them apart."""
    name = platform.node() or os.uname().nodename
    if machine_id_path is None:
        return name
    try:
        return f"{name}/{Path(machine_id_path).read_text('ascii').strip()}"
    except OSError:
        return name
