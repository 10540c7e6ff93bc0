"""Check that only the packages that a page lists were installed: check_installed.py PAGE, by their own Python."""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions
from pathlib import Path

listed = Path(sys.argv[1]).read_text().partition("compare the list:\n")[2].partition("\n\nOf these")[0]
wanted = set(re.findall(r"`([a-z0-9-]+)`", listed)) | {"safepoint"}
found = {re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower() for one in distributions()} - {"pip", "setuptools"}
for what, names in (("not installed", wanted - found), ("installed, and not listed", found - wanted)):
    for name in sorted(names):
        print(f"{name}: {what}", file=sys.stderr)
sys.exit(wanted != found)
