"""Outlook calendars: a window of days that moves along, by the change feed of its view.

A series is one document, its changed dates are documents below it; ordinary dates only repeat the series and are none. When the
window has moved on by `STEP`, its calendars are listed anew: what fell out of it leaves, what came into it arrives.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connectors.kit.contract import (
    Estimate,
    Fetched,
    Item,
    ItemFailed,
    Part,
    Tombstone,
    VendorUnavailable,
    Watch,
)
from connectors.kit.entries import Entries
from connectors.kit.mail_text import clean_email_body
from connectors.kit.rounds import Batch, Census, ContainerSurface
from connectors.msft.graph import Graph, Record, lies_in, moment, segment, stamp
from connectors.msft.subscriptions import Subscriptions
from connectors.registry import Workplace

PAGE = 50
HEADERS = {"Prefer": f'odata.maxpagesize={PAGE}, outlook.timezone="UTC", IdType="ImmutableId"'}
STEP = timedelta(days=7)
ESTIMATE_EVENTS = 2000


@dataclass(frozen=True)
class Calendar:
    id: str
    name: str


class OutlookCalendar(ContainerSurface[Calendar]):
    census_keeps = True

    def __init__(self, workplace: Workplace) -> None:
        self._graph = Graph(workplace, workplace.endpoints["graph"])
        self._policy, self._clock, self._root = workplace.policy, workplace.clock, workplace.external_root
        self._subscriptions = Subscriptions(self._graph, workplace.clock)

    async def census(self) -> Census[Calendar]:
        found: dict[str, Calendar] = {}
        async for entry in self._graph.every("/me/calendars", params={"$top": 100}, headers=HEADERS):
            if entry.get("id") and lies_in(self._root, entry["id"], entry.get("name")):
                found[str(entry["id"])] = Calendar(str(entry["id"]), str(entry.get("name") or "Calendar"))
        return Census(found)

    # -- the window. A link is kept with the day its window began: the vendor's token does not say.

    def _window(self) -> tuple[datetime, datetime]:
        today = self._clock().replace(hour=0, minute=0, second=0, microsecond=0)
        return (
            today - timedelta(days=self._policy.calendar_past_days),
            today + timedelta(days=self._policy.calendar_future_days + 1),
        )

    def outgrown(self, container_id: str, link: str) -> bool:
        del container_id
        began = moment(link.partition("|")[0])
        return began is None or abs(self._window()[0] - began) >= STEP

    def described(self, container: Calendar) -> str:
        return container.name

    def left_out(self, item: Item) -> str | None:
        """A single date whose day is no longer, or not yet, in the window; a series may reach into it from anywhere."""
        first, last = self._window()
        start, end = moment(item.metadata.get("start")), moment(item.metadata.get("end"))
        if "series" not in item.metadata and start is not None and end is not None:
            return "outside_window" if end < first or start > last else super().left_out(item)
        return super().left_out(item)

    async def feed(self, container: Calendar, link: str | None) -> AsyncIterator[Batch]:
        first, last = self._window()
        params: dict[str, Any] | None = None
        if link is None:
            began, address = stamp(first), f"/me/calendars/{segment(container.id)}/calendarView/delta"
            params = {"startDateTime": began, "endDateTime": stamp(last)}
        else:
            began, _, address = link.partition("|")
        seen: set[str] = set()
        while True:
            page = await self._graph.page(address, params=params, headers=HEADERS)
            address, params = page.next_link or page.delta_link or "", None
            if not address:
                raise VendorUnavailable("a delta page without a link")
            entries = [*page.value, *await self._missing_masters(page.value, seen)]
            batch = await asyncio.to_thread(self._sort, container, entries, fresh=link is None)
            done = page.next_link is None
            yield Batch(f"{began}|{address}", done, batch[0].items, batch[1], batch[0].failures)
            if done:
                return

    async def _missing_masters(self, entries: Sequence[Record], seen: set[str]) -> list[Record]:
        """A date may come without the series it belongs to; the series is what is indexed."""
        seen |= {str(entry.get("id")) for entry in entries if entry.get("type") == "seriesMaster"}
        wanted = {
            str(entry["seriesMasterId"])
            for entry in entries
            if entry.get("seriesMasterId") and "@removed" not in entry
        } - seen
        seen |= wanted
        paths = [f"/me/events/{segment(one)}" for one in sorted(wanted)]
        answers = await self._graph.batch(paths, headers=HEADERS)
        return [body for status, body in answers if status == 200 and isinstance(body, dict)]

    def _sort(
        self, calendar: Calendar, entries: Sequence[Record], *, fresh: bool
    ) -> tuple[Entries, list[Tombstone]]:
        latest = {str(entry["id"]): entry for entry in entries if entry.get("id")}
        found = Entries(calendar.id)
        gone: list[Tombstone] = []
        for event_id, entry in latest.items():
            if "@removed" in entry or entry.get("isCancelled"):
                gone.append(Tombstone(external_id=event_id, container_id=calendar.id))
            elif entry.get("type") == "occurrence":
                if not fresh:  # it may have been an exception until now
                    gone.append(Tombstone(external_id=event_id, container_id=calendar.id))
            else:
                with found.reading(event_id, entry.get("subject")):
                    found.add(self._item(calendar, entry))
        return found, gone

    def _item(self, calendar: Calendar, entry: Record) -> Item:
        event_id = str(entry["id"])
        return Item(
            external_id=event_id,
            source_kind="outlook_event",
            name=str(entry.get("subject") or "") or "(no title)",
            container_id=calendar.id,
            version=str(entry.get("changeKey") or "") or None,
            parent_id=str(entry["seriesMasterId"]) if entry.get("seriesMasterId") else None,
            path=calendar.name,
            uri=entry.get("webLink") or None,
            mime_type="text/calendar",
            modified_at=moment(entry.get("lastModifiedDateTime")),
            metadata=_context(calendar, entry),
            parts=[Part(text=text) for text in self._texts(entry)],
        )

    def _texts(self, entry: Record) -> Iterator[str]:
        lines = {
            "Title": str(entry.get("subject") or "(no title)"),
            "When": _when(entry),
            "Repeats": _recurrence(entry.get("recurrence")),
            "Where": _place(entry),
            "Organizer": _person(entry.get("organizer")),
        }
        if self._policy.calendar_attendees:
            people = (_person(one) for one in (entry.get("attendees") or [])[:200])
            lines["Attendees"] = ", ".join(filter(None, people))
        yield "\n".join(f"{name}: {value}" for name, value in lines.items() if value)
        body = entry.get("body") or {}
        content_type = "html" if str(body.get("contentType") or "").lower() == "html" else "text"
        text = clean_email_body(str(body.get("content") or ""), content_type=content_type)
        if text:
            yield text

    # -- the rest of the contract

    async def fetch(self, item: Item) -> Fetched:
        raise ItemFailed("unsupported", f"{item.source_kind} comes with its listing", permanent=True)

    async def estimate(self) -> Estimate:
        first, last = self._window()
        params = {
            "startDateTime": stamp(first),
            "endDateTime": stamp(last),
            "$top": 200,
            "$select": "id,seriesMasterId",
        }
        events: set[str] = set()
        seen = 0
        async for entry in self._graph.every("/me/calendarView", params=params):
            seen += 1
            events.add(str(entry.get("seriesMasterId") or entry.get("id")))
            if seen >= ESTIMATE_EVENTS:
                break
        calendars = (await self.census()).containers.values()
        return Estimate(
            items=len(events),
            size=len(events) * 1000,
            exact=False,
            containers=[one.name for one in calendars],
        )

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        return await self._subscriptions.keep(url, known, {"/me/events": "created,updated,deleted"})

    async def unwatch(self, known: Sequence[Watch]) -> None:
        await self._subscriptions.drop(known)


def _when(entry: Record) -> str:
    start, end = (moment((entry.get(name) or {}).get("dateTime")) for name in ("start", "end"))
    if start is None:
        return ""
    if entry.get("isAllDay"):
        last = end - timedelta(days=1) if end else start
        return f"{start:%Y-%m-%d}" if last <= start else f"{start:%Y-%m-%d} to {last:%Y-%m-%d}"
    if end is None:
        return f"{start:%Y-%m-%d %H:%M} UTC"
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} to {until} UTC"


def _recurrence(told: Any) -> str:
    if not isinstance(told, dict):
        return ""
    pattern, range_ = told.get("pattern") or {}, told.get("range") or {}
    every = int(pattern.get("interval") or 1)
    words = [str(pattern.get("type") or ""), f"every {every}" if every > 1 else ""]
    words.append(", ".join(str(day) for day in pattern.get("daysOfWeek") or []))
    until = str(range_.get("endDate") or "")
    words.append(f"until {until}" if until and not until.startswith("0001") else "")
    return " ".join(filter(None, words))


def _place(entry: Record) -> str:
    names = [(entry.get("location") or {}).get("displayName")]
    names += [(one or {}).get("displayName") for one in entry.get("locations") or []]
    return ", ".join(dict.fromkeys(str(name) for name in names if name))


def _person(told: Any) -> str:
    address = (told or {}).get("emailAddress") or {}
    name, mail = str(address.get("name") or ""), str(address.get("address") or "")
    return f"{name} <{mail}>" if name and mail and name != mail else name or mail


def _context(calendar: Calendar, entry: Record) -> dict[str, Any]:
    start, end = (moment((entry.get(name) or {}).get("dateTime")) for name in ("start", "end"))
    told = {
        "calendar": calendar.name,
        "start": start.isoformat() if start else None,
        "end": end.isoformat() if end else None,
        "location": _place(entry),
        "organizer": _person(entry.get("organizer")),
        "series": str(entry.get("type") or "") if entry.get("type") != "singleInstance" else None,
    }
    return {name: value for name, value in told.items() if value}


def build(workplace: Workplace) -> OutlookCalendar:
    return OutlookCalendar(workplace)
