"""Sites, libraries, OneDrives and what lies in them; who sees what; and what changed for whom."""

import base64
import mimetypes
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from connectors.sandbox.msft.content import Content
from connectors.sandbox.msft.directory import Directory, User
from connectors.sandbox.msft.feed import Changes
from connectors.sandbox.msft.graph import parsed_time
from connectors.sandbox.world import Fields, Ids, NoSuchObject, Refused

HOST = "sandbox.sharepoint.example"


@dataclass(kw_only=True)
class Site:
    id: str
    name: str
    title: str
    description: str | None
    members: set[str]
    created: datetime
    seq: int
    personal: bool = False

    @property
    def url(self) -> str:
        return f"https://{HOST}/sites/{self.name}"


@dataclass(kw_only=True)
class Drive:
    id: str
    name: str
    site: Site
    owner: User | None
    created: datetime
    root_id: str = ""
    system: bool = False

    @property
    def kind(self) -> str:
        return "business" if self.owner else "documentLibrary"


@dataclass(kw_only=True)
class DriveItem:
    id: str
    guid: str
    drive: Drive
    parent_id: str | None
    name: str
    kind: Literal["file", "folder", "package"]
    created: datetime
    modified: datetime
    by: User
    seq: int
    etag: int = 1
    ctag: int = 1
    deleted: bool = False
    # Who lost access to this and all in it, and whom it was shared with beyond the members of the site.
    denied: set[str] = field(default_factory=set[str])
    shared: dict[str, str] = field(default_factory=dict[str, str])
    link_scope: str | None = None
    mime: str | None = None
    content: Content | None = None
    text: str | None = None

    @property
    def version(self) -> str:
        return f'"c:{{{self.guid.upper()}}},{self.ctag}"'


class Files:
    def __init__(self, ids: Ids, changes: Changes, people: Directory) -> None:
        self._ids, self._changes, self._people = ids, changes, people
        self.sites: dict[str, Site] = {}
        self.drives: dict[str, Drive] = {}
        self.items: dict[str, DriveItem] = {}
        self._homes: dict[str, Drive] = {}
        self._lying: defaultdict[str, list[DriveItem]] = defaultdict(list)
        for user in people.all():
            name = user.email.replace("@", "_").replace(".", "_")
            site = self._site(name, user.name, None, {user.id}, personal=True)
            self._homes[user.id] = self.add_drive(site, "OneDrive", owner=user)

    # -- what there is

    def home(self, user: User) -> Drive:
        return self._homes[user.id]

    def drives_of(self, site: Site) -> list[Drive]:
        return [drive for drive in self.drives.values() if drive.site is site]

    def sites_for(self, user: User) -> list[Site]:
        return [site for site in self.sites.values() if not site.personal and user.id in site.members]

    def of(self, drive: Drive) -> list[DriveItem]:
        return self._lying[drive.id]

    def chain(self, item: DriveItem) -> Iterator[DriveItem]:
        """The item and what it lies in, up to the root."""
        here: DriveItem | None = item
        while here:
            yield here
            here = self.items.get(here.parent_id) if here.parent_id else None

    def below(self, item: DriveItem) -> list[DriveItem]:
        return [each for each in self.of(item.drive) if each is not item and item in self.chain(each)]

    def children(self, item: DriveItem) -> list[DriveItem]:
        return [each for each in self.of(item.drive) if each.parent_id == item.id and not each.deleted]

    def live(self, item: DriveItem) -> bool:
        return not any(each.deleted for each in self.chain(item))

    def sees(self, user: User, item: DriveItem) -> bool:
        line = list(self.chain(item))
        if any(each.deleted or user.id in each.denied for each in line):
            return False
        return user.id in item.drive.site.members or any(user.id in each.shared for each in line)

    def path(self, item: DriveItem) -> str:
        """Of what it lies in, below the root: empty there, else with a leading slash."""
        names = [each.name for each in self.chain(item)][1:-1]
        return "".join(f"/{name}" for name in reversed(names))

    # -- changes

    def add_site(self, fields: Fields) -> Site:
        members = {
            self._people.find(who).id for who in fields.get("members", [u.id for u in self._people.all()])
        }
        name = str(fields["name"])
        return self._site(
            "".join(letter for letter in name if letter.isalnum()), name, fields.get("description"), members
        )

    def _site(
        self, name: str, title: str, description: str | None, members: set[str], *, personal: bool = False
    ) -> Site:
        seq, now = self._changes.next()
        site = Site(
            id=f"{HOST},{self._ids.guid('site')},{self._ids.guid('web')}",
            name=name,
            title=title,
            description=description,
            members=members,
            created=now,
            seq=seq,
            personal=personal,
        )
        self.sites[site.id] = site
        return site

    def add_drive(self, site: Site, name: str, *, owner: User | None = None, system: bool = False) -> Drive:
        _, now = self._changes.next()
        long_id = base64.urlsafe_b64encode(
            self._ids.digest("drive") + self._ids.digest("drive")[:16]
        ).decode()
        drive = Drive(id=f"b!{long_id}", name=name, site=site, owner=owner, created=now, system=system)
        self.drives[drive.id] = drive
        root = self._item(drive, None, "root", "folder", owner or self._people.all()[0])
        drive.root_id = root.id
        return drive

    def add(self, fields: Fields) -> DriveItem:
        """A file, folder or package: into `parentId`, else the root of `driveId`, else the OneDrive of `user`."""
        parent = self._parent(fields)
        kind = fields["kind"]
        item = self._item(
            parent.drive, parent.id, str(fields["name"]), kind, self._author(fields, parent.drive)
        )
        if kind == "file":
            self._fill(item, fields)
        if "modifiedAt" in fields:
            item.created = item.modified = parsed_time(fields["modifiedAt"])
        return item

    def _parent(self, fields: Fields) -> DriveItem:
        if parent_id := fields.get("parentId"):
            return self.get(str(parent_id))
        if drive_id := fields.get("driveId"):
            return self.items[self.drives[str(drive_id)].root_id]
        if site_id := fields.get("siteId"):
            return self.items[self.drives_of(self.sites[str(site_id)])[0].root_id]
        return self.items[self.home(self._people.find(str(fields["user"]))).root_id]

    def _author(self, fields: Fields, drive: Drive) -> User:
        return self._people.find(fields["by"]) if "by" in fields else drive.owner or self._people.all()[0]

    def _item(
        self,
        drive: Drive,
        parent_id: str | None,
        name: str,
        kind: Literal["file", "folder", "package"],
        by: User,
    ) -> DriveItem:
        seq, now = self._changes.next()
        digest = self._ids.digest("item")
        item = DriveItem(
            id="01" + base64.b32encode(digest)[:32].decode(),
            guid=self._ids.guid("unique"),
            drive=drive,
            parent_id=parent_id,
            name=name,
            kind=kind,
            created=now,
            modified=now,
            by=by,
            seq=seq,
        )
        self.items[item.id] = item
        self._lying[drive.id].append(item)
        return item

    def _fill(self, item: DriveItem, fields: Fields) -> None:
        if isinstance(content := fields.get("content"), Content):
            item.content, item.text = content, fields.get("text")
        elif "contentBase64" in fields:
            item.content, item.text = (
                Content.of(base64.b64decode(fields["contentBase64"])),
                fields.get("text"),
            )
        else:
            item.text = str(fields.get("text", ""))
            item.content = Content.of(item.text.encode())
        guessed = mimetypes.guess_type(item.name)[0] or "application/octet-stream"
        item.mime = fields.get("mimeType") or item.mime or guessed

    def edit(self, item: DriveItem, fields: Fields) -> DriveItem:
        if not self.live(item):
            raise Refused(f"{item.id} is deleted")
        if {"text", "contentBase64"} & set(fields):
            self._fill(item, fields)
            item.ctag += 1
        if "name" in fields:
            item.name = str(fields["name"])
        if "parentId" in fields:
            self._move(item, self.get(str(fields["parentId"])))
        self._share(item, fields)
        item.etag += 1
        self.touch(item)
        return item

    def _move(self, item: DriveItem, target: DriveItem) -> None:
        if target.drive is not item.drive:
            raise Refused("between drives there is no move: delete and create")
        if target.kind != "folder" or item in self.chain(target):
            raise Refused(f"{item.id} cannot lie in {target.id}")
        seen_differently = any(
            each.denied or each.shared for each in (*self.chain(item), *self.chain(target))
        )
        item.parent_id = target.id
        if seen_differently:
            self._touch_below(item)

    def _share(self, item: DriveItem, fields: Fields) -> None:
        for who in fields.get("share", []):
            user = self._people.find(who)
            item.denied.discard(user.id)
            if user.id not in item.drive.site.members:
                item.shared[user.id] = "read"
            self._touch_below(item)
        for who in fields.get("unshare", []):
            user = self._people.find(who)
            item.shared.pop(user.id, None)
            item.denied.add(user.id)
        if "link" in fields:
            item.link_scope = fields["link"]

    def _touch_below(self, item: DriveItem) -> None:
        """Who regains sight of a folder is told of all in it."""
        for each in self.below(item):
            self.touch(each, modified=False)

    def touch(self, item: DriveItem, *, modified: bool = True) -> None:
        item.seq, now = self._changes.next()
        if modified:
            item.modified = now

    def delete(self, item: DriveItem, *, cascade: bool = False) -> None:
        if item.parent_id is None:
            raise Refused("a root cannot be deleted")
        for each in self.below(item) if cascade else []:
            self.touch(each, modified=False)
        item.deleted = True
        self.touch(item)

    def restore(self, item: DriveItem) -> None:
        item.deleted = False
        item.etag += 1
        self.touch(item)
        self._touch_below(item)

    def get(self, item_id: str) -> DriveItem:
        try:
            return self.items[item_id]
        except KeyError:
            raise NoSuchObject(item_id) from None

    # -- the truth

    def state(self, user: User | None) -> Iterator[dict[str, Any]]:
        for item in self.items.values():
            if item.parent_id is None or not self.live(item) or (user and not self.sees(user, item)):
                continue
            guest = user is not None and user.id not in item.drive.site.members
            yield {**self.told(item), "sharedWithMe": guest}

    def told(self, item: DriveItem) -> dict[str, Any]:
        data = item.content.data if item.content else None
        return {
            "id": item.id,
            "kind": item.kind,
            "surface": "onedrive" if item.drive.owner else "sharepoint",
            "name": item.name,
            "version": item.version,
            "eTag": f'"{{{item.guid.upper()}}},{item.etag}"',
            "containerId": item.drive.id,
            "siteId": item.drive.site.id,
            "parentId": item.parent_id,
            "path": self.path(item),
            "text": item.text,
            "size": len(data) if data is not None else 0,
            "sha256": sha256(data).hexdigest() if data is not None else None,
            "mimeType": item.mime,
            "modified": item.modified.isoformat(),
            "deleted": not self.live(item),
        }
