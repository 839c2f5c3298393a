"""Sites, drives and items as Graph answers them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote

from connectors.sandbox import tokens
from connectors.sandbox.msft.feed import LATEST, Mark, cut
from connectors.sandbox.msft.files import HOST, Drive, DriveItem, Site
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

DOWNLOAD_LIFE = timedelta(hours=1)
PAGE = 200


# -- sites


def shown_site(site: Site) -> Json:
    body: Json = {
        "createdDateTime": iso(site.created),
        "description": site.description,
        "id": site.id,
        "lastModifiedDateTime": iso(site.created, 1),
        "name": site.name,
        "webUrl": site.url,
        "displayName": site.title,
        "root": {},
        "siteCollection": {"hostname": HOST},
        "isPersonalSite": site.personal,
        "sensitivityHint": None,  # not in any contract: clients must not mind
    }
    if site.description is None:
        del body["description"]
    return body


def search_sites(call: Call) -> Reply:
    if "search" not in call.query and "$search" not in call.query:
        raise GraphError(403, "accessDenied", "Listing all sites needs an application permission.")
    words = call.query.get("search", call.query.get("$search", "")).strip('"').lower()
    found = [
        selected(shown_site(site), call.query)
        for site in call.world.files.sites_for(call.user)
        if words in {"", "*"} or words in f"{site.title} {site.name} {site.description or ''}".lower()
    ]
    return listed(call, "sites", found, size=call.page_size(100, 500))


def all_sites(_call: Call) -> Reply:
    raise GraphError(403, "accessDenied", "getAllSites needs an application permission.")


def site_changes(call: Call) -> Reply:
    token = call.query.get("token") or call.query.get("$deltatoken")
    if token == LATEST:
        since = call.world.changes.last
    elif token:
        since = _alive(call, token, "sites", call.path, "$deltatoken").since
    else:
        since = 0
    value = [shown_site(site) for site in call.world.files.sites_for(call.user) if site.seq > since]
    reply = collection(call, "sites", value)
    mark = Mark(feed="sites", since=call.world.changes.last, until=0, life=call.world.life)
    reply.body["@odata.deltaLink"] = call.link("/sites/delta", {"$deltatoken": mark.written()})
    return reply


def one_site(call: Call, site_id: str) -> Reply:
    return Reply(body=shown_site(_site(call, site_id)))


def site_at(call: Call, path: str) -> Reply:
    for site in call.world.files.sites_for(call.user):
        if f"sites/{site.name}".lower() == path.strip("/").lower():
            return Reply(body=shown_site(site))
    raise GraphError(404, "itemNotFound", "Requested site could not be found")


def below_site(call: Call, site_id: str) -> Reply:
    _site(call, site_id)
    return collection(call, "sites", [])


def site_lists(call: Call, site_id: str) -> Reply:
    drives = call.world.files.drives_of(_site(call, site_id))
    return collection(call, "lists", [_library(drive) for drive in drives if not drive.system])


def drive_list(call: Call, drive_id: str) -> Reply:
    return Reply(body=_library(_drive(call, drive_id)))


def _library(drive: Drive) -> Json:
    return {
        "id": drive.id.removeprefix("b!")[:36],
        "name": drive.name,
        "displayName": drive.name,
        "description": f"Library of {drive.site.title}",
        "webUrl": f"{drive.site.url}/{quote(drive.name)}",
        "createdDateTime": iso(drive.created),
        "list": {"contentTypesEnabled": False, "hidden": drive.system, "template": "documentLibrary"},
    }


def _site(call: Call, site_id: str) -> Site:
    sites = call.world.files.sites
    if site_id == "root":
        found = next(iter(call.world.files.sites_for(call.user)), None)
    else:
        found = sites.get(site_id)
    if found is None or call.user.id not in found.members:
        raise GraphError(404, "itemNotFound", "Requested site could not be found")
    return found


# -- drives


def shown_drive(call: Call, drive: Drive) -> Json:
    owner = drive.owner.identity() if drive.owner else {"group": {"displayName": drive.site.title}}
    return {
        "createdDateTime": iso(drive.created, 1),
        "description": "",
        "id": drive.id,
        "lastModifiedDateTime": iso(drive.created, 2),
        "name": drive.name,
        "webUrl": f"{drive.site.url}/{quote(drive.name)}",
        "driveType": drive.kind,
        "createdBy": {"user": {"displayName": "System Account"}},
        "lastModifiedBy": None,
        "owner": owner,
        "quota": {
            "deleted": 0,
            "remaining": 1099511627776,
            "state": "normal",
            "total": 1099511627776,
            "used": sum(_size(call, item) for item in call.world.files.of(drive)),
            "storagePlanInformation": None,
        },
    }


def site_drives(call: Call, site_id: str) -> Reply:
    hidden = "system" in call.query.get("$select", "")
    rows = [
        {**selected(shown_drive(call, drive), call.query), **({"system": {}} if drive.system else {})}
        for drive in call.world.files.drives_of(_site(call, site_id))
        if hidden or not drive.system
    ]
    return listed(call, "drives", rows, size=call.page_size(200, 500))


def site_drive(call: Call, site_id: str) -> Reply:
    return Reply(body=shown_drive(call, call.world.files.drives_of(_site(call, site_id))[0]))


def my_drive(call: Call, who: str) -> Reply:
    return Reply(body=shown_drive(call, home_of(call, who)))


def my_drives(call: Call, who: str) -> Reply:
    return collection(call, "drives", [shown_drive(call, home_of(call, who))])


def home_of(call: Call, who: str) -> Drive:
    if who not in {"me", call.user.id} and who.lower() != call.user.email:
        raise GraphError(403, "accessDenied", "The caller does not have permission to perform the action.")
    home = call.world.files.home(call.user)
    if call.user.id not in home.site.members:
        raise GraphError(404, "ResourceNotFound", "User's mysite not found.")
    return home


def shared_with_me(call: Call, who: str) -> Reply:
    home_of(call, who)
    rows = [
        {
            "id": item.id,
            "name": item.name,
            "size": _size(call, item),
            "remoteItem": shown_item(call, item),
            "lastModifiedDateTime": iso(item.modified, item.seq),
        }
        for item in call.world.files.items.values()
        if call.user.id in item.shared and call.world.files.sees(call.user, item)
    ]
    return listed(call, "Collection(driveItem)", rows, size=call.page_size(PAGE, 999))


def one_drive(call: Call, drive_id: str) -> Reply:
    return Reply(body=selected(shown_drive(call, _drive(call, drive_id)), call.query))


def _drive(call: Call, drive_id: str) -> Drive:
    drive = call.world.files.drives.get(drive_id)
    if drive is None:
        raise GraphError(404, "itemNotFound", "The resource could not be found.")
    if call.user.id not in drive.site.members:
        raise GraphError(403, "accessDenied", "The caller does not have permission to perform the action.")
    return drive


# -- items


def shown_item(call: Call, item: DriveItem, *, delta: bool = False) -> Json:
    files = call.world.files
    body: Json = {
        "createdDateTime": iso(item.created, item.seq),
        "eTag": f'"{{{item.guid.upper()}}},{item.etag}"',
        "id": item.id,
        "lastModifiedDateTime": iso(item.modified, item.seq + 1),
        "name": item.name,
        "webUrl": f"{item.drive.site.url}/{quote(item.drive.name)}{quote(files.path(item))}/{quote(item.name)}",
        "cTag": item.version,
        "size": _size(call, item),
        "createdBy": item.by.identity(),
        "lastModifiedBy": {"application": None, **item.by.identity()},
        "parentReference": {"driveType": item.drive.kind, "driveId": item.drive.id},
        "fileSystemInfo": {
            "createdDateTime": iso(item.created),
            "lastModifiedDateTime": iso(item.modified),
        },
        "isAuthoritative": False,
        "media": None,
    }
    if delta:
        body = {"@odata.type": "#microsoft.graph.driveItem", **body}
    if item.parent_id is None:
        body["root"] = {}
        del body["eTag"], body["cTag"]
    else:
        body["parentReference"] |= {
            "id": item.parent_id,
            "name": files.items[item.parent_id].name,
            "path": f"/drives/{item.drive.id}/root:{quote(files.path(item))}",
            "siteId": item.drive.site.id.split(",")[1],
        }
    if item.kind == "folder":
        body["folder"] = {"childCount": len(files.children(item)), "view": None}
    elif item.kind == "package":
        body["package"] = {"type": "oneNote"}
    else:
        hashes = {"quickXorHash": item.content.quick_xor} if item.content else {}
        body["file"] = {"mimeType": item.mime, "hashes": hashes}
        if not delta:
            body["@microsoft.graph.downloadUrl"] = _download_url(call, item)
    if item.shared or item.link_scope:
        body["shared"] = {"scope": item.link_scope or "users", "owner": item.by.identity()}
    return body


def _size(call: Call, item: DriveItem) -> int:
    """A folder weighs what is in it; adding that up for every folder of a page is only worth it for small worlds."""
    if item.kind == "file":
        return len(item.content.data) if item.content else 0
    return (
        0
        if len(call.world.files.items) > 2000
        else sum(
            len(each.content.data)
            for each in call.world.files.below(item)
            if each.content and call.world.files.live(each)
        )
    )


def shown_deleted(item: DriveItem) -> Json:
    """On OneDrive for Business neither name nor cTag come along."""
    return {
        "@odata.type": "#microsoft.graph.driveItem",
        "id": item.id,
        "size": 0,
        "parentReference": {"driveType": item.drive.kind, "driveId": item.drive.id, "id": item.parent_id},
        item.kind: {},
        "deleted": {"state": "deleted"},
    }


def item_of(call: Call, drive_id: str, item_id: str) -> DriveItem:
    files = call.world.files
    drive = files.drives.get(drive_id)
    item = files.items.get(drive.root_id if drive and item_id == "root" else item_id)
    if drive is None or item is None or item.drive is not drive or not files.sees(call.user, item):
        if drive and item is None and call.user.id not in drive.site.members:
            raise GraphError(
                403, "accessDenied", "The caller does not have permission to perform the action."
            )
        raise GraphError(404, "itemNotFound", "The resource could not be found.")
    return item


def item_at(call: Call, drive_id: str, path: str) -> DriveItem:
    item = item_of(call, drive_id, "root")
    for name in filter(None, path.split("/")):
        named = [each for each in call.world.files.children(item) if each.name.lower() == name.lower()]
        if not named or not call.world.files.sees(call.user, named[0]):
            raise GraphError(404, "itemNotFound", "The resource could not be found.")
        item = named[0]
    return item


def one_item(call: Call, drive_id: str, item_id: str) -> Reply:
    return Reply(body=selected(shown_item(call, item_of(call, drive_id, item_id)), call.query))


def one_item_at(call: Call, drive_id: str, path: str) -> Reply:
    return Reply(body=selected(shown_item(call, item_at(call, drive_id, path)), call.query))


def item_children(call: Call, drive_id: str, item_id: str) -> Reply:
    item = item_of(call, drive_id, item_id)
    seen = [each for each in call.world.files.children(item) if call.world.files.sees(call.user, each)]
    rows = sorted(seen, key=lambda each: (each.name.lower(), each.id))
    return listed(
        call,
        "Collection(driveItem)",
        [selected(shown_item(call, each), call.query) for each in rows],
        size=call.page_size(PAGE, 999),
    )


def children_at(call: Call, drive_id: str, path: str) -> Reply:
    return item_children(call, drive_id, item_at(call, drive_id, path).id)


def list_item(call: Call, drive_id: str, item_id: str) -> Reply:
    item = item_of(call, drive_id, item_id)
    return Reply(
        body={
            "id": str(item.seq),
            "eTag": f'"{item.guid},{item.etag}"',
            "fields": {
                "FileLeafRef": item.name,
                "Title": item.name.rpartition(".")[0] or item.name,
                "DocIcon": item.name.rpartition(".")[2],
                "Modified": iso(item.modified),
                "_ComplianceFlags": "",
            },
        }
    )


# -- permissions


def item_permissions(call: Call, drive_id: str, item_id: str) -> Reply:
    item = item_of(call, drive_id, item_id)
    people = call.world.people
    members = [
        _permission(call, user_id, ["owner" if item.drive.owner else "write"], inherited=True)
        for user_id in sorted(item.drive.site.members - item.denied)
    ]
    shared = [_permission(call, user_id, [role]) for user_id, role in sorted(item.shared.items())]
    links: list[Json] = []
    if item.link_scope:
        links.append(
            {
                "id": f"link-{item.guid}",
                "roles": ["read"],
                "shareId": f"u!{item.guid}",
                "hasPassword": False,
                "expirationDateTime": None,
                "grantedToIdentitiesV2": [people.find(who).identity() for who in sorted(item.shared)],
                "link": {
                    "scope": item.link_scope,
                    "type": "view",
                    "webUrl": f"https://{HOST}/:t:/s/{item.guid}",
                    "preventsDownload": False,
                },
            }
        )
    return collection(call, "permissions", [*members, *shared, *links])


def _permission(call: Call, user_id: str, roles: list[str], *, inherited: bool = False) -> Json:
    user = call.world.people.find(user_id)
    body: Json = {
        "id": tokens.encoded(f"i:0#.f|membership|{user.email}".encode()),
        "roles": roles,
        "grantedToV2": {
            "user": {
                "@odata.type": "#microsoft.graph.sharePointIdentity",
                "displayName": user.name,
                "email": user.email,
                "id": user.id,
            },
            "siteUser": {
                "displayName": user.name,
                "email": user.email,
                "id": "12",
                "loginName": f"i:0#.f|membership|{user.email}",
            },
        },
        "grantedTo": user.identity(),
        "shareId": None,
    }
    if inherited:
        body["inheritedFrom"] = {}
    return body


# -- delta


def item_changes(call: Call, drive_id: str, item_id: str) -> Reply:
    drive = _drive(call, drive_id)
    top = item_of(call, drive_id, item_id)
    path = f"/drives/{quote(drive.id)}/root/delta"
    mark = _start(call, f"drive:{drive.id}", path)
    if isinstance(mark, Reply):
        return mark
    files = call.world.files
    if not mark.until:
        mark = replace(mark, until=call.world.changes.last)
    changed = [
        ((item.seq,), item)
        for item in files.of(drive)
        if mark.since < item.seq <= mark.until
        and (mark.since or files.sees(call.user, item))
        and (top.parent_id is None or top in files.chain(item))
    ]
    size = max(1, min(int(mark.query.get("$top", PAGE)), 1000))
    page, behind, last = cut(changed, mark, size)
    if call.struck("empty_page"):
        page, behind, last = [], mark, False
    elif call.struck("repeat_page"):
        behind, last = mark, False
    value = _with_ancestors(call, page, full=not mark.since)
    if call.struck("child_first"):
        value.reverse()
    if call.struck("repeat_item"):
        value += value[:1]
    link = {**({"$top": mark.query["$top"]} if "$top" in mark.query else {}), "token": behind.written()}
    body: Json = {
        "@odata.context": f"{call.world.url}/v1.0/$metadata#Collection(driveItem)",
        "@odata.deltaLink" if last else "@odata.nextLink": call.link(path, link),
        "@microsoft.graph.hasMoreData": not last,
        "@microsoft.graph.syncStatus": "FullData",
        "value": [selected(each, mark.query) for each in value],
    }
    return Reply(body=body)


def _with_ancestors(call: Call, page: list[DriveItem], *, full: bool) -> list[Json]:
    """Changed items bring the folders they lie in, unless the caller does not want them."""
    files = call.world.files
    bare = full or "deltaexcludeparent" in call.preferences or "deltaexcludeparent" in call.headers
    named = {item.id for item in page}
    value: list[Json] = []
    for item in page:
        if not files.sees(call.user, item):
            value.append(shown_deleted(item))
            continue
        for each in [] if bare else reversed(list(files.chain(item))[1:]):
            if each.id not in named:
                named.add(each.id)
                value.append(shown_item(call, each, delta=True))
        value.append(shown_item(call, item, delta=True))
    return value


def _start(call: Call, feed: str, path: str) -> Mark | Reply:
    """Where this request begins; for `latest` the whole answer."""
    token = call.query.get("token")
    query = {name: value for name, value in call.query.items() if name in {"$top", "$select"}}
    fresh = Mark(feed=feed, since=0, until=0, life=call.world.life, query=query)
    if token is None or not token:
        return fresh
    if token == LATEST:
        now = Mark(feed=feed, since=call.world.changes.last, until=0, life=call.world.life, query=query)
        reply = collection(call, "Collection(driveItem)", [])
        reply.body["@odata.deltaLink"] = call.link(path, {"token": now.written()})
        return reply
    if len(token) < 40 and token[:2].isdigit():
        since = call.world.changes.until(parsed_time(token.replace(" ", "+")))
        return Mark(feed=feed, since=max(1, since), until=0, life=call.world.life, query=query)
    return _alive(call, token, feed, path, "token")


def _alive(call: Call, token: str, feed: str, path: str, name: str) -> Mark:
    mark = Mark.read(token)
    if mark and mark.feed == feed and call.world.remembers(mark) and not call.struck("cursor_expiry"):
        return mark
    if mark is None:
        raise GraphError(400, "invalidRequest", "The provided token is malformed.")
    fresh = Mark(feed=feed, since=0, until=0, life=call.world.life)
    headers = {"Location": call.link(path, {name: fresh.written()})}
    inner = "resyncChangesApplyDifferences"
    raise GraphError(410, "resyncRequired", "Resync required.", inner=inner, headers=headers)


# -- content


def _download_url(call: Call, item: DriveItem) -> str:
    """Pre-authenticated and on another origin; the ticket says which item, for whom, until when."""
    until = call.world.clock.now() + DOWNLOAD_LIFE
    ticket = tokens.mint({"item": item.id, "user": call.user.id, "until": until.timestamp()})
    return (
        f"{call.world.second_url}/sites/{item.drive.site.name}/_layouts/15/download.aspx"
        f"?UniqueId={item.guid}&Translate=false&tempauth={ticket}"
    )


def item_content(call: Call, drive_id: str, item_id: str) -> Reply:
    return _content(call, item_of(call, drive_id, item_id))


def content_at(call: Call, drive_id: str, path: str) -> Reply:
    return _content(call, item_at(call, drive_id, path))


def _content(call: Call, item: DriveItem) -> Reply:
    if item.kind != "file":
        raise GraphError(400, "invalidRequest", "Only files have content.")
    if call.struck("edit_before_download"):
        call.world.edit(item.id, {"text": f"{item.text or ''} (edited meanwhile)"})
    tags = {f'"{{{item.guid.upper()}}},{item.etag}"', item.version}
    if call.headers.get("if-none-match") in tags:
        return Reply(status=304)
    return Reply(status=302, headers={"Location": _download_url(call, item)})


def ticket_of(query: Mapping[str, str]) -> Json:
    return tokens.read(query.get("tempauth", "..")) or {}
