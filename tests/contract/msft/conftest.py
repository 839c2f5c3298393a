"""Ada's account at an empty sandbox."""

from collections.abc import AsyncIterator

import pytest

from connectors.sandbox.server import RunningSandbox
from tests.contract.msft.account import Account, consent


@pytest.fixture
async def account(msft_sandbox: RunningSandbox) -> AsyncIterator[Account]:
    found = Account(msft_sandbox, await consent(msft_sandbox))
    yield found
    await found.http.aclose()
