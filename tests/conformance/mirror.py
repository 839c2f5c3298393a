"""What a corpus would hold that believes a surface's every word, by the contract alone."""

from collections.abc import Callable
from dataclasses import dataclass, field

from connectors.kit.contract import CursorLost, Item, Mode, Page, Surface

MOST_ON_A_PAGE = 1000
LOSSES = 5  # in one round; more is a surface that never gets anywhere


@dataclass
class Mirror:
    surface: Surface
    cursor: str | None = None
    items: dict[str, Item] = field(default_factory=dict[str, Item])
    named: set[str] = field(default_factory=set[str])  # ever upserted
    failed: set[str] = field(default_factory=set[str])
    pages: list[Page] = field(default_factory=list[Page])
    losses: int = 0
    listing: bool = True
    full: bool = True
    seen: set[str] = field(default_factory=set[str])
    complete: set[str] = field(default_factory=set[str])
    dark: set[str] = field(default_factory=set[str])

    async def round(self, stop_after: int | None = None) -> list[Page]:
        """One round, following what it leads to. With `stop_after` the process dies after so many pages."""
        before = len(self.pages)
        for _ in range(LOSSES):
            mode: Mode = "bootstrap" if self.listing and self.full else "delta"
            try:
                async for page in self.surface.pages(self.cursor, mode):
                    self.apply(page)
                    if page.last or (stop_after is not None and len(self.pages) - before >= stop_after):
                        return self.pages[before:]
            except CursorLost as lost:
                self.losses += 1
                self.relist(lost.cursor)
                continue
            raise AssertionError("the round ended without a last page")
        raise AssertionError("the surface loses its cursor again and again")

    def relist(self, cursor: str | None = None) -> None:
        self.cursor, self.listing, self.full = cursor, True, cursor is None
        self.seen, self.complete, self.dark = set(), set(), set()

    def apply(self, page: Page) -> None:
        self.pages.append(page)
        for item in page.upserts:
            self.items[item.external_id] = item
            self.named.add(item.external_id)
        upserted = {item.external_id for item in page.upserts}
        self.seen |= upserted | {failure.external_id for failure in page.failures}
        self.failed |= {failure.external_id for failure in page.failures}
        for stone in page.tombstones:
            known = self.items.get(stone.external_id)
            lies_there = known is not None and stone.container_id in {None, known.container_id}
            if lies_there and stone.external_id not in upserted:
                self._bury(stone.external_id)
        left = {*page.containers_gone, *page.containers_left_out}
        self._drop(lambda item: item.container_id in left)
        self.complete |= set(page.container_complete)
        self.dark |= set(page.containers_failed)
        self.cursor = page.next_cursor
        if page.last and self.listing:
            if not self.dark:
                self._drop(self._absent)
            self.listing = False

    def _absent(self, item: Item) -> bool:
        return item.external_id not in self.seen and (self.full or item.container_id in self.complete)

    def _bury(self, external_id: str) -> None:
        self.items.pop(external_id, None)
        for child in [item.external_id for item in self.items.values() if item.parent_id == external_id]:
            self._bury(child)

    def _drop(self, which: Callable[[Item], bool]) -> None:
        for external_id in [item.external_id for item in self.items.values() if which(item)]:
            self.items.pop(external_id)

    @property
    def documents(self) -> dict[str, Item]:
        return {key: item for key, item in self.items.items() if not item.is_folder and item.skip is None}

    def find(self, marker: str) -> Item | None:
        """The document that carries a marker in its name or text."""
        for item in self.documents.values():
            if marker in item.name or any(marker in part.text for part in item.parts or ()):
                return item
        return None
