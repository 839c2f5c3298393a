"""Microsoft's own client, pointed at the sandbox, signed in through its real consent page."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from connectors.sandbox.server import RunningSandbox
from tests.fixtures.sandboxes import MSFT_SCOPES, Control, msft_sign_in

OPEN = ExitStack()  # the clients of one test


class Graph:
    """Graph by hand: a plain HTTP client with one user's token."""

    def __init__(
        self, sandbox: RunningSandbox, user: str = "ada@demo.example", scopes: str = MSFT_SCOPES
    ) -> None:
        self.base = sandbox.endpoints["graph"]
        token = msft_sign_in(sandbox, user, scopes)["access_token"]
        self.client = OPEN.enter_context(
            httpx.Client(
                headers={"Authorization": f"Bearer {token}"}, trust_env=False, verify=False, timeout=60
            )
        )

    def ask(self, path: str, **headers: str) -> httpx.Response:
        url = path if path.startswith("http") else f"{self.base}{path}"
        return self.client.get(url, headers=headers)

    def get(self, path: str, **headers: str) -> dict[str, Any]:
        answer = self.ask(path, **headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.client.post(f"{self.base}{path}", json=body)

    def round(self, path: str, **headers: str) -> tuple[list[dict[str, Any]], str, int]:
        """All pages of one delta round: what they held, the delta link, how many there were."""
        found: list[dict[str, Any]] = []
        for pages in range(1, 1000):
            page = self.get(path, **headers)
            assert ("@odata.nextLink" in page) != ("@odata.deltaLink" in page), json.dumps(page)[:300]
            found += page["value"]
            if "@odata.deltaLink" in page:
                return found, page["@odata.deltaLink"], pages
            path = page["@odata.nextLink"]
        raise AssertionError("a round without an end")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    OPEN.close()


@pytest.fixture
def graph(msft_sandbox: RunningSandbox) -> Graph:
    return Graph(msft_sandbox)


@pytest.fixture
def library(msft_control: Control) -> dict[str, Any]:
    """An empty site that everybody may see."""
    return msft_control.create("site", name="Plant")
