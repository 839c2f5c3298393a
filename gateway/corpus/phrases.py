"""Quoted phrases: what stands between quotation marks is looked for as it stands.

BM25 knows words, not their order. So the chunks that hold every word of the phrase are read and checked. Those that hold
the phrase rank higher, by as much as it is of the query: first, when the query is nothing but the phrase; hardly, when
a long question quotes two words in passing.
"""

import asyncio
import re
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.corpus import search_repository as repository
from gateway.corpus.lexical.scores import Groups
from gateway.corpus.lexical.terms import query_terms
from gateway.corpus.search_repository import View
from gateway.corpus.shelves import Postings

CHECKED = 300  # chunks read per phrase, best by BM25 first

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
        for text in dict.fromkeys(found)
        if text
    ]


def folded(text: str) -> str:
    return " ".join(text.casefold().split())


async def phrase_holders(
    connection: repository.Connection,
    view: View,
    postings: Postings,
    phrases: Sequence[Phrase],
    only: Sequence[int] | None,
) -> dict[int, float]:
    """Visible chunks that hold a phrase, with the share of the query it is. `only` are all that is visible."""
    holders: dict[int, float] = {}
    for phrase in phrases:
        together = await asyncio.to_thread(_holding_all, postings, phrase.groups, only)
        if not together:
            continue
        scores = await postings.score(phrase.groups, 0)
        best = await scores.best_of(CHECKED, together)
        for number, text in await repository.read_texts(connection, view, list(best)):
            if folded(phrase.text) in folded(text):
                holders[number] = min(holders.get(number, 0.0) + phrase.share, 1.0)
    return holders


def _holding_all(postings: Postings, groups: Groups, only: Sequence[int] | None) -> list[int]:
    """Chunks with every word, whatever their order."""
    shelf = postings.kept.shelf

    def places(group: Sequence[str]) -> NDArray[np.int64]:
        found = [impact.held_at() for term in group if (impact := postings.impact(term))]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    if not groups:
        return []
    together = shelf.chunk_numbers[reduce(np.intersect1d, map(places, groups))]
    if only is not None:
        together = np.intersect1d(together, np.asarray(only, np.int64))
    return together.tolist()
