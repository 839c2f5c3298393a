"""Everything the sandbox's Google knows: accounts, their drives, mailboxes and calendars, grants and channels."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from connectors.sandbox.clock import Clock
from connectors.sandbox.faults import Fault
from connectors.sandbox.google.answers import GoogleError, Json, rate_limited
from connectors.sandbox.google.channels import Channels
from connectors.sandbox.google.consent import Grants
from connectors.sandbox.google.diary import Calendar, Diary, Event
from connectors.sandbox.google.exports import SHORTCUT
from connectors.sandbox.google.files import NATIVE, DriveFile, Files
from connectors.sandbox.google.mailbox import Mailbox, Message
from connectors.sandbox.google.seed import USERS, fill
from connectors.sandbox.world import Fields, Ids, Refused, World

FILE_KINDS = {"file", "folder", "shortcut", *NATIVE}


class GoogleWorld(World):
    bad_days = frozenset(
        (
            *("cursor_expiry", "empty_page", "repeat_page", "forbid_container"),
            *("refuse", "abusive", "export_too_large"),
        )
    )

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock)
        # Grants outlive a reset: who consented stays signed in while the world behind is put back.
        self.grants = Grants(self.clock)
        self._empty()

    def _empty(self) -> None:
        self.ids = Ids()
        self.files = Files(self.clock, self.ids)
        self.diary = Diary(self.clock, self.ids)
        self.mailboxes = {user: Mailbox(user, self.clock, self.ids) for user in USERS}
        for user in USERS:
            self.diary.add_calendar(user, {"primary": True})
        self.channels = Channels(self)

    def reset(self, seed: str) -> None:
        self._empty()
        if seed == "demo":
            fill(self)
        elif seed != "empty":
            raise Refused(f"no seed {seed}")

    # -- the control API

    def create(self, fields: Fields) -> Fields:
        user, kind = fields.get("user", USERS[0]), fields.get("kind", "file")
        if user not in USERS:
            raise Refused(f"no user {user}")
        if kind in FILE_KINDS:
            return self._file(self.files.create(kind, dict(fields), user))
        if kind == "drive":
            return {"id": self.files.create_drive(dict(fields), user).id, "kind": kind}
        if kind == "message":
            return self._message(self.mailboxes[user].create(dict(fields)))
        if kind == "calendar":
            return {"id": self.diary.add_calendar(user, dict(fields)).id, "kind": kind}
        if kind == "event":
            calendar = self.diary.calendar(user, fields.get("calendarId", "primary"))
            return self._event(calendar, self.diary.create(calendar, dict(fields)))
        raise Refused(f"no kind {kind}")

    def edit(self, object_id: str, fields: Fields) -> Fields:
        if object_id in self.files.files:
            return self._file(self.files.edit(self.files.known(object_id), dict(fields)))
        if object_id in self.files.drives:
            drive = self.files.drives[object_id]
            drive.name = fields.get("name", drive.name)
            drive.members = set(fields.get("members", drive.members))
            return {"id": drive.id, "kind": "drive", "name": drive.name}
        box = self._box(object_id)
        if box is not None:
            return self._message(box.edit(box.known(object_id), dict(fields)))
        if object_id in self.diary.calendars:
            calendar = self.diary.calendars[object_id]
            calendar.summary = fields.get("name", calendar.summary)
            if fields.get("forgetTokens"):
                calendar.changes += 1
                calendar.forgotten = calendar.changes
            return {"id": calendar.id, "kind": "calendar"}
        calendar, event = self.diary.known(object_id)
        return self._event(calendar, self.diary.edit(calendar, event, dict(fields)))

    def delete(self, object_id: str, fields: Fields) -> Fields:
        """Into the trash, as a user would; `forGood` for what is gone at once."""
        for_good = str(fields.get("forGood", "")).lower() in {"true", "1"}
        if object_id in self.files.files:
            self.files.delete(self.files.known(object_id), for_good=for_good)
        elif object_id in self.files.drives:
            for file in self.files.files.values():
                if file.drive_id == object_id:
                    file.gone = True
            self.files.drives[object_id].members = set()
        elif (box := self._box(object_id)) is not None:
            box.delete(box.known(object_id), for_good=for_good)
        elif object_id in self.diary.calendars:
            self.diary.calendars[object_id].gone = True
        else:
            self.diary.delete(*self.diary.known(object_id))
        return {"id": object_id, "deleted": True}

    def restore(self, object_id: str) -> Fields:
        if object_id in self.files.files:
            return self._file(self.files.restore(object_id))
        if (box := self._box(object_id)) is not None:
            return self._message(box.restore(object_id))
        if object_id in self.diary.calendars:
            self.diary.calendars[object_id].gone = False
            return {"id": object_id, "kind": "calendar"}
        calendar, event = self.diary.known(object_id)
        return self._event(calendar, self.diary.restore(calendar, event))

    def _box(self, object_id: str) -> Mailbox | None:
        return next((box for box in self.mailboxes.values() if object_id in box.messages), None)

    def revoke(self, fields: Fields) -> Fields:
        self.grants.end(fields.get("user"), refresh_only=bool(fields.get("refreshOnly")))
        return {"ok": True}

    async def deliver(self, fields: Fields) -> Fields:
        return await self.channels.deliver(dict(fields))

    def refusal(self, fault: Fault, request: Request) -> Response:  # noqa: ARG002 - the same for every path
        options: Mapping[str, Any] = fault.options
        if fault.kind == "throttle":
            return rate_limited(int(options.get("status", 429)), options.get("retryAfter")).answer()
        if fault.kind == "unauthorized":
            return GoogleError(401, "authError", "Invalid Credentials", location="Authorization").answer()
        status = int(options.get("status", 503))
        return GoogleError(status, "backendError", "Backend Error").answer()

    # -- the truth

    def state(self, user: str | None) -> Fields:
        users = USERS if user is None else (user,)
        files = [
            file
            for file in self.files.files.values()
            if not self.files.is_trashed(file) and any(self.files.sees(each, file) for each in users)
        ]
        return {
            "drive": [self._file(file) for file in files],
            "gmail": [
                self._message(message)
                for each in users
                for message in self.mailboxes[each].messages.values()
                if not message.gone and not message.labels & {"TRASH", "SPAM", "DRAFT"}
            ],
            "google_calendar": [
                self._event(calendar, event)
                for each in users
                for calendar in self.diary.of(each)
                for event in calendar.events.values()
                if not event.cancelled
            ],
        }

    def _file(self, file: DriveFile) -> Json:
        kind = "folder" if file.is_folder else "shortcut" if file.mime_type == SHORTCUT else "file"
        text = ""
        if kind == "file" and (file.is_native or file.mime_type.startswith("text/")):
            text = file.content.decode()
        return {
            "id": file.id,
            "kind": kind,
            "name": file.name,
            "mimeType": file.mime_type,
            "version": file.head_revision if file.is_binary else str(file.version),
            "text": text,
            "parentId": file.parent,
            "containerId": file.drive_id,
            "owner": file.owner,
        }

    def _message(self, message: Message) -> Json:
        return {
            "id": message.id,
            "kind": "message",
            "name": message.subject,
            "version": str(message.history_id),
            "text": message.body,
            "labels": sorted(message.labels),
            "attachments": [each.file_name for each in message.attachments],
        }

    def _event(self, calendar: Calendar, event: Event) -> Json:
        return {
            "id": f"{calendar.id}/{event.id}",
            "kind": "event",
            "name": event.fields.get("summary", ""),
            "version": str(event.changed),
            "text": event.fields.get("description", ""),
            "containerId": calendar.id,
            "parentId": event.series and f"{calendar.id}/{event.series}",
        }


def make(clock: Clock) -> GoogleWorld:
    return GoogleWorld(clock)
