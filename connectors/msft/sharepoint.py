"""SharePoint: every library of every site the user can find."""

from collections.abc import AsyncIterator, Iterable
from fnmatch import fnmatchcase

from connectors.kit.contract import ItemFailed, ItemGone
from connectors.kit.rounds import Census
from connectors.msft.drive_items import Drive, DriveSurface
from connectors.msft.graph import Record, error_code, lies_in, meaning, segment
from connectors.registry import Workplace

PERSONAL = "/personal/"  # OneDrive has a surface of its own


class SharePoint(DriveSurface):
    source_kind = "sharepoint_item"

    async def census(self) -> Census[Drive]:
        """Sites by search, twenty of their drive lists in one request. What a site holds that refuses nobody knows."""
        found: dict[str, Drive] = {}
        excluded: set[str] = set()
        untold: dict[str, str] = {}
        sites = [site async for site in self._sites()]
        paths = [
            f"/sites/{segment(str(site['id']))}/drives?$select=id,name,driveType,webUrl,quota"
            for site in sites
        ]
        for site, (status, body) in zip(sites, await self._graph.batch(paths), strict=True):
            try:
                drives = await self._drives(status, body)
            except ItemGone:
                continue
            except ItemFailed as error:
                if _allowed(_names(site), self._policy.sites):
                    untold[str(site["id"])] = error.reason
                continue
            for drive in drives:
                if self._wanted(site, drive):
                    used = int((drive.get("quota") or {}).get("used") or 0)
                    name = str(drive.get("name") or "")
                    found[str(drive["id"])] = Drive(str(drive["id"]), name, _title(site), used)
                else:
                    excluded.add(str(drive["id"]))
        return Census(found, frozenset(excluded), untold)

    async def _sites(self) -> AsyncIterator[Record]:
        seen: set[str] = set()
        async for site in self._graph.every("/sites", params={"search": "*", "$top": 100}, cost=2):
            personal = site.get("isPersonalSite") or PERSONAL in str(site.get("webUrl") or "")
            if site.get("id") and site["id"] not in seen and not personal:
                seen.add(site["id"])
                yield site

    async def _drives(self, status: int, body: object) -> list[Record]:
        if status >= 400:
            raise meaning(status, error_code(body), {})
        page = self._graph.collection(body)
        drives = list(page.value)
        if page.next_link is not None:
            drives += [drive async for drive in self._graph.every(page.next_link, cost=2)]
        return [drive for drive in drives if drive.get("id")]

    def _wanted(self, site: Record, drive: Record) -> bool:
        names = _names(site)
        libraries = (drive.get("name"), drive.get("id"), drive.get("webUrl"))
        if not lies_in(self._root, *names, *libraries):
            return False
        return _allowed(names, self._policy.sites) and _allowed(libraries, self._policy.libraries)


def _names(site: Record) -> tuple[object, ...]:
    return (site.get("displayName"), site.get("name"), site.get("webUrl"), site.get("id"))


def _title(site: Record) -> str:
    return str(site.get("displayName") or site.get("name") or "")


def _allowed(names: Iterable[object], wanted: list[str]) -> bool:
    if not wanted:
        return True
    spelled = [str(name).lower().rstrip("/") for name in names if name]
    return any(fnmatchcase(name, one.lower().rstrip("/")) for name in spelled for one in wanted)


def build(workplace: Workplace) -> SharePoint:
    return SharePoint(workplace)
