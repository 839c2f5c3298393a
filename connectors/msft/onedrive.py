"""OneDrive: the user's own drive, and on request the files others shared with them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connectors.kit.contract import Item, ItemFailed, ItemGone, Watch
from connectors.kit.entries import Entries
from connectors.kit.rounds import Batch, Census
from connectors.msft.drive_items import Drive, DriveSurface
from connectors.msft.graph import Record
from connectors.registry import Workplace

OWN, SHARED = "own", "shared:"


@dataclass(frozen=True)
class SharedFile(Drive):
    """What others shared has no change feed, only a list. So each file is a container of its own: when the list no longer
    names it, access is lost and it goes.
    """

    entry: Mapping[str, Any] = field(default_factory=dict[str, Any])


class OneDrive(DriveSurface):
    source_kind = "onedrive_item"

    async def census(self) -> Census[Drive]:
        found: dict[str, Drive] = {}
        try:
            drive = await self._graph.get("/me/drive", params={"$select": "id,name,driveType,quota"})
        except ItemGone:  # no licence for one, or not any more
            return Census({}, missing={OWN: "no_onedrive"})
        own = str(drive["id"])
        used = int((drive.get("quota") or {}).get("used") or 0)
        found[own] = Drive(own, str(drive.get("name") or "OneDrive"), used=used)
        untold: dict[str, str] = {}
        if self._policy.shared_with_me:
            try:
                async for shared in self._shared(own):
                    found[shared.id] = shared
            except ItemFailed as error:  # perhaps consent does not cover it
                untold[SHARED] = error.reason
        return Census(found, untold=untold)

    def unlisted(self, container_id: str) -> Drive | None:
        del container_id  # what neither list names is not this user's
        return None

    def left_out(self, item: Item) -> str | None:
        shared = item.container_id.startswith(SHARED)
        return "filtered" if shared and not self._policy.shared_with_me else super().left_out(item)

    async def _shared(self, own: str) -> AsyncIterator[SharedFile]:
        async for entry in self._graph.every("/me/drive/sharedWithMe", cost=2):
            remote: Record = entry.get("remoteItem") or {}
            drive = str((remote.get("parentReference") or {}).get("driveId") or "")
            # Folders have no list that says when something in them is gone; they stay out.
            if remote.get("id") and drive and drive != own and "file" in remote:
                yield SharedFile(f"{SHARED}{remote['id']}", "Shared with me", entry=remote)

    async def feed(self, container: Drive, link: str | None) -> AsyncIterator[Batch]:
        if not isinstance(container, SharedFile):
            async for batch in super().feed(container, link):
                yield batch
            return
        entry, found = container.entry, Entries(container.id)
        with found.reading(str(entry["id"]), entry.get("name")):
            drive = str(entry["parentReference"]["driveId"])
            item = self._item(container, entry, {})
            found.add(replace(item, parent_id=None, path="", handle={"drive": drive}))
        yield Batch("listed", done=True, upserts=found.items, failures=found.failures)

    async def watch(self, url: str, known: Sequence[Watch]) -> Sequence[Watch]:
        try:
            drive = await self._graph.get("/me/drive", params={"$select": "id"})
        except ItemGone:
            return await self._subscriptions.keep(url, known, {})
        return await self._subscriptions.keep(url, known, {f"/drives/{drive['id']}/root": "updated"})


def build(workplace: Workplace) -> OneDrive:
    return OneDrive(workplace)
