"""Every implementation of `PermissionGate` keeps its contract."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pytest

from safepoint.adapters.memory.permission_gate import ScriptedGate
from safepoint.adapters.permission.allow_list import AllowListGate
from safepoint.adapters.permission.deny import DenyGate
from safepoint.adapters.permission.elsewhere import ElsewhereGate
from safepoint.adapters.permission.terminal import TerminalGate
from safepoint.ports.contract_kit.permission_gate import PermissionGateContract
from safepoint.ports.permission_gate import PermissionGate


class TestDenyGate(PermissionGateContract):
    @pytest.fixture
    def gate(self) -> PermissionGate:
        return DenyGate()

    @pytest.fixture
    def equal_gate(self) -> PermissionGate:
        return DenyGate()


class TestAllowListGate(PermissionGateContract):
    @pytest.fixture
    def gate(self) -> PermissionGate:
        return AllowListGate(["pay", "write_file"], DenyGate())

    @pytest.fixture
    def equal_gate(self) -> PermissionGate:
        return AllowListGate(("write_file", "pay", "pay"), DenyGate())


class TestAllowAll(PermissionGateContract):
    @pytest.fixture
    def gate(self) -> PermissionGate:
        return AllowListGate([], DenyGate(), allow_all=True)

    @pytest.fixture
    def equal_gate(self) -> PermissionGate:
        return AllowListGate(["pay"], DenyGate(), allow_all=True)


class TestTerminalGateWithoutATerminal(PermissionGateContract):
    @pytest.fixture
    def no_terminal(self) -> Iterator[int]:
        read, write = os.pipe()
        os.write(write, b"y\n" * 10)
        yield read
        os.close(read)
        os.close(write)

    @pytest.fixture
    def gate(self, no_terminal: int) -> PermissionGate:
        return TerminalGate("somebody", no_terminal, io.StringIO())

    @pytest.fixture
    def equal_gate(self, no_terminal: int) -> PermissionGate:
        return TerminalGate("somebody else", no_terminal, io.StringIO())


class TestElsewhereGateThatHearsNobody(PermissionGateContract):
    @pytest.fixture
    def gate(self) -> PermissionGate:
        return ElsewhereGate(lambda request: ("approve it",), lambda: "its socket is gone", io.StringIO())

    @pytest.fixture
    def equal_gate(self) -> PermissionGate:
        return ElsewhereGate(lambda request: (), lambda: None, io.StringIO())


class TestScriptedGate(PermissionGateContract):
    @pytest.fixture
    def gate(self) -> PermissionGate:
        return ScriptedGate({})

    @pytest.fixture
    def equal_gate(self) -> PermissionGate:
        return ScriptedGate({})


def test_different_policies_have_different_names() -> None:
    terminal = TerminalGate("somebody")
    policies = [
        DenyGate(),
        terminal,
        AllowListGate(["a"], DenyGate()),
        AllowListGate(["a", "b"], DenyGate()),
        AllowListGate(["a,b"], DenyGate()),
        AllowListGate(["a"], terminal),
        AllowListGate([], terminal, allow_all=True),
        AllowListGate([f"tool-{number}" for number in range(500)], DenyGate()),
        AllowListGate([f"tool-{number}" for number in range(501)], DenyGate()),
    ]
    assert len({policy.policy_id() for policy in policies}) == len(policies)
    assert max(len(policy.policy_id()) for policy in policies) <= 2_000
