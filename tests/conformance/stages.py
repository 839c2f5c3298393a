"""Every surface on a stage of its own: a sandbox behind it, a hand that changes what is there, troubles on order."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from connectors import registry
from connectors.kit.contract import Client, Surface, Tokens
from connectors.kit.policy import SyncPolicy
from connectors.sandbox.server import RunningSandbox
from tests.conformance.brook import Brook, BrookSurface
from tests.fixtures.sandboxes import Control, click_consent
from tests.fixtures.vendor_places import OpenWindow

ADA = "ada@demo.example"
# Paths of the APIs themselves; sign-in is left alone.
API = {"msft": "/v1.0/", "google": r"/(drive|gmail|calendar)/v\d", "clickup": "/api/v"}


def _span(days: float) -> dict[str, Any]:
    start = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=days)
    return {
        "start": {"dateTime": start.isoformat(), "timeZone": "UTC"},
        "end": {"dateTime": (start + timedelta(hours=1)).isoformat(), "timeZone": "UTC"},
    }


def _start() -> dict[str, str]:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    return {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}


@dataclass(frozen=True)
class Plan:
    """How things are made at one surface. `place` is called once and names where they lie."""

    kind: str
    name: str  # the field that carries a marker; empty where only the text does
    more: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda _: {}
    place: Callable[[Control], Mapping[str, Any]] = lambda _: {}
    editable: bool = True  # a sent mail is what it is
    restorable: bool = True
    strange_pages: tuple[str, ...] = ("empty_page", "repeat_page")
    cursor_fault: Mapping[str, Any] | None = field(default_factory=lambda: {"kind": "cursor_expiry"})
    forbid: bool = False  # the sandbox can forbid the container things lie in
    for_good: Mapping[str, Any] = field(default_factory=dict[str, Any])  # where deleting is only a first step


PLANS: dict[tuple[str, str], Plan] = {
    ("msft", "sharepoint"): Plan(
        "file",
        "name",
        more=lambda place: {"driveId": place["driveId"]},
        place=lambda control: control.create("site", name="Plant"),
        forbid=True,
    ),
    ("msft", "onedrive"): Plan("file", "name", more=lambda _: {"user": ADA}),
    ("msft", "outlook"): Plan("message", "subject", more=lambda _: {"user": ADA}),
    ("msft", "outlook_calendar"): Plan("event", "subject", more=lambda _: {"user": ADA, **_start()}),
    ("msft", "teams"): Plan(
        "channelMessage",
        "",
        more=lambda place: {"channelId": place["channelId"], "from": ADA},
        place=lambda control: control.create("team", name="Plant", members=[ADA]),
        strange_pages=(),
        cursor_fault=None,
    ),
    # Drive's changes never expire; one token leads to the next.
    ("google", "drive"): Plan("file", "name", cursor_fault=None, for_good={"forGood": True}),
    ("google", "gmail"): Plan("message", "subject", editable=False),
    ("google", "google_calendar"): Plan("event", "name", more=lambda _: _span(1)),
    # ClickUp has no cursors: listings come due by themselves.
    ("clickup", "clickup"): Plan("task", "name", restorable=False, cursor_fault=None, forbid=False),
}


class Stage:
    """One surface of one vendor, over HTTP."""

    fetches = True

    def __init__(
        self, authority: str, part: str, sandbox: RunningSandbox, control: Control, tokens: Tokens
    ) -> None:
        self.authority, self.part, self.plan = authority, part, PLANS[authority, part]
        self.control, self.sandbox = control, sandbox
        self.client = _client(authority, sandbox)
        self.tokens = HeldTokens(authority, self.client, tokens)
        self.window = OpenWindow()
        self.http = registry.open_http({authority: self.client.endpoints})
        self.place = self.plan.place(control)
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def surface(self, **policy: Any) -> Surface:
        """A new one, as after a restart: it knows nothing but its cursor."""
        place = registry.Workplace(
            endpoints=self.client.endpoints,
            tokens=self.tokens,
            http=self.http,
            rate=self.window,
            policy=SyncPolicy(**policy),
            clock=self.clock,
        )
        return registry.surface(self.authority, self.part, place)

    def make(self, marker: str, text: str) -> str:
        fields = dict(self.plan.more(self.place))
        words = text
        if self.plan.name == "name" and self.plan.kind == "file":
            fields["name"] = f"{marker}.txt"
        elif self.plan.name:
            fields[self.plan.name] = marker
        else:
            words = f"{marker} {text}"
        return self.control.create(self.plan.kind, text=words, **fields)["id"]

    def edit(self, key: str, marker: str, text: str) -> None:
        self.control.edit(key, text=text if self.plan.name else f"{marker} {text}")

    def remove(self, key: str) -> None:
        self.control.delete(key)

    def erase(self, key: str) -> None:
        """Past the trash, from which some vendors still hand things out."""
        self.control.delete(key, **self.plan.for_good)

    def restore(self, key: str) -> None:
        self.control.restore(key)

    def throttle(self, seconds: float) -> None:
        self.control.fault("throttle", retryAfter=seconds, times=None, path=API[self.authority])

    def break_down(self) -> None:
        self.control.fault("server_error", times=None, status=503, path=API[self.authority])

    def babble(self) -> None:
        self.control.fault("cut_json", times=None, path=API[self.authority])

    def refuse(self) -> None:
        """The grant is taken back: neither the token nor its renewal is worth anything."""
        self.control.revoke()

    def strange(self, kind: str) -> None:
        self.control.fault(kind, times=2)

    def lose_cursor(self) -> None:
        assert self.plan.cursor_fault is not None
        fields = dict(self.plan.cursor_fault)
        self.control.fault(fields.pop("kind"), **fields)

    def forbid(self) -> None:
        self.control.fault("forbid_container", times=None, path=self.place["driveId"][2:20])

    def calm(self) -> None:
        self.control.clear_faults()

    def asked(self) -> int:
        return int(self.control.requests()["total"])


@dataclass
class HeldTokens:
    """The vault's part, in memory."""

    authority: str
    client: Client
    tokens: Tokens

    async def token(self) -> str:
        return self.tokens.access_token

    async def renew(self, stale: str) -> str:
        from connectors.kit.contract import AuthRevoked

        authority = registry.authority(self.authority)
        if stale == self.tokens.access_token:
            if not authority.has_refresh:
                raise AuthRevoked("there is nothing to renew it with")
            self.tokens = await authority.refresh(self.client, self.tokens)
        return self.tokens.access_token


def _client(authority: str, sandbox: RunningSandbox) -> Client:
    return Client(
        client_id=sandbox.client_id,
        client_secret=sandbox.client_secret,
        endpoints={**registry.default_endpoints(authority), **sandbox.endpoints},
    )


def _click(authority: str, url: str) -> str:
    with httpx.Client(verify=False, trust_env=False) as browser:
        if authority == "google":
            return browser.post(url, data={"decision": "accept"}).headers["location"]
        return str(click_consent(browser, url, user=ADA))


async def _consent(authority: str, part: str, sandbox: RunningSandbox) -> Tokens:
    vendor, client = registry.authority(authority), _client(authority, sandbox)
    redirect = f"http://127.0.0.1:8765/v1/oauth/{authority}/callback"
    begun = vendor.begin(client, redirect_uri=redirect, state="s-1", surfaces=[part])
    back = await asyncio.to_thread(_click, authority, begun.url)
    tokens, _ = await vendor.finish(client, flow=begun.flow, answer=dict(parse_qsl(urlsplit(back).query)))
    return tokens


class BrookStage:
    """The vendor in memory on the same stage."""

    fetches = True

    def __init__(self) -> None:
        self.world = Brook(page_size=2)
        self.plan = Plan("file", "name", forbid=True)

    def surface(self, **_policy: Any) -> Surface:
        return BrookSurface(self.world)

    def make(self, marker: str, text: str) -> str:
        self.world.create(marker, text)
        return marker

    def edit(self, key: str, marker: str, text: str) -> None:
        del marker
        self.world.edit(key, text)

    def remove(self, key: str) -> None:
        self.world.delete(key)

    def erase(self, key: str) -> None:
        self.world.delete(key)

    def restore(self, key: str) -> None:
        self.world.restore(key)

    def throttle(self, seconds: float) -> None:
        self.world.arm("throttle", after=seconds, times=100)

    def break_down(self) -> None:
        self.world.arm("unavailable", times=100)

    def babble(self) -> None:
        self.world.arm("unavailable", times=100)

    def refuse(self) -> None:
        self.world.revoked = True

    def strange(self, kind: str) -> None:
        self.world.arm(kind, times=2)

    def lose_cursor(self) -> None:
        self.world.forget_feed()

    def forbid(self) -> None:
        self.world.dark_pools = {"p1"}

    def calm(self) -> None:
        self.world.faults.clear()
        self.world.dark_pools = set()

    def asked(self) -> int:
        return sum(self.world.requests.values())


AnyStage = Stage | BrookStage


def names() -> list[str]:
    """The brook, and every surface whose adapter and sandbox are part of this installation."""
    found = ["brook"]
    for authority, surfaces in registry.SURFACES.items():
        for part, module in surfaces.items():
            here = find_spec(f"connectors.sandbox.{authority}") and find_spec(
                f"connectors.sandbox.{authority}.app"
            )
            if here and find_spec(f"connectors.{authority}") and find_spec(module):
                found.append(f"{authority}.{part}")
    return found


def plan_of(name: str) -> Plan:
    return BrookStage().plan if name == "brook" else PLANS[name.partition(".")[0], name.partition(".")[2]]


@asynccontextmanager
async def raised(name: str, sandboxes: Callable[[str], RunningSandbox]) -> AsyncIterator[AnyStage]:
    if name == "brook":
        yield BrookStage()
        return
    authority, _, part = name.partition(".")
    sandbox = sandboxes(authority)
    control = Control(sandbox.control_url)
    control.ask("POST", "/reset", {"seed": "empty"})
    stage = Stage(authority, part, sandbox, control, await _consent(authority, part, sandbox))
    try:
        yield stage
    finally:
        await stage.http.aclose()
        control.close()
