"""Change notifications: subscriptions, the handshake, deliveries in time, twice, late, forged; lifecycle events."""

import asyncio
import re
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from connectors.sandbox.msft.graph import Call, GraphError, Json, Reply, collection, iso, normal, parsed_time
from connectors.sandbox.msft.registration import CLIENT_ID, TENANT_ID
from connectors.sandbox.world import Fields, NoSuchObject, Refused

if TYPE_CHECKING:
    from connectors.sandbox.msft.world import MicrosoftWorld

SHORTEST = timedelta(minutes=45)
# The longest life by kind of resource, in minutes.
LONGEST = {"drive": 42_300, "mail": 10_080, "events": 10_080, "chat": 4_320}
_TRIES = 3
_PAUSE = 0.2


@dataclass(kw_only=True)
class Subscription:
    id: str
    user_id: str
    resource: str
    kind: str
    topic: str
    change_type: str
    url: str
    lifecycle_url: str | None
    secret: str | None
    expires: datetime

    def shown(self) -> Json:
        return {
            "id": self.id,
            "resource": self.resource,
            "applicationId": CLIENT_ID,
            "changeType": self.change_type,
            "clientState": None,
            "notificationUrl": self.url,
            "notificationQueryOptions": None,
            "lifecycleNotificationUrl": self.lifecycle_url,
            "expirationDateTime": iso(self.expires, 2),
            "creatorId": self.user_id,
            "includeResourceData": None,
            "latestSupportedTlsVersion": "v1_2",
            "encryptionCertificate": None,
            "encryptionCertificateId": None,
            "notificationUrlAppId": None,
            "notificationContentType": "application/json",
        }


@dataclass
class Push:
    world: "MicrosoftWorld"
    subscriptions: dict[str, Subscription] = field(default_factory=dict[str, Subscription])
    waiting: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    delivered: list[Json] = field(default_factory=list[Json])
    automatic: bool = True
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    # -- changes happen

    def note(self, topics: set[str], change: str, resource: Json) -> None:
        """Something changed: whoever subscribed to one of the topics has a notification waiting."""
        for each in list(self.subscriptions.values()):
            if each.expires <= self.world.clock.now():
                del self.subscriptions[each.id]
            elif each.topic in topics and change in each.change_type.split(","):
                body = self._notification(each, change, resource)
                # A drive only says that something changed: once is enough.
                if each.kind != "drive" or not any(
                    known == each.url and item == body for known, item in self.waiting
                ):
                    self.waiting.append((each.url, body))
        if self.automatic and self.waiting:
            self._soon()

    def _notification(self, subscription: Subscription, change: str, resource: Json) -> Json:
        body: Json = {
            "subscriptionId": subscription.id,
            "subscriptionExpirationDateTime": iso(subscription.expires),
            "changeType": change,
            "resource": resource.get("path", subscription.resource),
            "clientState": subscription.secret,
            "tenantId": TENANT_ID,
        }
        if subscription.kind == "drive":
            return {
                **body,
                "resource": subscription.resource,
                "resourceData": {"@odata.type": "#Microsoft.Graph.driveItem"},
            }
        return {
            **body,
            "resourceData": {
                "@odata.type": resource["type"],
                "@odata.id": resource["path"],
                "@odata.etag": f'W/"{resource.get("etag", "")}"',
                "id": resource["id"],
            },
        }

    def _soon(self) -> None:
        try:
            task = asyncio.get_running_loop().create_task(self.flush())
        except RuntimeError:
            return  # changed from outside the server: waits for the next change, or for the order to deliver
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flush(self, *, reverse: bool = False) -> None:
        """Everything that waits; what goes to one address goes in one request, whatever subscriptions it is for."""
        waiting, self.waiting = self.waiting, []
        for url in dict.fromkeys(url for url, _ in waiting):
            bodies = [body for to, body in waiting if to == url]
            await self._send(url, bodies[::-1] if reverse else bodies)

    async def _send(self, url: str, bodies: list[Json]) -> None:
        for attempt in range(_TRIES):
            status, _, _ = await posted(url, body={"value": bodies})
            self.delivered.append({"url": url, "status": status, "attempt": attempt + 1, "value": bodies})
            if 200 <= status < 300:
                return
            await asyncio.sleep(_PAUSE * 2**attempt)

    # -- orders of the control API

    async def ordered(self, fields: Fields) -> Json:
        """`mode` auto|manual, `deliver`, `reverse`, `duplicate` n, `forge` {…}, `lifecycle` event."""
        if "mode" in fields:
            self.automatic = fields["mode"] == "auto"
        if fields.get("deliver"):
            await self.flush(reverse=bool(fields.get("reverse")))
        for _ in range(int(fields.get("duplicate", 0))):
            if not self.delivered:
                raise Refused("nothing was delivered yet")
            await self._send(self.delivered[-1]["url"], self.delivered[-1]["value"])
        if "forge" in fields:
            await self._forge(fields)
        if "lifecycle" in fields:
            await self._lifecycle(str(fields["lifecycle"]), fields.get("subscriptionId"))
        return {
            "pending": len(self.waiting),
            "subscriptions": [each.shown() | {"topic": each.topic} for each in self.subscriptions.values()],
            "deliveries": self.delivered[-200:],
        }

    def _chosen(self, subscription_id: str | None) -> list[Subscription]:
        if subscription_id is None:
            return list(self.subscriptions.values())
        if subscription_id not in self.subscriptions:
            raise NoSuchObject(subscription_id)
        return [self.subscriptions[subscription_id]]

    async def _forge(self, fields: Fields) -> None:
        for each in self._chosen(fields.get("subscriptionId")):
            body = self._notification(each, "updated", {"path": each.resource, "type": "#x", "id": "x"})
            await self._send(each.url, [{**body, **fields["forge"]}])

    async def _lifecycle(self, event: str, subscription_id: str | None) -> None:
        for each in self._chosen(subscription_id):
            if event == "subscriptionRemoved":
                del self.subscriptions[each.id]
            body = {
                "subscriptionId": each.id,
                "subscriptionExpirationDateTime": iso(each.expires),
                "tenantId": TENANT_ID,
                "clientState": each.secret,
                "lifecycleEvent": event,
            }
            await self._send(each.lifecycle_url or each.url, [body])


@cache
def _trust() -> ssl.SSLContext:
    """Reading the certificates for every delivery would hold everybody up."""
    return ssl.create_default_context()


async def posted(url: str, *, body: Json | None = None) -> tuple[int, str, str]:
    """Status, content type and text of the answer; status 0 when there is none within ten seconds."""
    import httpx  # noqa: PLC0415 - most worlds never push

    try:
        async with httpx.AsyncClient(timeout=10, trust_env=False, verify=_trust()) as client:
            if body is None:
                answer = await client.post(url, headers={"Content-Type": "text/plain; charset=utf-8"})
            else:
                answer = await client.post(url, json=body)
    except httpx.HTTPError:
        return 0, "", ""
    return answer.status_code, answer.headers.get("content-type", ""), answer.text


# -- the routes of Graph


async def create_subscription(call: Call) -> Reply:
    body = call.body or {}
    missing = [
        name
        for name in ("changeType", "notificationUrl", "resource", "expirationDateTime")
        if not body.get(name)
    ]
    if missing:
        raise GraphError(400, "ValidationError", f"{missing[0]} is required.")
    kind, topic = _topic(call, str(body["resource"]))
    if kind == "drive" and body["changeType"] != "updated":
        raise GraphError(400, "InvalidRequest", "Only changeType updated is supported for this resource.")
    if len(body.get("clientState") or "") > 128:
        raise GraphError(400, "InvalidRequest", "clientState is longer than 128 characters.")
    expires = _expiry(call, kind, str(body["expirationDateTime"]))
    lifecycle = body.get("lifecycleNotificationUrl")
    if kind == "chat" and not lifecycle and expires - call.world.clock.now() > timedelta(hours=1):
        raise GraphError(400, "ValidationError", "lifecycleNotificationUrl is required beyond one hour.")
    push = call.world.push
    for each in push.subscriptions.values():
        if (each.user_id, each.topic, each.change_type) == (call.user.id, topic, body["changeType"]):
            known = f"Subscription Id <{each.id}> already exists for the requested combination"
            raise GraphError(409, "Conflict", known)
    for url in filter(None, (body["notificationUrl"], lifecycle)):
        await _handshake(call, str(url))
    subscription = Subscription(
        id=call.world.ids.guid("subscription"),
        user_id=call.user.id,
        resource=str(body["resource"]),
        kind=kind,
        topic=topic,
        change_type=str(body["changeType"]),
        url=str(body["notificationUrl"]),
        lifecycle_url=lifecycle,
        secret=body.get("clientState"),
        expires=expires,
    )
    push.subscriptions[subscription.id] = subscription
    context = f"{call.world.url}/v1.0/$metadata#subscriptions/$entity"
    return Reply(status=201, body={"@odata.context": context, **subscription.shown()})


async def _handshake(call: Call, url: str) -> None:
    """The receiver proves that it listens by saying the token back, decoded, as plain text."""
    token = f"Validation: Testing client application + reachability {call.world.ids.guid('validation')}"
    joined = f"{url}{'&' if '?' in url else '?'}validationToken={quote(token)}"
    status, kind, text = await posted(joined)
    good = status == 200 and kind.startswith("text/plain") and text == token
    if not good:
        raise GraphError(
            400,
            "InvalidRequest",
            "Subscription validation request failed. Notification endpoint must respond with 200 OK to validation request.",
        )


def _expiry(call: Call, kind: str, text: str) -> datetime:
    now = call.world.clock.now()
    asked = parsed_time(text)
    if asked <= now:
        raise GraphError(400, "ValidationError", "Subscription expiration can only be in the future.")
    if asked - now > timedelta(minutes=LONGEST[kind] + 1):
        raise GraphError(
            400,
            "ValidationError",
            f"Subscription expiration can only be {LONGEST[kind]} minutes in the future.",
        )
    return max(asked, now + SHORTEST)


def _topic(call: Call, resource: str) -> tuple[str, str]:
    path = normal(resource.partition("?")[0], {})
    user = call.user
    if re.fullmatch(r"/users/[^/]+/drive/root", path):
        return "drive", f"drive:{call.world.files.home(user).id}"
    if found := re.fullmatch(r"/drives/([^/]+)/root", path):
        drive = call.world.files.drives.get(found[1])
        if drive and user.id in drive.site.members:
            return "drive", f"drive:{drive.id}"
    if re.fullmatch(r"/users/[^/]+/messages", path):
        return "mail", f"mailbox:{user.id}"
    if found := re.fullmatch(r"/users/[^/]+/mailFolders/([^/]+)/messages", path):
        try:
            return "mail", f"folder:{call.world.mail.folder(user, found[1]).id}"
        except NoSuchObject:
            pass
    if re.fullmatch(r"/users/[^/]+/(?:calendars/[^/]+/)?events", path):
        return "events", f"events:{user.id}"
    if found := re.fullmatch(r"/(?:teams/[^/]+/channels|chats)/([^/]+)/messages", path):
        channel = call.world.teams.channels.get(found[1])
        if channel and user.id in channel.members:
            return "chat", f"channel:{channel.id}"
    raise GraphError(403, "ExtensionError", f"Operation: Create; Exception: no access to {resource}")


def list_subscriptions(call: Call) -> Reply:
    own = [each.shown() for each in call.world.push.subscriptions.values() if each.user_id == call.user.id]
    return collection(call, "subscriptions", own)


def one_subscription(call: Call, subscription_id: str) -> Reply:
    return Reply(body=_subscription(call, subscription_id).shown())


def _subscription(call: Call, subscription_id: str) -> Subscription:
    found = call.world.push.subscriptions.get(subscription_id)
    if found is None or found.user_id != call.user.id or found.expires <= call.world.clock.now():
        raise GraphError(404, "ResourceNotFound", "The object was not found.")
    return found


def renew_subscription(call: Call, subscription_id: str) -> Reply:
    found = _subscription(call, subscription_id)
    found.expires = _expiry(call, found.kind, str((call.body or {}).get("expirationDateTime", "")))
    return Reply(body=found.shown())


def end_subscription(call: Call, subscription_id: str) -> Reply:
    del call.world.push.subscriptions[_subscription(call, subscription_id).id]
    return Reply(status=204)


def reauthorize_subscription(call: Call, subscription_id: str) -> Reply:
    _subscription(call, subscription_id)
    return Reply(status=204)
