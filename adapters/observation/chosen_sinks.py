"""Which sinks a runtime tells, as its environment says. SPEC section 18."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from ...ports.lifecycle_sink import LifecycleSink
from .logging_sink import LoggingSink

OTEL_VARIABLE: Final = "SAFEPOINT_OTEL"


def sinks_from(environment: Mapping[str, str]) -> list[LifecycleSink]:
    """The logging sink, and with `SAFEPOINT_OTEL=1` the OpenTelemetry one; one that cannot be made is noticed alone."""
    sinks: list[LifecycleSink] = [LoggingSink()]
    if environment.get(OTEL_VARIABLE) == "1":
        from .opentelemetry_sink import OpenTelemetrySink

        try:
            sinks.append(OpenTelemetrySink())
        except ImportError as error:
            logging.getLogger("safepoint.lifecycle").warning(
                "%s is 1, and the package opentelemetry-api is missing (%s): pip install 'safepoint[otel]'",
                OTEL_VARIABLE,
                type(error).__name__,
            )
    return sinks
