"""What a group of commands is decided on is read in one view, and anew where something could not be read. SPEC 7."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from safepoint.application.ledger import Ledger, Receipt
from safepoint.domain.errors import StoreUnavailable
from safepoint.ports.event_store import EventReader

from .ledger_world import World


def test_all_commands_of_a_group_are_decided_on_one_view(world: World) -> None:
    runs = [world.opened(f"r{number}", session=f"s{number}") for number in range(3)]
    ledger = Ledger(world.events, world.owners)
    before = world.events.snapshots
    answers = ledger.execute_all([r.end() for r in runs])
    assert [type(answer) for answer in answers] == [Receipt] * 3
    assert world.events.snapshots == before + 1


def test_a_view_in_which_something_could_not_be_read_is_not_used_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [world.opened(f"r{number}", session=f"s{number}") for number in range(2)]
    ledger = Ledger(world.events, world.owners)
    snapshot = world.events.snapshot
    ended: list[type[BaseException] | None] = []

    @contextmanager
    def breaking_once() -> Iterator[EventReader]:
        broken: AbstractContextManager[EventReader] = snapshot()
        with broken as reader:
            if not ended:
                monkeypatch.setattr(reader, "read", fail, raising=False)
            try:
                yield reader
            except BaseException as error:
                ended.append(type(error))
                raise
            ended.append(None)

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("the connection is gone")

    monkeypatch.setattr(world.events, "snapshot", breaking_once)
    first, second = ledger.execute_all([r.end() for r in runs])
    assert isinstance(first, StoreUnavailable)
    assert isinstance(second, Receipt)
    assert ended == [StoreUnavailable, None]
