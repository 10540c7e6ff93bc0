"""DBOS on SQLite: a step of a workflow; its outcome is recorded before the workflow goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import sqlalchemy
from dbos import DBOS, SetWorkflowID
from dbos._dbos import _get_dbos_instance

from .serving import ARGUMENTS, serve


def program(folder: Path) -> tuple[Callable[[int], list[float]], Mapping[str, object]]:
    """A workflow for each measurement."""
    url = f"sqlite:///{folder}/dbos.sqlite"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
    workflows = count()

    @DBOS.step()
    def write_file(path: str, content: str, part: int) -> str:
        return "ok"

    @DBOS.workflow()
    def steps(number: int) -> list[float]:
        seconds = []
        for part in range(number):
            started = time.perf_counter()
            write_file(**ARGUMENTS, part=part)
            seconds.append(time.perf_counter() - started)
        return seconds

    def measured(number: int) -> list[float]:
        with SetWorkflowID(f"workflow-{next(workflows)}"):
            seconds: list[float] = steps(number)
        return seconds

    DBOS.launch()
    with _get_dbos_instance()._sys_db.engine.connect() as connection:  # noqa: SLF001 (to say how durable it is)
        settings = {
            name: connection.execute(sqlalchemy.text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous")
        }
    return measured, settings


if __name__ == "__main__":
    serve(program)
