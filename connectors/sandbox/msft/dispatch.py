"""Which path of Graph is whose, who may ask, and the envelope around every answer."""

import asyncio
import base64
import inspect
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from connectors.sandbox import tokens
from connectors.sandbox.msft import calendar_answers as calendar
from connectors.sandbox.msft import file_answers as files
from connectors.sandbox.msft import mail_answers as mail
from connectors.sandbox.msft import push
from connectors.sandbox.msft import teams_answers as teams
from connectors.sandbox.msft.directory import User
from connectors.sandbox.msft.graph import JSON_TYPE, Call, GraphError, Json, Reply, error_body, normal
from connectors.sandbox.msft.world import MicrosoftWorld
from connectors.sandbox.world import NoSuchObject

Handler = Callable[..., Reply | Awaitable[Reply]]
MAILBOX_CONCURRENCY = 4
BATCH_SIZE = 20

_FILES = ("Files.Read", "Files.Read.All", "Files.ReadWrite", "Files.ReadWrite.All", "Sites.Read.All")
_SITES = ("Sites.Read.All", "Sites.ReadWrite.All")
_MAIL = ("Mail.Read", "Mail.ReadWrite")
_CALENDAR = ("Calendars.Read", "Calendars.ReadWrite")
_TEAMS = ("Team.ReadBasic.All",)
_CHANNELS = ("Channel.ReadBasic.All",)
_CHANNEL_MESSAGES = ("ChannelMessage.Read.All",)
_CHATS = ("Chat.Read", "Chat.ReadWrite")
_ANY: tuple[str, ...] = ()


def me(call: Call, who: str) -> Reply:
    user = call.user if who == "me" else call.world.people.find(who)
    context = f"{call.world.url}/v1.0/$metadata#users/$entity"
    return Reply(body={"@odata.context": context, **user.shown()})


@dataclass(frozen=True)
class Way:
    """`kind` is whose error words are used: files, outlook or teams."""

    method: str
    path: re.Pattern[str]
    handler: Handler
    scopes: tuple[str, ...]
    kind: str


def _ways(kind: str, scopes: tuple[str, ...], *rows: tuple[str, Handler]) -> list[Way]:
    found: list[Way] = []
    for path, handler in rows:
        method, _, pattern = path.partition(" ")
        # `{}` is one id; `{*}` a path inside a drive.
        shape = pattern.replace("$", r"\$").replace("{*}", "(.*?)").replace("{}", "([^/]+)")
        found.append(Way(method, re.compile(f"{shape}$"), handler, scopes, kind))
    return found


WAYS = [
    *_ways("directory", _ANY, ("GET /users/{}", me)),
    *_ways(
        "files",
        _SITES,
        ("GET /sites", files.search_sites),
        ("GET /sites/getAllSites", files.all_sites),
        ("GET /sites/delta", files.site_changes),
        ("GET /sites/[^/]+:/{*}", files.site_at),
        ("GET /sites/{}", files.one_site),
        ("GET /sites/{}/sites", files.below_site),
        ("GET /sites/{}/lists", files.site_lists),
    ),
    *_ways(
        "files",
        _FILES,
        ("GET /sites/{}/drives", files.site_drives),
        ("GET /sites/{}/drive", files.site_drive),
        ("GET /users/{}/drive", files.my_drive),
        ("GET /users/{}/drives", files.my_drives),
        ("GET /users/{}/drive/sharedWithMe", files.shared_with_me),
        ("GET /drives/{}", files.one_drive),
        ("GET /drives/{}/list", files.drive_list),
        ("GET /drives/{}/items/{}/delta", files.item_changes),
        ("GET /drives/{}/items/{}/children", files.item_children),
        ("GET /drives/{}/items/{}/content", files.item_content),
        ("GET /drives/{}/items/{}/permissions", files.item_permissions),
        ("GET /drives/{}/items/{}/listItem", files.list_item),
        ("GET /drives/{}/root:/{*}:/content", files.content_at),
        ("GET /drives/{}/root:/{*}:/children", files.children_at),
        ("GET /drives/{}/root:/{*}:?", files.one_item_at),
        ("GET /drives/{}/items/{}", files.one_item),
    ),
    *_ways(
        "outlook",
        _MAIL,
        ("GET /users/{}/mailFolders", mail.top_folders),
        ("GET /users/{}/mailFolders/delta", mail.folder_changes),
        ("GET /users/{}/mailFolders/{}", mail.one_folder),
        ("GET /users/{}/mailFolders/{}/childFolders", mail.child_folders),
        ("GET /users/{}/mailFolders/{}/messages", mail.folder_messages),
        ("GET /users/{}/mailFolders/{}/messages/delta", mail.message_changes),
        ("GET /users/{}/messages", mail.all_messages),
        ("GET /users/{}/messages/{}", mail.one_message),
        ("GET /users/{}/messages/{}/$value", mail.message_mime),
        ("GET /users/{}/messages/{}/attachments", mail.message_attachments),
        ("GET /users/{}/messages/{}/attachments/{}", mail.one_attachment),
        ("GET /users/{}/messages/{}/attachments/{}/$value", mail.attachment_bytes),
        ("POST /users/{}/translateExchangeIds", mail.translate_ids),
    ),
    *_ways(
        "outlook",
        _CALENDAR,
        ("GET /users/{}/calendars", calendar.calendars),
        ("GET /users/{}/calendar", calendar.default_calendar),
        ("GET /users/{}/events", calendar.all_events),
        ("GET /users/{}/events/{}", calendar.one_event),
        ("GET /users/{}/calendarView", calendar.view),
        ("GET /users/{}/calendarView/delta", calendar.view_changes),
        ("GET /users/{}/calendar/calendarView/delta", calendar.view_changes),
        ("GET /users/{}/calendars/{}/calendarView/delta", calendar.view_changes),
    ),
    *_ways(
        "teams", _TEAMS, ("GET /users/{}/joinedTeams", teams.joined_teams), ("GET /teams/{}", teams.one_team)
    ),
    *_ways(
        "teams",
        _CHANNELS,
        ("GET /teams/{}/channels", teams.team_channels),
        ("GET /teams/{}/channels/{}", teams.one_channel),
        ("GET /teams/{}/channels/{}/(?:allMembers|members)", teams.channel_members),
    ),
    *_ways("files", _FILES, ("GET /teams/{}/channels/{}/filesFolder", teams.files_folder)),
    *_ways(
        "teams",
        _CHANNEL_MESSAGES,
        ("GET /teams/{}/channels/{}/messages", teams.channel_messages),
        ("GET /teams/{}/channels/{}/messages/delta", teams.channel_changes),
        ("GET /teams/{}/channels/{}/messages/{}", teams.one_message),
        ("GET /teams/{}/channels/{}/messages/{}/replies", teams.message_replies),
    ),
    *_ways(
        "teams",
        _CHATS,
        ("GET /users/{}/chats", teams.my_chats),
        ("GET /users/{}/chats/getAllMessages/delta", teams.all_chat_changes),
        ("GET /chats/{}", teams.one_chat),
        ("GET /chats/{}/members", teams.chat_members),
        ("GET /chats/{}/messages", teams.chat_messages),
        ("GET /chats/{}/messages/delta", teams.chat_changes),
        ("GET /chats/{}/messages/{}", teams.chat_message),
    ),
    *_ways(
        "directory",
        _ANY,
        ("POST /subscriptions", push.create_subscription),
        ("GET /subscriptions", push.list_subscriptions),
        ("GET /subscriptions/{}", push.one_subscription),
        ("PATCH /subscriptions/{}", push.renew_subscription),
        ("DELETE /subscriptions/{}", push.end_subscription),
        ("POST /subscriptions/{}/reauthorize", push.reauthorize_subscription),
    ),
]
_DENIED = {"files": "accessDenied", "outlook": "ErrorAccessDenied", "teams": "Forbidden"}
_MISSING = {"files": "itemNotFound", "outlook": "ErrorItemNotFound", "teams": "NotFound"}


class Graph:
    def __init__(self, world: MicrosoftWorld) -> None:
        self._world = world

    async def answer(self, request: Request) -> Response:
        raw = request.scope["raw_path"].decode("latin-1").partition("?")[0].removeprefix("/v1.0")
        body = await request.body()
        headers = {**request.headers, "prefer": ",".join(request.headers.getlist("prefer"))}
        request_id = str(uuid.uuid4())
        try:
            user, scopes = self._caller(request.headers.get("authorization", ""))
            parsed = json.loads(body) if body else None
            if raw == "/$batch" and request.method == "POST":
                request.scope["sandbox.route"] = "batch"
                reply = await self._batch(user, scopes, headers, parsed)
            else:
                call = self._call(
                    user, scopes, request.method, raw, dict(request.query_params), headers, parsed
                )
                way, ids = _found(call.method, call.path)
                request.scope["sandbox.route"] = way.handler.__name__
                reply = await self._through(call, way, ids)
        except GraphError as error:
            reply = self._failed(error, headers, request_id)
        except ValueError:
            reply = self._failed(GraphError(400, "BadRequest", "The body is not JSON."), headers, request_id)
        return self._sent(reply, request_id, headers)

    def _caller(self, authorization: str) -> tuple[User, frozenset[str]]:
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            raise GraphError(401, "InvalidAuthenticationToken", "Access token is empty.")
        claims = tokens.read(token)
        if claims is None or claims.get("kind") != "access":
            raise GraphError(
                401, "InvalidAuthenticationToken", "CompactToken parsing failed with error code: 80049217"
            )
        late = self._world.clock.now().timestamp() >= claims["exp"]
        if late or self._world.grant_ended(claims, refresh=False):
            raise GraphError(
                401, "InvalidAuthenticationToken", "Access token has expired or is not yet valid."
            )
        return self._world.people.find(claims["oid"]), frozenset(claims["scp"].split())

    def _call(
        self,
        user: User,
        scopes: frozenset[str],
        method: str,
        raw: str,
        query: dict[str, str],
        headers: Mapping[str, str],
        body: Any,
    ) -> Call:
        return Call(
            world=self._world,
            user=user,
            scopes=scopes,
            method=method,
            path=self._within_drive(user, normal(raw, query)),
            query=query,
            headers=headers,
            body=body,
        )

    async def _through(self, call: Call, way: Way, ids: list[str]) -> Reply:
        if way.scopes and not call.scopes & set(way.scopes):
            raise GraphError(
                403,
                _DENIED.get(way.kind, "Authorization_RequestDenied"),
                "Missing scope permissions on the request.",
            )
        if call.struck("forbid_container"):
            raise GraphError(403, _DENIED.get(way.kind, "Authorization_RequestDenied"), "Access denied.")
        if call.struck("gone_container"):
            raise GraphError(404, _MISSING.get(way.kind, "Request_ResourceNotFound"), "Not found.")
        if way.kind == "outlook":
            return await self._in_mailbox(call, way, ids)
        return await self._held(call, way, ids)

    async def _held(self, call: Call, way: Way, ids: list[str]) -> Reply:
        if fault := self._world.faults.take("hold", path=call.where, method=call.method):
            await asyncio.sleep(float(fault.options.get("seconds", 0.1)))
        try:
            reply = way.handler(call, *ids)
            reply = await reply if inspect.isawaitable(reply) else reply
        except NoSuchObject:
            raise GraphError(404, _MISSING.get(way.kind, "Request_ResourceNotFound"), "Not found.") from None
        if way.kind == "files" and call.struck("rate_headers"):
            reply.headers |= {"RateLimit-Limit": "1250", "RateLimit-Remaining": "100", "RateLimit-Reset": "7"}
        return reply

    async def _in_mailbox(self, call: Call, way: Way, ids: list[str]) -> Reply:
        """Four at a time per mailbox; the fifth is told to wait."""
        busy, who = self._world.busy, call.user.id
        if busy[who] >= MAILBOX_CONCURRENCY:
            raise GraphError(
                429,
                "ApplicationThrottled",
                "Application is over its MailboxConcurrency limit.",
                headers={"Retry-After": "1"},
            )
        busy[who] += 1
        self._world.busiest[call.user.email] = max(self._world.busiest[call.user.email], busy[who])
        try:
            return await self._held(call, way, ids)
        finally:
            busy[who] -= 1

    def _within_drive(self, user: User, path: str) -> str:
        """The many ways to a drive become one: /drives/{id}/…"""
        if found := re.match(r"/users/[^/]+/drive/(root|items|list)(.*)", path):
            path = f"/drives/{self._world.files.home(user).id}/{found[1]}{found[2]}"
        elif found := re.match(r"/(?:sites|groups|users)/[^/]+/drives/([^/]+)(.*)", path):
            path = f"/drives/{found[1]}{found[2]}"
        elif found := re.match(r"/sites/([^/]+)/drive/(.+)", path):
            site = self._world.files.sites.get(found[1])
            drives = self._world.files.drives_of(site) if site else []
            path = f"/drives/{drives[0].id if drives else 'none'}/{found[2]}"
        path = re.sub(r"(/drives/[^/]+)/root(?=$|/)", r"\1/items/root", path)
        return re.sub(r"(/users/[^/]+)/mailFolders/[^/]+/messages/(?!delta)([^/]+)", r"\1/messages/\2", path)

    # -- $batch

    async def _batch(
        self, user: User, scopes: frozenset[str], headers: Mapping[str, str], body: Any
    ) -> Reply:
        asked: list[Json] = (body or {}).get("requests", [])
        names = [str(each.get("id")) for each in asked]
        if len(asked) > BATCH_SIZE or len(set(names)) != len(names):
            raise GraphError(400, "BadRequest", "Invalid batch payload format.")
        done: dict[str, Json] = {}
        for each in asked:
            done[str(each["id"])] = await self._batched(user, scopes, headers, each, done)
        # In any order: the vendor's is not that of the request.
        return Reply(body={"responses": list(reversed(done.values()))})

    async def _batched(
        self,
        user: User,
        scopes: frozenset[str],
        outer: Mapping[str, str],
        each: Json,
        done: Mapping[str, Json],
    ) -> Json:
        name, request_id = str(each["id"]), str(uuid.uuid4())
        path, _, query = str(each["url"]).partition("?")
        path = path if path.startswith("/") else f"/{path}"
        pairs = dict(parse_qsl(query, keep_blank_values=True))
        headers = {
            **outer,
            "prefer": "",
            **{key.lower(): value for key, value in each.get("headers", {}).items()},
        }
        try:
            self._check_batched(each, done)
            method = str(each.get("method", "GET"))
            call = self._call(user, scopes, method, path, pairs, headers, each.get("body"))
            reply = await self._through(call, *_found(call.method, call.path))
        except GraphError as error:
            reply = self._failed(error, headers, request_id)
        raw = isinstance(reply.body, bytes)
        shown = base64.b64encode(reply.body).decode() if raw else reply.body
        kind = {} if raw or reply.body is None else {"Content-Type": "application/json"}
        return {"id": name, "status": reply.status, "headers": {**kind, **reply.headers}, "body": shown}

    def _check_batched(self, each: Json, done: Mapping[str, Json]) -> None:
        if any(done.get(str(other), {}).get("status", 424) >= 400 for other in each.get("dependsOn", [])):
            raise GraphError(424, "FailedDependency", "A request this one depends on failed.")
        if fault := self._world.faults.take("batch_throttle", path=str(each["url"])):
            after = {"Retry-After": str(fault.options.get("retryAfter", 1))}
            raise GraphError(429, "TooManyRequests", "Please retry again later.", inner="429", headers=after)

    # -- envelopes

    def _failed(self, error: GraphError, headers: Mapping[str, str], request_id: str) -> Reply:
        body = error_body(headers, error, request_id=request_id, now=self._world.clock.now())
        extra = {"WWW-Authenticate": 'Bearer realm="", error="invalid_token"'} if error.status == 401 else {}
        return Reply(status=error.status, body=body, headers={**extra, **error.headers})

    def _sent(self, reply: Reply, request_id: str, headers: Mapping[str, str]) -> Response:
        shown = {
            "request-id": request_id,
            "client-request-id": headers.get("client-request-id", request_id),
            "x-ms-ags-diagnostic": '{"ServerInfo":{"DataCenter":"Sandbox","Slice":"E","Ring":"0"}}',
            "OData-Version": "4.0",
            **reply.headers,
        }
        if isinstance(reply.body, bytes):
            return Response(reply.body, status_code=reply.status, headers=shown)
        content = b"" if reply.body is None else json.dumps(reply.body, separators=(",", ":")).encode()
        if content:
            shown["Content-Type"] = JSON_TYPE
        return Response(content, status_code=reply.status, headers=shown)


def _found(method: str, path: str) -> tuple[Way, list[str]]:
    other = False
    for way in WAYS:
        if match := way.path.fullmatch(path):
            if way.method == method:
                return way, [group.replace("%2F", "/") for group in match.groups()]
            other = True
    if other:
        raise GraphError(
            405, "Request_BadRequest", "Specified HTTP method is not allowed for the request target."
        )
    raise GraphError(400, "BadRequest", f"Resource not found for the segment '{path.rpartition('/')[2]}'.")
