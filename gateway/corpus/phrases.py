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
from gateway.corpus.search_repository import View
from gateway.corpus.shelves import Postings
from gateway.readers import Connection

CHECKED = 300  # chunks read per phrase, best by BM25 first
MOST_PHRASES = 8  # of one query; each is a look into the texts of its own

_ALIKE = {"'": "\u2018\u2019\u02bc", "-": "\u2010\u2011\u2012\u2013\u2014\u2212"}
_UNHEARD: dict[int, str | None] = {
    **dict.fromkeys(range(0x300, 0x370)),  # accents
    **dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff")),
    **{ord(one): plain for plain, others in _ALIKE.items() for one in others},
}

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
    """As a reader hears it: without case, accents and what cannot be seen, and with one kind of apostrophe and hyphen."""
    return " ".join(unicodedata.normalize("NFKD", text.casefold()).translate(_UNHEARD).split())


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
        together = _together(postings, phrase.groups, only)
        if not together:
            continue
        scores = postings.score(phrase.groups, 0)
        best = scores.best_of(CHECKED, together)
        texts = repository.read_texts(connection, view, list(best))
        for number in _quoting(texts, phrase.text):
            holders[number] = min(holders.get(number, 0.0) + phrase.share, 1.0)
    return holders


def _quoting(texts: Sequence[tuple[int, str]], phrase: str) -> list[int]:
    wanted = folded(phrase)
    return [number for number, text in texts if wanted in folded(text)]


def holding_all(postings: Postings, groups: Groups) -> NDArray[np.int64]:
    """Numbers of the chunks with every word, whatever their order; none for no words."""
    shelf = postings.kept.shelf
    places = np.full(len(shelf), bool(groups))
    for group in groups:
        holding = np.zeros(len(shelf), np.bool_)
        for term in group:
            if (impact := postings.impact(term)) is not None:
                holding[impact.held_at()] = True
        places &= holding
    return shelf.chunk_numbers[places]


def _together(postings: Postings, groups: Groups, only: Sequence[int] | None) -> list[int]:
    together = holding_all(postings, groups)
    return (together if only is None else together[np.isin(together, only)]).tolist()
