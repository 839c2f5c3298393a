"""What one mandate offers for a query: visible texts with both their scores.

Both legs first look wide, as if everything were visible, and drop what the view hides: right and quick as long as
the view shows a fair share of the mandate. When too little is left they look further, and when the view is so narrow
that this does not help, its chunks are listed and both legs search them alone, exactly. So neither scope nor filters
starve a result. How far a view made us go is remembered for a minute, to begin there; it is a guess about speed only.

Of chunks and texts only what decides their rank is read here; the page of hits reads the rest of what it shows.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from gateway.corpus import search_repository as repository
from gateway.corpus.lexical.scores import Groups, Scores
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.phrases import Phrase, phrase_holders, quoted_phrases
from gateway.corpus.search_repository import Connection, Neighbour, Seen, Space, State, View
from gateway.corpus.shelves import Postings, Shelves

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


class Near(NamedTuple):
    """The nearest texts with their distances, visible or not, and the visible chunks that hold them."""

    distances: dict[bytes, float]
    chunks: dict[bytes, list[int]]

    @classmethod
    def of(cls, found: Iterable[Neighbour]) -> "Near":
        near = cls({}, {})
        for text_hash, distance, number in found:
            near.distances[text_hash] = distance
            if number is not None:
                near.chunks.setdefault(text_hash, []).append(number)
        return near


class Candidates:
    """By text hash. A text without a cosine has no vector of the model; one without BM25 was not looked for by words."""

    def __init__(self) -> None:
        self.cosines: dict[bytes, float] = {}
        self.bm25: dict[bytes, float] = {}
        self.chunks: dict[bytes, list[int]] = {}  # numbers of the visible ones
        # which part of the query, by words, the text quotes as it stands
        self.phrases: dict[bytes, float] = {}
        self.outdated = False  # a chunk ended while we looked, and what took its place was not looked for

    def add_near(self, near: Near) -> None:
        self.chunks.update(near.chunks)
        self.cosines.update({text_hash: 1 - near.distances[text_hash] for text_hash in near.chunks})

    def add(self, rows: Sequence[Seen]) -> None:
        by_text: dict[bytes, list[int]] = {}
        for text_hash, _, distance, number in rows:
            by_text.setdefault(text_hash, []).append(number)
            if distance is not None:
                self.cosines.setdefault(text_hash, 1 - distance)
        self.chunks.update(by_text)

    def score(self, scores: Scores) -> None:
        """Copies of a text may stand under different headings; the best of them counts."""
        by_number = {number: text_hash for text_hash, numbers in self.chunks.items() for number in numbers}
        for number, score in scores.of(by_number).items():
            text_hash = by_number[number]
            self.bm25[text_hash] = max(score, self.bm25.get(text_hash, 0.0))

    def join(self, other: "Candidates") -> None:
        """Takes in the scores of another mandate's."""
        self.cosines.update(other.cosines)
        for text_hash, score in other.bm25.items():
            self.bm25[text_hash] = max(score, self.bm25.get(text_hash, 0.0))
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


class ByWords(NamedTuple):
    """What the words found: every chunk's score, the best chunks, and the visible chunks with a text of theirs."""

    scores: Scores
    best: dict[int, float]
    rows: list[Seen]


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
        self._outdated = False

    async def run(self, query: str, model: str, *, lexical: bool) -> Candidates:
        known = self._shelves.state(self._view.mandate_id, model)
        state = known or await self._read_state(model)
        if lexical and state.languages:
            state = await self._read_words(query, model, state, remembered=known is not None)
        if not state.languages:
            return Candidates()
        self._share = state.share
        try:
            found = await self._look()
            found.outdated = self._outdated
            return found
        finally:
            if self._scoring is not None:
                self._scoring.cancel()

    async def _read_state(self, model: str) -> State:
        return await repository.read_state(self._connection, self._view.mandate_id, model)

    async def _read_words(self, query: str, model: str, state: State, *, remembered: bool) -> State:
        """The state as it turns out to be: when chunks came or went, a language may have come or gone with them."""
        groups, postings = await self._read_postings(query, state.languages)
        if remembered:
            fresh = self._shelves.state(self._view.mandate_id, model) or await self._read_state(model)
            if fresh.languages != state.languages:
                groups, postings = await self._read_postings(query, fresh.languages)
            state = fresh
        self._shelves.note(postings.kept, model, state)
        # counted on another core while the database looks for neighbours
        self._scoring = asyncio.create_task(postings.score(groups, self._depth))
        self._postings = postings
        return state

    async def _read_postings(self, query: str, languages: Sequence[str]) -> tuple[Groups, Postings]:
        groups = query_terms(query, languages)
        self._phrases = quoted_phrases(query, languages)
        every = (groups, *(phrase.groups for phrase in self._phrases))
        terms = {term for words in every for group in words for term in group}
        return groups, await self._shelves.read(self._connection, self._view.mandate_id, sorted(terms))

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
                self._connection, self._view, self._space, share=self._share, limit=depth
            )
        near, words = Near.of(neighbours), await self._by_words(depth, None)
        # An index scan may end early, on its budget; an exact one only with the last vector.
        cut = bool(self._space) and (self._share is not None or len(near.distances) == depth)
        return await self._combine(near, words, depth, cut=cut, only=None)

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
        words = await self._by_words(self._depth, numbers)
        return await self._combine(Near.of(neighbours), words, self._depth, cut=False, only=numbers)

    async def _by_words(self, depth: int, only: Sequence[int] | None) -> ByWords | None:
        if self._scoring is None:
            return None
        scores = await self._scoring
        at_hand = only is None and depth == self._depth
        best = scores.best if at_hand else await scores.best_of(depth, only)
        return ByWords(scores, best, await self._visible(best))

    async def _combine(
        self, near: Near, words: ByWords | None, depth: int, *, cut: bool, only: Sequence[int] | None
    ) -> Candidates | None:
        """What both legs found. `cut`: there may be neighbours beyond these. `only`: all that is visible."""
        found = Candidates()
        found.add_near(near)
        if cut and len(found.chunks) < self._limit:
            return None
        if words is not None:
            found.add(words.rows)
            if not await self._fill_up(words, found, depth, only):
                return None
            found.score(words.scores)
        return found

    async def _fill_up(
        self, words: ByWords, found: Candidates, depth: int, only: Sequence[int] | None
    ) -> bool:
        """Sees to it that the words' list fills the answer too; false when the view hides too much of it.

        Copies of one text can fill a whole list (a footer under every mail): then the texts found are set aside and
        the rest is ranked again.
        """
        scores, best, rows = words
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
            rows = await self._visible(best)
            found.add(rows)
        if self._phrases and self._postings is not None:
            held = await phrase_holders(self._connection, self._view, self._postings, self._phrases, only)
            rows = await self._visible(held)
            found.add(rows)
            for row in rows:
                found.phrases[row.text_hash] = max(held.get(number, 0.0) for number in row.asked)
        return True

    async def _visible(self, numbers: Collection[int]) -> list[Seen]:
        if not numbers:
            return []
        rows, all_there = await repository.visible(self._connection, self._view, self._space, numbers)
        self._outdated |= not all_there
        return rows
