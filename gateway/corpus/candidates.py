"""What one mandate offers for a query: visible texts with both their scores.

Both legs first look wide, as if everything were visible, and drop what the view hides: right and quick as long as
the view shows a fair share of the mandate. When too little is left they look further, and when the view is so narrow
that this does not help, its chunks are listed and both legs search them alone, exactly. So neither scope nor filters
starve a result. How far a view made us go is remembered for a minute, to begin there; it is a guess about speed only.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal

from gateway.corpus import search_repository as repository
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.phrases import Phrase, phrase_holders, quoted_phrases
from gateway.corpus.search_repository import Connection, Found, Neighbour, Space, View
from gateway.corpus.shelves import Postings, Scores, Shelves

DEPTH = 50  # texts per leg that take part in the fusion, at least, and beyond the page
# How far to go, one after the other: so many times as deep, or the whole view if it shows no more chunks than that.
STEPS: tuple[tuple[Literal["wide", "narrow"], int | None], ...] = (
    ("wide", 1),
    ("wide", 5),
    ("narrow", 20_000),
    ("wide", 20),
    ("narrow", None),
)
HINT_SECONDS = 60.0
ROUNDS = 5  # of looking past texts that fill a list with their copies


class Candidates:
    """By text hash. A text without a cosine has no vector of the model; one without BM25 was not looked for by words."""

    def __init__(self) -> None:
        self.cosines: dict[bytes, float] = {}
        self.bm25: dict[bytes, float] = {}
        self.chunks: dict[bytes, list[Found]] = {}
        self.phrases: dict[
            bytes, float
        ] = {}  # which part of the query, by words, the text quotes as it stands

    def add(self, rows: Sequence[Found], distances: dict[bytes, float]) -> None:
        by_text: dict[bytes, list[Found]] = {}
        for row in rows:
            by_text.setdefault(row.text_hash, []).append(row)
        for text_hash, found in by_text.items():
            self.chunks.setdefault(text_hash, found)
            distance = distances.get(text_hash, found[0].distance)
            if distance is not None:
                self.cosines[text_hash] = 1 - distance

    def score(self, scores: Scores) -> None:
        """Copies of a text may stand under different headings; the best of them counts."""
        by_number = {row.number: text_hash for text_hash, rows in self.chunks.items() for row in rows}
        for number, score in scores.of(by_number).items():
            text_hash = by_number[number]
            self.bm25[text_hash] = max(score, self.bm25.get(text_hash, 0.0))

    def join(self, other: "Candidates") -> None:
        """Takes in another mandate's; of a text that both have, this one's sources come first."""
        self.cosines.update(other.cosines)
        for text_hash, score in other.bm25.items():
            self.bm25[text_hash] = max(score, self.bm25.get(text_hash, 0.0))
        for text_hash, rows in other.chunks.items():
            self.chunks.setdefault(text_hash, []).extend(rows)
        self.phrases.update(other.phrases)


class Hints:
    """With which step to begin, for views where the first ones did not suffice of late."""

    def __init__(self, size: int = 1000) -> None:
        self._kept: OrderedDict[Any, tuple[int, float]] = OrderedDict()
        self._size = size

    def first_step(self, view: View) -> int:
        step, until = self._kept.get(view.key, (0, 0.0))
        return step if until > time.monotonic() else 0

    def note(self, view: View, step: int) -> None:
        if step == 0 or self.first_step(view) == step:
            return
        self._kept[view.key] = (step, time.monotonic() + HINT_SECONDS)
        self._kept.move_to_end(view.key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)


class Quest:
    """One query against one mandate, on one connection, in the caller's transaction."""

    def __init__(
        self,
        connection: Connection,
        view: View,
        shelves: Shelves,
        hints: Hints,
        *,
        space: Space | None,
        limit: int,
    ) -> None:
        self._connection, self._view, self._shelves, self._hints = connection, view, shelves, hints
        self._space, self._limit = space, limit
        self._depth = max(min(3 * limit, limit + DEPTH), DEPTH)
        self._share: float | None = None
        self._phrases: list[Phrase] = []
        self._postings: Postings | None = None
        self._scoring: asyncio.Task[Scores] | None = None

    async def run(self, query: str, model: str, *, lexical: bool) -> Candidates:
        state = await repository.read_state(self._connection, self._view.mandate_id, model)
        if not state.languages:
            return Candidates()
        self._share = state.share
        if lexical:
            await self._read_words(query, state.languages)
        try:
            return await self._look()
        finally:
            if self._scoring is not None:
                self._scoring.cancel()

    async def _read_words(self, query: str, languages: Sequence[str]) -> None:
        groups = query_terms(query, languages)
        self._phrases = quoted_phrases(query, languages)
        every = (groups, *(phrase.groups for phrase in self._phrases))
        terms = {term for words in every for group in words for term in group}
        self._postings = await self._shelves.read(self._connection, self._view.mandate_id, sorted(terms))
        # counted on another core while the database looks for neighbours
        self._scoring = asyncio.create_task(self._postings.score(groups, self._depth))

    async def _look(self) -> Candidates:
        for step in range(self._hints.first_step(self._view), len(STEPS)):
            how, much = STEPS[step]
            found = await (
                self._look_narrow(much) if how == "narrow" else self._look_wide(self._depth * (much or 1))
            )
            if found is not None:
                self._hints.note(self._view, step)
                return found
        return Candidates()

    async def _look_wide(self, depth: int) -> Candidates | None:
        """None when the view hides so much of the lists that what is left would not fill the answer."""
        neighbours: list[Neighbour] = []
        if self._space:
            neighbours = await repository.nearest(
                self._connection, self._view.mandate_id, self._space, share=self._share, limit=depth
            )
        # An index scan may end early, on its budget; an exact one only with the last vector.
        cut = bool(self._space) and (self._share is not None or len(neighbours) == depth)
        return await self._combine(neighbours, depth, cut=cut, only=None)

    async def _look_narrow(self, most: int | None) -> Candidates | None:
        """None when the view shows more than that many chunks."""
        limit = None if most is None else most + 1
        numbers = await repository.allowed_numbers(self._connection, self._view, limit)
        if most is not None and len(numbers) > most:
            return None
        if not numbers:
            return Candidates()
        neighbours: list[Neighbour] = []
        if self._space:
            neighbours = await repository.nearest_allowed(
                self._connection, self._view, self._space, self._depth
            )
        return await self._combine(neighbours, self._depth, cut=False, only=numbers)

    async def _combine(
        self, neighbours: Sequence[Neighbour], depth: int, *, cut: bool, only: Sequence[int] | None
    ) -> Candidates | None:
        """Resolves what both legs found. `cut`: there may be neighbours beyond these. `only`: all that is visible."""
        found = Candidates()
        distances = dict(neighbours)
        scores = await self._scoring if self._scoring else None
        best: dict[int, float] = {}
        if scores is not None:
            best = scores.best if only is None and depth == self._depth else await scores.best_of(depth, only)
        rows = await self._resolve(found, distances, best)
        if cut and len(distances.keys() & found.chunks.keys()) < self._limit:
            return None
        if scores is not None:
            if not await self._fill_up(scores, found, rows, best, depth, only):
                return None
            found.score(scores)
        return found

    async def _fill_up(
        self,
        scores: Scores,
        found: Candidates,
        rows: Sequence[Found],
        best: dict[int, float],
        depth: int,
        only: Sequence[int] | None,
    ) -> bool:
        """Sees to it that the words' list fills the answer too; false when the view hides too much of it.

        Copies of one text can fill a whole list (a footer under every mail): then the texts found are set aside and
        the rest is ranked again.
        """
        texts = set[bytes]()
        for _ in range(ROUNDS):
            asked = {row.text_hash: sum(number in best for number in row.asked) for row in rows}
            texts.update(text_hash for text_hash, count in asked.items() if count)
            if len(best) < depth or len(texts) >= self._limit:
                break
            if only is None and sum(asked.values()) < self._limit:
                return False
            aside = await repository.numbers_of(self._connection, self._view.mandate_id, sorted(texts))
            best = await scores.best_of(depth, only, without=aside)
            rows = await self._resolve(found, {}, best)
        if self._phrases and self._postings is not None:
            held = await phrase_holders(self._connection, self._view, self._postings, self._phrases, only)
            for row in await self._resolve(found, {}, list(held)):
                found.phrases[row.text_hash] = max(held.get(number or 0, 0.0) for number in row.asked)
        return True

    async def _resolve(
        self, found: Candidates, distances: dict[bytes, float], numbers: Sequence[int] | dict[int, float]
    ) -> list[Found]:
        if not distances and not numbers:
            return []
        rows = await repository.resolve(self._connection, self._view, self._space, distances, numbers)
        found.add(rows, distances)
        return rows
