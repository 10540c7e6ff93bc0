"""Check that a wheel holds every module of the package and nothing beside it: check_wheel.py FILE.whl"""

from __future__ import annotations

import subprocess
import sys
import zipfile

wheel = sys.argv[1]
tracked = subprocess.run(
    ["git", "ls-files", "__init__.py", "__main__.py", "py.typed", "domain", "ports", "application", "adapters"],
    check=True,
    capture_output=True,
    text=True,
).stdout.split()
wanted = {f"safepoint/{path}" for path in tracked}
found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
for what, names in (("not in the wheel", wanted - found), ("too much in the wheel", found - wanted)):
    for name in sorted(names):
        print(f"{wheel}: {what}: {name}", file=sys.stderr)
sys.exit(wanted != found)
