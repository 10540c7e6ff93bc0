"""Every implementation of `LifecycleSink` keeps its contract."""

from __future__ import annotations

import pytest

from safepoint.adapters.memory.lifecycle_sink import CollectingSink
from safepoint.adapters.observation.guarded_sink import GuardedSink
from safepoint.adapters.observation.logging_sink import LoggingSink
from safepoint.adapters.observation.opentelemetry_sink import OpenTelemetrySink
from safepoint.ports.contract_kit.lifecycle_sink import LifecycleSinkContract


class TestLoggingSink(LifecycleSinkContract):
    @pytest.fixture
    def sink(self) -> LoggingSink:
        return LoggingSink()


class TestGuardedSink(LifecycleSinkContract):
    @pytest.fixture
    def sink(self) -> GuardedSink:
        return GuardedSink([CollectingSink(), LoggingSink()])


class TestOpenTelemetrySink(LifecycleSinkContract):
    @pytest.fixture
    def sink(self) -> OpenTelemetrySink:
        return OpenTelemetrySink()


class TestCollectingSink(LifecycleSinkContract):
    @pytest.fixture
    def sink(self) -> CollectingSink:
        return CollectingSink()
