"""What every test may ask for. Stores start on first use and stop with the run."""

import pytest

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
