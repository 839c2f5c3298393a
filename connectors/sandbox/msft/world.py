"""The Microsoft tenant of the sandbox: all surfaces in one, changed only through the control API."""

import uuid
from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from connectors.sandbox.clock import Clock
from connectors.sandbox.faults import Fault
from connectors.sandbox.msft.calendars import Calendars
from connectors.sandbox.msft.directory import Directory, User
from connectors.sandbox.msft.feed import Changes, Mark
from connectors.sandbox.msft.files import Drive, DriveItem, Files
from connectors.sandbox.msft.graph import GraphError, Json, error_body
from connectors.sandbox.msft.mail import Mailboxes, MailFolder, Message
from connectors.sandbox.msft.push import Push
from connectors.sandbox.msft.teams import Channel, ChatMessage, Team, Teams
from connectors.sandbox.world import Fields, Ids, Refused, World


def make(clock: Clock) -> "MicrosoftWorld":
    return MicrosoftWorld(clock)


class MicrosoftWorld(World):
    bad_days = frozenset(
        (
            *("cursor_expiry", "empty_page", "repeat_page", "repeat_item", "child_first"),
            *("forbid_container", "gone_container", "edit_before_download", "wrong_etag", "expired_download"),
            *("hold", "rate_headers", "batch_throttle"),
            *("token_error", "short_token", "narrow_scope", "authorize_error"),
        )
    )

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._build("empty")

    def _build(self, seed: str) -> None:
        self.ids = Ids()
        self.changes = Changes(self.clock)
        self.people = Directory(self.ids)
        self.files = Files(self.ids, self.changes, self.people)
        self.mail = Mailboxes(self.ids, self.changes, self.people)
        self.calendars = Calendars(self.ids, self.changes, self.people)
        self.teams = Teams(self.ids, self.changes, self.people, self.files)
        self.push = Push(self)
        self.redirect_uris: set[str] = set()
        self.used_codes: set[str] = set()
        self.ended: dict[str, tuple[datetime, bool]] = {}
        self.busy: Counter[str] = Counter()
        self.busiest: defaultdict[str, int] = defaultdict(int)
        self.life = f"{seed}:{uuid.uuid4()}"
        self._seeded = 0

    def reset(self, seed: str) -> None:
        if seed not in {"empty", "demo"}:
            raise Refused(f"no seed {seed}")
        self._build(seed)
        if seed == "demo":
            from connectors.sandbox.msft.seed import plant  # noqa: PLC0415 - a world without a demo needs none of it

            plant(self)
        self._seeded = self.changes.last

    def remembers(self, mark: Mark) -> bool:
        """A mark of an earlier life is as good as new if nothing but the seed had happened by then."""
        if mark.life == self.life:
            return True
        same_seed = mark.life.partition(":")[0] == self.life.partition(":")[0]
        return same_seed and max(mark.since, mark.until) <= self._seeded

    # -- the truth

    def state(self, user: str | None) -> Fields:
        who = self.people.find(user) if user else None
        surfaces = (self.files, self.mail, self.calendars, self.teams)
        objects = [each for surface in surfaces for each in surface.state(who)]
        return {
            "now": self.clock.now().isoformat(),
            "users": [{"id": each.id, "name": each.name, "email": each.email} for each in self.people.all()],
            "counts": Counter(each["surface"] for each in objects),
            "objects": objects,
            "containers": list(self._containers(who)),
            "mailboxConcurrency": dict(self.busiest),
        }

    def _containers(self, user: User | None) -> list[Json]:
        found: list[Json] = []
        for site in self.files.sites.values():
            if user is None or user.id in site.members:
                found.append({"id": site.id, "kind": "site", "name": site.title, "personal": site.personal})
                found += [
                    {
                        "id": each.id,
                        "kind": "drive",
                        "name": each.name,
                        "siteId": site.id,
                        "rootId": each.root_id,
                    }
                    for each in self.files.drives_of(site)
                ]
        for each in (user,) if user else self.people.all():
            found += [
                {
                    "id": folder.id,
                    "kind": "mailFolder",
                    "name": folder.name,
                    "wellKnownName": folder.well_known,
                    "user": each.email,
                }
                for folder in self.mail.folders_of(each)
            ]
            found.append({"id": self.calendars.calendar_of(each), "kind": "calendar", "user": each.email})
        for team in self.teams.teams.values():
            if user is None or user.id in team.members:
                found.append({"id": team.id, "kind": "team", "name": team.name, "siteId": team.site.id})
        found += [
            {"id": each.id, "kind": "channel" if each.team else "chat", "name": each.name}
            for each in self.teams.channels.values()
            if not each.deleted and (user is None or user.id in each.members)
        ]
        return found

    # -- changes

    def create(self, fields: Fields) -> Fields:
        kind = fields.get("kind")
        if kind in {"file", "folder", "package"}:
            item = self.files.add(fields)
            self._note_item(item, "updated")
            return self.files.told(item)
        if kind == "message":
            message = self.mail.add(fields)
            self._note_message(message, "created")
            told = self.mail.told(message)
            return {
                **told,
                "attachments": [{"id": each.id, "name": each.name} for each in message.attachments],
            }
        if kind == "event":
            event = self.calendars.add(fields)
            self._note_event(event.id, event.user, "created")
            return self.calendars.told(event)
        if kind in {"channelMessage", "chatMessage"}:
            said = self.teams.add_message({"channelId": fields.get("chatId"), **fields})
            self._note_chat(said, "created")
            return self.teams.told(said)
        return self._create_container(str(kind), fields)

    def _create_container(self, kind: str, fields: Fields) -> Fields:
        if kind == "site":
            site = self.files.add_site(fields)
            drive = self.files.add_drive(site, str(fields.get("library", "Documents")))
            return {"id": site.id, "kind": kind, "driveId": drive.id, "rootId": drive.root_id}
        if kind == "library":
            site = self.files.sites[str(fields["siteId"])]
            drive = self.files.add_drive(site, str(fields["name"]), system=bool(fields.get("system", False)))
            return {"id": drive.id, "kind": kind, "driveId": drive.id, "rootId": drive.root_id}
        if kind == "mailFolder":
            user = self.people.find(str(fields["user"]))
            parent = str(fields.get("parentId") or self.mail.root_of(user))
            return {"id": self.mail.add_folder(user, str(fields["name"]), parent).id, "kind": kind}
        if kind == "team":
            team = self.teams.add_team(fields)
            general = self.teams.channels_of(team)[0]
            return {"id": team.id, "kind": kind, "siteId": team.site.id, "channelId": general.id}
        if kind == "channel":
            return {
                "id": self.teams.add_channel(self.teams.teams[str(fields["teamId"])], fields).id,
                "kind": kind,
            }
        if kind == "chat":
            return {"id": self.teams.add_chat(fields).id, "kind": kind}
        raise Refused(f"unknown kind: {kind}")

    def edit(self, object_id: str, fields: Fields) -> Fields:
        found = self._find(object_id)
        if isinstance(found, DriveItem):
            self.files.edit(found, fields)
            self._note_item(found, "updated")
            return self.files.told(found)
        if isinstance(found, Message):
            before = found.folder_id
            self.mail.edit(found, fields)
            self._note_message(found, "updated", before)
            return self.mail.told(found)
        if isinstance(found, ChatMessage):
            self.teams.edit_message(found, fields)
            self._note_chat(found, "updated")
            return self.teams.told(found)
        return self._edit_container(found, object_id, fields)

    def _edit_container(self, found: object, object_id: str, fields: Fields) -> Fields:
        if isinstance(found, MailFolder):
            self.mail.edit_folder(found, fields)
        elif isinstance(found, Team):
            self.teams.edit_team(found, fields)
        elif isinstance(found, Channel):
            self.teams.edit_channel(found, fields)
        elif isinstance(found, Drive):
            if "members" in fields:
                found.site.members = {self.people.find(who).id for who in fields["members"]}
            found.name = str(fields.get("name", found.name))
        else:
            event, occurrence = self.calendars.find(object_id)
            self.calendars.edit(event, occurrence, fields)
            self._note_event(event.id, event.user, "updated")
            return self.calendars.told(event)
        return {"id": object_id}

    def delete(self, object_id: str, fields: Fields) -> Fields:
        found = self._find(object_id)
        if isinstance(found, DriveItem):
            self.files.delete(found, cascade=bool(fields.get("cascade", False)))
            self._note_item(found, "updated")
        elif isinstance(found, Message):
            self.mail.delete(found, soft=bool(fields.get("soft", False)))
            self._note_message(found, "deleted")
        elif isinstance(found, ChatMessage):
            self.teams.delete_message(found)
            self._note_chat(found, "deleted")
        elif isinstance(found, MailFolder):
            self.mail.set_folder_deleted(found, deleted=True)
        elif isinstance(found, Channel):
            found.deleted = True
        elif isinstance(found, Team | Drive):
            raise Refused("take the members away instead: PATCH {members: []}")
        else:
            event, occurrence = self.calendars.find(object_id)
            self.calendars.delete(event, occurrence)
            self._note_event(event.id, event.user, "deleted")
        return {"id": object_id, "deleted": True}

    def restore(self, object_id: str) -> Fields:
        found = self._find(object_id)
        if isinstance(found, DriveItem):
            self.files.restore(found)
            self._note_item(found, "updated")
        elif isinstance(found, Message):
            self.mail.restore(found)
            self._note_message(found, "created")
        elif isinstance(found, ChatMessage):
            self.teams.restore_message(found)
            self._note_chat(found, "updated")
        elif isinstance(found, MailFolder):
            self.mail.set_folder_deleted(found, deleted=False)
        elif isinstance(found, Channel):
            found.deleted = False
        else:
            event, _ = self.calendars.find(object_id)
            self.calendars.restore(event)
            self._note_event(event.id, event.user, "created")
        return {"id": object_id, "deleted": False}

    def _find(self, object_id: str) -> object:
        """The object itself; None if it can only be an event or a date of one. A site is found as its first library."""
        site = self.files.sites.get(object_id)
        return (
            self.files.items.get(object_id)
            or self.mail.get(object_id)
            or self.teams.messages.get(object_id)
            or self.mail.folders.get(object_id)
            or self.teams.channels.get(object_id)
            or self.teams.teams.get(object_id)
            or self.files.drives.get(object_id)
            or (self.files.drives_of(site)[0] if site else None)
        )

    # -- who is told

    def _note_item(self, item: DriveItem, change: str) -> None:
        self.push.note({f"drive:{item.drive.id}"}, change, {})

    def _note_message(self, message: Message, change: str, before: str | None = None) -> None:
        topics = {f"mailbox:{message.user.id}", f"folder:{message.folder_id}", f"folder:{before}"}
        path = f"Users/{message.user.id}/Messages/{message.mutable_id}"
        etag = message.change_key
        self.push.note(
            topics,
            change,
            {"type": "#Microsoft.Graph.Message", "path": path, "id": message.mutable_id, "etag": etag},
        )

    def _note_event(self, event_id: str, user: User, change: str) -> None:
        path = f"Users/{user.id}/Events/{event_id}"
        self.push.note(
            {f"events:{user.id}"}, change, {"type": "#Microsoft.Graph.Event", "path": path, "id": event_id}
        )

    def _note_chat(self, message: ChatMessage, change: str) -> None:
        channel = message.channel
        home = (
            f"teams('{channel.team.id}')/channels('{channel.id}')"
            if channel.team
            else f"chats('{channel.id}')"
        )
        path = f"{home}/messages('{message.reply_to or message.id}')"
        if message.reply_to:
            path += f"/replies('{message.id}')"
        self.push.note(
            {f"channel:{channel.id}"},
            change,
            {"type": "#Microsoft.Graph.chatMessage", "path": path, "id": message.id},
        )

    # -- bad days

    def revoke(self, fields: Fields) -> Fields:
        users = [self.people.find(fields["user"])] if "user" in fields else self.people.all()
        for user in users:
            self.ended[user.id] = (self.clock.stamp(), bool(fields.get("refreshOnly", False)))
        return {"revoked": [user.email for user in users]}

    def grant_ended(self, claims: Json, *, refresh: bool) -> bool:
        """Whether a token was issued before its user's grants were taken away."""
        cutoff, refresh_only = self.ended.get(claims.get("user", ""), (None, False))
        if cutoff is None or (refresh_only and not refresh):
            return False
        return claims["issued"] <= cutoff.timestamp()

    async def deliver(self, fields: Fields) -> Fields:
        return await self.push.ordered(fields)

    def refusal(self, fault: Fault, request: Request) -> Response:
        options = fault.options
        headers: dict[str, str] = {}
        if fault.kind == "unauthorized":
            error = GraphError(
                401, "InvalidAuthenticationToken", "Access token has expired or is not yet valid."
            )
        elif fault.kind == "throttle":
            if options.get("retryAfter") is not None:
                headers["Retry-After"] = str(options["retryAfter"])
            if options.get("rateLimitReset") is not None:
                headers |= {
                    "RateLimit-Limit": "1250",
                    "RateLimit-Remaining": "0",
                    "RateLimit-Reset": str(options["rateLimitReset"]),
                }
            status = int(options.get("status", 429))
            code = options.get("code", "TooManyRequests" if status == 429 else "serviceNotAvailable")
            error = GraphError(status, code, "Please retry again later.", inner=str(status))
        else:
            status, code = int(options.get("status", 500)), options.get("code", "generalException")
            error = GraphError(status, code, inner=options.get("inner"))
        if "/oauth2/" in request.url.path:
            body: Any = {"error": "temporarily_unavailable", "error_description": "AADSTS90055: throttled"}
        else:
            request_id = str(uuid.uuid4())
            body = error_body(request.headers, error, request_id=request_id, now=self.clock.now())
        return JSONResponse(body, status_code=error.status, headers=headers)
