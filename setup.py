"""Name the packages: the folders at the root are installed as `safepoint.<folder>` (the rest is in pyproject.toml)."""

from __future__ import annotations

from setuptools import find_namespace_packages, setup

# A rule and not a list, so that no new folder can be forgotten; also folders whose __init__.py is missing.
FOLDERS = ("domain", "application", "ports", "adapters")
INCLUDE = [pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")]

setup(
    packages=[
        "safepoint",
        *(f"safepoint.{name}" for name in find_namespace_packages(".", include=INCLUDE, exclude=["*__pycache__*"])),
    ]
)
