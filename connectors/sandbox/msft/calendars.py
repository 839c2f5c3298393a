"""Calendars: single events, series with their exceptions and cancelled dates."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from connectors.sandbox.msft.directory import Directory, User
from connectors.sandbox.msft.feed import Changes
from connectors.sandbox.msft.graph import parsed_time
from connectors.sandbox.world import Fields, Ids, NoSuchObject, Refused

STEP = {"daily": timedelta(days=1), "weekly": timedelta(weeks=1)}


@dataclass(kw_only=True)
class Change:
    """What differs on one date of a series; `cancelled` ends that date."""

    seq: int
    cancelled: bool = False
    subject: str | None = None
    text: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    id: str
    index: int
    seq: int
    start: datetime
    end: datetime
    exception: Change | None


@dataclass(kw_only=True)
class Event:
    id: str
    uid: str
    user: User
    subject: str
    text: str
    html: bool
    start: datetime
    end: datetime
    all_day: bool
    location: str
    attendees: list[tuple[str, str]]
    organizer: tuple[str, str]
    recurrence: dict[str, Any] | None
    created: datetime
    modified: datetime
    seq: int
    change: int = 1
    deleted: bool = False
    changes: dict[int, Change] = field(default_factory=dict[int, Change])
    # Dates a changed series no longer has: occurrence id and change number.
    gone: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    @property
    def change_key(self) -> str:
        return base64.b64encode(sha256(f"{self.id}:{self.change}".encode()).digest()[:18]).decode()

    def occurrence_id(self, start: datetime) -> str:
        data = sha256(f"{self.id}:{start.isoformat()}".encode()).digest()
        return "AAMkAGIocc" + base64.urlsafe_b64encode(data).decode()

    def occurrences(self) -> Iterator[Occurrence]:
        """Every date of the series that is not cancelled. An exception keeps the id of the date it had."""
        if self.recurrence is None:
            return
        step = STEP[self.recurrence["pattern"]] * int(self.recurrence.get("interval", 1))
        for index in range(int(self.recurrence.get("count", 10))):
            start = self.start + step * index
            change = self.changes.get(index)
            if change and change.cancelled:
                continue
            yield Occurrence(
                id=self.occurrence_id(start),
                index=index,
                seq=max(self.seq, change.seq if change else 0),
                start=(change.start if change else None) or start,
                end=(change.end if change else None) or start + (self.end - self.start),
                exception=change,
            )


class Calendars:
    def __init__(self, ids: Ids, changes: Changes, people: Directory) -> None:
        self._ids, self._changes, self._people = ids, changes, people
        self.events: dict[str, Event] = {}
        self._calendars = {
            user.id: "AAMkAGIcal" + base64.urlsafe_b64encode(ids.digest("calendar")).decode()
            for user in people.all()
        }

    def calendar_of(self, user: User) -> str:
        return self._calendars[user.id]

    def of(self, user: User) -> list[Event]:
        return [each for each in self.events.values() if each.user.id == user.id]

    def find(self, event_id: str) -> tuple[Event, Occurrence | None]:
        """An event, or a date of a series."""
        if event := self.events.get(event_id):
            return event, None
        for event in self.events.values():
            for each in event.occurrences():
                if each.id == event_id:
                    return event, each
        raise NoSuchObject(event_id)

    def add(self, fields: Fields) -> Event:
        user = self._people.find(str(fields["user"]))
        seq, now = self._changes.next()
        start = (
            parsed_time(fields["start"])
            if "start" in fields
            else now.replace(minute=0, second=0, microsecond=0)
        )
        end = parsed_time(fields["end"]) if "end" in fields else start + timedelta(hours=1)
        event = Event(
            id="AAMkAGIevt" + base64.urlsafe_b64encode(self._ids.digest("event")).decode(),
            uid="040000008200E00074C5B7101A82E008" + self._ids.digest("uid").hex()[:48].upper(),
            user=user,
            subject=str(fields.get("subject", "")),
            text=str(fields.get("html", fields.get("text", ""))),
            html="html" in fields,
            start=start,
            end=end,
            all_day=bool(fields.get("allDay", False)),
            location=str(fields.get("location", "")),
            attendees=[self._person(each) for each in fields.get("attendees", [])],
            organizer=self._person(fields.get("organizer", user.email)),
            recurrence=fields.get("recurrence"),
            created=now,
            modified=now,
            seq=seq,
        )
        self.events[event.id] = event
        return event

    def _person(self, who: Any) -> tuple[str, str]:
        try:
            user = self._people.find(str(who))
        except NoSuchObject:
            return str(who), str(who)
        return user.name, user.email

    def edit(self, event: Event, occurrence: Occurrence | None, fields: Fields) -> None:
        if event.deleted:
            raise Refused(f"{event.id} is deleted")
        seq, now = self._changes.next()
        start = parsed_time(fields["start"]) if "start" in fields else None
        end = parsed_time(fields["end"]) if "end" in fields else None
        event.change += 1
        event.modified = now
        if occurrence:
            change = event.changes.setdefault(occurrence.index, Change(seq=seq))
            change.seq = seq
            change.subject = fields.get("subject", change.subject)
            change.text = fields.get("text", change.text)
            change.start, change.end = start or change.start, end or change.end
            return
        before = {each.id for each in event.occurrences()}
        event.subject = str(fields.get("subject", event.subject))
        event.text = str(fields.get("html", fields.get("text", event.text)))
        event.html = "html" in fields or (event.html and "text" not in fields)
        event.location = str(fields.get("location", event.location))
        event.start, event.end = start or event.start, end or event.end
        event.recurrence = fields.get("recurrence", event.recurrence)
        event.seq = seq
        after = {each.id for each in event.occurrences()}
        event.gone += [(each, seq) for each in sorted(before - after)]

    def delete(self, event: Event, occurrence: Occurrence | None) -> None:
        seq, _ = self._changes.next()
        if occurrence:
            event.changes[occurrence.index] = Change(seq=seq, cancelled=True)
            event.gone.append((occurrence.id, seq))
            event.change += 1
            return
        event.gone += [(each.id, seq) for each in event.occurrences()]
        event.deleted, event.seq = True, seq

    def restore(self, event: Event) -> None:
        event.deleted = False
        event.seq, event.modified = self._changes.next()
        event.change += 1

    # -- the truth

    def state(self, user: User | None) -> Iterator[dict[str, Any]]:
        for event in self.events.values():
            if not event.deleted and (user is None or event.user.id == user.id):
                yield self.told(event)

    def told(self, event: Event) -> dict[str, Any]:
        return {
            "id": event.id,
            "kind": "event",
            "surface": "outlook_calendar",
            "user": event.user.email,
            "name": event.subject,
            "version": event.change_key,
            "containerId": self.calendar_of(event.user),
            "parentId": None,
            "text": event.text,
            "location": event.location,
            "start": event.start.isoformat(),
            "end": event.end.isoformat(),
            "series": event.recurrence is not None,
            "occurrences": [
                {
                    "id": each.id,
                    "start": each.start.isoformat(),
                    "name": (each.exception and each.exception.subject) or event.subject,
                    "exception": each.exception is not None,
                }
                for each in event.occurrences()
            ],
            "deleted": event.deleted,
        }
