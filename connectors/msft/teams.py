"""Teams: a channel's thread is one document – the message and what was answered – and a chat's message is one.

Files in channels live in SharePoint and are indexed there. Reactions, receipts and the system's own announcements are nobody's
words and stay out.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connectors.kit.contract import (
    ConnectorError,
    Estimate,
    Fetched,
    Item,
    ItemFailed,
    ItemGone,
    Part,
    Tombstone,
    VendorUnavailable,
    Watch,
)
from connectors.kit.entries import Entries
from connectors.kit.mail_html import html_to_text
from connectors.kit.rounds import Batch, Census, ContainerSurface
from connectors.msft.graph import (
    Graph,
    GraphPage,
    Record,
    error_code,
    lies_in,
    meaning,
    moment,
    segment,
    stamp,
)
from connectors.msft.subscriptions import Subscriptions
from connectors.registry import Workplace

PAGE = 50
# What Graph lets us ask: a channel or chat once a second, a team four times, by all connections together.
CHANNEL_SECONDS, TEAM_SECONDS = 1.0, 0.25
LONGEST_NAME = 80
CHATS = "chats"  # what refuses when they may not be listed
# A chat without a change feed in this tenant is read by time; this marks such a link.
SINCE = "since:"


@dataclass(frozen=True)
class Place:
    """A channel (`team` set) or a chat."""

    id: str  # team/channel, or the chat's
    team: str
    channel: str
    name: str = ""
    team_name: str = ""

    @property
    def path(self) -> str:
        if self.team:
            return f"/teams/{segment(self.team)}/channels/{segment(self.channel)}/messages"
        return f"/chats/{segment(self.channel)}/messages"

    @property
    def turns(self) -> dict[str, float]:
        own = {self.channel: CHANNEL_SECONDS}
        return own | ({self.team: TEAM_SECONDS} if self.team else {})


def channel_of(team: str, channel: str, name: str = "", team_name: str = "") -> Place:
    return Place(f"{team}/{channel}", team, channel, name, team_name)


class Teams(ContainerSurface[Place]):
    census_keeps = True

    def __init__(self, workplace: Workplace) -> None:
        self._graph = Graph(workplace, workplace.endpoints["graph"])
        self._policy, self._clock, self._root = workplace.policy, workplace.clock, workplace.external_root
        self._subscriptions = Subscriptions(self._graph, workplace.clock)
        self._words = [word.casefold() for word in workplace.policy.chat_keywords if word.strip()]

    # -- channels and chats

    async def census(self) -> Census[Place]:
        found: dict[str, Place] = {}
        untold: dict[str, str] = {}
        teams = [team async for team in self._graph.every("/me/joinedTeams") if team.get("id")]
        paths = [f"/teams/{segment(str(team['id']))}/channels" for team in teams]
        for team, (status, body) in zip(teams, await self._graph.batch(paths), strict=True):
            try:
                channels = await self._channels(status, body)
            except ItemGone:
                continue
            except ItemFailed as error:
                untold[str(team["id"])] = error.reason
                continue
            for channel in channels:
                name, team_name = str(channel.get("displayName") or ""), str(team.get("displayName") or "")
                place = channel_of(str(team["id"]), str(channel["id"]), name, team_name)
                if lies_in(self._root, place.id, place.team, place.channel, team_name):
                    found[place.id] = place
        if self._policy.chats and not self._root:
            try:
                found |= await self._chats()
            except ItemFailed as error:  # perhaps consent does not cover them
                untold[CHATS] = error.reason
        return Census(found, untold=untold)

    def unlisted(self, container_id: str) -> Place | None:
        """An empty list of teams has been seen where nothing was wrong but the list: the channel itself is asked."""
        team, slash, channel = container_id.partition("/")
        if not slash:
            return Place(container_id, "", container_id) if self._policy.chats else None
        return channel_of(team, channel)

    async def _channels(self, status: int, body: object) -> list[Record]:
        if status >= 400:
            raise meaning(status, error_code(body), {})
        page = self._graph.collection(body)
        rest = [one async for one in self._graph.every(page.next_link)] if page.next_link else []
        return [channel for channel in [*page.value, *rest] if channel.get("id")]

    async def _chats(self) -> dict[str, Place]:
        found: dict[str, Place] = {}
        async for chat in self._graph.every("/me/chats", params={"$top": PAGE, "$expand": "members"}):
            if chat.get("id"):
                found[str(chat["id"])] = Place(str(chat["id"]), "", str(chat["id"]), _chat_name(chat))
        return found

    # -- messages

    def _since(self) -> datetime:
        return self._clock() - timedelta(days=self._policy.chat_window_days)

    def described(self, container: Place) -> str:
        return f"{container.team_name}/{container.name}" if container.name else ""

    def left_out(self, item: Item) -> str | None:
        if item.modified_at is not None and item.modified_at < self._since():
            return "outside_window"
        is_chat = "/" not in item.container_id
        return "filtered" if is_chat and not self._policy.chats else super().left_out(item)

    async def feed(self, container: Place, link: str | None) -> AsyncIterator[Batch]:
        page = None
        if link is None:
            page = await self._first_page(container)
            if page is None:
                link = SINCE + stamp(self._since())
        if link is not None and link.startswith(SINCE):
            async for batch in self._by_time(container, link):
                yield batch
            return
        while True:
            page = page or await self._graph.page(str(link), turns=container.turns)
            fresh, link = link is None, page.next_link or page.delta_link
            if link is None:
                raise VendorUnavailable("a delta page without a link")
            found, gone = await self._sort(container, page.value, fresh=fresh)
            yield Batch(link, page.next_link is None, found.items, gone, found.failures)
            if page.next_link is None:
                return
            page = None

    async def _first_page(self, container: Place) -> GraphPage | None:
        """With replies, else without them; None for a chat that has no change feed here."""
        params: dict[str, Any] = {"$top": PAGE, "$filter": f"lastModifiedDateTime gt {stamp(self._since())}"}
        for more in ({"$expand": "replies"}, {}) if container.team else ({},):
            try:
                return await self._graph.page(
                    f"{container.path}/delta", params={**params, **more}, turns=container.turns
                )
            except ItemFailed as error:
                if error.reason != "refused" or (container.team and not more):
                    raise
        return None

    async def _by_time(self, container: Place, link: str) -> AsyncIterator[Batch]:
        """What changed since a moment, newest first; the next moment is taken before the first request."""
        begun = stamp(self._clock() - timedelta(minutes=1))
        params: dict[str, Any] | None = {
            "$top": PAGE,
            "$orderby": "lastModifiedDateTime desc",
            "$filter": f"lastModifiedDateTime gt {link.removeprefix(SINCE)}",
        }
        address = container.path
        while True:
            page = await self._graph.page(address, params=params, turns=container.turns)
            found, gone = await self._sort(container, page.value, fresh=False)
            address, params = page.next_link or "", None
            # Half of a walk by time cannot be taken up again: until its end the old moment stays.
            after = link if address else SINCE + begun
            yield Batch(after, not address, found.items, gone, found.failures)
            if not address:
                return

    # -- threads

    async def _sort(
        self, place: Place, entries: Sequence[Record], *, fresh: bool
    ) -> tuple[Entries, list[Tombstone]]:
        roots = {str(one["id"]): one for one in entries if one.get("id") and not one.get("replyToId")}
        # A feed may also name a reply by itself: then its thread has changed.
        named = {str(one["replyToId"]) for one in entries if one.get("replyToId")} - set(roots)
        roots |= await self._roots(place, sorted(named)) if place.team else {}
        refused: dict[str, ConnectorError] = {}
        threads = await self._threads(place, roots, refused)
        found = Entries(place.id)
        gone: list[Tombstone] = []
        for root_id, messages in threads.items():
            with found.reading(root_id, roots[root_id].get("subject")):
                if root_id in refused:
                    raise ItemFailed("refused", str(refused[root_id]))
                item = await asyncio.to_thread(self._thread, place, roots[root_id], messages)
                if item is not None:
                    found.add(item)
                elif not fresh or "@removed" in roots[root_id]:
                    gone.append(Tombstone(external_id=root_id, container_id=place.id))
        return found, gone

    async def _roots(self, place: Place, ids: Sequence[str]) -> dict[str, Record]:
        answers = await self._graph.batch([f"{place.path}/{segment(one)}" for one in ids], turns=place.turns)
        return {
            one: body
            for one, (status, body) in zip(ids, answers, strict=True)
            if status == 200 and isinstance(body, dict)
        }

    async def _threads(
        self, place: Place, roots: Mapping[str, Record], refused: dict[str, ConnectorError]
    ) -> dict[str, list[Record]]:
        """The messages of each thread, oldest first. Into `refused` goes why one of them cannot be told."""
        bare = [
            one
            for one, root in roots.items()
            if place.team and "replies" not in root and "@removed" not in root
        ]
        answers = await self._graph.batch(
            [f"{place.path}/{segment(one)}/replies?$top={PAGE}" for one in bare], turns=place.turns
        )
        answered: dict[str, list[Record]] = {}
        for root_id, (status, body) in zip(bare, answers, strict=True):
            if status in {200, 404}:
                answered[root_id] = await self._all_replies(place, body) if status == 200 else []
            else:  # a thread without its answers would be half of what was said
                refused[root_id] = meaning(status, error_code(body), {})
        threads: dict[str, list[Record]] = {}
        for root_id, root in roots.items():
            replies = answered.get(root_id) or list(root.get("replies") or [])
            more = root.get("replies@odata.nextLink")
            if more:
                replies += [one async for one in self._graph.every(str(more), turns=place.turns)]
            ordered = sorted(replies, key=lambda one: str(one.get("createdDateTime") or one.get("id") or ""))
            threads[root_id] = [root, *ordered]
        return threads

    async def _all_replies(self, place: Place, body: object) -> list[Record]:
        page = self._graph.collection(body)
        more = page.next_link
        rest = [one async for one in self._graph.every(more, turns=place.turns)] if more else []
        return [*page.value, *rest]

    def _thread(self, place: Place, root: Record, messages: Sequence[Record]) -> Item | None:
        """None if nobody's words are left in it."""
        root_id = str(root["id"])
        spoken = {str(one.get("id")): (one, text) for one in messages if (text := _words(one))}
        if not spoken:
            return None
        parts = [
            Part(
                text=f"{_author(one)} ({_day(one)}): {text}",
                locator={
                    "kind": "ticket",
                    "ticketId": root_id,
                    "commentId": None if message_id == root_id else message_id,
                },
            )
            for message_id, (one, text) in spoken.items()
        ]
        everything = "\n".join(text for _, text in spoken.values())
        last = max(filter(None, (moment(one.get("lastModifiedDateTime")) for one in messages)), default=None)
        skip = None
        if last is not None and last < self._since():
            skip = "outside_window"
        elif self._words and not any(word in everything.casefold() for word in self._words):
            skip = "filtered"
        newest = max(str(one.get("etag") or "") for one in messages)
        return Item(
            external_id=root_id,
            source_kind="teams_message",
            name=str(root.get("subject") or "") or _title(everything),
            container_id=place.id,
            version=f"{newest}:{len(spoken)}",
            path=" / ".join(filter(None, (place.team_name, place.name))),
            uri=root.get("webUrl") or None,
            mime_type="text/plain",
            modified_at=last,
            metadata=_context(place, spoken),
            parts=None if skip else parts,
            skip=skip,
        )

    # -- the rest of the contract

    async def fetch(self, item: Item) -> Fetched:
        raise ItemFailed("unsupported", f"{item.source_kind} comes with its listing", permanent=True)

    async def estimate(self) -> Estimate:
        """How many threads there are nobody says; one page of each channel gives an idea."""
        places = list((await self.census()).containers.values())
        items = 0
        answers = await self._graph.batch([f"{place.path}?$top={PAGE}" for place in places[:100]])
        for status, body in answers:
            if status == 200:
                page = self._graph.collection(body)
                items += len(page.value) * (4 if page.next_link else 1)
        return Estimate(
            items=items, size=items * 500, exact=False, containers=[place.name for place in places]
        )

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        places = (await self.census()).containers.values()
        resources = {
            f"/teams/{place.team}/channels/{place.channel}/messages" if place.team else f"/chats/{place.channel}/messages"
            : "created,updated,deleted"
            for place in places
        }  # fmt: skip
        return await self._subscriptions.keep(url, known, resources)

    async def unwatch(self, known: Sequence[Watch]) -> None:
        await self._subscriptions.drop(known)


def _words(message: Record) -> str:
    """What somebody wrote; nothing for what was deleted or announced by the system."""
    if message.get("deletedDateTime") or "@removed" in message:
        return ""
    if message.get("messageType") not in {None, "message"} or message.get("eventDetail"):
        return ""
    body = message.get("body") or {}
    content = str(body.get("content") or "")
    text = html_to_text(content) if str(body.get("contentType") or "").lower() == "html" else content
    lines = [line.strip() for line in text.splitlines()]
    files = [str(one.get("name")) for one in message.get("attachments") or [] if (one or {}).get("name")]
    if files:
        lines.append(f"Files: {', '.join(files)}")
    return "\n".join(line for line in lines if line)


def _author(message: Record) -> str:
    sender = message.get("from") or {}
    for kind in ("user", "application", "device"):
        name = (sender.get(kind) or {}).get("displayName")
        if name:
            return str(name)
    return "Somebody"


def _day(message: Record) -> str:
    when = moment(message.get("createdDateTime"))
    return f"{when:%Y-%m-%d}" if when else "undated"


def _title(text: str) -> str:
    first = text.split("\n", 1)[0]
    return first if len(first) <= LONGEST_NAME else f"{first[: LONGEST_NAME - 1].rstrip()}…"


def _chat_name(chat: Record) -> str:
    if chat.get("topic"):
        return str(chat["topic"])
    members = [str(one.get("displayName")) for one in chat.get("members") or [] if one.get("displayName")]
    return f"Chat: {', '.join(members[:5])}" if members else "Chat"


def _context(place: Place, spoken: Mapping[str, tuple[Record, str]]) -> dict[str, Any]:
    people = list(dict.fromkeys(_author(one) for one, _ in spoken.values()))
    told = {
        "team": place.team_name,
        ("channel" if place.team else "chat"): place.name,
        "people": people[:50],
        "messages": len(spoken),
    }
    return {name: value for name, value in told.items() if value}


def build(workplace: Workplace) -> Teams:
    return Teams(workplace)
