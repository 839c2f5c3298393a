"""Google Calendar: every calendar a container with a sync token; a series is one item, its exceptions hang on it."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connectors.google.api import GoogleApi, Refusal, about_container, lacks_scope
from connectors.google.channels import Channels
from connectors.google.events import event_item
from connectors.kit.contract import CursorLost, Estimate, Fetched, Item, ItemGone, Tombstone, Watch
from connectors.kit.entries import Entries
from connectors.kit.rounds import Batch, Census, ContainerSurface
from connectors.registry import Workplace

PAGE = 250
# The window moves with time; what it took in without having changed is found by a listing of its own.
LISTED_AGAIN_AFTER = timedelta(days=30)
ESTIMATE_PAGES = 8
READABLE = frozenset({"reader", "writer", "owner"})


@dataclass(frozen=True, kw_only=True)
class CalendarEntry:
    id: str
    name: str


@dataclass(frozen=True)
class Place:
    """A link, read: a listing since `since` on a page of it, or a sync token of a listing made at `since`."""

    kind: str  # list, sync
    since: str
    token: str | None = None

    def text(self) -> str:
        return json.dumps([self.kind, self.since, self.token], separators=(",", ":"))

    @staticmethod
    def read(link: str) -> "Place":
        return Place(*json.loads(link))


class GoogleCalendar(ContainerSurface[CalendarEntry]):
    def __init__(self, workplace: Workplace) -> None:
        self._workplace, self._policy = workplace, workplace.policy
        self._api = GoogleApi(workplace, workplace.endpoints, "calendar", "v3")
        self._channels = Channels(self._api, workplace.clock)
        self._is_blind = False  # the calendars may not be listed: what is known is asked itself

    async def census(self) -> Census[CalendarEntry]:
        try:
            return await self._calendars()
        except Refusal as error:
            self._is_blind = lacks_scope(error)
            if not self._is_blind:
                raise
            return Census({"primary": CalendarEntry(id="primary", name="Calendar")})

    async def _calendars(self) -> Census[CalendarEntry]:
        found: dict[str, CalendarEntry] = {}
        hidden: set[str] = set()
        token: str | None = None
        while True:
            page = await self._api.ask(
                lambda api, token=token: api.calendarList().list(
                    maxResults=PAGE,
                    pageToken=token,
                    fields="nextPageToken,items(id,summary,summaryOverride,accessRole,deleted,primary)",
                )
            )
            for entry in page.get("items", ()):
                if entry.get("deleted"):
                    continue
                name = entry.get("summaryOverride") or entry.get("summary") or entry["id"]
                if entry.get("accessRole") in READABLE and self._workplace.external_root in {"", entry["id"]}:
                    found[entry["id"]] = CalendarEntry(id=entry["id"], name=name)
                else:  # one that shows only when somebody is busy has nothing to read
                    hidden.add(entry["id"])
            token = page.get("nextPageToken")
            if token is None:
                return Census(found, excluded=frozenset(hidden))

    def outgrown(self, container_id: str, link: str) -> bool:
        del container_id
        place = Place.read(link)
        listed = datetime.fromisoformat(place.since)
        return place.kind == "sync" and self._workplace.clock() - listed > LISTED_AGAIN_AFTER

    def unlisted(self, container_id: str) -> CalendarEntry | None:
        return CalendarEntry(id=container_id, name="") if self._is_blind else None

    def described(self, container: CalendarEntry) -> str:
        return container.name

    def left_out(self, item: Item) -> str | None:
        end = item.metadata.get("end")
        earliest = self._workplace.clock() - timedelta(days=self._policy.calendar_past_days)
        if end and datetime.fromisoformat(end) < earliest:
            return "outside_window"
        return super().left_out(item)

    async def feed(self, container: CalendarEntry, link: str | None) -> AsyncGenerator[Batch]:
        place = Place.read(link) if link else Place("list", self._workplace.clock().isoformat())
        try:
            async for batch in self._read(container, place):
                yield batch
        except Refusal as error:
            if error.status == 410 or (error.status == 400 and link is not None):
                raise CursorLost(str(error)) from error
            raise about_container(error) from error

    async def _read(self, calendar: CalendarEntry, place: Place) -> AsyncGenerator[Batch]:
        options: dict[str, Any] = {}
        if place.kind == "sync":
            options["syncToken"] = place.token
        else:
            earliest = datetime.fromisoformat(place.since) - timedelta(days=self._policy.calendar_past_days)
            options |= {"timeMin": earliest.isoformat(), "pageToken": place.token}
        while True:
            page = await self._api.ask(
                lambda api, options=options: api.events().list(
                    calendarId=calendar.id, maxResults=PAGE, **options
                )
            )
            found, gone = self._judged(calendar, page.get("items", ()))
            following = page.get("nextPageToken")
            if following is None:
                now = self._workplace.clock().isoformat() if place.kind == "list" else place.since
                after = Place("sync", now, page["nextSyncToken"])
                yield Batch(after.text(), True, found.items, gone, found.failures)
                return
            # A page of changes cannot be come back to: it is asked for again from its token.
            kept = place if place.kind == "sync" else Place("list", place.since, following)
            yield Batch(kept.text(), False, found.items, gone, found.failures)
            options["pageToken"] = following

    def _judged(
        self, calendar: CalendarEntry, events: Sequence[Mapping[str, Any]]
    ) -> tuple[Entries, list[Tombstone]]:
        found = Entries(calendar.id)
        tombstones: list[Tombstone] = []
        for event in events:
            external_id = f"{calendar.id}/{event['id']}"
            if event.get("status") == "cancelled":
                tombstones.append(Tombstone(external_id=external_id, container_id=calendar.id))
                continue
            with found.reading(external_id, event.get("summary")):
                found.add(
                    event_item(
                        event,
                        calendar_id=calendar.id,
                        calendar_name=calendar.name,
                        policy=self._policy,
                        now=self._workplace.clock(),
                    )
                )
        return found, tombstones

    async def fetch(self, item: Item) -> Fetched:
        """Never needed for a new event, whose text comes along; for one that must be read again it is made anew."""
        calendar_id, _, event_id = item.external_id.rpartition("/")
        try:
            event = await self._api.ask(
                lambda api: api.events().get(calendarId=calendar_id, eventId=event_id)
            )
        except Refusal as error:
            raise (ItemGone(str(error)) if error.status in {404, 410} else about_container(error)) from error
        if event.get("status") == "cancelled":
            raise ItemGone("cancelled")
        fresh = event_item(
            event,
            calendar_id=calendar_id,
            calendar_name="",
            policy=self._policy,
            now=self._workplace.clock(),
        )
        text = "\n\n".join(part.text for part in fresh.parts or ())
        return Fetched(data=text.encode(), mime_type="text/plain", version=fresh.version)

    async def estimate(self) -> Estimate:
        census = await self.census()
        earliest = self._workplace.clock() - timedelta(days=self._policy.calendar_past_days)
        items, exact = 0, True
        for calendar in census.containers.values():
            token: str | None = None
            for _ in range(ESTIMATE_PAGES):
                page = await self._api.ask(
                    lambda api, calendar=calendar, token=token: api.events().list(
                        calendarId=calendar.id,
                        maxResults=2500,
                        pageToken=token,
                        timeMin=earliest.isoformat(),
                        fields="nextPageToken,items(id)",
                    )
                )
                items += len(page.get("items", ()))
                token = page.get("nextPageToken")
                if token is None:
                    break
            exact = exact and token is None
        names = [calendar.name for calendar in census.containers.values()]
        return Estimate(items=items, size=items * 500, exact=exact, containers=names)

    # -- push

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        async def ask(calendar_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
            return await self._api.ask(lambda api: api.events().watch(calendarId=calendar_id, body=body))

        return await self._channels.keep(url, known, (await self.census()).containers, ask)

    async def unwatch(self, known: Sequence[Watch]) -> None:
        await self._channels.stop(known)


def build(workplace: Workplace) -> GoogleCalendar:
    return GoogleCalendar(workplace)
