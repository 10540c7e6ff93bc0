"""For each contract of the kit there is an adapter that breaks it, and the test that catches it."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from safepoint.ports import contract_kit

from .wrong_adapters import WRONG

ROOT = Path(__file__).parents[2]
IN_THEIR_OWN_FILES = {"ModelProviderContract": "test_model_provider.py", "ReconcilerContract": "test_reconciler.py"}
"""Contracts whose wrong adapters need no other part, and stand with the tests of the right ones."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, set[str]]:
    """How the tests that are meant to catch something failed, by the class of the wrong adapter."""
    report = tmp_path_factory.mktemp("wrong") / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}"]
    caught = [f"tests/contracts/wrong_adapters.py::Test{name}::{wrong.caught_by}" for name, wrong in WRONG.items()]
    done = subprocess.run([*command, *caught], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[str, set[str]] = defaultdict(set)
    for case in ElementTree.parse(report).iter("testcase"):
        if (failure := case.find("failure")) is not None:
            found[case.attrib["classname"].rpartition(".")[2]].add(failure.attrib["message"].partition("\n")[0])
    return found


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_adapter_is_caught_by_the_test_that_says_what_is_wrong(name: str, said: Mapping[str, set[str]]) -> None:
    expected = (WRONG[name].raising,) if WRONG[name].raising else ("AssertionError", "assert ", "Failed: DID NOT RAISE")
    assert said[f"Test{name}"], "it was not caught"
    assert [message for message in said[f"Test{name}"] if not message.startswith(expected)] == []


def test_there_is_a_wrong_adapter_for_each_contract_of_the_kit() -> None:
    broken = {base.__name__ for wrong in WRONG.values() for base in wrong.right.__mro__}
    assert contracts() - broken == set(IN_THEIR_OWN_FILES)
    for name, file in IN_THEIR_OWN_FILES.items():
        assert f"{name}()" in (Path(__file__).parent / file).read_text()


def contracts() -> set[str]:
    """Every contract of the kit, by the name of its class."""
    modules = [
        importlib.import_module(f"{contract_kit.__name__}.{module.name}")
        for module in pkgutil.iter_modules(contract_kit.__path__)
    ]
    return {
        name
        for module in modules
        for name, found in vars(module).items()
        if name.endswith("Contract") and found.__module__ == module.__name__
    }
