"""Name the packages: the folders at the root are installed as `safepoint.<folder>` (the rest is in pyproject.toml)."""

from __future__ import annotations

from setuptools import find_namespace_packages, setup

# A rule and not a list, so that no new folder can be forgotten; it finds folders without an __init__.py, too.
packages = ["safepoint"]
for folder in ("domain", "application", "ports", "adapters"):
    found = find_namespace_packages(folder, exclude=["*__pycache__*"])
    packages += [f"safepoint.{name}" for name in (folder, *(f"{folder}.{inner}" for inner in found))]

setup(packages=packages)
