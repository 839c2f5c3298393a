"""Quoted phrases: what stands between quotation marks is looked for as it stands.

BM25 knows words, not their order. So the chunks that hold every word of the phrase are read and checked. Those that hold
the phrase rank higher, by as much as it is of the query: first, when the query is nothing but the phrase; hardly, when
a long question quotes two words in passing.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.corpus import search_repository as repository
from gateway.corpus.lexical.scores import Groups
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.search_repository import Text, View
from gateway.corpus.shelves import Postings
from gateway.readers import Connection

CHECKED = 300  # chunks read at a time, best by BM25 first; on until one holds the phrase
MOST_CHECKED = 3_000
MOST_PHRASES = 8  # of one query; each is a look into the texts of its own
IN_WORDS = 0.9  # what the same words in a row are worth, with other signs between them: markup, as a rule

_ALIKE = {"'": "\u2018\u2019\u02bc", "-": "\u2010\u2011\u2012\u2013\u2014\u2212"}
_UNHEARD: dict[int, str | None] = {
    **dict.fromkeys(range(0x300, 0x370)),  # accents
    **dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff")),
    **{ord(one): plain for plain, others in _ALIKE.items() for one in others},
}

_DIGRAPHS = re.compile("ae|oe|ue")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_QUOTED = re.compile(r"\"([^\"]{3,})\"|“([^“”]{3,})”|„([^„“”]{3,})[“”]|«([^«»]{3,})»|»([^«»]{3,})«")


class Phrase(NamedTuple):
    """Quoted words; `share` is how much of the query they are."""

    text: str
    groups: Groups
    share: float


def quoted_phrases(query: str, languages: Sequence[str]) -> list[Phrase]:
    length = max(len(query.split()), 1)
    found = [" ".join("".join(match).split()) for match in _QUOTED.findall(query)]
    return [
        Phrase(text, query_terms(text, languages), min(len(text.split()) / length, 1.0))
        for text in islice(filter(None, dict.fromkeys(found)), MOST_PHRASES)
    ]


def folded(text: str) -> str:
    """As a reader hears it: without case, accents and what cannot be seen, with one kind of apostrophe and hyphen, and with one
    letter for an umlaut, however it is written.
    """
    heard = " ".join(unicodedata.normalize("NFKD", text.casefold()).translate(_UNHEARD).split())
    return _DIGRAPHS.sub(lambda found: found.group()[0], heard)


def in_words(heard: str) -> str:
    """The words of a folded text and nothing between them, with a space at either end."""
    return f" {_BETWEEN_WORDS.sub(' ', heard).strip()} "


def phrase_holders(
    connection: Connection,
    view: View,
    postings: Postings,
    phrases: Sequence[Phrase],
    only: Sequence[int] | None,
) -> dict[int, float]:
    """Visible chunks that hold a phrase, with the share of the query it is. `only` are all that is visible."""
    holders: dict[int, float] = {}
    for phrase in phrases:
        look = _Look(connection, view, postings, phrase, only)
        for number, closeness in (look.in_one() | look.across_two()).items():
            holders[number] = min(holders.get(number, 0.0) + phrase.share * closeness, 1.0)
    return holders


class _Look:
    """For one phrase, in the chunks that hold all of its words."""

    def __init__(
        self,
        connection: Connection,
        view: View,
        postings: Postings,
        phrase: Phrase,
        only: Sequence[int] | None,
    ) -> None:
        self._connection, self._view, self._postings = connection, view, postings
        self._groups, self._only = phrase.groups, only
        self._wanted = folded(phrase.text)
        self._words = in_words(self._wanted)
        self._scores = postings.score(phrase.groups, 0)

    def in_one(self) -> dict[int, float]:
        numbers = self._allowed(holding_all(self._postings, self._groups)).tolist()
        best = list(self._scores.best_of(MOST_CHECKED, numbers)) if numbers else []
        for start in range(0, len(best), CHECKED):
            texts = self._read(best[start : start + CHECKED])
            if found := {text.number: near for text in texts if (near := self._closeness(text.text))}:
                return found
        return {}

    def across_two(self) -> dict[int, float]:
        """A sentence may begin at the end of one chunk and end in the next: then both hold it."""
        first = self._allowed(holding_in_two(self._postings, self._groups))
        if not len(first):
            return {}
        weights = self._scores.of([*first.tolist(), *(first + 1).tolist()])
        best = sorted(first.tolist(), key=lambda one: -(weights.get(one, 0.0) + weights.get(one + 1, 0.0)))
        best = best[:CHECKED]
        texts = {text.number: text for text in self._read([*best, *(one + 1 for one in best)])}
        found: dict[int, float] = {}
        for one in best:
            here, there = texts.get(one), texts.get(one + 1)
            if here and there and here.document_id == there.document_id:
                near = self._closeness(f"{here.text} {there.text}")
                found |= dict.fromkeys((one, one + 1), near) if near else {}
        return found

    def _allowed(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return numbers if self._only is None else numbers[np.isin(numbers, self._only)]

    def _read(self, numbers: Sequence[int]) -> list[Text]:
        return repository.read_texts(self._connection, self._view, numbers)

    def _closeness(self, text: str) -> float:
        heard = folded(text)
        if self._wanted in heard:
            return 1.0
        return IN_WORDS if self._words.strip() and self._words in in_words(heard) else 0.0


def _held(postings: Postings, group: Sequence[str]) -> NDArray[np.bool_]:
    """Which places of the shelf hold one of these terms."""
    held = np.zeros(len(postings.kept.shelf), np.bool_)
    for term in group:
        if (impact := postings.impact(term)) is not None:
            held[impact.held_at()] = True
    return held


def holding_all(postings: Postings, groups: Groups) -> NDArray[np.int64]:
    """Numbers of the chunks with every word, whatever their order; none for no words."""
    shelf = postings.kept.shelf
    places = np.full(len(shelf), bool(groups))
    for group in groups:
        places &= _held(postings, group)
    return shelf.chunk_numbers[places]


def holding_in_two(postings: Postings, groups: Groups) -> NDArray[np.int64]:
    """Numbers of the chunks that have every word together with the next one, but neither alone. Whether it is the next one of
    the same document only its text tells.
    """
    numbers = postings.kept.shelf.chunk_numbers
    first = np.flatnonzero(np.diff(numbers) == 1)
    together = np.full(len(first), len(groups) > 1)
    here, there = together.copy(), together.copy()
    for group in groups:
        held = _held(postings, group)
        here &= held[first]
        there &= held[first + 1]
        together &= held[first] | held[first + 1]
    return numbers[first[together & ~here & ~there]]
