"""Calendar v3 over HTTP."""

import json
from datetime import datetime
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from connectors.sandbox.google.answers import GoogleError, Json, bad_request, not_found, stamp
from connectors.sandbox.google.channels import WEEK
from connectors.sandbox.google.diary import Calendar, Event, moment
from connectors.sandbox.google.door import Call, Door
from connectors.sandbox.tokens import decoded, encoded
from connectors.sandbox.world import NoSuchObject

if TYPE_CHECKING:
    from connectors.sandbox.google.world import GoogleWorld

NOT_WITH_SYNC = (
    "iCalUID",
    "orderBy",
    "privateExtendedProperty",
    "q",
    "sharedExtendedProperty",
    "timeMin",
    "timeMax",
    "updatedMin",
)


class CalendarApi:
    def __init__(self, world: "GoogleWorld") -> None:
        self._world = world

    def routes(self) -> list[Route]:
        scopes = ("calendar", "calendar.readonly", "calendar.events.readonly")
        door = Door(self._world, scopes, {})
        lists = Door(self._world, ("calendar", "calendar.readonly", "calendar.calendarlist.readonly"), {})
        at = "/calendar/v3"
        return [
            lists.route(f"{at}/users/me/calendarList", self.calendar_list),
            door.route(f"{at}/calendars/{{id}}/events", self.calendar_events),
            door.route(f"{at}/calendars/{{id}}/events/watch", self.calendar_watch, method="POST"),
            door.route(f"{at}/calendars/{{id}}/events/{{event}}", self.calendar_event),
            door.route(f"{at}/calendars/{{id}}/events/{{event}}/instances", self.calendar_instances),
            door.route(f"{at}/channels/stop", self.calendar_stop, method="POST"),
        ]

    def _calendar(self, call: Call) -> Calendar:
        if self._world.faults.take("forbid_container", path=f"{call.path['id']} {call.where}"):
            raise GoogleError(403, "forbidden", "Forbidden")
        try:
            return self._world.diary.calendar(call.user, call.path["id"])
        except NoSuchObject as error:
            raise not_found("Not Found") from error

    def _event(self, call: Call) -> tuple[Calendar, Event]:
        calendar = self._calendar(call)
        if call.path["event"] not in calendar.events:
            raise not_found("Not Found")
        return calendar, calendar.events[call.path["event"]]

    def calendar_list(self, call: Call) -> Json:
        mine = self._world.diary.of(call.user)
        start, size = int(call.query.get("pageToken") or 0), call.number("maxResults", 100, 250)
        found: Json = {
            "kind": "calendar#calendarList",
            "etag": f'"p{len(mine)}"',
            "items": [_listed(each) for each in mine[start : start + size]],
        }
        if len(mine) > start + size:
            return {**found, "nextPageToken": str(start + size)}
        return {**found, "nextSyncToken": f"list{len(mine)}"}

    def calendar_event(self, call: Call) -> Json:
        return self._world.diary.resource(*self._event(call))

    def calendar_instances(self, call: Call) -> Json:
        calendar, event = self._event(call)
        return {**self._envelope(calendar), "items": list(self._world.diary.instances(calendar, event))}

    def calendar_events(self, call: Call) -> Json:
        calendar = self._calendar(call)
        size = call.number("maxResults", 250, 2500)
        place = self._place(call, calendar)
        items = self._items(call, calendar, place)
        if self._world.faults.take("empty_page", path=call.where):
            size = 0
        offset: int = place["offset"]
        if self._world.faults.take("repeat_page", path=call.where):
            size, offset = size + 3, max(offset - 3, 0)
        found = {**self._envelope(calendar), "items": items[offset : offset + size]}
        if items[offset + size :]:
            return {**found, "nextPageToken": _token({**place, "offset": offset + size})}
        if call.query.get("orderBy"):
            return found
        return {**found, "nextSyncToken": _token({"since": place["until"], "single": place["single"]})}

    def _place(self, call: Call, calendar: Calendar) -> Json:
        """Where this request stands: a page of a listing, the begin of one, or what changed since a token."""
        single = call.query.get("singleEvents") == "true"
        if token := call.query.get("pageToken"):
            return _read(token, "pageToken")
        token = call.query.get("syncToken")
        if token is None:
            return {"since": None, "until": calendar.changes, "offset": 0, "single": single}
        if any(call.query.get(name) for name in NOT_WITH_SYNC):
            raise bad_request("Sync token cannot be used with request restrictions.", location="syncToken")
        place = _read(token, "syncToken")
        expired = place["since"] < calendar.forgotten
        if expired or self._world.faults.take("cursor_expiry", path=call.where):
            raise GoogleError(
                410,
                "fullSyncRequired",
                "Sync token is no longer valid, a full sync is required.",
                domain="calendar",
                location="syncToken",
            )
        return {**place, "until": calendar.changes, "offset": 0}

    def _items(self, call: Call, calendar: Calendar, place: Json) -> list[Json]:
        diary, query = self._world.diary, call.query
        events = sorted(calendar.events.values(), key=lambda each: each.changed)
        events = [each for each in events if each.changed <= place["until"]]
        if place["since"] is not None:
            events = [each for each in events if each.changed > place["since"]]
        else:
            shown = query.get("showDeleted") == "true"
            lowest, highest = _when(query.get("timeMin")), _when(query.get("timeMax"))
            events = [
                each
                for each in events
                # A cancelled exception is shown as long as its series is not cancelled.
                if (shown or not each.cancelled or _cut_out(calendar, each))
                and (lowest is None or diary.last_end(each) > lowest)
                and (highest is None or each.starts < highest)
            ]
        if not place["single"]:
            return [diary.resource(calendar, each) for each in events]
        singles: list[Json] = []
        for each in events:
            if each.series is not None:
                continue
            series = bool(each.fields.get("recurrence"))
            singles += diary.instances(calendar, each) if series else [diary.resource(calendar, each)]
        return sorted(singles, key=lambda item: moment(item.get("start") or {}))

    def _envelope(self, calendar: Calendar) -> Json:
        latest = max((each.updated for each in calendar.events.values()), default=self._world.clock.now())
        return {
            "kind": "calendar#events",
            "etag": f'"p{calendar.changes}"',
            "summary": calendar.summary,
            "description": "",
            "updated": stamp(latest),
            "timeZone": calendar.time_zone,
            "accessRole": calendar.access_role,
            "defaultReminders": [{"method": "popup", "minutes": 10}],
        }

    def calendar_watch(self, call: Call) -> Json:
        calendar = self._calendar(call)
        if calendar.unwatchable:
            message = "Push notifications are not supported by this resource."
            raise GoogleError(400, "pushNotSupportedForRequestedResource", message)
        uri = f"https://www.googleapis.com/calendar/v3/calendars/{calendar.id}/events?alt=json"
        return self._world.channels.watch(
            call.body, user=call.user, log=calendar.id, uri=uri, state="exists", default=WEEK
        )

    def calendar_stop(self, call: Call) -> Response:
        self._world.channels.stop(call.body)
        return Response(status_code=204)


def _listed(calendar: Calendar) -> Json:
    found: Json = {
        "kind": "calendar#calendarListEntry",
        "etag": f'"{len(calendar.id)}"',
        "id": calendar.id,
        "summary": calendar.summary,
        "timeZone": calendar.time_zone,
        "accessRole": calendar.access_role,
        "colorId": "14",
        "selected": True,
        "defaultReminders": [],
    }
    return {**found, "primary": True} if calendar.primary else found


def _cut_out(calendar: Calendar, event: Event) -> bool:
    return event.series is not None and not calendar.events[event.series].cancelled


def _when(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def _token(place: Json) -> str:
    return encoded(json.dumps(place).encode())


def _read(token: str, name: str) -> Json:
    try:
        return json.loads(decoded(token))
    except ValueError as error:
        raise bad_request("Invalid Value", location=name) from error
