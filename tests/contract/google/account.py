"""A consented account at a sandbox, and a place for a surface to work, without a database."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from connectors import registry
from connectors.kit.contract import Client, Fetched, Item, Page, Surface, Tokens
from connectors.kit.policy import SyncPolicy
from connectors.sandbox.server import RunningSandbox

REDIRECT = "http://127.0.0.1:8765/v1/oauth/google/callback"


def client_of(sandbox: RunningSandbox) -> Client:
    return Client(
        client_id=sandbox.client_id,
        client_secret=sandbox.client_secret,
        endpoints={**registry.default_endpoints("google"), **sandbox.endpoints},
    )


def answer_consent(url: str, **form: Any) -> dict[str, str]:
    """What a browser brings back from the consent page."""
    with httpx.Client(verify=False, trust_env=False) as browser:
        page = browser.get(url)
        assert page.status_code == 200, page.text
        back = browser.post(url, data={"decision": "accept", **form})
        assert back.status_code == 302, back.text
    return dict(parse_qsl(urlsplit(back.headers["location"]).query))


async def consent(sandbox: RunningSandbox, surfaces: Iterable[str], **form: Any) -> Tokens:
    google, client = registry.authority("google"), client_of(sandbox)
    begun = google.begin(client, redirect_uri=REDIRECT, state="s-1", surfaces=list(surfaces))
    tokens, _ = await google.finish(client, flow=begun.flow, answer=answer_consent(begun.url, **form))
    return tokens


@dataclass
class HeldTokens:
    """The vault's part, in memory."""

    client: Client
    tokens: Tokens
    renewals: int = 0

    async def token(self) -> str:
        return self.tokens.access_token

    async def renew(self, stale: str) -> str:
        if stale == self.tokens.access_token:
            self.renewals += 1
            self.tokens = await registry.authority("google").refresh(self.client, self.tokens)
        return self.tokens.access_token


@dataclass
class OpenWindow:
    """A rate window without limits that remembers what it was told."""

    closed: list[float] = field(default_factory=list)
    inside: int = 0
    most: int = 0

    async def enter(self, cost: float = 1.0) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)

    async def leave(self) -> None:
        self.inside -= 1

    async def close_for(self, seconds: float) -> None:
        self.closed.append(seconds)


class Account:
    """One user's grant, the surfaces under it, and a hand on the sandbox's controls."""

    def __init__(self, sandbox: RunningSandbox, tokens: Tokens) -> None:
        self.sandbox = sandbox
        self.client = client_of(sandbox)
        self.tokens = HeldTokens(self.client, tokens)
        self.window = OpenWindow()
        self.http = registry.open_http({"google": self.client.endpoints})
        self._control = httpx.Client(verify=False, base_url=sandbox.control_url, trust_env=False, timeout=30)

    def surface(self, part: str, *, endpoints: dict[str, str] | None = None, **policy: Any) -> Surface:
        return registry.surface("google", part, self.workplace(endpoints=endpoints, **policy))

    def workplace(self, *, endpoints: dict[str, str] | None = None, **policy: Any) -> registry.Workplace:
        return registry.Workplace(
            endpoints={**self.client.endpoints, **(endpoints or {})},
            tokens=self.tokens,
            http=self.http,
            rate=self.window,
            policy=SyncPolicy(**policy),
            clock=lambda: datetime.now(UTC),
        )

    async def aclose(self) -> None:
        await self.http.aclose()
        self._control.close()

    # -- control

    def reset(self, seed: str = "empty") -> None:
        self._done(self._control.post("/reset", json={"seed": seed}))

    def create(self, kind: str, **fields: Any) -> str:
        return self._done(self._control.post("/objects", json={"kind": kind, **fields}))["id"]

    def edit(self, object_id: str, **fields: Any) -> None:
        self._done(self._control.patch(f"/objects/{object_id}", json=fields))

    def delete(self, object_id: str, *, for_good: bool = False) -> None:
        query = {"forGood": "true"} if for_good else {}
        self._done(self._control.delete(f"/objects/{object_id}", params=query))

    def restore(self, object_id: str) -> None:
        self._done(self._control.post(f"/objects/{object_id}/restore"))

    def fault(self, kind: str, **options: Any) -> None:
        self._done(self._control.post("/faults", json={"kind": kind, **options}))

    def clear_faults(self) -> None:
        self._done(self._control.delete("/faults"))

    def state(self, user: str = "ada@demo.example") -> dict[str, Any]:
        return self._done(self._control.get("/state", params={"user": user}))

    def revoke(self, **fields: Any) -> None:
        self._done(self._control.post("/revoke", json=fields))

    def push(self, **fields: Any) -> dict[str, Any]:
        return self._done(self._control.post("/push", json=fields))

    def requests(self, **query: Any) -> Counter[str]:
        return Counter(self._done(self._control.get("/requests", params=query))["byRoute"])

    def forget_requests(self) -> None:
        self._done(self._control.delete("/requests"))

    @staticmethod
    def _done(response: httpx.Response) -> dict[str, Any]:
        assert response.status_code == 200, response.text
        return response.json()


@dataclass
class Walked:
    """What a round of pages said, folded together as the engine would."""

    cursor: str = ""
    items: dict[str, Item] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    @property
    def documents(self) -> dict[str, Item]:
        return {key: item for key, item in self.items.items() if not item.is_folder and item.skip is None}

    def by_name(self, name: str) -> Item:
        return next(item for item in self.items.values() if item.name == name)


async def walk(surface: Surface, cursor: str | None = None) -> Walked:
    found = Walked()
    async for page in surface.pages(cursor, "bootstrap" if cursor is None else "delta"):
        found.cursor = page.next_cursor
        found.pages.append(page)
        for item in page.upserts:
            found.items[item.external_id] = item
            found.order.append(item.name)
        for stone in page.tombstones:
            found.gone[stone.external_id] = stone.reason
        found.complete |= set(page.container_complete)
        found.failed |= set(page.containers_failed)
        found.left |= {*page.containers_gone, *page.containers_left_out}
    assert found.pages[-1].last
    return found


async def text_of(surface: Surface, item: Item) -> str:
    if item.parts is not None:
        return "\n".join(part.text for part in item.parts)
    fetched: Fetched = await surface.fetch(item)
    return fetched.data.decode()
