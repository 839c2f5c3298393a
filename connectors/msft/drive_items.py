"""Files in a drive: the change feed of driveItems, which of them are wanted, and their bytes.

SharePoint libraries and OneDrive are the same thing here; they differ in which drives there are.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from connectors.kit.contract import (
    Estimate,
    Fetched,
    Item,
    ItemFailed,
    Tombstone,
    VendorUnavailable,
    Watch,
)
from connectors.kit.entries import Entries
from connectors.kit.policy import SyncPolicy
from connectors.kit.rounds import Batch, ContainerSurface
from connectors.msft.graph import Graph, Record, display_name, moment, segment
from connectors.msft.subscriptions import Subscriptions
from connectors.registry import Workplace

PAGE = 200
SELECT = (
    "id,name,size,webUrl,eTag,cTag,createdDateTime,lastModifiedDateTime,createdBy,lastModifiedBy,"
    "parentReference,file,folder,package,root,deleted,shared,remoteItem,specialFolder"
)
# Someone is editing, an upload is on its way, or a program keeps house here: none of it was written to be read.
TEMPORARY = ("~$*", "~*.tmp", "*.tmp", "*.temp", ".~lock.*", "*.crdownload", "*.partial", "*.lnk", "*.url")
HOUSEKEEPING = ("thumbs.db", "desktop.ini", ".ds_store", "*.aspx", "_vti_*")
SYSTEM_FOLDERS = (
    "forms",
    "_private",
    "_catalogs",
    "_cts",
    "_layouts",
    "_vti_*",
    "$recycle.bin",
    ".git",
    "appdata",
)
ESTIMATE_REQUESTS = 20


@dataclass(frozen=True)
class Drive:
    id: str
    name: str = ""
    site: str = ""
    used: int = 0

    @property
    def feed_path(self) -> str:
        return f"/drives/{segment(self.id)}/root/delta"


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def folder_path(entry: Record) -> str | None:
    """Where it lies, below the drive's root. None if Graph does not say: it need not."""
    path = (entry.get("parentReference") or {}).get("path")
    if not isinstance(path, str) or "root:" not in path:
        return None
    return unquote(path.split("root:", 1)[1]).strip("/")


class Taste:
    """Why a file that exists is not wanted."""

    def __init__(self, policy: SyncPolicy) -> None:
        self._policy = policy
        self._endings = tuple(f".{ending.lower().lstrip('*').lstrip('.')}" for ending in policy.file_types)

    def reason(self, entry: Record, path: str) -> str | None:
        name = str(entry.get("name") or "")
        if "package" in entry or "remoteItem" in entry or "file" not in entry:
            return "unsupported"
        if _matches(name, TEMPORARY) or _matches(name, HOUSEKEEPING):
            return "filtered"
        if any(_matches(part, SYSTEM_FOLDERS) for part in path.split("/") if part):
            return "filtered"
        if not self._in_folders(path) or (self._endings and not name.lower().endswith(self._endings)):
            return "filtered"
        if int(entry.get("size") or 0) > self._policy.max_file_bytes:
            return "too_large"
        return None

    def _in_folders(self, path: str) -> bool:
        """A folder that is allowed allows what lies below it."""
        if not self._policy.folders:
            return True
        steps = path.split("/")
        above = ["/".join(steps[: count + 1]) for count in range(len(steps))]
        return any(_matches(step, [wanted.strip("/")]) for step in above for wanted in self._policy.folders)


class DriveSurface(ContainerSurface[Drive]):
    source_kind: str
    census_keeps = True

    def __init__(self, workplace: Workplace) -> None:
        self._graph = Graph(workplace, workplace.endpoints["graph"])
        self._policy, self._root = workplace.policy, workplace.external_root
        self._taste = Taste(workplace.policy)
        self._subscriptions = Subscriptions(self._graph, workplace.clock)

    def unlisted(self, container_id: str) -> Drive | None:
        """A search that does not find a site is no proof that it is gone; the drive itself is asked."""
        return Drive(container_id)

    def described(self, container: Drive) -> str:
        return f"{container.site}/{container.name}" if container.name else ""

    async def feed(self, container: Drive, link: str | None) -> AsyncIterator[Batch]:
        params = None if link else {"$top": PAGE, "$select": SELECT}
        address = link or container.feed_path
        while True:
            page = await self._graph.page(address, params=params, cost=1 if link else 2)
            address, params = page.next_link or page.delta_link or "", None
            if not address:
                raise VendorUnavailable("a delta page without a link")
            upserts, tombstones = self._sort(container, page.value)
            done = page.next_link is None
            found = await self._with_paths(container, upserts)
            yield Batch(address, done, found.items, tombstones, found.failures)
            if done:
                return

    def _sort(self, drive: Drive, entries: Sequence[Record]) -> tuple[list[Record], list[Tombstone]]:
        """The last word about an id counts. The root is nobody's document."""
        latest = {str(entry["id"]): entry for entry in entries if entry.get("id")}
        gone = [
            Tombstone(external_id=item_id, container_id=drive.id)
            for item_id, entry in latest.items()
            if entry.get("deleted") is not None
        ]
        kept = [entry for entry in latest.values() if entry.get("deleted") is None and "root" not in entry]
        return kept, gone

    async def _with_paths(self, drive: Drive, entries: Sequence[Record]) -> Entries:
        """Paths decide only where folders are chosen; then, if Graph left them out, the parents are asked. What lies in one that
        refuses is neither wanted nor unwanted.
        """
        asked: dict[str, str] = {}
        refused: set[str] = set()
        if self._policy.folders:
            parents = sorted(
                {_parent(entry) for entry in entries if _is_sound(entry) and folder_path(entry) is None}
                - {""}
            )
            answers = await self._graph.batch(
                [
                    f"/drives/{segment(drive.id)}/items/{segment(one)}?$select=id,name,parentReference,root"
                    for one in parents
                ]
            )
            for parent, (status, body) in zip(parents, answers, strict=True):
                if status == 200 and isinstance(body, dict):
                    above = folder_path(body)
                    asked[parent] = "" if above is None else f"{above}/{body.get('name') or ''}".strip("/")
                elif status != 404:
                    refused.add(parent)
        found = Entries(drive.id)
        for entry in entries:
            with found.reading(str(entry["id"]), entry.get("name")):
                if folder_path(entry) is None and _parent(entry) in refused:
                    raise ItemFailed("refused", "the folder it lies in refuses")
                found.add(self._item(drive, entry, asked))
        return found

    def _item(self, drive: Drive, entry: Record, asked: Mapping[str, str]) -> Item:
        found = folder_path(entry)
        path = asked.get(_parent(entry), "") if found is None else found
        is_folder = "folder" in entry and "package" not in entry
        version = entry.get("cTag") or entry.get("eTag")  # a new name alone is no new content
        return Item(
            external_id=str(entry["id"]),
            source_kind="folder" if is_folder else self.source_kind,
            name=str(entry.get("name") or ""),
            container_id=drive.id,
            version=str(version) if version else None,
            parent_id=_parent(entry) or None,
            path=path,
            uri=entry.get("webUrl") or None,
            mime_type=(entry.get("file") or {}).get("mimeType") or None,
            size=None if is_folder else int(entry.get("size") or 0),
            modified_at=moment(entry.get("lastModifiedDateTime")),
            metadata={} if is_folder else _context(drive, entry, path),
            handle={} if is_folder else {"drive": drive.id},
            skip=None if is_folder else self._taste.reason(entry, path),
        )

    async def fetch(self, item: Item) -> Fetched:
        drive = item.handle.get("drive") or item.container_id
        answer = await self._graph.client.download(
            f"/drives/{segment(drive)}/items/{segment(item.external_id)}/content",
            max_bytes=self._policy.max_file_bytes,
        )
        if answer.status != 200:
            raise ItemFailed("download_failed", f"status {answer.status}")
        # Which version these bytes are Graph says only in another spelling; should the file have changed since it was
        # listed, the next delta brings it again.
        return Fetched(data=answer.body, mime_type=item.mime_type, file_name=item.name)

    async def estimate(self) -> Estimate:
        """Counts as far as a few requests reach, and goes on from there by size."""
        drives = [one for one in (await self.census()).containers.values() if type(one) is Drive]
        items = size = requests = 0
        unseen = 0
        for drive in drives:
            address: str | None = drive.feed_path
            params: dict[str, Any] | None = {
                "$top": PAGE,
                "$select": "id,name,size,file,parentReference,deleted",
            }
            seen = 0
            while address and requests < ESTIMATE_REQUESTS:
                page = await self._graph.page(address, params=params, cost=2)
                requests, address, params = requests + 1, page.next_link, None
                wanted = [
                    one for one in page.value if self._taste.reason(one, folder_path(one) or "") is None
                ]
                items += len(wanted)
                seen += sum(int(one.get("size") or 0) for one in wanted)
            size += seen
            if address:
                unseen += max(drive.used - seen, 0)
        more = round(items * unseen / size) if size else 0
        return Estimate(
            items=items + more,
            size=size + unseen,
            exact=not unseen,
            containers=[f"{drive.site} / {drive.name}".strip(" /") for drive in drives],
        )

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        drives = (await self.census()).containers
        resources = {f"/drives/{drive}/root": "updated" for drive in drives}
        return await self._subscriptions.keep(url, known, resources)

    async def unwatch(self, known: Sequence[Watch]) -> None:
        await self._subscriptions.drop(known)


def _is_sound(entry: Record) -> bool:
    return isinstance(entry.get("parentReference") or {}, dict)


def _parent(entry: Record) -> str:
    return str((entry.get("parentReference") or {}).get("id") or "")


def _context(drive: Drive, entry: Record, path: str) -> dict[str, Any]:
    """What a reader wants to know about a file beside its words."""
    told = {
        "site": drive.site,
        "library": drive.name,
        "path": path,
        "author": display_name(entry.get("createdBy")),
        "modifiedBy": display_name(entry.get("lastModifiedBy")),
        "sharing": _sharing(entry.get("shared")),
    }
    return {name: value for name, value in told.items() if value}


def _sharing(facet: Any) -> dict[str, str]:
    """The facet costs nothing; asking for the permissions of every file would cost five times what the file costs."""
    if not isinstance(facet, dict):
        return {}
    told = {"scope": str(facet.get("scope") or "users"), "owner": display_name(facet.get("owner"))}
    return {name: value for name, value in told.items() if value}
