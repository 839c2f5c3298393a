"""Calendars as Graph answers them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from connectors.sandbox.msft.calendars import Event, Occurrence
from connectors.sandbox.msft.directory import User
from connectors.sandbox.msft.feed import Mark
from connectors.sandbox.msft.graph import (
    Call,
    GraphError,
    Json,
    Reply,
    collection,
    iso,
    listed,
    parsed_time,
    selected,
)
from connectors.sandbox.msft.mail_answers import mailbox
from connectors.sandbox.msft.rounds import answered, begun
from connectors.sandbox.world import NoSuchObject

_UNSUPPORTED = ("$select", "$expand", "$filter", "$orderby", "$search")


@dataclass(frozen=True)
class _Gone:
    id: str


Entry = Event | tuple[Event, Occurrence] | _Gone


def _when(moment: datetime) -> Json:
    return {"dateTime": moment.strftime("%Y-%m-%dT%H:%M:%S") + ".0000000", "timeZone": "UTC"}


def shown_event(event: Event, occurrence: Occurrence | None = None) -> Json:
    change = occurrence.exception if occurrence else None
    if occurrence:
        kind = "exception" if change else "occurrence"
    else:
        kind = "seriesMaster" if event.recurrence else "singleInstance"
    content = (change and change.text) or event.text
    return {
        "@odata.etag": f'W/"{event.change_key}"',
        "id": occurrence.id if occurrence else event.id,
        "createdDateTime": iso(event.created, 2),
        "lastModifiedDateTime": iso(event.modified, 2),
        "changeKey": event.change_key,
        "categories": [],
        "transactionId": None,
        "originalStartTimeZone": "UTC",
        "originalEndTimeZone": "UTC",
        "iCalUId": event.uid,
        "uid": event.uid,
        "reminderMinutesBeforeStart": 15,
        "isReminderOn": True,
        "hasAttachments": False,
        "subject": (change and change.subject) or event.subject,
        "bodyPreview": content[:255],
        "importance": "normal",
        "sensitivity": "normal",
        "isAllDay": event.all_day,
        "isCancelled": False,
        "isOrganizer": event.organizer[1] == event.user.email,
        "responseRequested": True,
        "seriesMasterId": event.id if occurrence else None,
        "occurrenceId": f"OID.{event.id}.{occurrence.start:%Y-%m-%d}" if occurrence else None,
        "showAs": "busy",
        "type": kind,
        "webLink": "https://outlook.sandbox.example/owa/?path=/calendar/item",
        "onlineMeetingUrl": None,
        "isOnlineMeeting": False,
        "onlineMeetingProvider": "unknown",
        "onlineMeeting": None,
        "allowNewTimeProposals": True,
        "isDraft": False,
        "hideAttendees": False,
        "responseStatus": {"response": "organizer", "time": "0001-01-01T00:00:00Z"},
        "body": {"contentType": "html" if event.html else "text", "content": content},
        "start": _when(occurrence.start if occurrence else event.start),
        "end": _when(occurrence.end if occurrence else event.end),
        "location": {"displayName": event.location, "locationType": "default"},
        "locations": [{"displayName": event.location}] if event.location else [],
        "recurrence": None if occurrence else _recurrence(event),
        "attendees": [
            {
                "type": "required",
                "status": {"response": "none", "time": "0001-01-01T00:00:00Z"},
                "emailAddress": {"name": name, "address": mail},
            }
            for name, mail in event.attendees
        ],
        "organizer": {"emailAddress": {"name": event.organizer[0], "address": event.organizer[1]}},
    }


def _recurrence(event: Event) -> Json | None:
    if event.recurrence is None:
        return None
    return {
        "pattern": {
            "type": event.recurrence["pattern"],
            "interval": int(event.recurrence.get("interval", 1)),
            "month": 0,
            "dayOfMonth": 0,
            "daysOfWeek": [event.start.strftime("%A").lower()],
            "firstDayOfWeek": "sunday",
            "index": "first",
        },
        "range": {
            "type": "numbered",
            "startDate": event.start.strftime("%Y-%m-%d"),
            "endDate": "0001-01-01",
            "recurrenceTimeZone": "UTC",
            "numberOfOccurrences": int(event.recurrence.get("count", 10)),
        },
    }


def calendars(call: Call, who: str) -> Reply:
    return collection(call, "calendars", [_calendar(call, mailbox(call, who))])


def default_calendar(call: Call, who: str) -> Reply:
    return Reply(body=_calendar(call, mailbox(call, who)))


def _calendar(call: Call, user: User) -> Json:
    return {
        "id": call.world.calendars.calendar_of(user),
        "name": "Calendar",
        "color": "auto",
        "hexColor": "",
        "groupClassId": "0006f0b7-0000-0000-c000-000000000046",
        "isDefaultCalendar": True,
        "changeKey": "AAAA",
        "canShare": True,
        "canViewPrivateItems": True,
        "canEdit": True,
        "isRemovable": False,
        "owner": {"name": user.name, "address": user.email},
    }


def one_event(call: Call, who: str, event_id: str) -> Reply:
    user = mailbox(call, who)
    try:
        event, occurrence = call.world.calendars.find(event_id)
    except NoSuchObject:
        event, occurrence = None, None
    if event is None or event.deleted or event.user.id != user.id:
        raise GraphError(404, "ErrorItemNotFound", "The specified object was not found in the store.")
    return Reply(body=selected(shown_event(event, occurrence), call.query))


def all_events(call: Call, who: str) -> Reply:
    rows = [
        selected(shown_event(each), call.query)
        for each in call.world.calendars.of(mailbox(call, who))
        if not each.deleted
    ]
    return listed(call, "events", rows, size=call.page_size(10, 1000))


def _window(query: dict[str, str]) -> tuple[datetime, datetime]:
    if "startDateTime" not in query or "endDateTime" not in query:
        raise GraphError(
            400,
            "ErrorInvalidParameter",
            "This request requires a time window: startDateTime and endDateTime.",
        )
    return parsed_time(query["startDateTime"]), parsed_time(query["endDateTime"])


def view(call: Call, who: str) -> Reply:
    user = mailbox(call, who)
    first, last = _window(call.query)
    rows: list[Json] = []
    for event in call.world.calendars.of(user):
        if event.deleted:
            continue
        if event.recurrence is None and event.start < last and event.end > first:
            rows.append(shown_event(event))
        rows += [
            shown_event(event, each) for each in event.occurrences() if each.start < last and each.end > first
        ]
    rows.sort(key=lambda each: each["start"]["dateTime"])
    return listed(call, "calendarView", rows, size=call.page_size(10, 1000))


def view_changes(call: Call, who: str, calendar_id: str | None = None) -> Reply:
    user = mailbox(call, who)
    if calendar_id not in {None, call.world.calendars.calendar_of(user)}:
        raise GraphError(404, "ErrorItemNotFound", "The specified object was not found in the store.")
    if any(name in call.query for name in _UNSUPPORTED):
        raise GraphError(400, "ErrorInvalidUrlQuery", "The query is not supported for change tracking.")
    mark = begun(call, f"calendar:{user.id}", ("startDateTime", "endDateTime"))
    window = _window(mark.query)
    entries = [
        ((seq, number), entry)
        for number, event in enumerate(call.world.calendars.of(user))
        for seq, number, entry in _of_event(event, mark, window, number)
    ]
    return answered(
        call,
        mark,
        entries,
        show=_shown_entry,
        size=call.page_size(10, 1000),
        path="/me/calendarView/delta",
        context="Collection(event)",
    )


def _of_event(
    event: Event, mark: Mark, window: tuple[datetime, datetime], number: int
) -> Iterator[tuple[int, int, Entry]]:
    """Change number, place among the same number, and what to say of it."""
    first, last = window
    since, until = mark.since, mark.until
    base = number * 100_000

    def new(seq: int) -> bool:
        return since < seq <= until

    seen = [each for each in event.occurrences() if each.start < last and each.end > first]
    inside = bool(seen) if event.recurrence else event.start < last and event.end > first
    if new(event.seq):
        if inside and not event.deleted:
            yield event.seq, base, event
        elif since:
            yield event.seq, base, _Gone(event.id)
    if not event.deleted:
        for each in seen:
            if new(each.seq):
                yield each.seq, base + 1 + each.index, (event, each)
    standing = set[str]() if event.deleted else {each.id for each in seen}
    for place, (gone, seq) in enumerate(event.gone):
        if since and new(seq) and gone not in standing:
            yield seq, base + 50_000 + place, _Gone(gone)


def _shown_entry(entry: Any) -> Json:
    if isinstance(entry, _Gone):
        return {"@odata.type": "#microsoft.graph.event", "id": entry.id, "@removed": {"reason": "deleted"}}
    if isinstance(entry, Event):
        return {"@odata.type": "#microsoft.graph.event", **shown_event(entry)}
    event, occurrence = entry
    whole = shown_event(event, occurrence)
    if occurrence.exception:
        return {"@odata.type": "#microsoft.graph.event", **whole}
    # An ordinary date says only what differs from its series.
    short = ("@odata.etag", "id", "seriesMasterId", "occurrenceId", "type", "start", "end")
    return {"@odata.type": "#microsoft.graph.event", **{name: whole[name] for name in short}}
