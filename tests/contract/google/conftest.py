"""A sandbox of Google per module, and Ada's account in it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from connectors.google.auth import SCOPES
from connectors.sandbox.server import RunningSandbox, start
from tests.contract.google.account import Account, consent


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RunningSandbox]:
    running = start("google", seed="empty")
    yield running
    running.stop()


@pytest.fixture
async def ada(sandbox: RunningSandbox) -> AsyncIterator[Account]:
    account = Account(sandbox, await consent(sandbox, SCOPES))
    account.reset()
    yield account
    await account.aclose()
