"""ClickUp's sandbox, a consented user, and a surface that works there without a database."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from connectors import registry
from connectors.kit.contract import AuthRevoked, Client, Fetched, Item, Page, Tokens
from connectors.kit.http import VendorHttp
from connectors.kit.policy import SyncPolicy
from connectors.sandbox.server import RunningSandbox, start
from tests.fixtures.sandboxes import Control, click_consent

REDIRECT = "http://127.0.0.1:9/v1/oauth/clickup/callback"
ADA = "ada@demo.example"


def client_of(sandbox: RunningSandbox) -> Client:
    return Client(
        client_id=sandbox.client_id,
        client_secret=sandbox.client_secret,
        endpoints={**registry.default_endpoints("clickup"), **sandbox.endpoints},
    )


async def consent(sandbox: RunningSandbox, decision: str = "accept") -> tuple[dict[str, Any], dict[str, str]]:
    """The flow that was begun, and what the browser brought back."""
    begun = registry.authority("clickup").begin(
        client_of(sandbox), redirect_uri=REDIRECT, state="s-1", surfaces=["clickup"]
    )
    with httpx.Client(verify=False, trust_env=False) as browser:
        back = click_consent(browser, begun.url, user=ADA, decision=decision)
    return dict(begun.flow), dict(parse_qsl(urlsplit(str(back)).query))


@dataclass
class HeldToken:
    value: str

    async def token(self) -> str:
        return self.value

    async def renew(self, stale: str) -> str:
        if stale != self.value:
            return self.value
        raise AuthRevoked("ClickUp's tokens cannot be renewed")


@dataclass
class OpenWindow:
    closed: list[float] = field(default_factory=list)

    async def enter(self, cost: float = 1.0) -> None: ...
    async def leave(self) -> None: ...

    async def close_for(self, seconds: float) -> None:
        self.closed.append(seconds)


class Desk:
    """One user's grant and what a surface makes of it."""

    def __init__(self, sandbox: RunningSandbox, tokens: Tokens, http: VendorHttp, control: Control) -> None:
        self.sandbox, self.tokens, self.http, self.control = sandbox, tokens, http, control
        self.window = OpenWindow()
        self.now: datetime | None = None

    def surface(self, **policy: Any) -> Any:
        return registry.surface(
            "clickup",
            "clickup",
            registry.Workplace(
                endpoints=client_of(self.sandbox).endpoints,
                tokens=HeldToken(self.tokens.access_token),
                http=self.http,
                rate=self.window,
                policy=SyncPolicy(**policy),
                clock=lambda: self.now or datetime.now(UTC),
            ),
        )

    async def round(self, cursor: str | None = None, **policy: Any) -> list[Page]:
        """One round to its last page; a listing that has come due is followed."""
        from connectors.kit.contract import CursorLost

        try:
            return [
                page
                async for page in self.surface(**policy).pages(cursor, "delta" if cursor else "bootstrap")
            ]
        except CursorLost as due:
            return [page async for page in self.surface(**policy).pages(due.cursor, "delta")]

    async def fetch(self, item: Item, **policy: Any) -> Fetched:
        return await self.surface(**policy).fetch(item)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RunningSandbox]:
    running = start("clickup")
    yield running
    running.stop()


@pytest.fixture
async def desk(sandbox: RunningSandbox) -> AsyncIterator[Desk]:
    control = Control(sandbox.control_url)
    control.ask("POST", "/reset", {"seed": "empty"})
    flow, answer = await consent(sandbox)
    tokens, _ = await registry.authority("clickup").finish(client_of(sandbox), flow=flow, answer=answer)
    http = registry.open_http({"clickup": client_of(sandbox).endpoints})
    yield Desk(sandbox, tokens, http, control)
    await http.aclose()
    control.close()
