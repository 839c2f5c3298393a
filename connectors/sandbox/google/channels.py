"""Push: channels that were asked for, what waits to be told through them, and the telling."""

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx

from connectors.sandbox.google.answers import GoogleError, Json, milliseconds
from connectors.sandbox.google.consent import expiry

if TYPE_CHECKING:
    from connectors.sandbox.google.world import GoogleWorld

HOUR, WEEK = timedelta(hours=1), timedelta(days=7)


@dataclass(kw_only=True)
class Channel:
    id: str
    user: str
    address: str
    token: str | None
    resource_id: str
    resource_uri: str
    state: str  # what a change is called: `change` for Drive, `exists` for a calendar
    log: str  # the log or calendar that is watched
    expires: datetime
    told: int
    number: int = 1


@dataclass(kw_only=True)
class MailWatch:
    topic: str
    expires: datetime
    told: int


class Channels:
    def __init__(self, world: "GoogleWorld") -> None:
        self._world = world
        self.open: dict[str, Channel] = {}
        self.mail: dict[str, MailWatch] = {}

    def watch(self, body: Json, *, user: str, log: str, uri: str, state: str, default: timedelta) -> Json:
        now = self._world.clock.now()
        if not body.get("id") or len(body["id"]) > 64 or body.get("type") not in {"web_hook", "webhook"}:
            raise GoogleError(400, "invalid", "Invalid channel", location="id")
        if body["id"] in self.open:
            raise GoogleError(400, "channelIdNotUnique", f"Channel id {body['id']} not unique")
        address = body.get("address", "")
        if not address.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise GoogleError(400, "push.webhookUrlNotHttps", f"WebHook callback must be HTTPS: {address}")
        expires = now + default
        if "expiration" in body:
            asked = datetime.fromtimestamp(int(body["expiration"]) / 1000, now.tzinfo)
            expires = min(asked, now + WEEK)
        channel = Channel(
            id=body["id"],
            user=user,
            address=address,
            token=body.get("token"),
            resource_id=self._world.ids.digest("resource").hex()[:27],
            resource_uri=uri,
            state=state,
            log=log,
            expires=expires,
            told=self.position(log),
        )
        self.open[channel.id] = channel
        found: Json = {
            "kind": "api#channel",
            "id": channel.id,
            "resourceId": channel.resource_id,
            "resourceUri": channel.resource_uri,
            "expiration": str(milliseconds(channel.expires)),
        }
        return found if channel.token is None else {**found, "token": channel.token}

    def stop(self, body: Json) -> None:
        channel = self.open.get(body.get("id", ""))
        if channel is None or channel.resource_id != body.get("resourceId"):
            raise GoogleError(404, "notFound", f"Channel '{body.get('id')}' not found for project")
        del self.open[channel.id]

    def watch_mail(self, user: str, topic: str) -> Json:
        box = self._world.mailboxes[user]
        watch = MailWatch(topic=topic, expires=self._world.clock.now() + WEEK, told=0)
        self.mail[user] = watch
        return {"historyId": str(box.latest), "expiration": str(milliseconds(watch.expires))}

    def position(self, log: str) -> int:
        calendar = self._world.diary.calendars.get(log)
        return calendar.changes if calendar is not None else self._world.files.position(log)

    async def deliver(self, fields: Json) -> Json:
        """Tells what waits. `again` repeats the last message, `token` forges it, `sync` sends the first one;
        `pubsubUrl` is where the operator's Pub/Sub subscription pushes mail notices to.
        """
        answers: list[Any] = []
        async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
            for channel in list(self.open.values()):
                if channel.expires <= self._world.clock.now():
                    continue
                headers = self._message(channel, fields)
                if headers is not None:
                    answers.append(await _post(client, channel.address, headers, b""))
            if url := fields.get("pubsubUrl"):
                for user, watch in self.mail.items():
                    if watch.told < self._world.mailboxes[user].latest or fields.get("again"):
                        answers.append(await _post(client, url, {}, self._pubsub(user, watch, fields)))
        return {"delivered": len(answers), "answers": answers}

    def _message(self, channel: Channel, fields: Json) -> dict[str, str] | None:
        position = self.position(channel.log)
        state = "sync" if fields.get("sync") else channel.state
        if state != "sync" and position <= channel.told and not fields.get("again"):
            return None
        if not fields.get("again") and state != "sync":
            channel.number += 3  # larger each time, with gaps
            channel.told = position
        found = {
            "X-Goog-Channel-ID": channel.id,
            "X-Goog-Channel-Expiration": expiry(channel.expires),
            "X-Goog-Resource-ID": channel.resource_id,
            "X-Goog-Resource-URI": channel.resource_uri,
            "X-Goog-Resource-State": state,
            "X-Goog-Message-Number": str(channel.number),
        }
        token = fields.get("token", channel.token)
        return found if token is None else {**found, "X-Goog-Channel-Token": token}

    def _pubsub(self, user: str, watch: MailWatch, fields: Json) -> bytes:
        latest = self._world.mailboxes[user].latest
        if not fields.get("again"):
            watch.told = latest
        notice = json.dumps({"emailAddress": user, "historyId": latest}).encode()
        message = {
            "data": base64.b64encode(notice).decode(),
            "messageId": str(2_070_443_601_311_540 + watch.told),
            "publishTime": self._world.clock.now().isoformat(),
        }
        return json.dumps(
            {"message": message, "subscription": "projects/demo/subscriptions/catchment"}
        ).encode()


async def _post(client: httpx.AsyncClient, url: str, headers: dict[str, str], body: bytes) -> int | str:
    kind = {"Content-Type": "application/json; charset=utf-8"}
    try:
        return (await client.post(url, headers={**kind, **headers}, content=body)).status_code
    except httpx.HTTPError as error:
        return type(error).__name__
