"""A file of Drive as an item: where it lies, which version it is, and whether policy wants it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from connectors.kit.contract import Item
from connectors.kit.policy import SyncPolicy

MY_DRIVE = "my-drive"
APPS = "application/vnd.google-apps."
FOLDER, SHORTCUT = f"{APPS}folder", f"{APPS}shortcut"
_OFFICE = "application/vnd.openxmlformats-officedocument."
# What Google's own kinds are fetched as: first with their structure, then as text, which is smaller.
EXPORTS: Mapping[str, Sequence[tuple[str, str]]] = {
    f"{APPS}document": ((f"{_OFFICE}wordprocessingml.document", ".docx"), ("text/plain", ".txt")),
    f"{APPS}spreadsheet": ((f"{_OFFICE}spreadsheetml.sheet", ".xlsx"), ("text/csv", ".csv")),
    f"{APPS}presentation": ((f"{_OFFICE}presentationml.presentation", ".pptx"), ("text/plain", ".txt")),
}
# Someone is editing, or a program keeps house: none of it was written to be read.
TEMPORARY = ("~$*", "*.tmp", ".~lock.*", "*.crdownload", "*.partial", "thumbs.db", "desktop.ini", ".ds_store")
DEEPEST = 100

Record = Mapping[str, Any]
Find = Callable[[str], Awaitable[Record | None]]


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """My Drive or a shared drive."""

    id: str
    name: str

    @property
    def is_shared(self) -> bool:
        return self.id != MY_DRIVE


def is_native(mime_type: str) -> bool:
    return mime_type in EXPORTS


def exported_type(mime_type: str) -> str:
    """What its bytes will be."""
    return EXPORTS[mime_type][0][0] if mime_type in EXPORTS else mime_type


def exports_of(mime_type: str) -> Sequence[tuple[str, str]]:
    return EXPORTS[mime_type]


@dataclass(frozen=True)
class _Folder:
    name: str
    parent: str | None
    is_ours: bool


class Folders:
    """Names of folders by id, as far as they were met; one nobody mentioned is asked for, once."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._known: dict[str, _Folder | None] = {}
        self.shelves: Mapping[str, Shelf] = {}

    def learn(self, file: Record) -> None:
        parent = next(iter(file.get("parents", ())), None)
        self._known[file["id"]] = _Folder(file["name"], parent, bool(file.get("ownedByMe")))

    def forget(self, folder_id: str) -> None:
        self._known.pop(folder_id, None)

    async def above(self, parent: str | None) -> list[_Folder]:
        """From the outermost folder to the one that holds it, without the root of the drive."""
        found: list[_Folder] = []
        while parent is not None and parent not in self.shelves and len(found) < DEEPEST:
            if parent not in self._known:
                file = await self._find(parent)
                if file is None:
                    self._known[parent] = None
                else:
                    self.learn(file)
            folder = self._known[parent]
            # The root of My Drive has a folder's id and no parent.
            if folder is None or folder.parent is None:
                break
            found.append(folder)
            parent = folder.parent
        return found[::-1]


class Listed:
    """Makes items of files. `shelves` are the drives that are read."""

    def __init__(self, policy: SyncPolicy, folders: Folders) -> None:
        self._policy, self._folders = policy, folders
        self.shelves: set[str] = set()
        self._stand_ins: dict[str, str] = {}  # by what they stand for: a second shortcut to it adds nothing

    async def item(self, shelf: Shelf, file: Record, find: Find) -> Item:
        parent = next(iter(file.get("parents", ())), None)
        above = await self._folders.above(parent)
        path = "/".join(folder.name for folder in above)
        is_folder = file["mimeType"] == FOLDER
        common: dict[str, Any] = {
            "external_id": file["id"],
            "source_kind": "folder" if is_folder else "drive_file",
            "name": file["name"],
            "container_id": shelf.id,
            "parent_id": None if parent in self._folders.shelves else parent,
            "path": path,
            "uri": file.get("webViewLink"),
            "modified_at": _time(file.get("modifiedTime")),
        }
        if is_folder:
            return Item(**common, mime_type=FOLDER)
        content, handle = file, {"kind": str(file["mimeType"])}
        if file["mimeType"] == SHORTCUT:
            target = await self._target(file, find)
            if target is None:
                return Item(**common, mime_type=SHORTCUT, version=file.get("modifiedTime"), skip="shortcut")
            content, handle = target, {"target": str(target["id"]), "kind": str(target["mimeType"])}
        owner = next(
            (one["emailAddress"] for one in content.get("owners", ()) if one.get("emailAddress")), ""
        )
        told = {"drive": shelf.name, "path": path, "owner": owner}
        reason = self._unwanted(shelf, content, above, file["name"], is_target=content is not file)
        return Item(
            **common,
            version=version_of(content),
            mime_type=exported_type(content["mimeType"]),
            size=None if is_native(content["mimeType"]) else _number(content.get("size")),
            metadata={name: value for name, value in told.items() if value},
            handle=handle,
            skip=reason,
        )

    async def _target(self, shortcut: Record, find: Find) -> Record | None:
        """What a shortcut stands for, if it is not indexed where it lies; never a shortcut or folder itself."""
        details = shortcut.get("shortcutDetails") or {}
        if not details.get("targetId") or details.get("targetMimeType") in {FOLDER, SHORTCUT}:
            return None
        target = await find(details["targetId"])
        if target is None or target.get("trashed") or target["mimeType"] in {FOLDER, SHORTCUT}:
            return None
        at_home = (
            target.get("driveId") in self.shelves or target.get("ownedByMe") or self._policy.shared_with_me
        )
        first = self._stand_ins.setdefault(target["id"], shortcut["id"])
        return None if at_home or first != shortcut["id"] else target

    def _unwanted(
        self, shelf: Shelf, file: Record, above: Sequence[_Folder], name: str, *, is_target: bool
    ) -> str | None:
        policy, mime_type = self._policy, str(file["mimeType"])
        foreign = not shelf.is_shared and not file.get("ownedByMe") and not any(one.is_ours for one in above)
        if foreign and not is_target and not policy.shared_with_me:
            return "filtered"
        if any(fnmatchcase(name.lower(), pattern) for pattern in TEMPORARY):
            return "filtered"
        if not _in_folders(policy.folders, [folder.name for folder in above]):
            return "filtered"
        if mime_type.startswith(APPS) and not is_native(mime_type):
            return "unsupported"  # forms, sites, maps: nothing to read in them
        ending = exports_of(mime_type)[0][1] if is_native(mime_type) else name.lower()
        endings = tuple(f".{each.lower().lstrip('*').lstrip('.')}" for each in policy.file_types)
        if endings and not ending.endswith(endings):
            return "filtered"
        if not is_native(mime_type) and (_number(file.get("size")) or 0) > policy.max_file_bytes:
            return "too_large"
        if (file.get("capabilities") or {}).get("canDownload") is False:
            return "download_forbidden"
        return None


def version_of(file: Record) -> str | None:
    """Of the content: a rename or a move leaves it as it is. Google's own kinds have no revision to go by but the time."""
    return file.get("headRevisionId") or file.get("md5Checksum") or file.get("modifiedTime")


def _in_folders(patterns: Sequence[str], folders: Sequence[str]) -> bool:
    """A folder that is allowed allows what lies below it."""
    steps = ["/".join(folders[: count + 1]).lower() for count in range(len(folders))]
    return not patterns or any(
        fnmatchcase(step, pattern.strip("/").lower()) for step in steps for pattern in patterns
    )


def _time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def _number(value: Any) -> int | None:
    return int(value) if value is not None else None
