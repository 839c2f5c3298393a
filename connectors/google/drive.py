"""Drive: My Drive and the shared drives of one user, by listing once and following changes from then on.

Each drive is a container with a change log of its own. A link says where in it we are: `list` with the token that was
taken before the listing, or `changes` with the token to go on from. Tokens of Drive do not expire.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.google.api import GoogleApi, Refusal, about_container, lacks_scope
from connectors.google.channels import Channels
from connectors.google.drive_files import (
    FOLDER,
    MY_DRIVE,
    Folders,
    Listed,
    Shelf,
    exports_of,
    is_native,
)
from connectors.kit.contract import (
    FORBIDDEN,
    CursorLost,
    Estimate,
    Fetched,
    Item,
    ItemFailed,
    ItemGone,
    Tombstone,
    VendorUnavailable,
    Watch,
)
from connectors.kit.entries import Entries
from connectors.kit.http import AnswerTooLarge
from connectors.kit.rounds import Batch, Census, ContainerSurface
from connectors.registry import Workplace

FILE_FIELDS = (
    "id,name,mimeType,parents,driveId,size,md5Checksum,headRevisionId,modifiedTime,trashed,ownedByMe,"
    "webViewLink,shortcutDetails(targetId,targetMimeType),capabilities(canDownload),owners(emailAddress)"
)
LIST_FIELDS = f"nextPageToken,files({FILE_FIELDS})"
CHANGE_FIELDS = f"nextPageToken,newStartPageToken,changes(changeType,removed,fileId,file({FILE_FIELDS}))"
PAGE = 200
EXPORT_LIMIT = 11 * 1024 * 1024  # Google stops at ten
ESTIMATE_PAGES = 20


@dataclass(frozen=True)
class Place:
    """A link, read. `page` is the vendor's page token within a listing."""

    kind: str  # folders, files, changes
    token: str
    page: str | None = None

    def text(self) -> str:
        return json.dumps([self.kind, self.token, *([self.page] if self.page else [])], separators=(",", ":"))

    @staticmethod
    def read(link: str) -> "Place":
        return Place(*json.loads(link))


class Drive(ContainerSurface[Shelf]):
    def __init__(self, workplace: Workplace) -> None:
        self._workplace, self._policy = workplace, workplace.policy
        self._api = GoogleApi(workplace, workplace.endpoints, "drive", "v3")
        self._channels = Channels(self._api, workplace.clock)
        self._folders = Folders(self._folder)
        self._listed = Listed(workplace.policy, self._folders)
        self._is_blind = False  # the drives may not be listed: what is known is asked itself

    # -- containers

    async def census(self) -> Census[Shelf]:
        shelves = {MY_DRIVE: Shelf(id=MY_DRIVE, name="My Drive")}
        try:
            shelves |= await self._shared_drives()
        except Refusal as error:
            self._is_blind = lacks_scope(error)
            if not self._is_blind:
                raise
        wanted = {name.casefold() for name in self._policy.libraries}
        root = self._workplace.external_root
        kept = {
            shelf_id: shelf
            for shelf_id, shelf in shelves.items()
            if (not wanted or shelf.name.casefold() in wanted) and root in {"", shelf_id}
        }
        self._listed.shelves = set(kept)
        self._folders.shelves = shelves
        return Census(kept, excluded=frozenset(set(shelves) - set(kept)))

    async def _shared_drives(self) -> dict[str, Shelf]:
        found: dict[str, Shelf] = {}
        token: str | None = None
        while True:
            page = await self._api.ask(
                lambda api, token=token: api.drives().list(
                    pageSize=100, pageToken=token, fields="nextPageToken,drives(id,name)"
                )
            )
            for drive in page.get("drives", ()):
                found[drive["id"]] = Shelf(id=drive["id"], name=drive["name"])
            token = page.get("nextPageToken")
            if token is None:
                return found

    def unlisted(self, container_id: str) -> Shelf | None:
        return Shelf(id=container_id, name="") if self._is_blind else None

    def described(self, container: Shelf) -> str:
        return container.name

    async def feed(self, container: Shelf, link: str | None) -> AsyncGenerator[Batch]:
        try:
            place = Place.read(link) if link else Place("folders", await self._start_token(container))
            if place.kind != "changes":
                async for batch in self._listing(container, place):
                    yield batch
            else:
                async for batch in self._changes(container, place):
                    yield batch
        except Refusal as error:
            if error.status in {400, 410} and link is not None:
                # A page token of a listing that was left lying too long, or a refused one of the changes.
                raise CursorLost(str(error)) from error
            raise about_container(error) from error

    async def _start_token(self, shelf: Shelf) -> str:
        options = {"driveId": shelf.id, "supportsAllDrives": True} if shelf.is_shared else {}
        found = await self._api.ask(lambda api: api.changes().getStartPageToken(**options))
        return found["startPageToken"]

    # -- the listing: folders first, so that paths can be told; then files, newest first

    async def _listing(self, shelf: Shelf, place: Place) -> AsyncGenerator[Batch]:
        while True:
            is_folders = place.kind == "folders"
            test = "=" if is_folders else "!="
            page = await self._list(
                shelf,
                f"trashed=false and mimeType{test}'{FOLDER}'",
                page=place.page,
                newest_first=not is_folders,
            )
            found = await self._items(shelf, page["files"])
            following = page.get("nextPageToken")
            if following is not None:
                place = Place(place.kind, place.token, following)
            else:
                place = Place("files" if is_folders else "changes", place.token)
            done = place.kind == "changes"
            yield Batch(place.text(), done, found.items, failures=found.failures)
            if place.kind == "changes":
                return

    async def _list(
        self, shelf: Shelf, query: str, *, page: str | None = None, newest_first: bool = False
    ) -> Mapping[str, Any]:
        options: dict[str, Any] = {"corpora": "user"}
        if shelf.is_shared:
            options = {
                "corpora": "drive",
                "driveId": shelf.id,
                "includeItemsFromAllDrives": True,
                "supportsAllDrives": True,
            }
        if newest_first:
            options["orderBy"] = "modifiedTime desc"
        found = await self._api.ask(
            lambda api: api.files().list(
                q=query, pageSize=PAGE, pageToken=page, fields=LIST_FIELDS, spaces="drive", **options
            )
        )
        return {**found, "files": found.get("files", [])}

    async def _item(self, shelf: Shelf, file: Mapping[str, Any]) -> Item:
        if file["mimeType"] == FOLDER:
            self._folders.learn(file)
        return await self._listed.item(shelf, file, self._target)

    async def _items(self, shelf: Shelf, files: Iterable[Mapping[str, Any]]) -> Entries:
        found = Entries(shelf.id)
        for file in files:
            with found.reading(file["id"], file.get("name")):
                found.add(await self._item(shelf, file))
        return found

    async def _folder(self, folder_id: str) -> Mapping[str, Any] | None:
        return await self._file(folder_id, "id,name,mimeType,parents,ownedByMe")

    async def _target(self, file_id: str) -> Mapping[str, Any] | None:
        return await self._file(file_id, FILE_FIELDS)

    async def _file(self, file_id: str, fields: str) -> Mapping[str, Any] | None:
        try:
            return await self._api.ask(
                lambda api: api.files().get(fileId=file_id, supportsAllDrives=True, fields=fields)
            )
        except Refusal as error:
            if error.status == 404 or error.word == FORBIDDEN:
                return None
            raise about_container(error) from error

    # -- changes

    async def _changes(self, shelf: Shelf, place: Place) -> AsyncGenerator[Batch]:
        options: dict[str, Any] = {}
        if shelf.is_shared:
            options = {"driveId": shelf.id, "includeItemsFromAllDrives": True, "supportsAllDrives": True}
        token = place.token
        while True:
            page = await self._api.ask(
                lambda api, token=token: api.changes().list(
                    pageToken=token, pageSize=PAGE, fields=CHANGE_FIELDS, includeRemoved=True, **options
                )
            )
            found, tombstones = await self._changed(shelf, page.get("changes", ()))
            done = "newStartPageToken" in page
            following = page.get("newStartPageToken") or page.get("nextPageToken")
            if following is None:
                raise VendorUnavailable("a page of changes that leads nowhere")
            link = Place("changes", following).text()
            yield Batch(link, done, found.items, tombstones, found.failures)
            if done:
                return
            token = following

    async def _changed(
        self, shelf: Shelf, changes: Sequence[Mapping[str, Any]]
    ) -> tuple[Entries, list[Tombstone]]:
        found = Entries(shelf.id)
        latest: dict[str, Mapping[str, Any]] = {}
        tombstones: dict[str, Tombstone] = {}
        for change in changes:
            if change.get("changeType", "file") != "file":
                continue  # drives that come and go are seen by the census
            file_id, file = change["fileId"], change.get("file")
            latest.pop(file_id, None)
            tombstones.pop(file_id, None)
            if change.get("removed") or file is None:
                # Deleted, or no longer ours to see, or moved to another drive: then it is named there.
                tombstones[file_id] = Tombstone(
                    external_id=file_id, reason="access_lost", container_id=shelf.id
                )
                self._folders.forget(file_id)
            elif file.get("trashed"):
                tombstones[file_id] = Tombstone(external_id=file_id, reason="trashed")
                self._folders.forget(file_id)
            else:
                latest[file_id] = file
        for file_id, file in latest.items():
            with found.reading(file_id, file.get("name")):
                for item in await self._appeared(shelf, file):
                    found.add(item)
        return found, list(tombstones.values())

    async def _appeared(self, shelf: Shelf, file: Mapping[str, Any]) -> list[Item]:
        item = await self._item(shelf, file)
        if file["mimeType"] == FOLDER:
            # Renamed, moved, or back from the trash: nobody tells about what lies in it.
            return [item, *[below async for below in self._below(shelf, file["id"])]]
        if item.skip == "filtered" and not shelf.is_shared:
            # Not ours, but perhaps a shortcut of ours stands for it.
            return [item, *[standing async for standing in self._shortcuts_to(shelf, file["id"])]]
        return [item]

    async def _below(self, shelf: Shelf, folder_id: str) -> AsyncGenerator[Item]:
        waiting, seen = [folder_id], {folder_id}
        while waiting:
            query = f"trashed=false and '{waiting.pop()}' in parents"
            async for file in self._all(shelf, query):
                yield await self._item(shelf, file)
                if file["mimeType"] == FOLDER and file["id"] not in seen:
                    seen.add(file["id"])
                    waiting.append(file["id"])

    async def _shortcuts_to(self, shelf: Shelf, target_id: str) -> AsyncGenerator[Item]:
        async for file in self._all(shelf, f"trashed=false and shortcutDetails.targetId='{target_id}'"):
            yield await self._item(shelf, file)

    async def _all(self, shelf: Shelf, query: str) -> AsyncGenerator[Mapping[str, Any]]:
        token: str | None = None
        while True:
            page = await self._list(shelf, query, page=token)
            for file in page["files"]:
                yield file
            token = page.get("nextPageToken")
            if token is None:
                return

    # -- contents

    async def fetch(self, item: Item) -> Fetched:
        file_id = item.handle.get("target") or item.external_id
        kind = item.handle.get("kind", "")
        try:
            if is_native(kind):
                return await self._exported(file_id, kind, item.name)
            data = await self._api.read(
                lambda api: api.files().get_media(fileId=file_id, supportsAllDrives=True),
                max_bytes=self._policy.max_file_bytes,
            )
        except AnswerTooLarge as error:
            raise ItemFailed("too_large", str(error), permanent=True) from error
        except Refusal as error:
            raise _about_item(error) from error
        return Fetched(data=data, mime_type=item.mime_type, file_name=item.name)

    async def _exported(self, file_id: str, kind: str, name: str) -> Fetched:
        """In a format that keeps the structure; if that is over Google's ten megabytes, as bare text."""
        limit = min(EXPORT_LIMIT, self._policy.max_file_bytes)
        for mime_type, ending in exports_of(kind):
            try:
                data = await self._api.read(
                    lambda api, mime_type=mime_type: api.files().export_media(
                        fileId=file_id, mimeType=mime_type
                    ),
                    max_bytes=limit,
                )
            except Refusal as error:
                if error.reason != "exportSizeLimitExceeded":
                    raise
            else:
                return Fetched(data=data, mime_type=mime_type, file_name=f"{name}{ending}")
        raise ItemFailed("too_large", "larger than Google exports", permanent=True)

    # -- what a first sync would bring

    async def estimate(self) -> Estimate:
        census = await self.census()
        items = size = pages = 0
        exact = True
        for shelf in census.containers.values():
            token: str | None = None
            while exact:
                page = await self._list(shelf, f"trashed=false and mimeType!='{FOLDER}'", page=token)
                items += len(page["files"])
                size += sum(int(file.get("size", 0)) for file in page["files"])
                pages, token = pages + 1, page.get("nextPageToken")
                if token is None:
                    break
                exact = pages < ESTIMATE_PAGES
        names = [shelf.name for shelf in census.containers.values()]
        return Estimate(items=items, size=size, exact=exact, containers=names)

    # -- push

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        shelves = (await self.census()).containers

        async def ask(shelf_id: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
            shelf = shelves[shelf_id]
            token = await self._start_token(shelf)
            options: dict[str, Any] = {"driveId": shelf.id} if shelf.is_shared else {}
            return await self._api.ask(
                lambda api: api.changes().watch(
                    pageToken=token,
                    body=body,
                    supportsAllDrives=True,
                    includeItemsFromAllDrives=True,
                    **options,
                )
            )

        return await self._channels.keep(url, known, shelves, ask)

    async def unwatch(self, known: Sequence[Watch]) -> None:
        await self._channels.stop(known)


def _about_item(error: Refusal) -> ItemGone | ItemFailed:
    if error.status in {404, 410}:
        return ItemGone(str(error))
    if error.reason in {"fileNotDownloadable", "fileNotExportable"}:
        return ItemFailed("unsupported", error.reason, permanent=True)
    if error.reason == "cannotDownloadAbusiveFile":
        return ItemFailed("download_forbidden", error.reason, permanent=True)
    if error.status == 403:
        return ItemFailed("forbidden", error.reason)
    return ItemFailed("refused", str(error))


def build(workplace: Workplace) -> Drive:
    return Drive(workplace)
