"""Name the packages: the folders at the root are installed as `safepoint.<folder>` (the rest is in pyproject.toml)."""

from __future__ import annotations

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

# A rule and not a list, so that no new folder can be forgotten; it finds folders without an __init__.py, too.
packages = ["safepoint"]
for folder in ("domain", "application", "ports", "adapters"):
    found = find_namespace_packages(folder, exclude=["*__pycache__*"])
    packages += [f"safepoint.{name}" for name in (folder, *(f"{folder}.{inner}" for inner in found))]


class BuildWithoutThisFile(build_py):
    """The root of the repository is the root of the package, and this file is no part of it."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """List the modules of one package as (package, module, file)."""
        return [found for found in super().find_package_modules(package, package_dir) if found[1] != "setup"]


setup(packages=packages, cmdclass={"build_py": BuildWithoutThisFile})
