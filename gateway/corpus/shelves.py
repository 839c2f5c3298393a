"""Directories of lexical segments, kept in memory so that a search reads only the postings of its words.

A directory is valid for one version of its segment; which versions are current, every search reads together with its
postings, so a kept shelf is never stale. Memory is bounded: the mandates searched longest ago are forgotten first.
"""

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from gateway.corpus import search_repository as repository
from gateway.corpus.lexical.bm25 import K1, B, Shelf
from gateway.corpus.lexical.postings import Directory
from gateway.errors import StoreUnavailable

MAX_CHUNKS = 2_000_000  # about 40 bytes each

Groups = Sequence[Sequence[str]]
Rows = Mapping[str, Sequence[tuple[int, bytes]]]


class SegmentChanged(Exception):
    """A segment was rewritten between two statements; read again."""


class Kept(NamedTuple):
    """One mandate's segments end to end; `places` numbers them in that order."""

    places: dict[UUID, int]
    versions: dict[UUID, int]
    directories: list[Directory]
    shelf: Shelf


class Postings(NamedTuple):
    """The postings of a query's terms, and the shelf they stand on."""

    kept: Kept
    rows: Rows

    async def score(self, groups: Groups, limit: int) -> "Scores":
        """Every chunk's BM25, with the best already picked; off the event loop."""
        return await asyncio.to_thread(Scores, self, groups, limit)


class Scores:
    """BM25 of every chunk for one query: the same sums as `bm25.score`, kept, because the search asks twice.

    First for the best, while the database looks for neighbours; then for the neighbours, whichever they turn out to be.
    """

    def __init__(self, postings: Postings, groups: Groups, limit: int) -> None:
        self._kept = postings.kept
        shelf = self._kept.shelf
        norms = shelf.norms(K1, B)
        self._scores = np.zeros(len(shelf), np.float32)
        for group, weight in Counter(map(tuple, groups)).items():
            found = [shelf.find(postings.rows[term]) for term in group if term in postings.rows]
            if found:
                places, frequencies = found[0] if len(found) == 1 else _highest(found, len(shelf))
                # more than there are only while rows still name a chunk that is already dead
                holding = min(len(places), shelf.chunks)
                idf = math.log(1 + (shelf.chunks - holding + 0.5) / (holding + 0.5))
                self._scores[places] += np.float32(weight * idf) * (
                    frequencies / (frequencies + norms[places])
                )
        self._scores[~shelf.servable(None)] = 0
        self.best = self._best(self._scores, limit)

    async def best_of(
        self, limit: int, only: Sequence[int] | None, *, without: Sequence[int] = ()
    ) -> dict[int, float]:
        """The best among some chunks, or among all but some. What the statistics count stays the same."""
        return await asyncio.to_thread(self._narrowed, limit, only, without)

    def of(self, chunk_numbers: Iterable[int]) -> dict[int, float]:
        """Chunk number to score, zero included; chunks that are not on the shelf are left out."""
        places = self._kept.shelf.places_of(chunk_numbers)
        return self._listed(places)

    def _narrowed(self, limit: int, only: Sequence[int] | None, without: Sequence[int]) -> dict[int, float]:
        shelf, scores = self._kept.shelf, self._scores.copy()
        if only is not None:
            mask = np.zeros(len(shelf), np.bool_)
            mask[shelf.places_of(only)] = True
            scores[~mask] = 0
        scores[shelf.places_of(without)] = 0
        return self._best(scores, limit)

    def _best(self, scores: NDArray[np.float32], limit: int) -> dict[int, float]:
        places = np.flatnonzero(scores)
        if 0 < limit < len(places):
            found = scores[places]
            places = places[found >= np.partition(found, len(found) - limit)[len(found) - limit]]
        # equal scores are cut by chunk number, so that the same question has the same answer
        order = np.lexsort((self._kept.shelf.chunk_numbers[places], -scores[places]))[:limit]
        return self._listed(places[order])

    def _listed(self, places: NDArray[np.int64]) -> dict[int, float]:
        numbers: list[int] = self._kept.shelf.chunk_numbers[places].tolist()
        return dict(zip(numbers, self._scores[places].tolist(), strict=True))


def _highest(
    found: Sequence[tuple[NDArray[np.int64], NDArray[np.float32]]], size: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Alternatives are one word: a chunk counts once, by the most frequent of them."""
    highest = np.zeros(size, np.float32)
    for places, frequencies in found:
        highest[places] = np.maximum(highest[places], frequencies)
    places = np.flatnonzero(highest)
    return places, highest[places]


class Shelves:
    def __init__(self, max_chunks: int = MAX_CHUNKS) -> None:
        self._kept: OrderedDict[UUID, Kept] = OrderedDict()
        self._max_chunks = max_chunks

    async def read(
        self, connection: repository.Connection, mandate_id: UUID, terms: Sequence[str]
    ) -> Postings:
        """Postings of these terms with the mandate's current shelf."""
        for _ in range(3):  # a merge now and then is normal, three during one search are not
            try:
                return await self._read(connection, mandate_id, terms)
            except SegmentChanged:
                continue
        raise StoreUnavailable("The index is being rewritten; try again in a moment.")

    async def _read(
        self, connection: repository.Connection, mandate_id: UUID, terms: Sequence[str]
    ) -> Postings:
        found = await repository.read_postings(connection, mandate_id, terms)
        versions = {segment: version for term, segment, version, _ in found if term is None}
        kept = self._kept.get(mandate_id)
        if kept is None or kept.versions != versions:
            kept = await self._renew(connection, mandate_id, versions, kept)
            self._keep(mandate_id, kept)
        else:
            self._kept.move_to_end(mandate_id)
        rows: dict[str, list[tuple[int, bytes]]] = {}
        for term, segment, _, data in found:
            if term is not None and data is not None:
                rows.setdefault(term, []).append((kept.places[segment], data))
        return Postings(kept, rows)

    async def _renew(
        self, connection: repository.Connection, mandate_id: UUID, versions: dict[UUID, int], old: Kept | None
    ) -> Kept:
        known: dict[UUID, Directory] = {}
        if old is not None:
            known = {
                segment: old.directories[place]
                for segment, place in old.places.items()
                if versions.get(segment) == old.versions[segment]
            }
        missing = [segment for segment in versions if segment not in known]
        for segment, version, directory in await repository.read_directories(connection, mandate_id, missing):
            if version != versions[segment]:
                raise SegmentChanged
            known[segment] = Directory(directory)
        if len(known) != len(versions):
            raise SegmentChanged
        directories = [known[segment] for segment in versions]
        shelf = await asyncio.to_thread(Shelf, dict(enumerate(directories)))
        return Kept(
            places={segment: place for place, segment in enumerate(versions)},
            versions=versions,
            directories=directories,
            shelf=shelf,
        )

    def _keep(self, mandate_id: UUID, kept: Kept) -> None:
        self._kept[mandate_id] = kept
        self._kept.move_to_end(mandate_id)
        total = sum(len(one.shelf) for one in self._kept.values())
        while total > self._max_chunks and len(self._kept) > 1:
            _, forgotten = self._kept.popitem(last=False)
            total -= len(forgotten.shelf)
