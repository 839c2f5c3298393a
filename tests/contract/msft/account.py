"""A consented Microsoft account at the sandbox, surfaces under it, and a mirror that does with pages what the engine does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import httpx

from connectors import registry
from connectors.kit.contract import Client, CursorLost, Failure, Item, Page, Surface, Tokens
from connectors.kit.policy import SyncPolicy
from connectors.sandbox.server import RunningSandbox
from tests.fixtures.sandboxes import click_consent
from tests.fixtures.vendor_places import OpenWindow

REDIRECT = "http://127.0.0.1:9/v1/oauth/msft/callback"
ADA = "ada@demo.example"
MICROSOFT = registry.authority("msft")


def client_of(sandbox: RunningSandbox) -> Client:
    return Client(
        client_id=sandbox.client_id,
        client_secret=sandbox.client_secret,
        endpoints={**registry.default_endpoints("msft"), **sandbox.endpoints},
    )


def answer_consent(url: str, *, user: str = ADA, decision: str = "accept") -> dict[str, str]:
    with httpx.Client(verify=False, trust_env=False) as browser:
        back = click_consent(browser, url, user=user, decision=decision)
    return dict(parse_qsl(back.query.decode()))


async def consent(sandbox: RunningSandbox, user: str = ADA, *surfaces: str) -> Tokens:
    client = client_of(sandbox)
    parts = surfaces or tuple(MICROSOFT.surfaces)
    begun = MICROSOFT.begin(client, redirect_uri=REDIRECT, state="s-1", surfaces=parts)
    tokens, _ = await MICROSOFT.finish(client, flow=begun.flow, answer=answer_consent(begun.url, user=user))
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
            self.tokens = await MICROSOFT.refresh(self.client, self.tokens)
        return self.tokens.access_token


class Account:
    def __init__(self, sandbox: RunningSandbox, tokens: Tokens) -> None:
        self.sandbox, self.client = sandbox, client_of(sandbox)
        self.tokens = HeldTokens(self.client, tokens)
        self.window = OpenWindow()
        self.http = registry.open_http({"msft": self.client.endpoints})

    def surface(
        self,
        part: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        root: str = "",
        **policy: Any,
    ) -> Surface:
        place = registry.Workplace(
            endpoints=self.client.endpoints,
            tokens=self.tokens,
            http=self.http,
            rate=self.window,
            policy=SyncPolicy(**policy),
            external_root=root,
            clock=clock,
        )
        return registry.surface("msft", part, place)


@dataclass
class Mirror:
    """What the corpus would hold, by the contract alone."""

    surface: Surface
    items: dict[str, Item] = field(default_factory=dict[str, Item])
    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    cursor: str | None = None
    lost: list[str | None] = field(default_factory=list[str | None])
    pages: list[Page] = field(default_factory=list[Page])
    _seen: set[str] = field(default_factory=set[str])
    _full: bool = True
    _listing: bool = True
    _complete: set[str] = field(default_factory=set[str])
    _failed: set[str] = field(default_factory=set[str])

    async def sync(self, *, stop_after: int | None = None) -> list[Page]:
        """One round, with as many losses as there are; `stop_after` pages the process dies."""
        before = len(self.pages)
        while True:
            try:
                mode = "bootstrap" if self._listing else "delta"
                async for page in self.surface.pages(self.cursor, mode):
                    self._apply(page)
                    if page.last:
                        return self.pages[before:]
                    if stop_after is not None and len(self.pages) - before >= stop_after:
                        return self.pages[before:]
            except CursorLost as lost:
                self.lost.append(lost.container_id)
                self._open(full=lost.cursor is None)
                self.cursor = lost.cursor

    def relist(self) -> None:
        self.cursor = None
        self._open(full=True)

    def _open(self, *, full: bool) -> None:
        self._seen, self._complete, self._failed = set(), set(), set()
        self._full, self._listing = full, True

    def _apply(self, page: Page) -> None:
        assert len(page.upserts) + len(page.tombstones) + len(page.failures) <= 200
        self.pages.append(page)
        for item in page.upserts:
            self.items[item.external_id] = item
            self._seen.add(item.external_id)
        named = {item.external_id for item in page.upserts}
        for stone in page.tombstones:
            known = self.items.get(stone.external_id)
            if known and stone.external_id not in named and stone.container_id in {None, known.container_id}:
                self._bury(stone.external_id)
        for failure in page.failures:
            self.failures[failure.external_id] = failure
        for gone in (*page.containers_gone, *page.containers_left_out):
            self._drop(lambda item, gone=gone: item.container_id == gone)
        self._complete |= set(page.container_complete)
        self._failed |= set(page.containers_failed)
        self.cursor = page.next_cursor
        if page.last and self._listing:
            if not self._failed:
                self._drop(
                    lambda item: (
                        item.external_id not in self._seen
                        and (self._full or item.container_id in self._complete)
                    )
                )
            self._listing = False

    def _bury(self, external_id: str) -> None:
        self.items.pop(external_id, None)
        for child in [item.external_id for item in self.items.values() if item.parent_id == external_id]:
            self._bury(child)

    def _drop(self, which: Callable[[Item], bool]) -> None:
        for external_id in [item.external_id for item in self.items.values() if which(item)]:
            self.items.pop(external_id)

    # -- what tests ask

    def documents(self) -> dict[str, Item]:
        return {one.external_id: one for one in self.items.values() if not one.is_folder and one.skip is None}

    def names(self) -> set[str]:
        return {item.name for item in self.documents().values()}

    def text(self, external_id: str) -> str:
        return "\n".join(part.text for part in self.items[external_id].parts or ())
