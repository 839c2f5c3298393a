"""An event of a calendar as an item: its words, when and where it is, who is invited."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from connectors.kit.contract import Item, Part
from connectors.kit.mail_html import html_to_text
from connectors.kit.policy import SyncPolicy

# Where somebody works and whose birthday it is: nobody wrote that down to be found.
UNWRITTEN = frozenset({"workingLocation", "birthday", "fromGmail"})
_TAG = re.compile(r"<(br|p|div|li|ul|ol|a|b|i|u|span|html)\b", re.IGNORECASE)

Record = Mapping[str, Any]


def moment(value: Record | None) -> datetime | None:
    """Start or end of an event; a whole day begins at midnight, wherever that is."""
    if not value:
        return None
    text = value.get("dateTime") or value.get("date")
    if not text:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def outside_window(event: Record, policy: SyncPolicy, now: datetime) -> bool:
    start, end = moment(event.get("start")), moment(event.get("end"))
    earliest = now - timedelta(days=policy.calendar_past_days)
    latest = now + timedelta(days=policy.calendar_future_days)
    if start is not None and start > latest:
        return True
    if event.get("recurrence"):
        until = _until(event)
        return until is not None and until < earliest
    return end is not None and end < earliest


def _until(event: Record) -> datetime | None:
    """The last day of a series, where its rule names one."""
    for rule in event.get("recurrence") or ():
        if found := re.search(r"UNTIL=(\d{8})", rule):
            return datetime.strptime(found[1], "%Y%m%d").replace(tzinfo=UTC) + timedelta(days=1)
    return None


def event_item(
    event: Record, *, calendar_id: str, calendar_name: str, policy: SyncPolicy, now: datetime
) -> Item:
    series = event.get("recurringEventId")
    name = event.get("summary") or "(no title)"
    reason = None
    if event.get("eventType") in UNWRITTEN:
        reason = "filtered"
    elif outside_window(event, policy, now):
        reason = "outside_window"
    text = event_text(event, attendees=policy.calendar_attendees)
    start, end = moment(event.get("start")), moment(event.get("end"))
    told: dict[str, Any] = {
        "calendar": calendar_name,
        "start": start.isoformat() if start else None,
        "end": end.isoformat() if end and not event.get("recurrence") else None,  # of a series it says little
        "location": event.get("location"),
        "iCalUid": event.get("iCalUID"),
        "organizer": (event.get("organizer") or {}).get("email"),
    }
    return Item(
        external_id=f"{calendar_id}/{event['id']}",
        source_kind="google_event",
        name=name,
        container_id=calendar_id,
        version=event.get("etag"),
        parent_id=f"{calendar_id}/{series}" if series else None,
        path=calendar_name,
        uri=event.get("htmlLink"),
        mime_type="text/plain",
        size=len(text.encode()),
        modified_at=datetime.fromisoformat(event["updated"]) if event.get("updated") else None,
        metadata={key: value for key, value in told.items() if value},
        parts=None if reason else [Part(text=text)],
        skip=reason,
    )


def event_text(event: Record, *, attendees: bool) -> str:
    lines = [event.get("summary") or "", f"When: {_when(event)}"]
    if event.get("recurrence"):
        lines.append(f"Repeats: {'; '.join(event['recurrence'])}")
    if event.get("location"):
        lines.append(f"Where: {event['location']}")
    organizer = event.get("organizer") or {}
    if organizer.get("displayName") or organizer.get("email"):
        lines.append(f"Organizer: {organizer.get('displayName') or organizer['email']}")
    invited = [_person(one) for one in event.get("attendees") or () if not one.get("resource")]
    if attendees and invited:
        lines.append(f"Invited: {', '.join(invited)}")
    description = plain(event.get("description") or "")
    return "\n".join([*lines, *(["", description] if description else [])]).strip()


def _person(attendee: Record) -> str:
    return str(attendee.get("displayName") or attendee.get("email") or "")


def _when(event: Record) -> str:
    start, end = event.get("start") or {}, event.get("end") or {}
    if start.get("date"):
        return f"{start['date']} – {end.get('date', start['date'])}, whole days"
    first, last = moment(start), moment(end)
    if first is None:
        return "unknown"
    zone = f" {start['timeZone']}" if start.get("timeZone") else ""
    if last is None:
        return f"{first:%Y-%m-%d %H:%M}{zone}"
    until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:%M} – {until}{zone}"


def plain(text: str) -> str:
    """Descriptions are text or a little HTML, and nothing says which."""
    if not _TAG.search(text):
        return text.strip()
    return html_to_text(text).strip()
