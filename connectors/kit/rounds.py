"""A surface of many containers, each with a change feed of its own: drives, mail folders, calendars, channels.

A round asks every container once. Its progress is the cursor: which container is how far, and whose answers are a
listing. A container that lost its token, that is forbidden or gone, is that container's matter and nobody else's. One
that refuses although the account still lists it keeps its place: whether access is lost the engine decides, with time.
"""

import hashlib
import json
import secrets
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from connectors.kit.contract import (
    FORBIDDEN,
    CursorLost,
    Failure,
    Item,
    ItemFailed,
    ItemGone,
    ListingDue,
    Mode,
    Page,
    Tombstone,
    VendorUnavailable,
)

PAGE_ITEMS = 200
# A round is walked in short turns, and asking for the containers of a large account takes longer than a turn. So whoever goes
# on with a round in the same process may use what was asked at its beginning. The key is the round's own, out of its cursor.
CENSUS_SECONDS = 600.0
MOST_CENSUSES = 64
_censuses: "OrderedDict[str, tuple[float, Any]]" = OrderedDict()
C = TypeVar("C")


@dataclass(frozen=True)
class Census(Generic[C]):
    """The containers to be asked, in order; those that exist but must not be read (by policy); what refused to tell its
    containers, by the word it was refused with – then nobody knows what there is –; and what the account does not have at
    all, by the word that says so, which is no failure.
    """

    containers: Mapping[str, C]
    excluded: frozenset[str] = frozenset()
    untold: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_proof(self) -> bool:
        """Whether what it does not name is not there."""
        return not self.untold and not self.missing

    @property
    def doubt(self) -> str:
        """Of a container that is not named where that proves nothing. An account may be without a thing on a bad day only."""
        return FORBIDDEN if self.missing else min(self.untold.values())


@dataclass(frozen=True)
class Batch:
    """One answer of a feed. `link` asks for what follows: the next page, or with `done` the changes after this."""

    link: str
    done: bool
    upserts: Sequence[Item] = ()
    tombstones: Sequence[Tombstone] = ()
    failures: Sequence[Failure] = ()

    def slices(self) -> Iterator["Batch"]:
        """In pieces a transaction likes. The order stays: what is found, what failed, what is gone."""
        everything: list[Item | Failure | Tombstone] = [*self.upserts, *self.failures, *self.tombstones]
        for start in range(0, len(everything), PAGE_ITEMS):
            piece = everything[start : start + PAGE_ITEMS]
            yield Batch(
                link=self.link,
                done=self.done,
                upserts=[found for found in piece if isinstance(found, Item)],
                failures=[found for found in piece if isinstance(found, Failure)],
                tombstones=[found for found in piece if isinstance(found, Tombstone)],
            )


class Progress:
    """What a cursor says. Links and container ids only, never anything about items."""

    def __init__(self, said: Mapping[str, Any] | None = None) -> None:
        said = said or {"l": True}
        self._round: int = said.get("r", 0)
        self._running: bool = bool(said.get("p"))
        self.key: str = said.get("k", "")
        self._listing: bool | set[str] = (
            said["l"] if isinstance(said.get("l"), bool) else set(said.get("l", ()))
        )
        self._tokens: dict[str, tuple[str, int]] = {
            container_id: (link, asked) for container_id, (link, asked) in said.get("t", {}).items()
        }
        self._labels: dict[str, str] = dict(said.get("d", {}))
        self._next: dict[str, str] = dict(said.get("n", {}))
        self._failed: set[str] = set(said.get("x", ()))

    @staticmethod
    def read(cursor: str | None) -> "Progress":
        return Progress(json.loads(cursor) if cursor else None)

    def text(self) -> str:
        said: dict[str, Any] = {"r": self._round, "t": self._tokens}
        if self._running:
            said |= {"p": 1, "k": self.key}
        if self._listing:
            said["l"] = True if self._listing is True else sorted(self._listing)
        if self._next:
            said["n"] = self._next
        if self._failed:
            said["x"] = sorted(self._failed)
        if self._labels:
            said["d"] = self._labels
        return json.dumps(said, separators=(",", ":"))

    def begin(self) -> None:
        if not self._running:
            self._running, self._round, self._failed = True, self._round + 1, set()
            self.key = secrets.token_hex(8)

    def end(self) -> None:
        self._running, self._listing, self._failed = False, False, set()

    @property
    def any_listing(self) -> bool:
        return bool(self._listing)

    @property
    def known(self) -> set[str]:
        return set(self._tokens) | set(self._next)

    def lists(self, container_id: str) -> bool:
        return self._listing if isinstance(self._listing, bool) else container_id in self._listing

    def is_done(self, container_id: str) -> bool:
        if container_id in self._failed:
            return True
        return container_id not in self._next and self._tokens.get(container_id, ("", -1))[1] == self._round

    def link(self, container_id: str) -> str | None:
        return self._next.get(container_id) or self.token(container_id)

    def is_midway(self, container_id: str) -> bool:
        return container_id in self._next

    def token(self, container_id: str) -> str | None:
        return self._tokens.get(container_id, (None, 0))[0]

    def advance(self, container_id: str, batch: Batch) -> None:
        if batch.done:
            self._next.pop(container_id, None)
            self._tokens[container_id] = (batch.link, self._round)
        else:
            self._next[container_id] = batch.link

    def fail(self, container_id: str) -> None:
        """Not asked again in this round; the next one goes on from where it was."""
        self._next.pop(container_id, None)
        self._failed.add(container_id)

    def has_failed(self, container_id: str) -> bool:
        return container_id in self._failed

    def leave(self, container_id: str) -> None:
        """Gone, and not asked again in this round."""
        self.forget(container_id)
        self._failed.add(container_id)

    def forget(self, container_id: str) -> None:
        self._next.pop(container_id, None)
        self._tokens.pop(container_id, None)
        self._labels.pop(container_id, None)

    def is_renamed(self, container_id: str, described: str) -> bool:
        known = self._labels.get(container_id)
        return bool(known and described) and known != _label(described)

    def describe(self, container_id: str, described: str) -> None:
        if described:
            self._labels[container_id] = _label(described)

    def list_anew(self, container_id: str) -> None:
        self.forget(container_id)
        if not isinstance(self._listing, bool):
            self._listing.add(container_id)
        elif not self._listing:
            self._listing = {container_id}


def _label(described: str) -> str:
    """Enough of it to tell that it changed."""
    return hashlib.sha256(described.encode("utf-8", "replace")).hexdigest()[:8]


@dataclass
class _Tidings:
    """About containers. Told at once: whoever resumes behind this cursor does not hear it again."""

    failed: dict[str, str] = field(default_factory=dict[str, str])  # with the word of the refusal
    gone: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    missing: dict[str, str] = field(default_factory=dict[str, str])  # with the word for it

    def pages(self, progress: "Progress") -> Iterator[Page]:
        if self.failed or self.gone or self.left_out or self.missing:
            yield Page(
                next_cursor=progress.text(),
                containers_failed=list(self.failed),
                refusals=self.failed | self.missing,
                containers_gone=self.gone,
                containers_left_out=self.left_out,
                listing=progress.any_listing,
            )
            self.failed, self.gone, self.left_out, self.missing = {}, [], [], {}


class ContainerSurface(ABC, Generic[C]):
    """`pages` for a surface that can tell its containers and read the feed of each."""

    # Whether what the census answers is all there is to it, so that a later turn of the same round may do without asking.
    census_keeps = False
    _excluded: frozenset[str] = frozenset()  # as the census of the running round said

    @abstractmethod
    async def census(self) -> Census[C]: ...

    @abstractmethod
    def feed(self, container: C, link: str | None) -> AsyncIterator[Batch]:
        """Batches from the link on, or from the beginning, until one is `done`. Raises CursorLost, ItemFailed, ItemGone."""

    def unlisted(self, container_id: str) -> C | None:
        """A known container the census did not name. None: then it is gone."""
        del container_id
        return None

    def described(self, container: C) -> str:
        """What its items say of it: its name, its path. When that changes it is listed anew, for nobody tells of its items."""
        del container
        return ""

    def left_out(self, item: Item) -> str | None:
        """What lies in a container that policy leaves out. Surfaces with windows and tiers know more reasons."""
        return "filtered" if item.container_id in self._excluded else None

    def outgrown(self, container_id: str, link: str) -> bool:
        """Whether a container must be listed anew although its token still works: its window moved on."""
        del container_id, link
        return False

    async def pages(self, cursor: str | None, mode: Mode) -> AsyncGenerator[Page]:
        del mode  # the cursor knows
        progress = Progress.read(cursor)
        progress.begin()
        census = await self._census(progress.key)
        self._excluded = census.excluded
        tidings = _Tidings()
        todo = self._todo(progress, census, tidings)
        for page in tidings.pages(progress):
            yield page
        self._renew_outgrown(progress, todo)
        for container_id, container in todo.items():
            if not progress.is_midway(container_id):
                progress.describe(container_id, self.described(container))
            proven = container_id not in census.containers and census.is_proof
            async for batch in self._batches(progress, container_id, container, tidings, proven=proven):
                before = progress.text()
                progress.advance(container_id, batch)
                listing = progress.lists(container_id)
                pieces = list(batch.slices()) or ([batch] if listing else [])
                for number, piece in enumerate(pieces, 1):
                    last = number == len(pieces)
                    yield Page(
                        next_cursor=progress.text() if last else before,
                        upserts=piece.upserts,
                        tombstones=piece.tombstones,
                        failures=piece.failures,
                        listing=listing,
                        container_complete=[container_id] if last and listing and batch.done else (),
                    )
            for page in tidings.pages(progress):
                yield page
        listing = progress.any_listing
        _censuses.pop(progress.key, None)
        progress.end()
        yield Page(next_cursor=progress.text(), listing=listing, last=True)

    async def _census(self, key: str) -> Census[C]:
        if not self.census_keeps:
            return await self._asked()
        now = time.monotonic()
        asked, found = _censuses.get(key, (0.0, None))
        if found is not None and now - asked < CENSUS_SECONDS:
            return found
        census = await self._asked()
        _censuses[key] = now, census
        while len(_censuses) > MOST_CENSUSES:
            _censuses.popitem(last=False)
        return census

    async def _asked(self) -> Census[C]:
        try:
            return await self.census()
        except ItemGone:
            return Census({}, missing={"": "not_there"})

    def _todo(self, progress: Progress, census: Census[C], tidings: _Tidings) -> Mapping[str, C]:
        """Containers that are still to be asked in this round. Those that left are told and forgotten."""
        found = dict(census.containers)
        for container_id in sorted(progress.known - set(found)):
            if container_id in census.excluded:
                progress.forget(container_id)
                tidings.left_out.append(container_id)
            elif (kept := self.unlisted(container_id)) is not None:
                found[container_id] = kept
            elif census.is_proof:
                progress.forget(container_id)
                tidings.gone.append(container_id)
            elif not progress.has_failed(container_id):
                progress.fail(container_id)
                tidings.failed[container_id] = census.doubt
        for told, words in ((tidings.failed, census.untold), (tidings.missing, census.missing)):
            for whole, word in words.items():
                if not progress.has_failed(whole):
                    progress.fail(whole)
                    told[whole] = word
        return {one: container for one, container in found.items() if not progress.is_done(one)}

    def _renew_outgrown(self, progress: Progress, todo: Mapping[str, C]) -> None:
        outgrown = [
            container_id
            for container_id, container in todo.items()
            if (link := progress.token(container_id)) is not None
            and not progress.is_midway(container_id)
            and (
                self.outgrown(container_id, link)
                or progress.is_renamed(container_id, self.described(container))
            )
        ]
        if not outgrown:
            return
        is_listing = progress.any_listing
        for container_id in outgrown:
            progress.list_anew(container_id)
        if not is_listing:
            raise ListingDue("a listing is due", cursor=progress.text(), container_id=outgrown[0])

    async def _batches(
        self, progress: Progress, container_id: str, container: C, tidings: _Tidings, *, proven: bool
    ) -> AsyncGenerator[Batch]:
        """`proven`: the account does not list it any more, so that its own refusal is the second word for the same."""
        try:
            async for batch in self._resumable(progress, container_id, container):
                yield batch
        except ItemGone:
            progress.leave(container_id)
            tidings.gone.append(container_id)
        except ItemFailed as error:
            if error.reason == FORBIDDEN and proven:
                progress.leave(container_id)
                tidings.gone.append(container_id)
            else:
                progress.fail(container_id)
                tidings.failed[container_id] = error.reason

    async def _resumable(self, progress: Progress, container_id: str, container: C) -> AsyncGenerator[Batch]:
        """A container that lost its place begins anew. If a listing is running it joins that one, else it starts one."""
        link = progress.link(container_id)
        try:
            async for batch in self.feed(container, link):
                yield batch
        except CursorLost as lost:
            is_listing = progress.any_listing
            progress.list_anew(container_id)
            if not is_listing:
                raise CursorLost(str(lost), cursor=progress.text(), container_id=container_id) from lost
        else:
            return
        try:
            async for batch in self.feed(container, None):
                yield batch
        except CursorLost as lost:
            raise VendorUnavailable("the vendor forgets where a listing is that has just begun") from lost
