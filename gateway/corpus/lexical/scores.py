"""BM25 of every chunk for one query: the same sums as `bm25.score`, kept, because a search asks more than once.

First for the best, while the database looks for neighbours; then for the neighbours, whichever they turn out to be.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.corpus.lexical.bm25 import K1, B, Shelf

FREQUENT = 8  # a term is frequent that at least every eighth chunk holds
_GROUPS = 64  # of scores that are looked at together to find the best

Groups = Sequence[Sequence[str]]
Rows = Mapping[str, Sequence[tuple[int, bytes]]]


class Impact(NamedTuple):
    """How much a term says about the chunks that hold it, before it is weighed by how rare it is.

    Without places there is a value for every place of the shelf: frequent terms are added up many times faster like that.
    """

    places: NDArray[np.int64] | None
    values: NDArray[np.float32]
    holding: int

    def held_at(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.values > 0) if self.places is None else self.places


def impact_of(rows: Sequence[tuple[int, bytes]], shelf: Shelf) -> Impact:
    places, frequencies = shelf.find(rows)
    values = np.divide(frequencies, frequencies + shelf.norms(K1, B)[places], dtype=np.float32)
    if len(places) * FREQUENT < len(shelf):
        return Impact(places, values, len(places))
    return Impact(None, _spread(places, values, len(shelf)), len(places))


class Scores:
    def __init__(self, shelf: Shelf, groups: Groups, impacts: Mapping[str, Impact], limit: int) -> None:
        self._shelf = shelf
        self._scores = np.zeros(len(shelf), np.float32)
        self.weight = (
            0.0  # of the whole query here: what a text would have that says every word and nothing else
        )
        for group, times in Counter(map(tuple, groups)).items():
            found = [impacts[term] for term in group if term in impacts]
            if found:
                self._add(found[0] if len(found) == 1 else _highest(found, len(shelf)), times)
            else:
                self.weight += float(self._rarity(0, times))
        if not shelf.all_alive:
            self._scores[~shelf.servable(None)] = 0
        self.best = self._best(self._scores, limit)

    def _rarity(self, holding: int, times: int) -> np.float32:
        chunks = self._shelf.chunks
        # more than there are only while rows still name a chunk that is already dead
        holding = min(holding, chunks)
        return np.float32(times * math.log(1 + (chunks - holding + 0.5) / (holding + 0.5)))

    def _add(self, impact: Impact, times: int) -> None:
        weight = self._rarity(impact.holding, times)
        self.weight += float(weight)
        if impact.places is None:
            self._scores += weight * impact.values
        else:
            self._scores[impact.places] += weight * impact.values

    def best_of(
        self, limit: int, only: Sequence[int] | None, *, without: Sequence[int] = ()
    ) -> dict[int, float]:
        """The best among some chunks, or among all but some. What the statistics count stays the same."""
        scores = self._scores.copy()
        if only is not None:
            mask = np.zeros(len(scores), np.bool_)
            mask[self._shelf.places_of(only)] = True
            scores[~mask] = 0
        scores[self._shelf.places_of(without)] = 0
        return self._best(scores, limit)

    def of(self, chunk_numbers: Iterable[int]) -> dict[int, float]:
        """Chunk number to score, zero included; chunks that are not on the shelf are left out."""
        return self._listed(self._shelf.places_of(chunk_numbers))

    def _best(self, scores: NDArray[np.float32], limit: int) -> dict[int, float]:
        if limit <= 0:
            return {}
        bar = _bar(scores, limit)
        places = np.flatnonzero(scores >= bar if bar > 0 else scores > 0)
        if limit < len(places):
            found = scores[places]
            places = places[found >= np.partition(found, len(found) - limit)[len(found) - limit]]
        # equal scores are cut by chunk number, so that the same question has the same answer
        order = np.lexsort((self._shelf.chunk_numbers[places], -scores[places]))[:limit]
        return self._listed(places[order])

    def _listed(self, places: NDArray[np.int64]) -> dict[int, float]:
        numbers: list[int] = self._shelf.chunk_numbers[places].tolist()
        return dict(zip(numbers, self._scores[places].tolist(), strict=True))


def _bar(scores: NDArray[np.float32], limit: int) -> float:
    """At least `limit` scores are as high as this: where so many groups of them have their highest."""
    size = len(scores) // _GROUPS
    if limit >= size:
        return 0.0
    highest = scores[: size * _GROUPS].reshape(_GROUPS, size).max(axis=0)
    return float(np.partition(highest, size - limit)[size - limit])


def _highest(found: Sequence[Impact], size: int) -> Impact:
    """Alternatives are one word: a chunk counts once, by the one that says most."""
    highest = np.zeros(size, np.float32)
    for places, values, _ in found:
        if places is None:
            np.maximum(highest, values, out=highest)
        else:
            highest[places] = np.maximum(highest[places], values)
    return Impact(None, highest, int(np.count_nonzero(highest)))


def _spread(places: NDArray[np.int64], values: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    spread = np.zeros(size, np.float32)
    spread[places] = values
    return spread
