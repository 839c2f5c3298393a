"""Drive's side of the world: files in folders and shared drives, who sees them, and what changed."""

import base64
import hashlib
import mimetypes
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from connectors.sandbox.clock import Clock
from connectors.sandbox.google.answers import Json, stamp
from connectors.sandbox.google.exports import DOCUMENT, FOLDER, PRESENTATION, SHORTCUT, SPREADSHEET
from connectors.sandbox.tokens import encoded
from connectors.sandbox.world import Ids, NoSuchObject

NATIVE = {"document": DOCUMENT, "spreadsheet": SPREADSHEET, "presentation": PRESENTATION}
FIRST_CHANGE = 2000


@dataclass(kw_only=True)
class DriveFile:
    id: str
    name: str
    mime_type: str
    owner: str
    created: datetime
    modified: datetime
    content: bytes = b""
    drive_id: str | None = None
    parent: str | None = None
    version: int = 1
    revision: int = 1
    trashed: bool = False
    gone: bool = False
    readers: set[str] = field(default_factory=set[str])
    target: str | None = None
    weight: int = 0  # bytes of pictures an export would carry

    @property
    def is_folder(self) -> bool:
        return self.mime_type == FOLDER

    @property
    def is_native(self) -> bool:
        return self.mime_type in NATIVE.values()

    @property
    def is_binary(self) -> bool:
        return not self.mime_type.startswith("application/vnd.google-apps")

    @property
    def head_revision(self) -> str:
        return encoded(hashlib.sha256(f"{self.id}:{self.revision}".encode()).digest())[:44]


@dataclass(kw_only=True)
class SharedDrive:
    id: str
    name: str
    created: datetime
    members: set[str]


class Files:
    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock, self._ids = clock, ids
        self.files: dict[str, DriveFile] = {}
        self.drives: dict[str, SharedDrive] = {}
        self.logs: dict[str, list[tuple[str, datetime]]] = {}  # per user and per shared drive: file id, when

    # -- who sees what

    def root(self, user: str) -> str:
        return f"0A{hashlib.sha256(user.encode()).hexdigest()[:17]}"

    def sees(self, user: str, file: DriveFile) -> bool:
        if file.gone:
            return False
        if file.drive_id is not None:
            return user in self.drives[file.drive_id].members or user in self._readers(file)
        return file.owner == user or user in self._readers(file)

    def _readers(self, file: DriveFile) -> set[str]:
        found: set[str] = set()
        for each in self._upwards(file):
            found |= each.readers
        return found

    def _upwards(self, file: DriveFile) -> Iterator[DriveFile]:
        yield file
        while file.parent in self.files:
            file = self.files[file.parent]
            yield file

    def is_trashed(self, file: DriveFile) -> bool:
        return any(each.trashed for each in self._upwards(file))

    def below(self, folder: str) -> Iterator[DriveFile]:
        for each in list(self.files.values()):
            if each.parent == folder:
                yield each
                yield from self.below(each.id)

    def known(self, file_id: str) -> DriveFile:
        if file_id not in self.files or self.files[file_id].gone:
            raise NoSuchObject(file_id)
        return self.files[file_id]

    # -- changes

    def note(self, file: DriveFile, *, also: AbstractSet[str] = frozenset()) -> None:
        """An entry in the log of everybody concerned; `also` those who saw it until now."""
        at = self._clock.stamp()
        for log in self._watchers(file) | set(also):
            self.logs.setdefault(log, []).append((file.id, at))

    def _everybody(self) -> set[str]:
        found = {file.owner for file in self.files.values()}
        for file in self.files.values():
            found |= file.readers
        for drive in self.drives.values():
            found |= drive.members
        return found

    def _watchers(self, file: DriveFile) -> set[str]:
        """Whose log it is in: a shared drive has its own, and its members' logs do not repeat it."""
        if file.drive_id is not None:
            return {file.drive_id} | self._readers(file)
        return {user for user in self._everybody() if self.sees(user, file)}

    def position(self, log: str) -> int:
        return FIRST_CHANGE + len(self.logs.get(log, []))

    def changes(self, log: str, start: int, size: int) -> tuple[list[tuple[str, datetime]], int]:
        """Entries from a token on, each file once, with the position after them."""
        entries = self.logs.get(log, [])[max(0, start - FIRST_CHANGE) :]
        page = entries[:size]
        latest = dict(page)
        return list(latest.items()), start + len(page)

    # -- what the control API does

    def create(self, kind: str, fields: Json, user: str) -> DriveFile:
        at = self._clock.stamp()
        drive_id, parent = self._place(fields.get("parentId"), user)
        name = fields.get("name", "untitled")
        file = DriveFile(
            id=fields.get("id") or f"1{encoded(self._ids.digest('file'))[:32]}",
            name=name,
            mime_type=_mime_type(kind, name, fields),
            owner=user,
            created=at,
            modified=_time(fields.get("modifiedTime")) or at,
            content=_content(fields),
            drive_id=drive_id,
            parent=parent,
            target=fields.get("targetId"),
            weight=int(fields.get("weight", 0)),
            readers=set(fields.get("sharedWith", ())),
        )
        self.files[file.id] = file
        self.note(file)
        return file

    def create_drive(self, fields: Json, user: str) -> SharedDrive:
        drive = SharedDrive(
            id=fields.get("id") or f"0A{encoded(self._ids.digest('drive'))[:15]}PVA",
            name=fields.get("name", "Shared drive"),
            created=self._clock.stamp(),
            members=set(fields.get("members", (user,))),
        )
        self.drives[drive.id] = drive
        return drive

    def _place(self, parent: str | None, user: str) -> tuple[str | None, str]:
        if parent is None:
            return None, self.root(user)
        if parent in self.drives:
            return parent, parent
        return self.known(parent).drive_id, parent

    def edit(self, file: DriveFile, fields: Json) -> DriveFile:
        """Content makes a new revision; a rename or a move only a new version."""
        before = self._watchers(file)
        at = self._clock.stamp()
        if "text" in fields or "base64" in fields:
            file.content = _content(fields)
            file.revision += 1
            file.modified = at
        file.name = fields.get("name", file.name)
        file.weight = int(fields.get("weight", file.weight))
        if "parentId" in fields:
            file.drive_id, file.parent = self._place(fields["parentId"], file.owner)
            for each in self.below(file.id):
                each.drive_id = file.drive_id
        if "sharedWith" in fields:
            file.readers = set(fields["sharedWith"])
        if "owner" in fields:
            file.owner = fields["owner"]
        file.version += 1
        self.note(file, also=before)
        if file.is_folder and {"sharedWith", "owner", "parentId"} & set(fields):
            for each in self.below(file.id):
                self.note(each, also=before)
        return file

    def delete(self, file: DriveFile, *, for_good: bool) -> None:
        """Trash is the usual way: only the folder itself is noted, whatever lies in it."""
        before = self._watchers(file)
        if for_good:
            for each in [*self.below(file.id), file]:
                each.gone = True
        else:
            file.trashed = True
        file.version += 1
        self.note(file, also=before)

    def restore(self, file_id: str) -> DriveFile:
        if file_id not in self.files:
            raise NoSuchObject(file_id)
        file = self.files[file_id]
        for each in [file, *self.below(file_id)] if file.gone else [file]:
            each.gone = False
        file.trashed = False
        file.version += 1
        self.note(file)
        return file

    # -- as the API shows it

    def resource(self, file: DriveFile, user: str) -> Json:
        kind = {"kind": "drive#file", "id": file.id, "name": file.name, "mimeType": file.mime_type}
        shared = bool(self._readers(file)) or file.drive_id is not None
        found: Json = {
            **kind,
            "createdTime": stamp(file.created),
            "modifiedTime": stamp(file.modified),
            "version": str(file.version),
            "trashed": self.is_trashed(file),
            "explicitlyTrashed": file.trashed,
            "starred": False,
            "shared": shared,
            "spaces": ["drive"],
            "ownedByMe": file.drive_id is None and file.owner == user,
            "viewedByMe": True,
            "webViewLink": f"https://drive.google.example/file/d/{file.id}/view",
            "capabilities": {"canDownload": not file.is_folder, "canEdit": file.owner == user},
        }
        if file.drive_id is not None:
            found |= {"driveId": file.drive_id, "teamDriveId": file.drive_id}
        else:
            person = {"kind": "drive#user", "displayName": file.owner.partition("@")[0].title()}
            found["owners"] = [{**person, "emailAddress": file.owner, "me": file.owner == user}]
        # A parent the user does not see is not shown: that is how shared files float.
        if file.parent is not None and self._shows_parent(file, user):
            found["parents"] = [file.parent]
        if file.mime_type == SHORTCUT and file.target is not None:
            target = self.files.get(file.target)
            details = {"targetId": file.target}
            if target is not None:
                details["targetMimeType"] = target.mime_type
            found["shortcutDetails"] = details
        if not file.is_folder and file.mime_type != SHORTCUT:
            size = "1024" if file.is_native else str(len(file.content))
            found |= {"size": size, "quotaBytesUsed": size}
        if file.is_binary:
            extension = file.name.rpartition(".")[2] if "." in file.name else ""
            found |= {
                "headRevisionId": file.head_revision,
                "md5Checksum": hashlib.md5(file.content, usedforsecurity=False).hexdigest(),
                "sha256Checksum": hashlib.sha256(file.content).hexdigest(),
                "originalFilename": file.name,
                "fileExtension": extension,
                "fullFileExtension": extension,
            }
        return found

    def _shows_parent(self, file: DriveFile, user: str) -> bool:
        if file.parent in self.drives:
            return user in self.drives[file.parent].members
        if file.parent in self.files:
            return self.sees(user, self.files[file.parent])
        return file.parent == self.root(user)


def _mime_type(kind: str, name: str, fields: Json) -> str:
    if kind == "folder":
        return FOLDER
    if kind == "shortcut":
        return SHORTCUT
    if kind in NATIVE:
        return NATIVE[kind]
    return fields.get("mimeType") or mimetypes.guess_type(name)[0] or "application/octet-stream"


def _content(fields: Json) -> bytes:
    if "base64" in fields:
        return base64.b64decode(fields["base64"])
    return str(fields.get("text", "")).encode()


def _time(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
