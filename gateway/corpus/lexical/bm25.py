"""Exact BM25 over packed posting segments.

Lucene's variant, as in bm25s: idf = ln(1 + (N - df + 0.5) / (df + 0.5)), weight = idf · tf / (tf + k1·(1 - b + b·l/L)).
A group of alternatives (one word as several languages stem it) is one word: df counts the chunks that hold any of
them, tf is the highest of theirs. N, df, lengths and L are counted from what is given, so a score is the same however
the chunks are spread over segments, to the last bit, and a merge never reorders results.

The work is bounded by the chunks times the words of the query: a frequent word costs a pass over an array, some
microseconds per thousand chunks, never more.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.corpus.lexical.postings import Directory, bases, unpack_rows

Places = NDArray[np.int64]

K1, B = 1.5, 0.75  # the defaults of bm25s, which we are measured against


class StaleShelf(LookupError):
    """A row belongs to a segment the shelf does not know: read the directories again."""


class Ranking(NamedTuple):
    """Best first; equal scores by chunk number."""

    chunk_numbers: NDArray[np.int64]
    scores: NDArray[np.float32]


class Shelf:
    """The directories of everything one search covers, end to end. Making it reads them once: keep it."""

    def __init__(self, directories: Mapping[int, Directory]) -> None:
        parts = list(directories.values())
        empty = Directory(b"")
        self._bases = dict(zip(directories, bases(parts).tolist(), strict=True))
        self._sizes = {segment: len(directory) for segment, directory in directories.items()}
        self.chunk_numbers = np.concatenate([part.chunk_numbers for part in (*parts, empty)])
        self._lengths = np.concatenate([part.lengths for part in (*parts, empty)])
        self._alive = np.concatenate([part.alive for part in (*parts, empty)])
        self.chunks = int(self._alive.sum())
        self.all_alive = self.chunks == len(self._alive)
        self._by_number = np.argsort(self.chunk_numbers)
        self._sorted_numbers = self.chunk_numbers[self._by_number]
        self._norms: dict[tuple[float, float], NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return len(self.chunk_numbers)

    def norms(self, k1: float, b: float) -> NDArray[np.float32]:
        """What BM25 adds to a frequency in the denominator, by place."""
        if (k1, b) not in self._norms:
            # a mandate of nothing but function words has no lengths to compare
            average = int(self._lengths.sum(dtype=np.int64)) / max(self.chunks, 1) or 1.0
            norms = k1 * (1 - b + b * (self._lengths / average))
            self._norms = {(k1, b): norms.astype(np.float32)}
        return self._norms[k1, b]

    def servable(self, allowed: Mapping[int, NDArray[np.bool_]] | None) -> NDArray[np.bool_]:
        """By place: living, and allowed by the mask of its segment. A segment without a mask is not allowed."""
        if allowed is None:
            return self._alive
        servable = np.zeros(len(self), np.bool_)
        for segment, mask in allowed.items():
            part = slice(self._base(segment), self._base(segment) + self._sizes[segment])
            servable[part] = self._alive[part] & mask
        return servable

    def places_of(self, chunk_numbers: Iterable[int]) -> Places:
        """Where these chunks stand; those that are not here are left out."""
        wanted = np.fromiter(chunk_numbers, np.int64)
        if not len(self) or not len(wanted):
            return np.empty(0, np.int64)
        found = np.searchsorted(self._sorted_numbers, wanted)
        places = self._by_number[np.minimum(found, len(self) - 1)]
        return places[(self.chunk_numbers[places] == wanted) & self._alive[places]]

    def find(self, rows: Sequence[tuple[int, bytes]]) -> tuple[Places, NDArray[np.float32]]:
        """Places and frequencies of one term, from its rows by segment."""
        postings = unpack_rows([row for _, row in rows])
        origins = np.fromiter((self._base(segment) for segment, _ in rows), np.int64, len(rows))
        return postings.ordinals + postings.spread(origins), postings.frequencies.astype(np.float32)

    def _base(self, segment: int) -> int:
        try:
            return self._bases[segment]
        except KeyError:
            raise StaleShelf(f"segment {segment}") from None


def score(
    query_groups: Iterable[Sequence[str]],
    rows_by_term: Mapping[str, Sequence[tuple[int, bytes]]],
    shelf: Shelf,
    *,
    k1: float = K1,
    b: float = B,
    allowed: Mapping[int, NDArray[np.bool_]] | None = None,
    including: Iterable[int] = (),
    limit: int = 100,
) -> Ranking:
    """The best `limit` chunks for the query, and the chunks of `including` with whatever they score.

    `allowed` narrows what is served, not what the statistics count; nothing outside it is returned, asked for or not.
    """
    norms = shelf.norms(k1, b)
    scores = np.zeros(
        len(shelf), np.float32
    )  # single precision: half the memory traffic, six digits to rank by
    for group, weight in Counter(map(tuple, query_groups)).items():
        found = [shelf.find(rows_by_term[term]) for term in group if rows_by_term.get(term)]
        if not found:
            continue
        places, frequencies = found[0] if len(found) == 1 else _highest(found, len(shelf))
        holding = min(
            len(places), shelf.chunks
        )  # more only while rows still name a chunk that is already dead
        idf = math.log(1 + (shelf.chunks - holding + 0.5) / (holding + 0.5))
        scores[places] += np.float32(weight * idf) * (frequencies / (frequencies + norms[places]))
    servable = shelf.servable(allowed)
    scores[~servable] = 0
    wanted = shelf.places_of(including)
    hits = np.union1d(_best(scores, shelf.chunk_numbers, limit), wanted[servable[wanted]])
    order = np.lexsort((shelf.chunk_numbers[hits], -scores[hits]))
    return Ranking(shelf.chunk_numbers[hits[order]], scores[hits[order]])


def _highest(
    found: Sequence[tuple[Places, NDArray[np.float32]]], size: int
) -> tuple[Places, NDArray[np.float32]]:
    highest = np.zeros(size, np.float32)
    for places, frequencies in found:
        highest[places] = np.maximum(highest[places], frequencies)
    places = np.flatnonzero(highest > 0)
    return places, highest[places]


def _best(scores: NDArray[np.float32], chunk_numbers: NDArray[np.int64], limit: int) -> Places:
    """Places of the highest scores above zero; equal ones are cut by chunk number."""
    hits = np.flatnonzero(scores > 0)
    if len(hits) > limit:
        found = scores[hits]
        hits = hits[found >= np.partition(found, len(hits) - limit)[len(hits) - limit]]
    return hits[np.lexsort((chunk_numbers[hits], -scores[hits]))[:limit]]
