"""What every test may ask for. Stores start on first use and stop with the run."""

from collections.abc import Iterator

import pytest
import structlog

from tests.fixtures.run import begin_run, end_run

pytest_plugins = [
    "tests.fixtures.stores",
    "tests.fixtures.tenants",
    "tests.fixtures.corpus",
    "tests.fixtures.worker",
    "tests.fixtures.sandboxes",
]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        end_run()


@pytest.fixture(autouse=True)
def plain_logs() -> Iterator[None]:
    """What an earlier test told structlog must not decide where this one's lines go."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
