"""Calendar's side of the world: calendars, events with series and exceptions, and tokens for what changed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from connectors.sandbox.clock import Clock
from connectors.sandbox.google.answers import Json, stamp
from connectors.sandbox.world import Ids, NoSuchObject

# What a control request may set on an event; everything is the API's own word.
SETTABLE = ("summary", "description", "location", "start", "end", "attendees", "recurrence", "status")
FAR = datetime(9000, 1, 1, tzinfo=UTC)
LONGEST_SERIES = 400


@dataclass(kw_only=True)
class Event:
    id: str
    created: datetime
    updated: datetime
    fields: Json
    series: str | None = None
    original_start: Json | None = None
    sequence: int = 0
    changed: int = 0  # place in the calendar's order of changes

    @property
    def cancelled(self) -> bool:
        return self.fields.get("status") == "cancelled"

    @property
    def starts(self) -> datetime:
        return moment(self.fields.get("start") or self.original_start or {})

    @property
    def ends(self) -> datetime:
        return moment(self.fields.get("end") or self.fields.get("start") or self.original_start or {})


@dataclass(kw_only=True)
class Calendar:
    id: str
    user: str
    summary: str
    primary: bool
    access_role: str = "owner"
    time_zone: str = "Europe/Zurich"
    unwatchable: bool = False  # as calendars of holidays are
    gone: bool = False
    events: dict[str, Event] = field(default_factory=dict[str, Event])
    changes: int = 100
    forgotten: int = 0  # tokens before this are no longer valid


class Diary:
    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock, self._ids = clock, ids
        self.calendars: dict[str, Calendar] = {}

    def add_calendar(self, user: str, fields: Json) -> Calendar:
        primary = bool(fields.get("primary"))
        made = f"c_{self._ids.digest('calendar').hex()[:40]}@group.calendar.google.example"
        calendar = Calendar(
            id=user if primary else fields.get("id") or made,
            user=user,
            summary=fields.get("summary") or fields.get("name", user),
            primary=primary,
            access_role=fields.get("accessRole", "owner"),
            unwatchable=bool(fields.get("unwatchable")),
        )
        self.calendars[calendar.id] = calendar
        return calendar

    def of(self, user: str) -> list[Calendar]:
        return [each for each in self.calendars.values() if each.user == user and not each.gone]

    def calendar(self, user: str, calendar_id: str) -> Calendar:
        found = self.calendars.get(user if calendar_id == "primary" else calendar_id)
        if found is None or found.gone or found.user != user:
            raise NoSuchObject(calendar_id)
        return found

    def known(self, object_id: str) -> tuple[Calendar, Event]:
        """By the control API's id: the calendar's and the event's."""
        calendar_id, _, event_id = object_id.rpartition("/")
        calendar = self.calendars.get(calendar_id)
        if calendar is None or event_id not in calendar.events:
            raise NoSuchObject(object_id)
        return calendar, calendar.events[event_id]

    # -- what the control API does

    def create(self, calendar: Calendar, fields: Json) -> Event:
        at = self._clock.stamp()
        event = Event(
            id=fields.get("id") or self._ids.digest("event").hex()[:26],
            created=at,
            updated=at,
            fields={"status": "confirmed", "summary": fields.get("name", "")}
            | {name: fields[name] for name in SETTABLE if name in fields},
        )
        if "text" in fields:
            event.fields["description"] = fields["text"]
        if "seriesId" in fields:
            event.series = fields["seriesId"]
            event.original_start = fields["originalStart"]
            day = re.sub(r"[-:]|\.\d+", "", fields["originalStart"].get("dateTime", "")).split("+")[0]
            event.id = f"{event.series}_{day.rstrip('Z')}Z"
            series = calendar.events[fields["seriesId"]]
            event.fields = {**series.fields, **event.fields}
            event.fields.pop("recurrence", None)
        calendar.events[event.id] = event
        self._note(calendar, event)
        return event

    def edit(self, calendar: Calendar, event: Event, fields: Json) -> Event:
        event.fields |= {name: fields[name] for name in SETTABLE if name in fields}
        if "name" in fields:
            event.fields["summary"] = fields["name"]
        if "text" in fields:
            event.fields["description"] = fields["text"]
        event.sequence += 1
        self._note(calendar, event)
        return event

    def delete(self, calendar: Calendar, event: Event) -> None:
        event.fields["status"] = "cancelled"
        self._note(calendar, event)
        for each in calendar.events.values():
            if each.series == event.id:
                each.fields["status"] = "cancelled"
                self._note(calendar, each)

    def restore(self, calendar: Calendar, event: Event) -> Event:
        event.fields["status"] = "confirmed"
        self._note(calendar, event)
        return event

    def _note(self, calendar: Calendar, event: Event) -> None:
        calendar.changes += 1
        event.changed, event.updated = calendar.changes, self._clock.stamp()

    # -- as the API shows it

    def resource(self, calendar: Calendar, event: Event) -> Json:
        if event.cancelled:
            short: Json = {
                "kind": "calendar#event",
                "etag": f'"{event.changed}000"',
                "id": event.id,
                "status": "cancelled",
            }
            if event.series is not None:
                short |= {"recurringEventId": event.series, "originalStartTime": event.original_start}
            return short
        found: Json = {
            "kind": "calendar#event",
            "etag": f'"{event.changed}000"',
            "id": event.id,
            "created": stamp(event.created),
            "updated": stamp(event.updated),
            "htmlLink": f"https://calendar.google.example/event?eid={event.id}",
            "iCalUID": f"{event.series or event.id}@google.example",
            "sequence": event.sequence,
            "creator": {"email": calendar.user, "self": True},
            "organizer": {"email": calendar.user, "self": True},
            "reminders": {"useDefault": True},
            "eventType": "default",
            **{name: value for name, value in event.fields.items() if value not in ("", None)},
        }
        if event.series is not None:
            found |= {"recurringEventId": event.series, "originalStartTime": event.original_start}
        return found

    def instances(self, calendar: Calendar, event: Event) -> Iterator[Json]:
        """A series as single events, with its exceptions in their places."""
        exceptions = {
            moment(each.original_start or {}): each
            for each in calendar.events.values()
            if each.series == event.id
        }
        length = event.ends - event.starts
        zone = (event.fields.get("start") or {}).get("timeZone", calendar.time_zone)
        whole = self.resource(calendar, event)
        for at in occurrences(event):
            if at in exceptions:
                yield self.resource(calendar, exceptions[at])
                continue
            start = {"dateTime": at.isoformat(), "timeZone": zone}
            yield {name: value for name, value in whole.items() if name != "recurrence"} | {
                "id": f"{event.id}_{at:%Y%m%dT%H%M%S}Z",
                "recurringEventId": event.id,
                "originalStartTime": start,
                "start": start,
                "end": {"dateTime": (at + length).isoformat(), "timeZone": zone},
            }

    def last_end(self, event: Event) -> datetime:
        """Until when anything of it happens."""
        if not event.fields.get("recurrence"):
            return event.ends
        length = event.ends - event.starts
        return max(occurrences(event), default=event.starts) + length


def moment(value: Json) -> datetime:
    """A time nobody can read – there are such events – is taken for one in the far future."""
    if "dateTime" in value:
        try:
            found = datetime.fromisoformat(value["dateTime"])
        except ValueError:
            return FAR
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return datetime.fromisoformat(value.get("date", "1970-01-01")).replace(tzinfo=UTC)


def occurrences(event: Event) -> Iterator[datetime]:
    """Daily and weekly rules with INTERVAL, COUNT and UNTIL: all the seed uses."""
    rule = next((each for each in event.fields.get("recurrence") or () if each.startswith("RRULE:")), None)
    if rule is None:
        yield event.starts
        return
    parts = dict(part.split("=", 1) for part in rule.removeprefix("RRULE:").split(";"))
    step = timedelta(days=7 if parts.get("FREQ") == "WEEKLY" else 1) * int(parts.get("INTERVAL", 1))
    count = min(int(parts.get("COUNT", LONGEST_SERIES)), LONGEST_SERIES)
    until = parts.get("UNTIL")
    end = datetime.strptime(until[:8], "%Y%m%d").replace(tzinfo=UTC) + timedelta(days=1) if until else None
    for index in range(count):
        at = event.starts + step * index
        if end is not None and at >= end:
            return
        yield at
