"""What one mandate offers for a query: visible texts with both their scores.

Both legs first look wide, as if everything were visible, and drop what the view hides: right and quick as long as
the view shows a fair share of the mandate. When too little is left they look further, and when the view is so narrow
that this does not help, its chunks are listed and both legs search them alone, exactly. So neither scope nor filters
starve a result. How far a view made us go is remembered for a minute, to begin there; it is a guess about speed only.

Of chunks and texts only what decides their rank is read here; the page of hits reads the rest of what it shows.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple

from gateway.corpus import search_repository as repository
from gateway.corpus.lexical.scores import Groups, Scores
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.phrases import Phrase, phrase_holders, quoted_phrases
from gateway.corpus.search_repository import Neighbour, Seen, Space, State, View
from gateway.corpus.shelves import Postings, Shelves
from gateway.readers import Connection

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

# Reads on a connection of its own, in the same mandate, while its caller goes on.
Beside = Callable[[Callable[[Connection], list[Neighbour]]], Future[list[Neighbour]]]


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
        self.weight = 0.0  # of the query's words in this mandate
        self.chunks: dict[bytes, list[int]] = {}  # numbers of the visible ones
        self.first: dict[
            bytes, int
        ] = {}  # of several, the one whose title or heading says most about the query
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
        self.weight = scores.weight
        by_number = {number: text_hash for text_hash, numbers in self.chunks.items() for number in numbers}
        for number, score in sorted(scores.of(by_number).items()):
            text_hash = by_number[number]
            if text_hash not in self.bm25 or score > self.bm25[text_hash]:
                self.bm25[text_hash], self.first[text_hash] = score, number

    def join(self, other: "Candidates") -> None:
        """Takes in the scores of another mandate's, where the same words are rarer or more frequent: BM25 counts there as what
        it is of all the words could weigh, in this one's measure.
        """
        self.cosines.update(other.cosines)
        self.weight = self.weight or other.weight
        measure = self.weight / other.weight if other.weight else 1.0
        for text_hash, score in other.bm25.items():
            self.bm25[text_hash] = max(score * measure, self.bm25.get(text_hash, 0.0))
        self.phrases.update(other.phrases)


class Hints:
    """With which step to begin, for views where the first ones did not suffice of late."""

    def __init__(self, size: int = 1000) -> None:
        self._kept: OrderedDict[Any, tuple[int, float]] = OrderedDict()
        self._size = size
        self._lock = threading.Lock()  # searches run in threads

    def first_step(self, view: View) -> int:
        step, until = self._kept.get(view.key, (0, 0.0))
        return step if until > time.monotonic() else 0

    def note(self, view: View, step: int) -> None:
        if step == 0 or self.first_step(view) == step:
            return
        with self._lock:
            self._kept[view.key] = (step, time.monotonic() + HINT_SECONDS)
            self._kept.move_to_end(view.key)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)


class ByWords(NamedTuple):
    """What the words found: every chunk's score, the best chunks, and the visible chunks with a text of theirs."""

    scores: Scores
    best: dict[int, float]
    rows: list[Seen]


class _Ahead(NamedTuple):
    """Neighbours that are being looked for, and how."""

    depth: int
    share: float | None
    found: Future[list[Neighbour]]


class Quest:
    """One query against one mandate: its words on the caller's connection, its neighbours on one beside it."""

    def __init__(
        self,
        connection: Connection,
        beside: Beside,
        view: View,
        shelves: Shelves,
        hints: Hints,
        *,
        model: str,
        space: Space | None,
        limit: int,
    ) -> None:
        self._connection, self._beside = connection, beside
        self.view, self._shelves, self._hints = view, shelves, hints
        self._model, self._space, self._limit = model, space, limit
        self._depth = max(min(3 * limit, limit + DEPTH), DEPTH)
        self._share: float | None = None
        self._phrases: list[Phrase] = []
        self._postings: Postings | None = None
        self._scores: Scores | None = None
        self._ahead: _Ahead | None = None
        self._outdated = False

    def look_ahead(self) -> None:
        """Has the neighbours looked for already, if it is known how."""
        known = self._shelves.state(self.view.mandate_id, self._model)
        how, much = STEPS[self._hints.first_step(self.view)]
        if known and how == "wide":
            self._share = known.share
            self._look_beside(self._depth * (much or 1))

    def run(self, query: str, *, lexical: bool) -> Candidates:
        known = self._shelves.state(self.view.mandate_id, self._model)
        state = known or self._read_state()
        if lexical and state.languages:
            state = self._read_words(query, state, remembered=known is not None)
        if not state.languages:
            return Candidates()
        self._share = state.share
        found = self._look()
        found.outdated = self._outdated
        return found

    def _read_state(self) -> State:
        return repository.read_state(self._connection, self.view.mandate_id, self._model)

    def _read_words(self, query: str, state: State, *, remembered: bool) -> State:
        """The state as it turns out to be: when chunks came or went, a language may have come or gone with them."""
        groups, postings = self._read_postings(query, state.languages)
        if remembered:
            fresh = self._shelves.state(self.view.mandate_id, self._model) or self._read_state()
            if fresh.languages != state.languages:
                groups, postings = self._read_postings(query, fresh.languages)
            state = fresh
        self._shelves.note(postings.kept, self._model, state)
        self._postings, self._scores = postings, postings.score(groups, self._depth)
        return state

    def _read_postings(self, query: str, languages: Sequence[str]) -> tuple[Groups, Postings]:
        groups = query_terms(query, languages)
        self._phrases = quoted_phrases(query, languages)
        every = (groups, *(phrase.groups for phrase in self._phrases))
        terms = {term for words in every for group in words for term in group}
        return groups, self._shelves.read(self._connection, self.view.mandate_id, sorted(terms))

    def _look(self) -> Candidates:
        for step in range(self._hints.first_step(self.view), len(STEPS)):
            how, much = STEPS[step]
            found = self._look_narrow(much) if how == "narrow" else self._look_wide(self._depth * (much or 1))
            if found is not None:
                self._hints.note(self.view, step)
                return found
        return Candidates()

    def _look_wide(self, depth: int) -> Candidates | None:
        """None when the view hides so much of the lists that what is left would not fill the answer."""
        self._look_beside(depth)
        words = self._by_words(depth, None)
        near = Near.of(self._ahead.found.result() if self._ahead else ())
        # An index scan may end early, on its budget; an exact one only with the last vector.
        cut = bool(self._space) and (self._share is not None or len(near.distances) == depth)
        return self._combine(near, words, depth, cut=cut, only=None)

    def _look_beside(self, depth: int) -> None:
        """Has the neighbours looked for, unless they are already: what was known may have changed since."""
        space, view, share = self._space, self.view, self._share
        if space is None or (self._ahead and (self._ahead.depth, self._ahead.share) == (depth, share)):
            return
        found = self._beside(
            lambda connection: repository.nearest(connection, view, space, share=share, limit=depth)
        )
        self._ahead = _Ahead(depth, share, found)

    def _look_narrow(self, most: int | None) -> Candidates | None:
        """None when the view shows more than that many chunks."""
        limit = None if most is None else most + 1
        numbers = repository.allowed_numbers(self._connection, self.view, limit)
        if most is not None and len(numbers) > most:
            return None
        if not numbers:
            return Candidates()
        neighbours: list[Neighbour] = []
        if self._space:
            neighbours = repository.nearest_allowed(self._connection, self.view, self._space, self._depth)
        words = self._by_words(self._depth, numbers)
        return self._combine(Near.of(neighbours), words, self._depth, cut=False, only=numbers)

    def _by_words(self, depth: int, only: Sequence[int] | None) -> ByWords | None:
        if (scores := self._scores) is None:
            return None
        at_hand = only is None and depth == self._depth
        best = scores.best if at_hand else scores.best_of(depth, only)
        return ByWords(scores, best, self._visible(best))

    def _combine(
        self, near: Near, words: ByWords | None, depth: int, *, cut: bool, only: Sequence[int] | None
    ) -> Candidates | None:
        """What both legs found. `cut`: there may be neighbours beyond these. `only`: all that is visible."""
        found = Candidates()
        found.add_near(near)
        if cut and len(found.chunks) < self._limit:
            return None
        if words is not None:
            found.add(words.rows)
            if not self._fill_up(words, found, depth, only):
                return None
            found.score(words.scores)
        return found

    def _fill_up(self, words: ByWords, found: Candidates, depth: int, only: Sequence[int] | None) -> bool:
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
            aside = repository.numbers_of(self._connection, self.view.mandate_id, sorted(texts))
            best = scores.best_of(depth, only, without=aside)
            rows = self._visible(best)
            found.add(rows)
        if self._phrases and self._postings is not None:
            held = phrase_holders(self._connection, self.view, self._postings, self._phrases, only)
            rows = self._visible(held)
            found.add(rows)
            for row in rows:
                found.phrases[row.text_hash] = max(held.get(number, 0.0) for number in row.asked)
        return True

    def _visible(self, numbers: Collection[int]) -> list[Seen]:
        if not numbers:
            return []
        rows, all_there = repository.visible(self._connection, self.view, self._space, numbers)
        self._outdated |= not all_there
        return rows
