"""A vendor that exists in memory: a small truthful world with a feed, and every fault a vendor can have.

Its objects lie in pools (containers), folders hold others, notes come with their content, files are downloaded. The feed
tells what changed since a number; it can forget. What is armed as a fault happens at the next request it fits.
"""

import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from connectors.kit.contract import (
    AuthRevoked,
    ContainerForbidden,
    CursorLost,
    Estimate,
    Failure,
    Fetched,
    Item,
    ItemFailed,
    ItemGone,
    Mode,
    Page,
    Part,
    Surface,
    Throttled,
    Tombstone,
    VendorUnavailable,
    Watch,
)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Thing:
    id: str
    pool: str
    name: str
    text: str
    kind: str = "file"  # file, note, folder
    parent: str | None = None
    version: int = 1
    touched: int = 0  # when it last changed, as a number of the feed


@dataclass
class Fault:
    kind: str
    at: str = "any"  # pages, fetch, any
    subject: str | None = None
    times: int = 1
    after: float = 0.0


@dataclass
class Brook:
    """The truth, and what was asked of it."""

    page_size: int = 3
    things: dict[str, Thing] = field(default_factory=dict)
    trash: dict[str, Thing] = field(default_factory=dict)
    feed: list[tuple[int, str, str, str]] = field(default_factory=list)  # number, here/gone, id, pool
    number: int = 0
    forgotten: int = 0  # the feed up to here is lost
    faults: deque[Fault] = field(default_factory=deque)
    broken: dict[str, str] = field(default_factory=dict)  # id → reason its download fails with
    unlistable: set[str] = field(default_factory=set)
    dark_pools: set[str] = field(default_factory=set)  # cannot be listed right now
    refusing: dict[str, str] = field(default_factory=dict)  # pool → the word it refuses with
    closed_pools: set[str] = field(default_factory=set)  # no longer there for this user
    excluded_pools: set[str] = field(default_factory=set)  # still there, and policy no longer wants them
    gone_first: bool = True  # which half of a move the feed tells first
    revoked: bool = False
    downloads: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    during_page: Any = None  # called while a page is being answered
    left_out: dict[str, str] = field(default_factory=dict)  # id → why policy does not ask for it any more
    hidden: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # what only a download of its parent shows

    # -- what people do

    def create(
        self,
        key: str,
        text: str,
        *,
        pool: str = "p1",
        kind: str = "file",
        parent: str | None = None,
        name: str = "",
    ) -> None:
        self._here(Thing(key, pool, name or f"{key}.txt", text, kind, parent))

    def edit(self, key: str, text: str) -> None:
        self._here(replace(self.things[key], text=text, version=self.things[key].version + 1))

    def rename(self, key: str, name: str) -> None:
        self._here(replace(self.things[key], name=name))

    def move(self, key: str, pool: str, parent: str | None = None) -> None:
        """Between pools an end there and a beginning here, in whichever order."""
        before = self.things[key]
        after = replace(before, pool=pool, parent=parent)
        if before.pool != pool and self.gone_first:
            self._tell("gone", key, before.pool)
        self._here(after)
        if before.pool != pool and not self.gone_first:
            self._tell("gone", key, before.pool)

    def delete(self, key: str) -> None:
        """With all that lies in it; the feed names the top alone."""
        for thing in [*self._inside(key)]:
            self.trash[thing.id] = self.things.pop(thing.id)
        thing = self.things.pop(key)
        self.trash[key] = thing
        self._tell("gone", key, thing.pool)

    def restore(self, key: str) -> None:
        thing = self.trash.pop(key)
        if thing.parent and thing.parent not in self.things:
            thing = replace(thing, parent=None)
        self._here(thing)

    def vanish(self, key: str) -> None:
        """Gone without a word in the feed: only a listing can tell."""
        self.trash[key] = self.things.pop(key)

    def forget_feed(self) -> None:
        """Every cursor given out so far is worthless."""
        self.number += 1
        self.forgotten = self.number

    def arm(self, kind: str, **fields: Any) -> None:
        self.faults.append(Fault(kind, **fields))

    def truth(self) -> dict[str, str]:
        return {
            thing.id: thing.text
            for thing in self.things.values()
            if thing.kind != "folder" and thing.pool not in self.closed_pools
        }

    def _inside(self, key: str) -> Sequence[Thing]:
        found: list[Thing] = []
        front = [key]
        while front:
            children = [thing for thing in self.things.values() if thing.parent in front]
            found += children
            front = [thing.id for thing in children]
        return found

    def _here(self, thing: Thing) -> None:
        self.number += 1
        self.things[thing.id] = replace(thing, touched=self.number)
        self.feed.append((self.number, "here", thing.id, thing.pool))

    def _tell(self, what: str, key: str, pool: str) -> None:
        self.number += 1
        self.feed.append((self.number, what, key, pool))

    def take(self, where: str, *kinds: str, subject: str | None = None) -> Fault | None:
        for fault in self.faults:
            fits = fault.at in {"any", where} and fault.subject in {None, subject}
            if fault.kind in kinds and fits:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    def path(self, thing: Thing) -> str:
        """The names of the folders above it."""
        above = self.things.get(thing.parent or "")
        return f"{self.path(above)}/{above.name}".lstrip("/") if above is not None else ""

    def item(self, thing: Thing) -> Item:
        return Item(
            external_id=thing.id,
            source_kind={"folder": "folder", "note": "outlook_message"}.get(thing.kind, "sharepoint_item"),
            name=thing.name,
            container_id=thing.pool,
            version=f"v{thing.version}",
            parent_id=thing.parent,
            path=self.path(thing),
            uri=f"https://brook.example/{thing.id}",
            mime_type="text/plain",
            size=len(thing.text),
            modified_at=EPOCH + timedelta(minutes=thing.touched),
            metadata={"author": "Brook"},
            handle={"at": thing.id},
            parts=[Part(text=thing.text, locator={"kind": "mail", "messageId": thing.id, "part": "body"})]
            if thing.kind == "note"
            else None,
        )


class BrookSurface:
    def __init__(self, world: Brook) -> None:
        self.world = world

    async def pages(self, cursor: str | None, mode: Mode) -> AsyncIterator[Page]:
        world = self.world
        place = json.loads(cursor) if cursor else {"start": world.number, "after": None}
        while True:
            self._trouble()
            listing, here = "start" in place, json.dumps(place)
            if world.take("pages", "empty_page") is not None:
                yield Page(next_cursor=here, listing=listing)  # nothing on it, and still it leads on
                continue
            page, place = self._listing(place) if listing else self._changes(place)
            if world.take("pages", "repeat_page") is not None:
                yield replace(page, next_cursor=here, last=False, container_complete=[], containers_failed=[])
                page = replace(page, upserts=[*page.upserts, *page.upserts])
            yield page
            if page.last:
                return

    def _trouble(self) -> None:
        world = self.world
        world.requests["pages"] += 1
        if world.during_page is not None:
            world.during_page()
        if world.revoked:
            raise AuthRevoked("the grant was taken back")
        if (fault := world.take("pages", "throttle")) is not None:
            raise Throttled(fault.after)
        if world.take("pages", "unavailable") is not None:
            raise VendorUnavailable("503")
        if world.take("pages", "forbidden") is not None:
            raise ContainerForbidden("p1")

    def _listing(self, place: Mapping[str, Any]) -> tuple[Page, Mapping[str, Any]]:
        """Everything there is, newest first; the feed's number was taken before."""
        world = self.world
        # Newest first by what was true at the start, then what was touched since: a change cannot hide an object.
        order = sorted(
            (thing for thing in world.things.values() if self._visible(thing)),
            key=lambda thing: thing.id,
            reverse=True,
        )
        rest = [thing for thing in order if place["after"] is None or thing.id < place["after"]]
        shown, more = rest[: world.page_size], rest[world.page_size :]
        pools = {thing.pool for thing in world.things.values()} - world.closed_pools
        failures = [
            Failure(external_id=thing.id, name=thing.name, reason="unreadable", container_id=thing.pool)
            for thing in shown
            if thing.id in world.unlistable
        ]
        upserts = [world.item(thing) for thing in shown if thing.id not in world.unlistable]
        following = {"start": place["start"], "after": shown[-1].id} if more else {"since": place["start"]}
        page = Page(
            next_cursor=json.dumps(following),
            upserts=upserts,
            failures=failures,
            listing=True,
            container_complete=[] if more else sorted(pools - world.dark_pools - world.refusing.keys()),
            containers_failed=[] if more else sorted(pools & (world.dark_pools | world.refusing.keys())),
            refusals={} if more else world.refusing,
            last=not more,
        )
        return page, following

    def _visible(self, thing: Thing) -> bool:
        world = self.world
        hidden = world.dark_pools | world.closed_pools | world.refusing.keys()
        return thing.pool not in hidden and thing.id not in world.left_out

    def _changes(self, place: Mapping[str, Any]) -> tuple[Page, Mapping[str, Any]]:
        world, since = self.world, place["since"]
        if since < world.forgotten or world.take("pages", "cursor_lost") is not None:
            raise CursorLost("410")
        news = [entry for entry in world.feed if entry[0] > since]
        shown, more = news[: world.page_size], news[world.page_size :]
        following = {"since": shown[-1][0] if shown else since}
        upserts, stones, failures = [], [], []
        for _, what, key, pool in shown:
            thing = world.things.get(key)
            if what == "gone":
                stones.append(Tombstone(external_id=key, container_id=pool))
            elif thing is not None and key in world.unlistable:
                failures.append(Failure(external_id=key, name=thing.name, reason="unreadable"))
            elif thing is not None and self._visible(thing):
                upserts.append(world.item(thing))
        # What was named here and has ended since is told by a later entry.
        page = Page(
            next_cursor=json.dumps(following),
            upserts=upserts,
            tombstones=[one for one in stones if self._ended(one)],
            failures=failures,
            containers_failed=sorted(world.refusing),
            refusals=world.refusing,
            containers_gone=sorted(world.closed_pools),
            containers_left_out=sorted(world.excluded_pools),
            last=not more,
        )
        return page, following

    def left_out(self, item: Item) -> str | None:
        return self.world.left_out.get(item.external_id)

    def _ended(self, stone: Tombstone) -> bool:
        thing = self.world.things.get(stone.external_id)
        return thing is None or thing.pool != stone.container_id

    async def fetch(self, item: Item) -> Fetched:
        world = self.world
        world.requests["fetch"] += 1
        if world.revoked:
            raise AuthRevoked("the grant was taken back")
        if (fault := world.take("fetch", "throttle", subject=item.external_id)) is not None:
            raise Throttled(fault.after)
        if world.take("fetch", "unavailable", subject=item.external_id) is not None:
            raise VendorUnavailable("503")
        if item.external_id in world.broken:
            reason = world.broken[item.external_id]
            if reason == "bug":
                raise KeyError(item.external_id)
            raise ItemFailed(reason, permanent=reason in {"unsupported", "too_large"})
        if "in" in item.handle:
            world.downloads[item.external_id] += 1
            return Fetched(data=world.hidden[item.handle["in"]][item.external_id].encode())
        thing = world.things.get(item.handle["at"])
        if thing is None:
            raise ItemGone(item.external_id)
        if thing.pool in world.closed_pools:
            raise ContainerForbidden(thing.pool)
        world.downloads[thing.id] += 1
        if thing.id in world.hidden:
            return self._with_children(thing)
        return Fetched(data=thing.text.encode(), mime_type="text/plain", version=f"v{thing.version}")

    def _with_children(self, thing: Thing) -> Fetched:
        children = [
            replace(
                self.world.item(replace(thing, id=name, parent=thing.id, name=name, kind="file")),
                handle={"in": thing.id},
                version=str(len(text)),
            )
            for name, text in self.world.hidden[thing.id].items()
        ]
        part = Part(text=thing.text, locator={"kind": "ticket", "ticketId": thing.id})
        return Fetched(parts=[part], children=children, version=f"v{thing.version}")

    async def estimate(self) -> Estimate:
        things = [thing for thing in self.world.things.values() if thing.kind != "folder"]
        return Estimate(
            items=len(things),
            size=sum(len(thing.text) for thing in things),
            exact=True,
            containers=sorted({thing.pool for thing in things}),
        )

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        self.world.requests["watch"] += 1
        if self.world.take("watch", "unavailable") is not None:
            raise VendorUnavailable("503")
        ends = datetime.now(UTC) + timedelta(days=2)
        return (
            [known[0]] if known else [Watch(vendor_id="w1", resource="all", expires_at=ends, secret="s3cret")]
        )

    async def unwatch(self, known: Sequence[Watch]) -> None:
        return None


class BrookPlaces:
    """Where the engine finds the brook of a connection."""

    def __init__(self) -> None:
        self.worlds: dict[UUID, Brook] = {}

    @asynccontextmanager
    async def surface(self, mandate_id: UUID, source: Any) -> AsyncIterator[Surface]:
        yield BrookSurface(self.worlds[source.connection_id])

    async def aclose(self) -> None:
        return None
