"""Figures are what these tests print; the log lines of what runs in their own process would bury them."""

from collections.abc import Iterator

import pytest
import structlog

from gateway.logs import configure_logs


@pytest.fixture(autouse=True, scope="session")
def only_figures() -> Iterator[None]:
    configure_logs(level="error")
    yield
    structlog.reset_defaults()
