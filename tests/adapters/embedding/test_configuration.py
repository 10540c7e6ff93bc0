"""A program may be opened with settings from its code, the environment and `pyproject.toml`, in this order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import safepoint
from safepoint.adapters.memory.model_provider import PlannedModel
from safepoint.domain.planning.outcome import Park

from .loops import PAYS, pay, payments


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a file of settings, in a folder below which the program is started."""
    for name in ("STORE", "WORKSPACE", "MODEL", "SYSTEM_PROMPT", "PERMISSION", "RESUME", "AUTO_RESUME"):
        monkeypatch.delenv(f"SAFEPOINT_{name}", raising=False)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def write(project: Path, *lines: str) -> None:
    (project / "pyproject.toml").write_text("\n".join(["[tool.safepoint]", *lines]))


def test_paths_in_the_file_start_at_its_own_folder(project: Path) -> None:
    write(project, 'store = "state/agent.db"', 'workspace = "work"', 'model = "scripted:a"', "resume = false")
    configuration = safepoint.Configuration()
    assert (configuration.store, configuration.workspace) == (project / "state" / "agent.db", project / "work")
    assert configuration.model == "scripted:a"
    assert not configuration.settings().resume_enabled()


def test_code_counts_before_the_environment_and_that_before_the_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, 'store = "a.db"', 'permission = "deny"', 'system_prompt = "file"')
    monkeypatch.setenv("SAFEPOINT_SYSTEM_PROMPT", "environment")
    monkeypatch.setenv("SAFEPOINT_PERMISSION", "ask")
    configuration = safepoint.Configuration(permission="allow")
    assert (configuration.permission, configuration.system_prompt) == ("allow", "environment")
    assert configuration.store == project / "a.db"


def test_switches_mean_what_they_mean_to_the_command_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFEPOINT_STORE", "a.db")
    assert safepoint.Configuration().settings().resume_enabled()
    monkeypatch.setenv("SAFEPOINT_RESUME", "0")
    monkeypatch.setenv("SAFEPOINT_AUTO_RESUME", "1")
    settings = safepoint.Configuration().settings()
    assert (settings.resume_enabled(), settings.auto_resume_enabled()) == (False, False)
    assert settings.store == project / "below" / "a.db"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((), r"^no store is named"),
        (('store = ""',), "no store is named"),
        (('store = "a.db"', 'sotre = "sk-secret"'), "`sotre` in "),
        (('store = "a.db"', 'permission = "sk-secret"'), "`permission` in "),
        (('store = "a.db"', "cancel_bound_seconds = -1"), "`cancel_bound_seconds` in "),
        (("store = 3",), "`store` in "),
        (('store = "a.db',), "is no TOML"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_where_and_shows_no_value(
    project: Path, lines: tuple[str, ...], said: str
) -> None:
    write(project, *lines)
    with pytest.raises(safepoint.ConfigurationUnusable, match=said) as wrong:
        safepoint.Configuration()
    assert "sk-secret" not in str(wrong.value)
    assert str(project / "pyproject.toml") in str(wrong.value) or "no store is named" in said


def test_a_value_that_does_not_fit_is_told_with_its_variable_or_argument(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFEPOINT_STORE", "a.db")
    monkeypatch.setenv("SAFEPOINT_PERMISSION", "sk-secret")
    with pytest.raises(safepoint.ConfigurationUnusable, match=r"^SAFEPOINT_PERMISSION: ") as wrong:
        safepoint.Configuration()
    assert "sk-secret" not in str(wrong.value)
    bad: Any = "sk-secret"
    with pytest.raises(safepoint.ConfigurationUnusable, match=r"^`permission=` in the code: "):
        safepoint.Configuration(permission=bad)


def test_an_empty_variable_says_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFEPOINT_STORE", "")
    with pytest.raises(safepoint.ConfigurationUnusable, match="no store is named"):
        safepoint.Configuration()
    write(project, 'store = "a.db"')
    assert safepoint.Configuration().store == project / "a.db"


def test_a_configured_runtime_works(project: Path) -> None:
    write(project, 'store = "agent.db"', 'workspace = "."', 'permission = "deny"')

    async def main() -> None:
        configuration = safepoint.Configuration()
        async with configuration.open(tools=[pay], model=PlannedModel(list(PAYS)), permission="allow") as runtime:
            assert (await runtime.session("bill").run("Pay.")).outcome.text == "Paid."

    anyio.run(main)
    assert payments(project) == ["5"]
    with safepoint.Configuration(resume=False).open_sync() as runtime:
        plan = runtime.session("bill").plan()
        assert isinstance(plan, Park)
        assert "resume_feature_disabled" in plan.codes


def test_without_the_extra_everything_else_is_there() -> None:
    program = (
        "import sys; sys.modules['pydantic_settings'] = None\n"
        "from safepoint import *\n"
        "import safepoint\n"
        "try: safepoint.Configuration\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "safepoint.Configuration needs pydantic-settings: install safepoint[settings]"


def test_nothing_else_imports_what_needs_the_extra() -> None:
    program = "import sys; from safepoint import *; print('safepoint.adapters.embedding.configuration' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
